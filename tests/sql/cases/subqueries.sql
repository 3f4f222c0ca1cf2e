-- Subqueries in WHERE, SELECT and HAVING.

-- case: EXISTS and IN
CREATE SOURCE t (id INT, x INT, k INT);
CREATE SOURCE u (k INT, y INT);
CREATE VIEW there AS SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k);
CREATE VIEW not_there AS SELECT id FROM t WHERE NOT EXISTS (SELECT * FROM u WHERE u.k = t.k AND u.y > t.x);
CREATE VIEW listed AS SELECT id FROM t WHERE x IN (SELECT y FROM u);
CREATE VIEW not_listed AS SELECT id FROM t WHERE x NOT IN (SELECT y FROM u);
CREATE VIEW not_listed_here AS SELECT id FROM t WHERE x NOT IN (SELECT y FROM u WHERE u.k = t.k);
CREATE VIEW in_pairs AS SELECT id FROM t WHERE (k, x) IN (SELECT k, y FROM u) AND id > 0;
CREATE VIEW any_at_all AS SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE y > 15);
CREATE VIEW own AS SELECT id FROM t WHERE x IN (SELECT x FROM t WHERE k = 2);
CREATE VIEW nested AS SELECT id FROM t WHERE k IN (SELECT k FROM u WHERE y NOT IN (SELECT x FROM t WHERE x IS NOT NULL));
-- tick: rows
INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (2, 20, 2), (3, NULL, 1), (4, 40, NULL);
INSERT INTO u VALUES (1, 10), (2, 25);
-- tick: a NULL comes into the list
INSERT INTO u VALUES (3, NULL), (1, 20);
-- tick: it goes, and a match goes with it
DELETE FROM u VALUES (3, NULL), (1, 10);
INSERT INTO t VALUES (5, 25, 2);
-- tick: the list is empty
DELETE FROM u VALUES (1, 20), (2, 25);
-- tick: one row of each
INSERT INTO u VALUES (NULL, 40);
DELETE FROM t VALUES (2, 20, 2);

-- case: values of subqueries
CREATE SOURCE t (id INT, x INT, k INT);
CREATE SOURCE u (k INT, y INT);
CREATE VIEW above AS SELECT id, x FROM t WHERE x > (SELECT AVG(y) FROM u);
CREATE VIEW above_own AS SELECT id, x FROM t WHERE x >= (SELECT MIN(y) FROM u WHERE u.k = t.k);
CREATE VIEW counts AS SELECT id, (SELECT COUNT(*) FROM u WHERE u.k = t.k) AS n, (SELECT SUM(y) + 1 FROM u WHERE u.k = t.k) AS s FROM t;
CREATE VIEW whole AS SELECT id, (SELECT MAX(y) FROM u) - x AS d FROM t;
-- tick: rows
INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (3, NULL, 1), (4, 40, NULL);
INSERT INTO u VALUES (1, 5), (1, 15), (3, 100);
-- tick: groups come and go
DELETE FROM u VALUES (3, 100);
INSERT INTO u VALUES (2, 20), (NULL, 40);
-- tick: both sides
DELETE FROM t VALUES (1, 10, 1);
INSERT INTO t VALUES (5, 5, 2);
DELETE FROM u VALUES (1, 5), (1, 15);
-- tick: nothing is left on the right
DELETE FROM u VALUES (2, 20), (NULL, 40);

-- case: truths and values of subqueries elsewhere
CREATE SOURCE t (id INT, x INT, k INT);
CREATE SOURCE u (k INT, y INT);
CREATE VIEW flags AS SELECT id, EXISTS (SELECT 1 FROM u WHERE u.k = t.k) AS e, x IN (SELECT y FROM u) AS i, x NOT IN (SELECT y FROM u WHERE y <> 15) AS o FROM t;
CREATE VIEW either AS SELECT id FROM t WHERE x > 30 OR EXISTS (SELECT 1 FROM u WHERE u.k = t.k);
CREATE VIEW groups AS SELECT k, SUM(x) AS s FROM t GROUP BY k HAVING SUM(x) > (SELECT MIN(y) FROM u);
-- tick: rows
INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (3, NULL, 1), (4, 40, NULL);
INSERT INTO u VALUES (1, 5), (1, 15), (3, 100);
-- tick: groups come and go
DELETE FROM u VALUES (3, 100);
INSERT INTO u VALUES (2, 20), (NULL, 40);
-- tick: both sides
DELETE FROM t VALUES (1, 10, 1);
INSERT INTO t VALUES (5, 5, 2);
DELETE FROM u VALUES (1, 5), (1, 15);
-- tick: nothing is left on the right
DELETE FROM u VALUES (2, 20), (NULL, 40);

