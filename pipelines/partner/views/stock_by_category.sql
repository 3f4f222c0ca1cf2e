/*---
description: Units and worth of all that has arrived, by category.
tags: {layer: summary}
freshness: 26h
---*/
SELECT category, SUM(quantity) AS units, SUM(worth) AS worth, COUNT(DISTINCT item_id) AS items
FROM arrivals
GROUP BY category
