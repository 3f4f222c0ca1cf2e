/*---
description: Every order with what it comes to and what was paid of it.
group: warehouse_facts
---*/
SELECT
  o.order_id,
  o.customer_id,
  o.placed_on,
  o.state,
  sums.amount,
  coalesce(p.paid, 0) AS paid
FROM stg_orders AS o
JOIN (
  SELECT order_id, SUM(amount) AS amount FROM stg_order_lines GROUP BY order_id
) AS sums ON sums.order_id = o.order_id
LEFT JOIN stg_payments AS p ON p.order_id = o.order_id
