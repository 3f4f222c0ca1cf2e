-- Items of the catalogue of which nothing has arrived yet.
SELECT c.item_id, c.name, c.price
FROM catalogue AS c
WHERE NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE d.item_id = c.item_id)
