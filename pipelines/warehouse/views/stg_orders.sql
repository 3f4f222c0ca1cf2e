/*---
description: Orders with their state in words.
group: warehouse_staging
require: incremental
expectations:
  - type: expect_column_values_to_be_in_set
    kwargs: {column: state, value_set: [open, shipped, cancelled]}
---*/
SELECT
  order_no AS order_id,
  CAST(substring(customer_code, 3) AS BIGINT) AS customer_id,
  placed_on,
  CASE state WHEN 'S' THEN 'shipped' WHEN 'C' THEN 'cancelled' ELSE 'open' END AS state
FROM raw_orders
