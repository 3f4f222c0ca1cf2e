-- Customers who got items later than promised.
WITH late AS (
  SELECT order_id, datediff(delivered, promised) AS days
  FROM order_items
  WHERE delivered > promised
)
SELECT
  c.id AS customer_id,
  c.name,
  COUNT(*) AS late_items,
  MAX(late.days) AS worst_days
FROM late
JOIN orders AS o ON o.id = late.order_id
JOIN customers AS c ON c.id = o.customer_id
GROUP BY c.id, c.name
