-- GROUP BY with COUNT, SUM, AVG, MIN, MAX, and the global aggregate.

-- case: groups come, change, empty and come back
CREATE SOURCE t (id INT, g STRING, x INT, d DECIMAL(10, 2)) PRIMARY KEY (id);
CREATE VIEW sums AS SELECT g, SUM(x) AS s, COUNT(*) AS n, COUNT(x) AS nx, AVG(x) AS a FROM t GROUP BY g;
CREATE VIEW decimals AS SELECT g, SUM(d) AS s, AVG(d) AS a, MIN(d) AS lo, MAX(d) AS hi FROM t GROUP BY g;
CREATE VIEW several AS SELECT g, SUM(x) + MAX(x) * COUNT(x) AS mix, SUM(x) AS s, AVG(x) AS a, MIN(x) AS lo, MAX(x) AS hi, COUNT(x, d) AS both FROM t GROUP BY g;
CREATE VIEW only_keys AS SELECT g FROM t GROUP BY g;
CREATE VIEW by_expression AS SELECT x % 2 AS odd, upper(g) AS ug, COUNT(*) AS n FROM t GROUP BY x % 2, upper(g);
CREATE VIEW by_ordinal AS SELECT g, x > 0 AS positive, SUM(d) AS s FROM t GROUP BY 1, 2;
CREATE VIEW by_alias AS SELECT coalesce(g, '?') AS gg, COUNT(*) AS n FROM t GROUP BY gg;
CREATE VIEW by_constant AS SELECT 'all' AS what, COUNT(*) AS n FROM t GROUP BY 1;
-- tick: rows, NULL groups and NULL values
INSERT INTO t VALUES (1, 'a', 1, 1.10), (2, 'a', NULL, 2.20), (3, 'b', 5, NULL), (4, NULL, 7, 0.01), (5, 'c', NULL, NULL);
-- tick: a group empties, another is filled, values turn NULL
UPSERT INTO t VALUES (1, 'b', 1, 1.10), (2, 'b', 4, NULL), (4, NULL, NULL, 0.02);
-- tick: the emptied group comes back; a group is replaced by an equal one
INSERT INTO t VALUES (6, 'a', 3, -1.10), (7, NULL, 7, 0.01);
DELETE FROM t VALUES (5, 'c', NULL, NULL);
INSERT INTO t VALUES (8, 'c', NULL, NULL);
-- tick: sums that stay while rows change
DELETE FROM t VALUES (3, 'b', 5, NULL), (1, 'b', 1, 1.10);
INSERT INTO t VALUES (9, 'b', 2, 0.55), (10, 'b', 4, 0.55);
-- tick: all go
DELETE KEYS FROM t VALUES (2), (4), (6), (7), (8), (9), (10);
-- tick: one comes
INSERT INTO t VALUES (1, 'a', -1, -0.01);

-- case: the global aggregate over nothing and over something
CREATE SOURCE t (x INT, s STRING);
CREATE VIEW totals AS SELECT COUNT(*) AS n, COUNT(x) AS nx, SUM(x) AS s, AVG(x) AS a, MIN(x) AS lo, MAX(s) AS hi FROM t;
CREATE VIEW counted AS SELECT COUNT(*) AS n FROM t;
CREATE VIEW computed AS SELECT SUM(x) * 2 + COUNT(*) AS y, coalesce(MAX(s), 'none') AS m FROM t WHERE x > 1;
CREATE VIEW having_some AS SELECT COUNT(*) AS n FROM t HAVING COUNT(*) > 2;
CREATE VIEW constant_of AS SELECT 'x' AS x FROM t HAVING SUM(x) > 3;
CREATE VIEW filtered AS SELECT SUM(x) FILTER (WHERE s = 'a') AS a, COUNT(*) FILTER (WHERE x IS NULL) AS n, MIN(x) FILTER (WHERE s <> 'a') AS lo, AVG(x) FILTER (WHERE FALSE) AS none FROM t;
CREATE VIEW of_join AS SELECT COUNT(*) AS n, SUM(p.x * q.x) AS s FROM t p JOIN t q ON p.s = q.s;
-- tick: nothing at all
-- tick: rows
INSERT INTO t VALUES (1, 'a') * 2, (NULL, 'b'), (3, NULL);
-- tick: changes that cancel in the sum
DELETE FROM t VALUES (1, 'a');
INSERT INTO t VALUES (1, 'c');
-- tick: everything goes
DELETE FROM t VALUES (1, 'a'), (1, 'c'), (NULL, 'b'), (3, NULL);
-- tick: and something comes
INSERT INTO t VALUES (5, 'z') * 4;

-- case: FILTER and HAVING
CREATE SOURCE t (id INT, g INT, x INT, s STRING) PRIMARY KEY (id);
CREATE VIEW filtered AS
SELECT g, COUNT(*) FILTER (WHERE x > 0) AS positive, SUM(x) FILTER (WHERE s = 'a') AS of_a,
  MIN(x) FILTER (WHERE s = 'b') AS lo_b, MAX(s) FILTER (WHERE x IS NOT NULL) AS hi, COUNT(s) FILTER (WHERE x < 0 OR x IS NULL) AS c
