-- people who sell in the window in which they came
SELECT p.id, p.name, p.starts
FROM (
  SELECT id, name, window.start AS starts
  FROM person GROUP BY id, name, window(date_time, '10 seconds')
) AS p
JOIN (
  SELECT seller, window.start AS starts
  FROM auction GROUP BY seller, window(date_time, '10 seconds')
) AS a ON a.seller = p.id AND a.starts = p.starts
