/*---
description: What each customer has ordered, paid and owes.
group: warehouse_marts
owners: [team:finance]
---*/
SELECT
  c.customer_id,
  c.name,
  c.city,
  COUNT(*) AS orders,
  SUM(f.amount) AS ordered,
  SUM(f.paid) AS paid,
  SUM(f.amount) - SUM(f.paid) AS owes
FROM fct_orders AS f
JOIN stg_customers AS c ON c.customer_id = f.customer_id
WHERE f.state <> 'cancelled'
GROUP BY c.customer_id, c.name, c.city
