-- the average of a seller's last ten winning bids
WITH won AS (
  SELECT id, seller, price, date_time
  FROM (
    SELECT
      a.id, a.seller, b.price, b.date_time,
      row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS place
    FROM auction AS a
    JOIN bid AS b ON a.id = b.auction
    WHERE b.date_time BETWEEN a.date_time AND a.expires
  ) AS ranked
  WHERE place = 1
)
SELECT
  id, seller,
  AVG(price) OVER (
    PARTITION BY seller ORDER BY date_time, id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW
  ) AS average
FROM won
