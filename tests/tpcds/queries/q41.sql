-- Products of manufacturers with items of given looks: a correlated COUNT.
SELECT DISTINCT i_product_name
FROM item i1
WHERE i_manufact_id BETWEEN 3 AND 3 + 9
  AND (
    SELECT COUNT(*) AS item_cnt
    FROM item
    WHERE i_manufact = i1.i_manufact
      AND (
        (i_category = 'Women' AND i_color IN ('powder', 'pale') AND i_units IN ('Ounce', 'Oz', 'Case')
          AND i_size IN ('medium', 'large'))
        OR (i_category = 'Men' AND i_color IN ('chiffon', 'smoke') AND i_units IN ('Dozen', 'Each', 'Oz'))
        OR (i_category = 'Books' AND i_size IN ('small', 'medium'))
      )
  ) > 0
ORDER BY i_product_name
LIMIT 100
