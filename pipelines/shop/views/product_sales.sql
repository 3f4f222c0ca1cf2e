-- Units, revenue and the range of prices of each product that was sold.
SELECT
  p.id AS product_id,
  p.name,
  p.category,
  SUM(i.quantity) AS units,
  SUM(i.quantity * i.price) AS revenue,
  MIN(i.price) AS lowest_price,
  MAX(i.price) AS highest_price
FROM products AS p
JOIN order_items AS i ON i.product_id = p.id
JOIN orders AS o ON o.id = i.order_id
WHERE o.status <> 'cancelled'
GROUP BY p.id, p.name, p.category
