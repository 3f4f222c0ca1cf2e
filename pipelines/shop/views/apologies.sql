-- Big spenders who got something late: the ones to write to first.
SELECT b.customer_id, b.name, b.revenue, l.late_items, l.worst_days
FROM big_spenders AS b
JOIN late_customers AS l ON l.customer_id = b.customer_id
