-- PIVOT and UNPIVOT.

-- case: pivoted values as columns
CREATE SOURCE t (k INT, g STRING, x INT, name STRING);
CREATE VIEW sums AS SELECT * FROM (SELECT k, g, x FROM t) PIVOT (SUM(x) FOR g IN ('a', 'b' AS bee));
CREATE VIEW many AS SELECT * FROM (SELECT k, g, x FROM t) PIVOT (SUM(x) AS s, COUNT(*) AS n, AVG(x) AS m FOR g IN ('a' AS a, 'b' AS b));
CREATE VIEW words AS SELECT k, a, b FROM t PIVOT (MAX(name) FOR g IN ('a', 'b')) AS p WHERE k > 0;
CREATE VIEW pairs AS SELECT * FROM (SELECT k, g, x FROM t) PIVOT (SUM(x) FOR (g, k) IN (('a', 1) AS a1, ('b', 2) AS b2, (NULL, 1) AS n1));
CREATE VIEW lists AS SELECT * FROM (SELECT k, g, x FROM t) PIVOT (COUNT(x) AS n, collect_set(x) AS xs FOR g IN ('a' AS a));
CREATE VIEW count_beside_number AS SELECT * FROM (SELECT k, g, x FROM t) PIVOT (COUNT(*) AS n, MAX(x) AS top FOR g IN ('a' AS a, 'b' AS b));
CREATE VIEW count_beside_text AS SELECT * FROM (SELECT k, g, name FROM t) PIVOT (COUNT(*) AS n, MAX(name) AS top FOR g IN ('a' AS a, 'b' AS b));
CREATE VIEW through_cte AS WITH c AS (SELECT k, g, x FROM t WHERE x > 0) SELECT p.k, p.a + 1 AS a FROM c PIVOT (SUM(x) FOR g IN ('a', 'b')) AS p JOIN c ON c.k = p.k;
-- tick: rows
INSERT INTO t VALUES (1, 'a', 10, 'x'), (1, 'a', 5, 'y'), (1, 'b', 7, 'z'), (2, 'b', 1, NULL), (3, 'c', 9, 'w'), (1, NULL, 4, 'v'), (NULL, 'a', 2, 'u');
-- tick: a value comes where there was none, one goes
INSERT INTO t VALUES (2, 'a', NULL, 'q'), (3, 'b', 8, 'r');
DELETE FROM t VALUES (1, 'b', 7, 'z');
-- tick: a group is left without the listed values
DELETE FROM t VALUES (3, 'b', 8, 'r'), (1, 'a', 10, 'x'), (1, 'a', 5, 'y');
-- tick: it goes
DELETE FROM t VALUES (3, 'c', 9, 'w'), (1, NULL, 4, 'v');

-- case: columns as rows
CREATE SOURCE t (id INT, a INT, b INT, c BIGINT, d STRING);
CREATE VIEW plain AS SELECT * FROM t UNPIVOT (v FOR n IN (a, b, c));
CREATE VIEW with_nulls AS SELECT * FROM (SELECT id, a, b FROM t) UNPIVOT INCLUDE NULLS (v FOR n IN (a AS first, b)) AS u;
CREATE VIEW pairs AS SELECT * FROM (SELECT id, a, b, c, d FROM t) UNPIVOT ((v, w) FOR n IN ((a, c) AS ac, (b, c)));
CREATE VIEW summed AS SELECT n, SUM(v) AS s FROM t UNPIVOT (v FOR n IN (a, b)) GROUP BY n;
-- tick: rows
INSERT INTO t VALUES (1, 1, 2, 3, 'x'), (2, NULL, 5, NULL, 'y'), (3, NULL, NULL, NULL, NULL);
-- tick: changes
DELETE FROM t VALUES (1, 1, 2, 3, 'x');
INSERT INTO t VALUES (1, 1, NULL, 4, 'x'), (3, 7, 7, 7, 'z');
