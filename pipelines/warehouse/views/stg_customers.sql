/*---
description: Customers with tidy names.
group: warehouse_staging
require: incremental
expectations:
  - type: expect_column_values_to_not_be_null
    kwargs: {column: customer_id}
---*/
SELECT
  CAST(substring(customer_code, 3) AS BIGINT) AS customer_id,
  initcap(trim(full_name)) AS name,
  coalesce(nullif(trim(city), ''), 'unknown') AS city
FROM raw_customers
