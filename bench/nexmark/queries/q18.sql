-- the last bid of a bidder on an auction
SELECT auction, bidder, price, channel, url, date_time, extra
FROM (
  SELECT
    auction, bidder, price, channel, url, date_time, extra,
    row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place
  FROM bid
) AS ranked
WHERE place = 1
