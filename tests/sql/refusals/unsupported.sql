-- SQL that is not maintained yet: refused as Unsupported, with construct and position.

-- refused: Unsupported | NATURAL JOIN | line 1, column 18
SELECT id FROM t NATURAL JOIN u;
-- refused: Unsupported | a window function (OVER) | line 1, column 12
SELECT id, SUM(x) OVER (PARTITION BY s) AS total FROM t;
-- refused: Unsupported | a window function (OVER) | line 2, column 3
SELECT id,
  row_number() OVER (ORDER BY id) AS n FROM t;
-- refused: Unsupported | the window function rank | line 1, column 8
SELECT rank() AS r FROM t;
-- refused: Unsupported | WINDOW | line 1, column 20
SELECT id FROM t   WINDOW w AS (PARTITION BY id);
-- refused: Unsupported | QUALIFY | line 2, column 1
SELECT id FROM t
QUALIFY row_number() OVER (ORDER BY id) = 1;
-- refused: Unsupported | ORDER BY | line 1, column 18
SELECT id FROM t ORDER BY id;
-- refused: Unsupported | LIMIT | line 3, column 1
SELECT id
FROM t
LIMIT 5;
-- refused: Unsupported | LIMIT | line 1, column 36
SELECT q.id FROM (SELECT id FROM t LIMIT 5) q;
-- refused: Unsupported | OFFSET | line 1, column 18
SELECT id FROM t OFFSET 5;
-- refused: Unsupported | SORT BY | line 1, column 18
SELECT id FROM t SORT BY id;
-- refused: Unsupported | CLUSTER BY | line 1, column 18
SELECT id FROM t CLUSTER BY id;
-- refused: Unsupported | DISTRIBUTE BY | line 1, column 18
SELECT id FROM t DISTRIBUTE BY id;
-- refused: Unsupported | UNION BY NAME | line 1, column 18
SELECT id FROM t UNION ALL BY NAME SELECT id FROM u;
-- refused: Unsupported | the aggregate stddev | line 1, column 8
SELECT stddev(x) AS d FROM t;
-- refused: Unsupported | the aggregate collect_list | line 1, column 11
SELECT s, collect_list(x) AS xs FROM t GROUP BY s;
-- refused: Unsupported | the aggregate percentile | line 1, column 8
SELECT percentile(x, 0.5) AS p FROM t;
-- refused: Unsupported | the aggregate percentile_cont | line 1, column 8
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) AS p FROM t;
-- refused: Unsupported | the aggregate any_value | line 1, column 8
SELECT any_value(x) AS x FROM t;
-- refused: Unsupported | the aggregate any | line 1, column 8
SELECT any(x > 1) AS x FROM t;
-- refused: Unsupported | the aggregate first | line 1, column 8
SELECT first(x) IGNORE NULLS AS x FROM t;
-- refused: Unsupported | the aggregate max_by | line 1, column 8
SELECT max_by(x, id) AS x FROM t;
-- refused: Unsupported | the aggregate count_if | line 1, column 8
SELECT count_if(x > 1) AS x FROM t;
-- refused: Unsupported | the aggregate try_sum | line 1, column 8
SELECT try_sum(x) AS x FROM t;
-- refused: Unsupported | the aggregate kurtosis | line 1, column 12
SELECT 1 + kurtosis(x) AS x FROM t;
-- refused: Unsupported | the aggregate listagg | line 1, column 8
SELECT listagg(s, ',') WITHIN GROUP (ORDER BY s) AS x FROM t;
-- refused: Unsupported | the aggregate grouping | line 1, column 8
SELECT grouping(s) AS g FROM t GROUP BY s;
-- refused: Unsupported | the aggregate stddev | line 1, column 35
SELECT s FROM t GROUP BY s HAVING stddev(x) > 1;
-- refused: Unsupported | the aggregate approx_count_distinct | line 1, column 8
SELECT approx_count_distinct(x) FILTER (WHERE x > 1) AS n FROM t;
-- refused: Unsupported | the generator explode | line 1, column 8
SELECT explode(xs) AS x FROM t;
-- refused: Unsupported | the generator posexplode | line 1, column 8
SELECT posexplode(xs) AS (i, x) FROM t;
-- refused: Unsupported | the generator stack | line 1, column 8
SELECT stack(2, 1, 2) AS x FROM t;
-- refused: Unsupported | LATERAL | line 1, column 21
SELECT t.id FROM t, LATERAL (SELECT t.x + 1 AS y);
-- refused: Unsupported | PIVOT | line 1, column 17
SELECT * FROM t PIVOT (SUM(x) FOR s IN ('a', 'b'));
-- refused: Unsupported | TABLESAMPLE | line 1, column 18
SELECT id FROM t TABLESAMPLE (10 PERCENT);
-- refused: Unsupported | GROUP BY GROUPING SETS | line 1, column 32
SELECT s, COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((s), ());
-- refused: Unsupported | GROUP BY ROLLUP | line 2, column 1
SELECT s, COUNT(*) AS n FROM t
GROUP BY ROLLUP (s);
-- refused: Unsupported | GROUP BY ROLLUP | line 1, column 32
SELECT s, COUNT(*) AS n FROM t GROUP BY s WITH ROLLUP;
-- refused: Unsupported | GROUP BY CUBE | line 1, column 32
SELECT s, COUNT(*) AS n FROM t GROUP BY CUBE (s);
-- refused: Unsupported | GROUP BY ALL | line 1, column 32
SELECT s, COUNT(*) AS n FROM t GROUP BY ALL;
-- refused: Unsupported | WITH RECURSIVE | line 1, column 6
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r;
-- refused: Unsupported | the table function range | line 1, column 16
SELECT id FROM range(5);
-- refused: Unsupported | a parameter
SELECT id FROM t WHERE x = :p;
-- refused: Unsupported | a parameter
SELECT id FROM t WHERE x = ?;
-- refused: Unsupported | the time window window | line 1, column 8
SELECT window(ts, '1 hour') AS w, COUNT(*) AS n FROM t GROUP BY window(ts, '1 hour');
-- refused: Unsupported | * as an argument | line 1, column
SELECT struct(*) AS r FROM t;
-- refused: Unsupported | * as an argument
SELECT COUNT(t.*) AS n FROM t;
-- refused: Unsupported | * EXCEPT
SELECT * EXCEPT (x) FROM t;
-- refused: Unsupported | all fields of a struct
SELECT p.* FROM t;
-- refused: Unsupported | the pipe |> | line 1, column 8
FROM t |> WHERE x > 1;
-- refused: Unsupported | time travel of a table
SELECT id FROM t VERSION AS OF 3;
-- refused: Unsupported | GROUP BY or HAVING without keys and aggregates
SELECT 1 AS one FROM t HAVING true;
-- refused: Unsupported | outside of the aggregates
SELECT x + id AS y, COUNT(*) AS n FROM t GROUP BY id + x;

