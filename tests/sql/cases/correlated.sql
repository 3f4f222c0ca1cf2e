-- Subqueries that ask more of the query around them than equalities in their WHERE.

-- case: EXISTS and IN with clauses of their own
CREATE SOURCE t (id INT, x INT, k INT);
CREATE SOURCE u (k INT, y INT);
CREATE VIEW with_limit AS SELECT id FROM t WHERE EXISTS (SELECT DISTINCT y FROM u WHERE u.k = t.k ORDER BY y LIMIT 1);
CREATE VIEW many AS SELECT id FROM t WHERE EXISTS (SELECT u.y FROM u WHERE u.k = t.k GROUP BY u.y HAVING COUNT(*) > 1);
CREATE VIEW in_the_top AS SELECT id FROM t WHERE x IN (SELECT MAX(y) FROM u WHERE u.k = t.k);
-- tick: rows
INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (2, 20, 2), (3, NULL, 1), (4, 40, NULL), (5, 10, 3);
INSERT INTO u VALUES (1, 10), (1, 10), (2, 25), (NULL, 1);
-- tick: a NULL comes into the list
INSERT INTO u VALUES (3, NULL), (1, 20), (2, 20);
INSERT INTO t VALUES (6, 30, 2);
-- tick: matches go
DELETE FROM u VALUES (3, NULL), (1, 10), (2, 25);
DELETE FROM t VALUES (2, 20, 2), (6, 30, 2);
-- tick: nothing is left on the right
DELETE FROM u VALUES (1, 10), (1, 20), (2, 20), (NULL, 1);
-- tick: something again
INSERT INTO u VALUES (2, 20), (3, 9);

-- case: NOT IN over groups, unions, truths as values
CREATE SOURCE t (id INT, x INT, k INT);
CREATE SOURCE u (k INT, y INT);
CREATE VIEW not_in_groups AS SELECT id FROM t WHERE x NOT IN (SELECT SUM(y) FROM u WHERE u.k < t.k GROUP BY u.k);
CREATE VIEW either AS SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k UNION ALL SELECT 2 FROM t AS o WHERE o.x > t.x AND o.k = t.k);
CREATE VIEW flags AS SELECT id, EXISTS (SELECT 1 FROM u WHERE u.y > t.x) AS larger, x IN (SELECT y FROM u WHERE u.k = t.k) AS here, x NOT IN (SELECT y FROM u WHERE u.k = t.k) AS not_here, (k, x) IN (SELECT k, y FROM u) AS pair FROM t;
-- tick: rows
INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (2, 20, 2), (3, NULL, 1), (4, 40, NULL), (5, 10, 3);
INSERT INTO u VALUES (1, 10), (1, 10), (2, 25), (NULL, 1);
-- tick: a NULL comes into the list
INSERT INTO u VALUES (3, NULL), (1, 20), (2, 20);
INSERT INTO t VALUES (6, 30, 2);
-- tick: matches go
DELETE FROM u VALUES (3, NULL), (1, 10), (2, 25);
DELETE FROM t VALUES (2, 20, 2), (6, 30, 2);
-- tick: nothing is left on the right
DELETE FROM u VALUES (1, 10), (1, 20), (2, 20), (NULL, 1);
-- tick: something again
INSERT INTO u VALUES (2, 20), (3, 9);

-- case: values by more than equalities
CREATE SOURCE t (id INT, x INT, k INT);
CREATE SOURCE u (k INT, y INT);
CREATE VIEW below AS SELECT id, (SELECT COUNT(*) FROM u WHERE u.y < t.x) AS n, (SELECT SUM(u.y) + MAX(u.k) FROM u WHERE u.y < t.x AND u.k = t.k) AS s FROM t;
CREATE VIEW mixed AS SELECT id, (SELECT MAX(u.y) - MIN(u.y) FROM u WHERE u.k = t.k AND u.y > t.x HAVING COUNT(*) > 0) AS d FROM t;
CREATE VIEW over_groups AS SELECT id, (SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM u WHERE u.k >= t.k GROUP BY u.y) AS g) AS most FROM t;
-- tick: rows
INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (3, NULL, 1), (4, 40, NULL);
INSERT INTO u VALUES (1, 5), (1, 15), (3, 100);
-- tick: groups come and go
DELETE FROM u VALUES (3, 100);
INSERT INTO u VALUES (2, 20), (NULL, 40), (2, 7);
-- tick: both sides
DELETE FROM t VALUES (1, 10, 1);
INSERT INTO t VALUES (5, 5, 2), (1, 30, 1);
DELETE FROM u VALUES (1, 5), (1, 15);
INSERT INTO u VALUES (1, 16);
-- tick: nothing is left on the right
DELETE FROM u VALUES (2, 20), (NULL, 40), (2, 7), (1, 16);

