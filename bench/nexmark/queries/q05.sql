-- auctions with the most bids of each sliding window
WITH counts AS (
  SELECT auction, window.start AS starts, COUNT(*) AS num
  FROM bid
  GROUP BY auction, window(date_time, '10 seconds', '2 seconds')
)
SELECT c.starts, c.auction, c.num
FROM counts AS c
JOIN (SELECT starts, MAX(num) AS most FROM counts GROUP BY starts) AS m
  ON m.starts = c.starts AND m.most = c.num
