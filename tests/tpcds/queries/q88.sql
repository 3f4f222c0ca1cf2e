-- Sales per half hour side by side: eight global counts cross joined.
SELECT *
FROM (
  SELECT COUNT(*) AS h8_30
  FROM store_sales, household_demographics, time_dim, store
  WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk
    AND t_hour = 8 AND t_minute >= 30
    AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2) OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2)
      OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2))
    AND s_store_name = 'ese'
) s_h8_30, (
  SELECT COUNT(*) AS h9_00
  FROM store_sales, household_demographics, time_dim, store
  WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk
    AND t_hour = 9 AND t_minute < 30
    AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2) OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2)
      OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2))
    AND s_store_name = 'ese'
) s_h9_00, (
  SELECT COUNT(*) AS h9_30
  FROM store_sales, household_demographics, time_dim, store
  WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk
    AND t_hour = 9 AND t_minute >= 30
    AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2) OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2)
      OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2))
    AND s_store_name = 'ese'
) s_h9_30, (
  SELECT COUNT(*) AS h10_00
  FROM store_sales, household_demographics, time_dim, store
  WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk
    AND t_hour = 10 AND t_minute < 30
    AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2) OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2)
      OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2))
    AND s_store_name = 'ese'
) s_h10_00, (
  SELECT COUNT(*) AS h10_30
  FROM store_sales, household_demographics, time_dim, store
  WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk
    AND t_hour = 10 AND t_minute >= 30
    AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2) OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2)
      OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2))
    AND s_store_name = 'ese'
) s_h10_30, (
  SELECT COUNT(*) AS h11_00
  FROM store_sales, household_demographics, time_dim, store
  WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk
    AND t_hour = 11 AND t_minute < 30
    AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2) OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2)
      OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2))
    AND s_store_name = 'ese'
) s_h11_00, (
  SELECT COUNT(*) AS h11_30
  FROM store_sales, household_demographics, time_dim, store
  WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk
    AND t_hour = 11 AND t_minute >= 30
    AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2) OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2)
      OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2))
    AND s_store_name = 'ese'
) s_h11_30, (
  SELECT COUNT(*) AS h12_00
  FROM store_sales, household_demographics, time_dim, store
  WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk
    AND t_hour = 12 AND t_minute < 30
    AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2) OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2)
      OR (hd_dep_count = 0 AND hd_vehicle_count <= 0 + 2))
    AND s_store_name = 'ese'
) s_h12_00
