-- SQL that is not maintained yet: refused as Unsupported, with construct and position.

-- refused: Unsupported | NATURAL JOIN | line 1, column 18
SELECT id FROM t NATURAL JOIN u;
-- refused: Unsupported | SORT BY | line 1, column 18
SELECT id FROM t SORT BY id;
-- refused: Unsupported | CLUSTER BY | line 1, column 18
SELECT id FROM t CLUSTER BY id;
-- refused: Unsupported | DISTRIBUTE BY | line 1, column 18
SELECT id FROM t DISTRIBUTE BY id;
-- refused: Unsupported | UNION BY NAME | line 1, column 18
SELECT id FROM t UNION ALL BY NAME SELECT id FROM u;
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
-- refused: Unsupported | WITH RECURSIVE | line 1, column 6
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r;
-- refused: Unsupported | the table function range | line 1, column 16
SELECT id FROM range(5);
-- refused: Unsupported | a parameter
SELECT id FROM t WHERE x = :p;
-- refused: Unsupported | a parameter
SELECT id FROM t WHERE x = ?;
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
-- refused: Unsupported | LIMIT 1 + 1 | write the number
SELECT id FROM t ORDER BY id LIMIT 1 + 1;
-- refused: Unsupported | SUM of floating-point numbers over a frame of RANGE | DECIMAL
SELECT id, SUM(CAST(x AS DOUBLE)) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM t;
-- refused: Unsupported | of a set operation | as a derived table
SELECT x FROM t UNION SELECT y FROM u ORDER BY x + 1 LIMIT 3;
-- refused: Unsupported | a correlated subquery with window functions
SELECT id FROM t WHERE x IN (SELECT SUM(y) OVER (ORDER BY y) FROM u WHERE u.id = t.id);
-- refused: UserError | Intervals greater than a month
SELECT window(ts, '1 month') AS w, COUNT(*) AS n FROM t GROUP BY window(ts, '1 month');
-- refused: Unsupported | the time window window_time | line 1, column 8
SELECT window_time(window(ts, '1 hour')) AS w FROM t;
