-- SQL that is not maintained yet: refused as Unsupported, with construct and position.

-- refused: Unsupported | TABLESAMPLE | line 1, column 18
SELECT id FROM t TABLESAMPLE (10 PERCENT);
-- refused: Unsupported | t.x of the query around in the recursive expression r
SELECT id FROM t WHERE EXISTS (WITH RECURSIVE r(n) AS (SELECT t.x UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r);
-- refused: Unsupported | a recursive expression u beside a relation u
SELECT id FROM t WHERE id IN (WITH RECURSIVE u(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM u WHERE n < 5) SELECT n FROM u) AND id IN (SELECT id FROM u);
-- refused: Unsupported | the recursive expression q within r, which is one too
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r JOIN (WITH RECURSIVE q(m) AS (SELECT 1 UNION ALL SELECT m + 1 FROM q WHERE m < 3) SELECT m FROM q) ON m = n) SELECT n FROM r;
-- refused: Unsupported | MAX RECURSION LEVEL
WITH RECURSIVE r(n) MAX RECURSION LEVEL 9 AS (SELECT id FROM t UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r;
-- refused: Unsupported | in the recursion of refused.r
WITH RECURSIVE r(n) AS (SELECT id FROM t UNION ALL SELECT COUNT(*) FROM r) SELECT n FROM r;
-- refused: Unsupported | a parameter
SELECT id FROM t WHERE x = :p;
-- refused: Unsupported | a parameter
SELECT id FROM t WHERE x = ?;
-- refused: Unsupported | * as an argument
SELECT COUNT(t.*) AS n FROM t;
-- refused: Unsupported | time travel of a table
SELECT id FROM t VERSION AS OF 3;

-- refused: Unsupported | a SEMI or ANTI JOIN with USING before a RIGHT or FULL JOIN
SELECT u.id FROM t LEFT SEMI JOIN u AS q USING (id) FULL JOIN u ON t.id = u.id;
-- refused: Unsupported | a SEMI or ANTI JOIN in parentheses
SELECT t.id FROM (t LEFT SEMI JOIN u ON t.id = u.id);

-- Columns that can't be stored.

-- refused: Unsupported | the type VOID
SELECT NULL AS nothing FROM t;
-- refused: Unsupported | the type INTERVAL
SELECT ts - ts AS i FROM t;
-- refused: Unsupported | the type VARIANT
SELECT parse_json(s) AS v FROM t;
-- refused: Unsupported | the type INTERVAL
SELECT array(map('a', ts - ts)) AS m FROM t;
-- refused: Unsupported | comparing values of type MAP<STRING, INT> | map_entries
SELECT map('a', x) AS m, COUNT(*) AS n FROM t GROUP BY map('a', x);
-- refused: Unsupported | comparing values of type MAP<STRING, INT> | any_value | max_by
SELECT id, any_value(map('a', x)) AS m FROM t GROUP BY id;
-- refused: Unsupported | a column of this type | a scalar subquery can't give a MAP | map_entries(m)
SELECT id, (SELECT map('a', y) FROM u WHERE u.id = t.id) AS m FROM t;
-- refused: UserError | Spark fails on the SQL | another type
SELECT id, s:a AS a FROM t;
-- refused: Unsupported | SUM of floating-point numbers over a frame of RANGE | DECIMAL
SELECT id, SUM(CAST(x AS DOUBLE)) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM t;
-- refused: UserError | Intervals greater than a month
SELECT window(ts, '1 month') AS w, COUNT(*) AS n FROM t GROUP BY window(ts, '1 month');
-- refused: Unsupported | the table function range | line 1, column 16
SELECT id FROM range(CAST('5' AS INT));
-- refused: InvalidName | a_sum(x)
SELECT * FROM (SELECT id, x, s FROM t) PIVOT (SUM(x), MIN(x) FOR s IN ('a' AS a));
-- refused: Unsupported | LIMIT of rows that are sorted in parts
SELECT id FROM t SORT BY id LIMIT 5;
-- refused: Unsupported | the generator EXPLODE(xs) in this select list | LATERAL VIEW
SELECT explode(xs) AS a, COUNT(*) OVER () AS n FROM t;
-- refused: Unsupported | the generator explode | line 1, column 12
SELECT 1 + explode(xs) AS a FROM t;
-- refused: Unsupported | LEFT JOIN LATERAL of a generator ON a condition
SELECT id, x2 FROM t LEFT JOIN LATERAL explode(xs) AS e(x2) ON x2 > 1;
-- refused: Unsupported | UNION BY NAME | line 1, column 18 | Spark SQL does not have it
SELECT id FROM t UNION ALL BY NAME SELECT id FROM u;
-- refused: DuplicateName | two columns of one name | derived table
SELECT * FROM (SELECT * FROM (SELECT t.id, u.id FROM t JOIN u ON t.id = u.id) q) AS r(a, b);
-- refused: SqlError | the pipe operator TABLESAMPLE is not known | line 1, column 11
FROM t |> TABLESAMPLE (10 PERCENT);
-- refused: SqlError | GROUP BY of positions in a pipe
FROM t |> AGGREGATE COUNT(*) AS n GROUP BY 1;
-- refused: Unsupported | a comparison with ANY or ALL of a subquery | Spark SQL does not have it | EXISTS
SELECT id FROM t WHERE x > ALL (SELECT y FROM u);
-- refused: Unsupported | NOT IN (SELECT …) within a larger condition of a join | line 1, column 53 | NOT EXISTS
SELECT t.id FROM t JOIN u ON t.id = u.id OR u.y NOT IN (SELECT x FROM t);
-- refused: Unsupported | NOT IN (SELECT …) of the side of a join whose rows all stay | takes NOT IN for true | NOT EXISTS
SELECT t.id, u.y FROM t LEFT JOIN u ON t.id = u.id AND t.x NOT IN (SELECT y FROM u);
-- refused: Unsupported | NOT IN (SELECT …) of the side of a join whose rows all stay | takes NOT IN for true | NOT EXISTS
SELECT t.id, u.y FROM t FULL JOIN u ON t.id = u.id AND NOT (u.y IN (SELECT x FROM t));
-- refused: Unsupported | NOT IN (SELECT …) of the side of a join whose rows all stay | takes NOT IN for true | NOT EXISTS
SELECT t.id FROM t LEFT ANTI JOIN u ON t.id = u.id AND t.x NOT IN (SELECT y FROM u);
-- refused: Unsupported | the type COLLATE | lower
SELECT COUNT(*) AS n FROM t GROUP BY s COLLATE UTF8_LCASE;
-- refused: Unsupported | a column of this type | VARIANT, an INTERVAL | lower(s)
SELECT CAST(MIN(s COLLATE UTF8_LCASE) AS STRING) AS m FROM t;
-- refused: Unsupported | LIMIT | write the number
SELECT id FROM t ORDER BY id LIMIT LENGTH('ab');
