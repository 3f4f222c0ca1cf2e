-- the highest bids of each window
SELECT b.auction, b.price, b.bidder, b.date_time, b.extra
FROM (
  SELECT auction, price, bidder, date_time, extra, window(date_time, '10 seconds').start AS starts
  FROM bid
) AS b
JOIN (
  SELECT window.start AS starts, MAX(price) AS most FROM bid GROUP BY window(date_time, '10 seconds')
) AS m ON m.starts = b.starts AND m.most = b.price
