/*---
description: What was paid for an order, all payments together.
group: warehouse_staging
require: incremental
---*/
SELECT
  order_no AS order_id,
  CAST(SUM(amount_cents) / 100 AS DECIMAL(14,2)) AS paid,
  COUNT(*) AS payments
FROM raw_payments
GROUP BY order_no
