-- What each customer has spent, cancelled orders left out.
SELECT
  c.id AS customer_id,
  c.name,
  c.city,
  COUNT(*) AS items,
  SUM(i.quantity * i.price) AS revenue
FROM customers AS c
JOIN orders AS o ON o.customer_id = c.id
JOIN order_items AS i ON i.order_id = o.id
WHERE o.status <> 'cancelled'
GROUP BY c.id, c.name, c.city
