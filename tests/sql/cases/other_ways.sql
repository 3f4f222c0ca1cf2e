-- What can be said in another way: ranges, stars as arguments, names that Spark gives.

-- case: names that Spark gives
CREATE SOURCE t (id INT, k INT, x INT, xs ARRAY<INT>);
CREATE SOURCE u (k INT, y INT);
CREATE VIEW counted AS SELECT COUNT(DISTINCT *) AS n, COUNT(u.k) AS m FROM u;
CREATE VIEW packed AS SELECT id, hash(*) AS h, struct(u.*) AS s FROM t JOIN u ON t.k = u.k;
CREATE VIEW numbers AS SELECT r.id AS n, t.id FROM range(1, 7, 2) AS r LEFT JOIN t ON t.k = r.id;
CREATE VIEW exploded AS SELECT id, explode(xs) FROM t;
CREATE VIEW placed AS SELECT id, posexplode_outer(xs) FROM t;
CREATE VIEW viewed AS SELECT id, col FROM t LATERAL VIEW explode(xs) e;
CREATE VIEW joined AS SELECT id, e.pos, e.col FROM t, LATERAL posexplode(xs) AS e;
CREATE VIEW constant AS SELECT explode(array(1, 2)) AS e;
CREATE VIEW right_after_comma AS SELECT t.id, u.y, v.y AS z FROM t, u RIGHT JOIN u AS v ON u.y = v.y AND t.k = v.k;
CREATE VIEW stacked AS SELECT id, stack(2, 'x', x, 'k', k) AS (n, v) FROM t;
-- tick: rows
INSERT INTO t VALUES (1, 1, 10, ARRAY(1, 2)), (2, 2, 20, ARRAY()), (3, 3, NULL, NULL), (3, 3, NULL, NULL);
INSERT INTO u VALUES (1, 5), (1, 5), (3, NULL), (NULL, 7);
-- tick: changes
DELETE FROM t VALUES (3, 3, NULL, NULL), (1, 1, 10, ARRAY(1, 2));
INSERT INTO t VALUES (1, 1, 11, ARRAY(7, 7, NULL)), (4, 5, 1, ARRAY(0));
DELETE FROM u VALUES (1, 5);
INSERT INTO u VALUES (5, 5);

-- case: operands of IN over groups, the last moment of a window
CREATE SOURCE t (id INT, k INT, x INT, ts TIMESTAMP);
CREATE SOURCE u (k INT, y INT);
CREATE VIEW listed AS SELECT k, SUM(x) AS s FROM t GROUP BY k HAVING SUM(x) IN (SELECT y FROM u);
CREATE VIEW not_listed AS SELECT k, SUM(x) AS s, COUNT(*) NOT IN (SELECT k FROM u) AS odd FROM t GROUP BY k HAVING MAX(x) NOT IN (SELECT y FROM u WHERE u.k = t.k);
CREATE VIEW moments AS SELECT window_time(w) AS at, n FROM (SELECT window(ts, '1 hour') AS w, COUNT(*) AS n FROM t GROUP BY window(ts, '1 hour')) AS hours;
-- tick: rows
INSERT INTO t VALUES (1, 1, 10, '2024-01-01 10:10:00'), (2, 1, 5, '2024-01-01 10:50:00'), (3, 2, 7, '2024-01-01 11:00:00');
INSERT INTO u VALUES (1, 15), (2, 9), (3, 3);
-- tick: sums and the list change
INSERT INTO t VALUES (4, 2, 2, '2024-01-01 11:10:00'), (5, 3, NULL, NULL);
DELETE FROM u VALUES (1, 15);
-- tick: back
DELETE FROM t VALUES (2, 1, 5, '2024-01-01 10:50:00');
INSERT INTO u VALUES (1, 10), (NULL, NULL);