-- case: the first of what is asked for, nested and over joins
CREATE SOURCE t (id INT, x INT, k INT);
CREATE SOURCE u (k INT, y INT);
CREATE VIEW the_first AS SELECT id, (SELECT y FROM u WHERE u.k = t.k ORDER BY y DESC LIMIT 1) AS first FROM t;
CREATE VIEW nested AS SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND NOT EXISTS (SELECT 1 FROM u AS v WHERE v.k = u.k AND v.y > u.y) AND u.y < t.x);
CREATE VIEW joined AS SELECT id FROM t WHERE x > (SELECT AVG(u.y) FROM u JOIN t AS o ON o.k = u.k WHERE o.id <> t.id);
-- tick: rows
INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (3, NULL, 1), (4, 40, NULL);
INSERT INTO u VALUES (1, 5), (1, 15), (3, 100);
-- tick: groups come and go
DELETE FROM u VALUES (3, 100);
INSERT INTO u VALUES (2, 20), (NULL, 40), (2, 7);
-- tick: both sides
DELETE FROM t VALUES (1, 10, 1);
INSERT INTO t VALUES (5, 5, 2), (1, 30, 1);
DELETE FROM u VALUES (1, 5), (1, 15);
INSERT INTO u VALUES (1, 16);
-- tick: nothing is left on the right
DELETE FROM u VALUES (2, 20), (NULL, 40), (2, 7), (1, 16);

-- case: subqueries in the conditions of joins
CREATE SOURCE t (id INT, x INT, k INT);
CREATE SOURCE u (k INT, y INT);
CREATE SOURCE good (y INT);
CREATE VIEW left_only AS SELECT t.id, u.y FROM t LEFT JOIN u ON u.k = t.k AND t.x IN (SELECT y FROM good);
CREATE VIEW right_only AS SELECT t.id, u.y FROM t LEFT JOIN u ON u.k = t.k AND u.y NOT IN (SELECT y FROM good);
CREATE VIEW inner_one AS SELECT t.id, u.y FROM t JOIN u ON u.k = t.k AND EXISTS (SELECT 1 FROM good WHERE good.y > u.y);
CREATE VIEW full_one AS SELECT t.id, u.y FROM t FULL JOIN u ON u.k = t.k AND u.y > (SELECT MIN(y) FROM good);
-- tick: rows
INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (3, NULL, 1), (4, 40, NULL);
INSERT INTO u VALUES (1, 5), (2, 20), (3, 7);
INSERT INTO good VALUES (10), (20);
-- tick: the list changes
INSERT INTO good VALUES (5), (40);
DELETE FROM good VALUES (10);
-- tick: all of it
DELETE FROM t VALUES (1, 10, 1);
INSERT INTO t VALUES (5, 5, 2);
DELETE FROM u VALUES (2, 20);
INSERT INTO u VALUES (2, 35);
DELETE FROM good VALUES (20), (5);

-- case: common table expressions that read the query around them
CREATE SOURCE t (id INT, k INT, x INT);
CREATE SOURCE u (k INT, y INT);
CREATE VIEW sums AS SELECT id, (WITH a AS (SELECT k, y + 1 AS y FROM u), b AS (SELECT y FROM a WHERE a.k = t.k) SELECT SUM(y) FROM b) AS s FROM t;
CREATE VIEW listed AS SELECT id FROM t WHERE x IN (WITH a(v) AS (SELECT y FROM u WHERE u.k >= t.k) SELECT MAX(a.v) FROM a);
-- tick: rows
INSERT INTO t VALUES (1, 1, 5), (2, 2, 9), (3, NULL, 1), (4, 9, NULL);
INSERT INTO u VALUES (1, 5), (1, 9), (2, 9), (NULL, 3);
-- tick: changes
DELETE FROM u VALUES (1, 9), (2, 9);
INSERT INTO t VALUES (5, 1, 9);
-- tick: nothing on the right
DELETE FROM u VALUES (1, 5), (NULL, 3);
