/*---
description: Every delivery with the item's name and today's price.
tags: {layer: detail}
require: incremental
expectations:
  - type: expect_column_values_to_not_be_null
    kwargs: {column: item_id}
  - type: expect_column_values_to_be_between
    kwargs: {column: quantity, min_value: 1}
    severity: warning
---*/
SELECT
  d.delivery_id,
  d.item_id,
  c.name,
  c.category,
  d.quantity,
  d.quantity * c.price AS worth,
  d.arrived_on
FROM deliveries AS d
JOIN catalogue AS c ON c.item_id = d.item_id
