-- The pipe |>: operators one after the other.

-- case: operators of a pipe
CREATE SOURCE t (id INT, k STRING, x INT);
CREATE SOURCE u (id INT, y INT);
CREATE VIEW kept AS FROM t |> WHERE t.x > 1 |> SELECT id, x;
CREATE VIEW grouped AS TABLE t |> AGGREGATE COUNT(*) AS n, SUM(x) AS s GROUP BY k AS key |> WHERE n > 1 |> EXTEND s / n AS m;
CREATE VIEW counted AS SELECT k FROM t |> SELECT DISTINCT k |> AGGREGATE COUNT(*) AS n;
CREATE VIEW changed AS FROM t |> EXTEND x * 2 AS y |> SET x = x + 1, k = upper(k) |> DROP id;
CREATE VIEW joined AS FROM t |> WHERE x > 1 |> LEFT JOIN u ON t.id = u.id |> SELECT t.id, u.y;
CREATE VIEW first_two AS FROM t |> ORDER BY x DESC, id |> LIMIT 2 |> WHERE x > 2 |> AS q |> SELECT q.id;
CREATE VIEW together AS FROM t |> SELECT id |> UNION ALL SELECT id FROM u |> EXCEPT SELECT y FROM u;
CREATE VIEW pivoted AS FROM t |> DROP id |> PIVOT (SUM(x) FOR k IN ('a', 'b'));
CREATE VIEW inner_pipe AS SELECT p.n, u.y FROM (FROM t |> AGGREGATE COUNT(*) AS n GROUP BY id) AS p JOIN u ON u.y = p.n;
-- tick: rows
INSERT INTO t VALUES (1, 'a', 1), (1, 'b', 5), (2, 'a', 3), (3, NULL, NULL), (3, NULL, 7);
INSERT INTO u VALUES (1, 2), (2, 1), (2, NULL);
-- tick: changes
DELETE FROM t VALUES (1, 'b', 5), (3, NULL, 7);
INSERT INTO t VALUES (1, 'b', 4), (4, 'a', 9), (4, 'a', 9);
DELETE FROM u VALUES (2, 1);
-- tick: nothing left on the right
DELETE FROM u VALUES (1, 2), (2, NULL);
