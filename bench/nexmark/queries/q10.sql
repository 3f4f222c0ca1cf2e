-- bids as they are put away, by day and hour
SELECT
  auction, bidder, price, date_time, extra,
  date_format(date_time, 'yyyy-MM-dd') AS day, date_format(date_time, 'HH:mm') AS minute
FROM bid
