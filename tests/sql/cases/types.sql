-- Every type that can be in a row, through every kind of operator.

-- case: scalars at their limits
CREATE SOURCE t (id INT, b BOOLEAN, t1 TINYINT, s2 SMALLINT, i4 INT, l8 BIGINT, f FLOAT, x DOUBLE, d DECIMAL(38, 18), n DECIMAL(38, 0), s STRING, y BINARY, day DATE, ts TIMESTAMP, z TIMESTAMP_NTZ) PRIMARY KEY (id);
CREATE VIEW all_of_it AS SELECT * FROM t;
CREATE VIEW once AS SELECT DISTINCT b, t1, s2, i4, l8, f, x, d, n, s, y, day, ts, z FROM t;
CREATE VIEW pairs AS SELECT p.id, q.id AS qid FROM t p JOIN t q ON p.d = q.d AND p.y = q.y AND p.ts = q.ts AND p.z = q.z AND p.day = q.day;
CREATE VIEW by_bytes AS SELECT p.id, q.id AS qid FROM t p JOIN t q ON p.y = q.y;
CREATE VIEW lows AS SELECT b, MIN(t1) AS t1, MIN(s2) AS s2, MIN(d) AS d, MIN(n) AS n, MIN(y) AS y, MIN(day) AS day, MIN(z) AS z FROM t GROUP BY b;
CREATE VIEW sums AS SELECT b, SUM(t1) AS t1, SUM(s2) AS s2, SUM(i4) AS i4, AVG(t1) AS a1 FROM t GROUP BY b;
-- tick: both ends
INSERT INTO t VALUES (1, TRUE, 127, 32767, 2147483647, 9223372036854775807, 3.4028234e38, 1.7976931348623157e308, 99999999999999999999.999999999999999999, 99999999999999999999999999999999999999, 'ÿ\\\'"', X'00FF00', '9999-12-31', '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999999');
INSERT INTO t VALUES (2, FALSE, -128, -32768, -2147483648, -9223372036854775808, -3.4028234e38, -1.7976931348623157e308, -99999999999999999999.999999999999999999, -99999999999999999999999999999999999999, '', X'', '0001-01-01', '0001-01-01 00:00:00', '0001-01-01 00:00:00');
INSERT INTO t VALUES (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
-- tick: copies under other keys
INSERT INTO t VALUES (4, TRUE, 127, 32767, 2147483647, 9223372036854775807, 3.4028234e38, 1.7976931348623157e308, 99999999999999999999.999999999999999999, 99999999999999999999999999999999999999, 'ÿ\\\'"', X'00FF00', '9999-12-31', '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999999');
INSERT INTO t VALUES (5, NULL, 0, 0, 0, 0, 1e-45, 5e-324, 0.000000000000000001, 0, ' ', X'00', '1970-01-01', '1970-01-01 00:00:00', '1970-01-01 00:00:00'), (6, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
-- tick: the first ones go
DELETE KEYS FROM t VALUES (1), (3);

-- case: nested values
CREATE SOURCE t (id INT, xs ARRAY<STRING>, xss ARRAY<ARRAY<INT>>, p STRUCT<a: INT, q: STRUCT<b: STRING, ds: ARRAY<DECIMAL(5, 2)>>>, ps ARRAY<STRUCT<k: STRING, v: DOUBLE>>);
CREATE VIEW all_of_it AS SELECT id, xs, xss, p, ps FROM t;
CREATE VIEW once AS SELECT DISTINCT xs, p FROM t;
CREATE VIEW grouped AS SELECT xss, COUNT(*) AS n, MAX(p) AS top, MIN(xs) AS low FROM t GROUP BY xss;
CREATE VIEW by_field AS SELECT p.q.b AS b, COUNT(*) AS n FROM t GROUP BY p.q.b;
CREATE VIEW joined AS SELECT a.id, b.p.q.ds AS ds FROM t a JOIN t b ON a.xs = b.xs AND a.p.a = b.p.a;
-- tick: rows
INSERT INTO t VALUES (1, ARRAY('a', NULL), ARRAY(ARRAY(1), NULL, ARRAY()), STRUCT(1, STRUCT('x', ARRAY(1.50, NULL))), ARRAY(STRUCT('k', -0.0))) * 2;
INSERT INTO t VALUES (2, ARRAY('a', NULL), NULL, STRUCT(1, NULL), NULL), (3, NULL, ARRAY(), NULL, ARRAY(NULL)), (4, ARRAY(), ARRAY(NULL), STRUCT(NULL, STRUCT(NULL, NULL)), ARRAY(STRUCT(NULL, NULL)));
-- tick: some go, almost equal ones come
DELETE FROM t VALUES (1, ARRAY('a', NULL), ARRAY(ARRAY(1), NULL, ARRAY()), STRUCT(1, STRUCT('x', ARRAY(1.50, NULL))), ARRAY(STRUCT('k', -0.0)));
INSERT INTO t VALUES (1, ARRAY('a', NULL), ARRAY(ARRAY(1), NULL, ARRAY()), STRUCT(1, STRUCT('x', ARRAY(1.50, NULL))), ARRAY(STRUCT('k', 0.0)));
DELETE FROM t VALUES (4, ARRAY(), ARRAY(NULL), STRUCT(NULL, STRUCT(NULL, NULL)), ARRAY(STRUCT(NULL, NULL)));

-- case: structs that may be NULL with fields that may not
CREATE SOURCE t (id INT, x INT);
-- means: SELECT id, CASE WHEN x > 1 THEN struct(IF(x IS NULL, NULL, 1) AS a, IF(x IS NULL, NULL, 'x') AS b) END AS s FROM t
CREATE VIEW marked AS SELECT id, CASE WHEN x > 1 THEN struct(1 AS a, 'x' AS b) END AS s FROM t;
CREATE VIEW counted AS SELECT COUNT(DISTINCT 2, 3) FILTER (WHERE x > 1) AS n FROM t;
-- tick: rows
INSERT INTO t VALUES (1, 1), (2, 2), (3, NULL);
-- tick: changes
DELETE FROM t VALUES (2, 2);
INSERT INTO t VALUES (4, 0), (1, 7);

-- case: columns of derived tables that no row can have: MAP, VARIANT, INTERVAL, NULL without a type
CREATE SOURCE t (id INT, x INT, j STRING, ts TIMESTAMP);
CREATE SOURCE u (id INT, y INT);
CREATE VIEW plain AS SELECT id, m['a'] AS a, m['b'] AS b, v:k::int AS k, extract(DAY FROM gap) AS days, coalesce(n, x) AS c FROM (SELECT id, x, map('a', x, 'b', id) AS m, try_parse_json(j) AS v, ts - TIMESTAMP '2024-01-01' AS gap, NULL AS n FROM t);
CREATE VIEW joined AS WITH c AS (SELECT id, map('a', x) AS m, ts - TIMESTAMP '2024-01-01' AS gap FROM t) SELECT p.id, element_at(p.m, 'a') AS a, u.y, q.gap > p.gap AS later FROM c AS p JOIN u ON p.id = u.id JOIN c AS q ON q.m['a'] = u.y WHERE p.gap IS NOT NULL;
CREATE VIEW beside AS SELECT u.id, u.y, c.m['a'] AS a, c.m IS NULL AS missing, c.n, to_json(c.v) AS j FROM u LEFT JOIN (SELECT id, map('a', x) AS m, CAST(NULL AS INT) AS n, try_parse_json(j) AS v FROM t WHERE x > 0) AS c ON u.id = c.id AND u.y < c.m['a'];
CREATE VIEW grouped AS SELECT id, max(m['a']) AS a, count(m) AS n, count_if(gap > INTERVAL '1' DAY) AS late FROM (SELECT id, map('a', x) AS m, ts - TIMESTAMP '2024-01-01' AS gap FROM t) GROUP BY id HAVING max(m['a']) > 1;
CREATE VIEW ranked AS SELECT id, m['a'] AS a, row_number() OVER (PARTITION BY id ORDER BY x, y) AS r FROM (SELECT t.id, x, y, map('a', y) AS m FROM t JOIN u ON t.id = u.id);
CREATE VIEW asked AS SELECT id FROM (SELECT id, map('a', x) AS m FROM t) AS c WHERE m['a'] IN (SELECT y FROM u) OR EXISTS (SELECT 1 FROM u WHERE u.y = c.m['a'] + 1);
CREATE VIEW made AS SELECT id, k, w FROM (SELECT id, map('a', x, 'b', id) AS m FROM t) LATERAL VIEW explode(m) AS k, w;
CREATE VIEW distinct_ AS SELECT DISTINCT m['a'] AS a FROM (SELECT map('a', x) AS m FROM t);
CREATE VIEW first_ AS SELECT m['a'] AS a, x FROM (SELECT x, map('a', id) AS m FROM t ORDER BY x DESC, id LIMIT 2);
-- tick: rows
INSERT INTO t VALUES (1, 5, '{"k": 3}', '2024-01-03 00:00:00'), (1, 5, 'broken', NULL), (2, NULL, NULL, '2024-01-01 12:00:00'), (3, 1, '{"k": 1}', '2025-01-01 00:00:00') * 2, (4, 9, '[]', '2023-12-31 23:00:00');
INSERT INTO u VALUES (1, 5), (1, 4), (2, 9), (3, 1), (6, 0), (NULL, 1);
-- tick: both change
DELETE FROM t VALUES (1, 5, '{"k": 3}', '2024-01-03 00:00:00'), (3, 1, '{"k": 1}', '2025-01-01 00:00:00');
INSERT INTO t VALUES (2, 7, '{"k": 7}', '2024-02-01 00:00:00'), (6, 2, '{}', NULL);
DELETE FROM u VALUES (1, 4), (2, 9);
INSERT INTO u VALUES (2, 5), (4, 7);
-- tick: all of one side goes
DELETE FROM u VALUES (1, 5), (3, 1), (6, 0), (NULL, 1), (2, 5), (4, 7);
