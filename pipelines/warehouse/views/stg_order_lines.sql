/*---
description: Lines of orders with what they come to.
group: warehouse_staging
require: incremental
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: quantity, min_value: 1}
    severity: warning
---*/
SELECT
  order_no AS order_id,
  line_no,
  CAST(substring(product_code, 3) AS BIGINT) AS product_id,
  quantity,
  CAST(quantity * price_cents / 100 AS DECIMAL(14,2)) AS amount
FROM raw_order_lines
