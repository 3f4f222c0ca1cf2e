-- Orders by day, and how many of them were cancelled.
SELECT
  placed_on,
  COUNT(*) AS orders,
  COUNT(*) FILTER (WHERE status = 'cancelled') AS cancelled
FROM orders
GROUP BY placed_on
