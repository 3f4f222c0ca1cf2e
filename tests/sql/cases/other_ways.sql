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
