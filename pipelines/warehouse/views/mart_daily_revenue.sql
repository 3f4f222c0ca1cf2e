/*---
description: Revenue and orders by day.
group: warehouse_marts
owners: [team:finance]
freshness: {fail_after: 26h, warn_after: 25h}
expectations:
  - type: expect_column_values_to_be_unique
    kwargs: {column: placed_on}
---*/
SELECT placed_on, SUM(amount) AS revenue, COUNT(DISTINCT order_id) AS orders
FROM fct_order_lines
GROUP BY placed_on
