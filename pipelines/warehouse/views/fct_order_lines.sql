/*---
description: Every line that was not cancelled, with its order and its product.
group: warehouse_facts
require: incremental
checks: {blocking: [replay_equality]}
---*/
SELECT
  l.order_id,
  l.line_no,
  o.customer_id,
  o.placed_on,
  p.product_id,
  p.name AS product,
  p.category,
  l.quantity,
  l.amount
FROM stg_order_lines AS l
JOIN stg_orders AS o ON o.order_id = l.order_id
JOIN stg_products AS p ON p.product_id = l.product_id
WHERE o.state <> 'cancelled'
