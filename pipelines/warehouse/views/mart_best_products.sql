/*---
description: The three products of each category that bring most.
group: warehouse_marts
---*/
WITH sums AS (
  SELECT category, product_id, product, SUM(amount) AS revenue
  FROM fct_order_lines
  GROUP BY category, product_id, product
)
SELECT category, product_id, product, revenue, place
FROM (
  SELECT
    category,
    product_id,
    product,
    revenue,
    row_number() OVER (PARTITION BY category ORDER BY revenue DESC, product_id) AS place
  FROM sums
) AS ranked
WHERE place <= 3
