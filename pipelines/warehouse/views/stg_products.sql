/*---
description: Products with prices in whole money.
group: warehouse_staging
require: incremental
---*/
SELECT
  CAST(substring(product_code, 3) AS BIGINT) AS product_id,
  trim(title) AS name,
  coalesce(lower(category), 'other') AS category,
  CAST(price_cents / 100 AS DECIMAL(12,2)) AS price
FROM raw_products