-- case: a scalar subquery of two rows fails the tick
CREATE SOURCE t (id INT, k INT);
CREATE SOURCE u (k INT, y INT);
CREATE VIEW one AS SELECT id, (SELECT y FROM u WHERE u.k = t.k) AS y FROM t;
-- tick: one row a key
INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO u VALUES (1, 10), (2, 20);
-- tick: the value changes
DELETE FROM u VALUES (1, 10);
INSERT INTO u VALUES (1, 11);
-- tick: two rows
-- fails: more than one row
INSERT INTO u VALUES (2, 21);
-- tick: put right
DELETE FROM u VALUES (2, 20);

-- case: subqueries in the arguments of aggregates
CREATE SOURCE t (id INT, k INT, x INT);
CREATE SOURCE u (k INT, y INT);
CREATE VIEW known AS SELECT k, COUNT(*) FILTER (WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)) AS n, SUM(CASE WHEN x IN (SELECT y FROM u) THEN 1 ELSE 0 END) AS m, (SELECT COUNT(*) FROM u) AS c FROM t GROUP BY k;
CREATE VIEW above AS SELECT SUM(x - (SELECT MIN(y) FROM u WHERE u.k = t.k)) AS s, MAX((SELECT MAX(y) FROM u)) AS top FROM t;
CREATE VIEW by_answer AS SELECT EXISTS (SELECT 1 FROM u WHERE u.k = t.k) AS there, COUNT(*) AS n FROM t GROUP BY EXISTS (SELECT 1 FROM u WHERE u.k = t.k);
CREATE VIEW by_value AS SELECT k, (SELECT MAX(y) FROM u WHERE u.k = t.k) AS top, SUM(x) AS s FROM t GROUP BY ALL;
CREATE VIEW doubled AS SELECT x + 1 AS z FROM ((SELECT x FROM t WHERE x NOT IN (SELECT y FROM u)));
-- tick: rows
INSERT INTO t VALUES (1, 1, 5), (2, 1, 7), (3, 2, 9), (4, NULL, 1), (5, 3, NULL);
INSERT INTO u VALUES (1, 5), (2, 9), (2, 3);
-- tick: the right side changes
DELETE FROM u VALUES (1, 5), (2, 3);
INSERT INTO u VALUES (3, 7);
-- tick: nothing on the right
DELETE FROM u VALUES (2, 9), (3, 7);
DELETE FROM t VALUES (3, 2, 9);

-- case: aggregates of a query that its subqueries call
CREATE SOURCE emp (id INT, salary INT, dept INT);
CREATE SOURCE bonus (amount INT, dept INT);
CREATE SOURCE d (id INT);
CREATE VIEW some AS SELECT dept, COUNT(*) AS n FROM emp GROUP BY dept HAVING EXISTS (SELECT 1 FROM bonus WHERE bonus.amount < MIN(emp.salary));
CREATE VIEW none AS SELECT dept FROM emp GROUP BY dept HAVING NOT EXISTS (SELECT 1 FROM bonus WHERE bonus.dept = emp.dept AND bonus.amount > MAX(emp.salary));
CREATE VIEW inner_ AS SELECT id FROM d WHERE EXISTS (SELECT dept, COUNT(emp.id) FROM emp WHERE d.id = dept GROUP BY dept HAVING EXISTS (SELECT 1 FROM bonus WHERE amount > MIN(emp.salary) AND COUNT(emp.id) > 1));
-- tick: rows
INSERT INTO emp VALUES (1, 10, 1), (2, 30, 1), (3, 5, 2), (4, NULL, 3), (5, 7, NULL);
INSERT INTO bonus VALUES (8, 1), (20, 2), (50, NULL);
INSERT INTO d VALUES (1), (2), (3);
-- tick: extremes move
DELETE FROM emp VALUES (1, 10, 1);
INSERT INTO emp VALUES (6, 1, 2), (7, 2, 3);
-- tick: bonuses change
DELETE FROM bonus VALUES (8, 1), (20, 2);
INSERT INTO bonus VALUES (1, 3), (100, 2) * 2;
