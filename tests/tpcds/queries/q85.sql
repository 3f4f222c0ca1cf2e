-- Reasons of web returns under alternatives.
SELECT SUBSTR(r_reason_desc, 1, 20) AS reason, AVG(ws_quantity) AS avg_quantity, AVG(wr_refunded_cash) AS avg_cash,
  AVG(wr_fee) AS avg_fee
FROM web_sales, web_returns, web_page, customer_demographics cd1, customer_demographics cd2, customer_address, date_dim, reason
WHERE ws_web_page_sk = wp_web_page_sk AND ws_item_sk = wr_item_sk AND ws_order_number = wr_order_number
  AND ws_sold_date_sk = d_date_sk AND d_year = 2000
  AND cd1.cd_demo_sk = wr_refunded_cdemo_sk AND cd2.cd_demo_sk = wr_returning_cdemo_sk
  AND ca_address_sk = wr_refunded_addr_sk AND r_reason_sk = wr_reason_sk
  AND (
    (cd1.cd_marital_status = 'M' AND cd2.cd_gender = 'F' AND ws_sales_price BETWEEN 10.00 AND 150.00)
    OR (cd1.cd_marital_status = 'S' AND cd1.cd_gender = cd2.cd_gender AND ws_sales_price BETWEEN 5.00 AND 100.00)
    OR (cd1.cd_marital_status = cd2.cd_marital_status AND ws_sales_price BETWEEN 50.00 AND 200.00)
  )
  AND (
    (ca_country = 'United States' AND ca_state IN ('IN', 'OH', 'TN') AND ws_net_profit BETWEEN -1000 AND 2000)
    OR (ca_country = 'United States' AND ca_state IN ('GA', 'CA', 'NM') AND ws_net_profit BETWEEN -500 AND 3000)
    OR (ca_country = 'United States' AND ca_state IN ('TX', 'KY', 'VA') AND ws_net_profit BETWEEN -2000 AND 2500)
  )
GROUP BY r_reason_desc
ORDER BY SUBSTR(r_reason_desc, 1, 20), AVG(ws_quantity), AVG(wr_refunded_cash), AVG(wr_fee)
LIMIT 100
