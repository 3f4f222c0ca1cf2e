-- COUNT, SUM and AVG of DISTINCT values, several at once, beside others.

-- case: distinct values of groups
CREATE SOURCE t (k STRING, x INT, d DOUBLE, s STRING);
CREATE VIEW counted AS SELECT k, COUNT(DISTINCT x) AS n FROM t GROUP BY k;
CREATE VIEW mixed AS SELECT k, COUNT(DISTINCT x) AS n, SUM(DISTINCT x) AS total, AVG(DISTINCT d) AS a, COUNT(DISTINCT x, s) AS pairs, COUNT(*) AS c, MAX(DISTINCT x) AS m FROM t GROUP BY k;
CREATE VIEW whole AS SELECT COUNT(DISTINCT x) AS n, COUNT(DISTINCT s) AS m, SUM(x) AS total FROM t;
CREATE VIEW filtered AS SELECT k, COUNT(DISTINCT x) FILTER (WHERE s = 'p') AS n FROM t GROUP BY k HAVING COUNT(DISTINCT x) > 0;
-- tick: rows with duplicates and NULLs
INSERT INTO t VALUES ('a', 1, 0.5, 'p'), ('a', 1, 0.5, 'q'), ('a', 2, NULL, NULL), (NULL, NULL, -0.0, 'p'), (NULL, 3, 0.0, 'p');
-- tick: one of two goes
DELETE FROM t VALUES ('a', 1, 0.5, 'q');
INSERT INTO t VALUES ('b', 7, 1.5, 'p');
-- tick: the other goes
DELETE FROM t VALUES ('a', 1, 0.5, 'p');
INSERT INTO t VALUES ('a', NULL, NULL, NULL), ('b', 7, 2.5, 'p');
-- tick: groups go
DELETE FROM t VALUES ('a', 2, NULL, NULL), ('a', NULL, NULL, NULL), (NULL, NULL, -0.0, 'p');
-- tick: nothing is left
DELETE FROM t VALUES ('b', 7, 1.5, 'p'), ('b', 7, 2.5, 'p'), (NULL, 3, 0.0, 'p');
