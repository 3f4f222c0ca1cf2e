-- Profit of stores near zip codes: INTERSECT of lists and of popular zips.
SELECT s_store_name, SUM(ss_net_profit) AS net_profit
FROM store_sales, date_dim, store, (
  SELECT ca_zip
  FROM (
    SELECT SUBSTR(ca_zip, 1, 5) AS ca_zip
    FROM customer_address
    WHERE SUBSTR(ca_zip, 1, 5) IN ('24128', '35709', '57834', '38056', '69913', '48425', '10298', '22461')
    INTERSECT
    SELECT ca_zip
    FROM (
      SELECT SUBSTR(ca_zip, 1, 5) AS ca_zip, COUNT(*) AS cnt
      FROM customer_address, customer
      WHERE ca_address_sk = c_current_addr_sk AND c_preferred_cust_flag = 'Y'
      GROUP BY ca_zip
      HAVING COUNT(*) > 1
    ) a1
  ) a2
) v1
WHERE ss_store_sk = s_store_sk AND ss_sold_date_sk = d_date_sk
  AND d_qoy = 2 AND d_year = 2000
  AND SUBSTR(s_zip, 1, 2) = SUBSTR(v1.ca_zip, 1, 2)
GROUP BY s_store_name
ORDER BY s_store_name
LIMIT 100
