-- Morning against evening on the web: a ratio of two counts.
SELECT CAST(amc AS DECIMAL(15,4)) / CAST(pmc AS DECIMAL(15,4)) AS am_pm_ratio
FROM (
  SELECT COUNT(*) AS amc
  FROM web_sales, household_demographics, time_dim, web_page
  WHERE ws_sold_time_sk = t_time_sk AND ws_ship_hdemo_sk = hd_demo_sk AND ws_web_page_sk = wp_web_page_sk
    AND t_hour BETWEEN 8 AND 10 AND hd_dep_count IN (5, 6) AND wp_char_count BETWEEN 3000 AND 6200
) am, (
  SELECT COUNT(*) AS pmc
  FROM web_sales, household_demographics, time_dim, web_page
  WHERE ws_sold_time_sk = t_time_sk AND ws_ship_hdemo_sk = hd_demo_sk AND ws_web_page_sk = wp_web_page_sk
    AND t_hour BETWEEN 19 AND 21 AND hd_dep_count IN (5, 6) AND wp_char_count BETWEEN 3000 AND 6200
) pm
ORDER BY am_pm_ratio
LIMIT 100
