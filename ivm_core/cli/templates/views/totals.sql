/*---
description: What every customer has spent.
require: incremental
expectations:
  - type: expect_column_values_to_not_be_null
    kwargs: {column: customer}
---*/
SELECT customer, SUM(amount) AS total, COUNT(*) AS orders
FROM orders
GROUP BY customer
