-- the ten highest bids of an auction
SELECT auction, bidder, price, channel, url, date_time, extra, place
FROM (
  SELECT
    auction, bidder, price, channel, url, date_time, extra,
    row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time) AS place
  FROM bid
) AS ranked
WHERE place <= 10