-- refused: Unsupported | RIGHT JOIN after a comma or CROSS JOIN
SELECT u.id FROM t, u RIGHT JOIN t AS v ON u.id = v.id;
-- refused: Unsupported | a subquery in the condition of a LEFT JOIN
SELECT t.id FROM t LEFT JOIN u ON t.id IN (SELECT id FROM u);
-- refused: Unsupported | a correlated subquery with GROUP BY, DISTINCT, LIMIT or UNION
SELECT id FROM t WHERE x IN (SELECT MAX(y) FROM u WHERE u.id = t.id GROUP BY y);
-- refused: Unsupported | correlated by more than equalities
SELECT id, (SELECT MAX(y) FROM u WHERE u.id < t.id) AS m FROM t;
-- refused: Unsupported | IN with a correlated or tuple subquery outside of WHERE's AND
SELECT id, x IN (SELECT y FROM u WHERE u.id = t.id) AS m FROM t;
-- refused: Unsupported | VALUES whose columns are not named | line 1, column 18
SELECT col1 FROM VALUES (1), (2) AS v;
-- refused: Unsupported | LATERAL VIEW without names | line 1, column 23
SELECT id, col FROM t LATERAL VIEW explode(xs) e;
-- refused: Unsupported | a SEMI or ANTI JOIN before a RIGHT or FULL JOIN
SELECT u.id FROM t LEFT SEMI JOIN u AS q ON t.id = q.id FULL JOIN u ON t.id = u.id;

-- Columns that can't be stored.

-- refused: Unsupported | an output column without a name | line 1, column 12 | x + 1 AS a_name
SELECT id, x + 1 FROM t;
-- refused: Unsupported | an output column without a name | line 2, column 3
SELECT
  COUNT(*) FROM t;
-- refused: Unsupported | an output column without a name | line 1, column 8
SELECT 'text' FROM t;
-- refused: Unsupported | the type VOID
SELECT NULL AS nothing FROM t;
-- refused: Unsupported | the type MAP
SELECT map('a', x) AS m FROM t;
-- refused: Unsupported | the type INTERVAL
SELECT ts - ts AS i FROM t;
-- refused: Unsupported | the type VARIANT
SELECT parse_json(s) AS v FROM t;
-- refused: Unsupported | the type MAP
SELECT array(map('a', 1)) AS m FROM t;