FROM t GROUP BY g;
CREATE VIEW big AS SELECT g, SUM(x) AS s FROM t GROUP BY g HAVING SUM(x) > 5;
CREATE VIEW other_aggregate AS SELECT g FROM t GROUP BY g HAVING COUNT(*) > 1 AND MAX(x) > 3 AND g IS NOT NULL;
CREATE VIEW by_alias AS SELECT g, COUNT(*) AS n, MIN(x) AS m FROM t GROUP BY g HAVING n > 1 OR m < 0;
CREATE VIEW shadowed AS SELECT g, SUM(x) AS x FROM t GROUP BY g HAVING x > 5;
CREATE VIEW filtered_having AS SELECT g, AVG(x) AS a FROM t WHERE s IS NOT NULL GROUP BY g HAVING SUM(x) FILTER (WHERE s = 'a') >= 1;
-- tick: rows
INSERT INTO t VALUES (1, 1, 3, 'a'), (2, 1, 4, 'b'), (3, 2, -1, 'a'), (4, NULL, 9, NULL), (5, 3, NULL, 'b');
-- tick: groups pass the bar in both directions
UPSERT INTO t VALUES (2, 2, 8, 'b'), (5, 3, 6, 'b');
INSERT INTO t VALUES (6, NULL, -9, 'a');
-- tick: and stay where they are while rows change
UPSERT INTO t VALUES (5, 3, 7, 'a'), (3, 2, -1, 'b');
DELETE KEYS FROM t VALUES (4);
-- tick: groups go
DELETE KEYS FROM t VALUES (1), (2), (6);

-- case: floating-point keys by SQL's equality
CREATE SOURCE t (k DOUBLE, f FLOAT, x INT);
CREATE VIEW by_double AS SELECT k, COUNT(*) AS n, SUM(x) AS s, MIN(x) AS lo FROM t GROUP BY k;
CREATE VIEW by_float AS SELECT f, k, MAX(x) AS hi FROM t GROUP BY f, k;
-- tick: zeros of both signs and NaN are one group each
INSERT INTO t VALUES (0.0, 0.0, 1), (-0.0, -0.0, 2), ('NaN', 'NaN', 3), ('NaN', NULL, 4), (NULL, 1.5, 5), ('Infinity', '-Infinity', 6);
-- tick: the extreme of a group goes from the other zero
DELETE FROM t VALUES (0.0, 0.0, 1), ('NaN', 'NaN', 3);
INSERT INTO t VALUES (-0.0, 0.0, 7);
-- tick: groups empty
DELETE FROM t VALUES (-0.0, -0.0, 2), (-0.0, 0.0, 7), ('NaN', NULL, 4);
-- tick: and come back
INSERT INTO t VALUES (-0.0, -0.0, 8);

-- case: keys of every type
CREATE SOURCE t (id INT, b BOOLEAN, n DECIMAL(38, 10), d DATE, ts TIMESTAMP, z TIMESTAMP_NTZ, y BINARY, xs ARRAY<STRING>, p STRUCT<a: INT, b: STRING>) PRIMARY KEY (id);
CREATE VIEW by_flag AS SELECT b, COUNT(*) AS n, MIN(b) AS lo, MAX(b) AS hi FROM t GROUP BY b;
CREATE VIEW by_number AS SELECT n, COUNT(*) AS c FROM t GROUP BY n;
CREATE VIEW by_times AS SELECT d, ts, z, MAX(id) AS m FROM t GROUP BY d, ts, z;
CREATE VIEW by_bytes AS SELECT y, MIN(id) AS m FROM t GROUP BY y;
CREATE VIEW by_nested AS SELECT xs, p, COUNT(*) AS c, MAX(p) AS hp, MIN(xs) AS lx FROM t GROUP BY xs, p;
CREATE VIEW extremes AS SELECT MIN(n) AS n1, MAX(d) AS d2, MIN(ts) AS t1, MAX(z) AS z2, MIN(y) AS y1, MAX(p) AS p2, MAX(xs) AS x2 FROM t;
-- tick: rows
INSERT INTO t VALUES (1, TRUE, 1234567890123456789012345678.0123456789, '2024-01-31', '2024-01-31 00:00:00.000001', '2024-01-31 00:00:00', X'00FF', ARRAY('a', NULL), STRUCT(1, 'x'));
INSERT INTO t VALUES (2, TRUE, -0.0000000001, '2024-01-31', '2024-01-31 00:00:00.000001', '2024-01-31 00:00:00', X'', ARRAY(), STRUCT(NULL, NULL)), (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
-- tick: changes
UPSERT INTO t VALUES (1, FALSE, -0.0000000001, '1969-12-31', '1969-12-31 23:59:59.999999', NULL, X'00', ARRAY('a'), STRUCT(1, NULL));
INSERT INTO t VALUES (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
-- tick: deletions
DELETE KEYS FROM t VALUES (1), (3);
