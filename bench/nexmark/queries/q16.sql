-- the same by channel, with the last minute
SELECT
  channel,
  date_format(date_time, 'yyyy-MM-dd') AS day,
  MAX(date_format(date_time, 'HH:mm')) AS minute,
  COUNT(*) AS total_bids,
  COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
  COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  COUNT(DISTINCT bidder) AS total_bidders,
  COUNT(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
  COUNT(DISTINCT auction) AS total_auctions,
  COUNT(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions
FROM bid
GROUP BY channel, date_format(date_time, 'yyyy-MM-dd')
