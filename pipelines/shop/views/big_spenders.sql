-- Customers who have spent 2,500 or more.
SELECT customer_id, name, revenue
FROM revenue_per_customer
WHERE revenue >= 2500
