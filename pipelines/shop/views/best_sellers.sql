-- Products sold 60 times or more.
SELECT product_id, name, category, units
FROM product_sales
WHERE units >= 60