-- case: columns of USING in HAVING, HAVING without GROUP BY, grouping__id
CREATE SOURCE a (k INT, x INT);
CREATE SOURCE b (k INT, y INT);
CREATE VIEW used AS SELECT SUM(x) AS s FROM a JOIN b USING (k) GROUP BY k HAVING k > 1;
CREATE VIEW natural AS SELECT SUM(x) AS s, COUNT(*) AS n FROM a NATURAL LEFT JOIN b GROUP BY x HAVING MAX(k) > 1;
CREATE VIEW whole AS SELECT 1 AS one FROM a HAVING 1 < 2;
CREATE VIEW none AS SELECT 1 AS one FROM a HAVING 1 > 2;
CREATE VIEW sets AS SELECT k, x, grouping__id, COUNT(*) AS n FROM a GROUP BY k, x WITH ROLLUP HAVING grouping__id < 3;
-- tick: nothing yet
-- tick: rows
INSERT INTO a VALUES (1, 10), (2, 20) * 2, (3, 20), (NULL, 5);
INSERT INTO b VALUES (1, 1), (2, 2), (2, 3), (4, 4), (NULL, 0);
-- tick: keys go and come
DELETE FROM a VALUES (2, 20), (1, 10);
INSERT INTO a VALUES (4, 1);
DELETE FROM b VALUES (2, 2);

-- case: joins in parentheses of parentheses, the clock in VALUES, arguments by name
CREATE SOURCE a (k INT, x INT);
CREATE SOURCE b (j INT, y INT);
CREATE VIEW nested AS SELECT a.x, b.y, c.x AS z, d.y AS w FROM ((a JOIN b ON a.k = b.j) CROSS JOIN a AS c) JOIN b AS d ON c.k = d.j;
CREATE VIEW moments AS SELECT a.x, v.n, v.t FROM a JOIN (VALUES (1, current_timestamp()), (2 AS n, current_timestamp() AS t)) AS v(n, t) ON a.k = v.n;
CREATE VIEW sketch AS SELECT hex(count_min_sketch(seed => 1, epsilon => 0.5d, confidence => 0.5d, column => x + 1)) AS c FROM a;
CREATE VIEW made AS SELECT a.x, e.c FROM a, explode(collection => array(1, 2)) AS e(c) WHERE a.k = e.c;
-- tick: rows
-- at: 2024-01-01 00:00:00
INSERT INTO a VALUES (1, 10), (2, 20), (2, 20);
INSERT INTO b VALUES (1, 1), (2, 2);
-- tick: others, later
-- at: 2024-01-02 00:00:00
INSERT INTO a VALUES (3, 30);
DELETE FROM a VALUES (2, 20);
INSERT INTO b VALUES (3, 3), (2, 4);

-- case: columns without names, as Spark reads them
CREATE SOURCE t (k INT, s STRING);
-- means: SELECT CAST('1.5' AS DOUBLE) AS cast_1_5_as_double, k + 1 AS k_1, string(k) AS string_k, -100 AS column_4, TRY_CAST(s AS INT) AS s FROM t
CREATE VIEW plain AS SELECT CAST('1.5' AS DOUBLE), k + 1, string(k), -100, TRY_CAST(s AS INT) FROM t;
-- means: SELECT k, COUNT(*) AS count, DATE '2024-01-01' AS cast_2024_01_01_as_date FROM t GROUP BY k
CREATE VIEW derived AS SELECT * FROM (SELECT k, COUNT(*), DATE '2024-01-01' FROM t GROUP BY k);
-- tick: rows
INSERT INTO t VALUES (1, '7'), (1, 'x'), (2, NULL);
-- tick: one goes
DELETE FROM t VALUES (1, '7');

-- case: GROUP BY the place of a subquery
CREATE SOURCE t (k INT, x INT);
CREATE SOURCE u (k INT, y INT);
CREATE VIEW grouped AS SELECT k, (SELECT MAX(y) FROM u WHERE u.k = t.k) AS m, SUM(x) AS s FROM t GROUP BY 1, 2;
-- tick: rows
INSERT INTO t VALUES (1, 5), (1, 6), (2, 7), (NULL, 8);
INSERT INTO u VALUES (1, 3), (1, 4);
-- tick: the keys change
DELETE FROM u VALUES (1, 4);
INSERT INTO u VALUES (2, 9);
