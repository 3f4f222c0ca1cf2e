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

-- case: NOT around IN, and truth values compared with literals
CREATE SOURCE a (k INT, x INT);
CREATE SOURCE b (y INT);
CREATE VIEW n1 AS SELECT k, x FROM a WHERE NOT (k IN (SELECT y FROM b) AND x > 1);
CREATE VIEW n2 AS SELECT k, x FROM a WHERE NOT (k IN (SELECT y FROM b) OR x > 1);
CREATE VIEW n3 AS SELECT k, x FROM a WHERE (k NOT IN (SELECT y FROM b)) = FALSE;
CREATE VIEW n4 AS SELECT k, x FROM a WHERE NOT ((k IN (SELECT y FROM b)) = TRUE);
CREATE VIEW n5 AS SELECT k, x FROM a WHERE (NOT (k NOT IN (SELECT y FROM b))) = TRUE;
CREATE VIEW n6 AS SELECT k, x FROM a WHERE ((k NOT IN (SELECT y FROM b)) = TRUE) = FALSE;
CREATE VIEW n7 AS SELECT k, x FROM a WHERE ((k IN (SELECT y FROM b)) = FALSE) IS NOT TRUE;
CREATE VIEW n8 AS SELECT k, count(*) AS n FROM a GROUP BY k HAVING NOT (k IN (SELECT y FROM b) AND count(*) > 0);
CREATE VIEW n9 AS SELECT a.k, c.x FROM a JOIN a c ON a.k = c.k AND NOT (a.k IN (SELECT y FROM b) AND c.x > 1);
CREATE VIEW n10 AS SELECT count_if(NOT (k IN (SELECT y FROM b) AND x > 1)) AS n FROM a;
CREATE VIEW n11 AS SELECT k, x FROM a WHERE NOT ((k, x) IN (SELECT y, y FROM b) AND x > 1);
CREATE VIEW n12 AS SELECT k, x, NOT (k IN (SELECT y FROM b) AND x > 1) AS c FROM a;
CREATE VIEW n13 AS SELECT k, x FROM a WHERE NOT (x > 2 OR NOT (k IN (SELECT y FROM b WHERE b.y = a.x) OR (k NOT IN (SELECT y FROM b)) <> FALSE));
CREATE VIEW n14 AS SELECT k, CASE WHEN NOT (k IN (SELECT y FROM b) OR x IS NULL) THEN 1 ELSE 0 END AS c FROM a;
CREATE VIEW n15 AS SELECT k FROM a WHERE TRUE = (k IN (SELECT y FROM b)) OR NOT (NOT (k NOT IN (SELECT y FROM b) AND x < 3));
CREATE VIEW n16 AS SELECT k, x FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE NOT (b.y IN (SELECT k FROM a) AND b.y > 1));
-- tick: one
INSERT INTO a VALUES (4, 4), (NULL, 1), (2, 2), (4, NULL), (1, 1);
INSERT INTO b VALUES (2), (NULL), (7), (NULL), (7);
-- tick: two
DELETE FROM b VALUES (NULL), (NULL);
INSERT INTO a VALUES (3, 3);
-- tick: three
INSERT INTO b VALUES (NULL), (4);
DELETE FROM a VALUES (4, 4);

-- case: two rows of a key that nobody asks for are no error
CREATE SOURCE a (k INT, x INT);
CREATE SOURCE b (y INT);
CREATE SOURCE t (k INT, x INT);
CREATE VIEW q1 AS SELECT k, (SELECT y FROM b WHERE b.y = a.k) AS y FROM a WHERE x < 3;
CREATE VIEW q2 AS SELECT k, (SELECT t.x FROM t WHERE t.k = a.k) AS y FROM a WHERE k < 3;
-- tick: one
INSERT INTO a VALUES (4, 4), (NULL, 1), (2, 2), (4, NULL), (1, 1);
INSERT INTO b VALUES (2), (NULL), (7), (NULL), (7);
INSERT INTO t VALUES (1, 1), (2, 5), (NULL, 6), (NULL, 7), (9, 1), (9, 2);
-- tick: two
DELETE FROM b VALUES (NULL), (NULL);
INSERT INTO a VALUES (3, 3);
INSERT INTO t VALUES (3, 3), (NULL, 6);
-- tick: three
INSERT INTO b VALUES (NULL), (4);
DELETE FROM a VALUES (4, 4);
DELETE FROM t VALUES (9, 1);
-- tick: now somebody asks
-- fails: more than one row
INSERT INTO a VALUES (7, 1);
-- tick: and goes on
DELETE FROM b VALUES (7);
INSERT INTO a VALUES (7, 1);

-- case: values of groups, asked for by few rows
CREATE SOURCE p (id INT, brand STRING, size BIGINT);
CREATE SOURCE l (part INT, n DECIMAL(12, 2), price DECIMAL(12, 2));
CREATE VIEW small AS SELECT SUM(l.price) / 7.0 AS s FROM l, p WHERE p.id = l.part AND p.brand = 'b1' AND l.n < (SELECT 0.2 * AVG(l.n) FROM l WHERE l.part = p.id);
CREATE VIEW best AS SELECT p.id, l.price FROM p JOIN l ON l.part = p.id WHERE p.brand LIKE 'b%' AND p.size = 1 AND l.price = (SELECT MIN(m.price) FROM l AS m WHERE m.part = p.id AND m.n > 1);
CREATE VIEW counted AS SELECT p.id FROM p WHERE p.brand = 'b1' AND p.size > (SELECT COUNT(*) FROM l WHERE l.part = p.id);
CREATE VIEW around AS SELECT p.id, p.size FROM p WHERE p.brand IN ('b1', 'b2') AND 2 * (SELECT MAX(l.n) FROM l WHERE l.part = p.id) + p.size <> 9;
CREATE VIEW two AS SELECT p.id FROM p WHERE p.brand = 'b2' AND (SELECT MIN(l.n) FROM l WHERE l.part = p.id) < (SELECT AVG(l.price) FROM l WHERE l.part = p.size);
CREATE VIEW derived AS SELECT p.id, g.s FROM p JOIN (SELECT part, SUM(n) AS s, COUNT(*) AS c FROM l GROUP BY part) g ON g.part = p.id WHERE p.brand = 'b1' AND g.c > 1;
-- tick: rows
INSERT INTO p VALUES (1, 'b1', 1), (2, 'b2', 1), (2, 'b2', 1), (3, 'b1', 3), (4, 'c', 1), (NULL, 'b1', 2), (5, NULL, 1);
INSERT INTO l VALUES (1, 10.00, 3.00), (1, 1.00, 5.00), (1, 100.00, 7.00), (2, 4.00, 9.00), (3, 2.00, 2.00), (3, 2.00, 2.00), (4, 1.00, 1.00), (NULL, 5.00, 5.00);
-- tick: only groups that nobody asks for
INSERT INTO l VALUES (4, 7.00, 8.00), (9, 1.50, 2.50), (NULL, 0.10, 0.20);
-- tick: groups that are asked for
INSERT INTO l VALUES (1, 0.50, 1.00), (2, 3.00, 0.10), (3, NULL, NULL);
DELETE FROM l VALUES (1, 100.00, 7.00), (4, 1.00, 1.00);
-- tick: a group is asked for that has been there
INSERT INTO p VALUES (4, 'b1', 1), (9, 'b2', 4);
-- tick: a group is asked for no more
DELETE FROM p VALUES (1, 'b1', 1), (2, 'b2', 1);
-- tick: both sides
INSERT INTO p VALUES (1, 'b2', 9), (7, 'b1', 1);
INSERT INTO l VALUES (1, 2.00, 2.00), (7, 3.00, 3.00), (9, 0.01, 1.00);
DELETE FROM p VALUES (4, 'c', 1), (NULL, 'b1', 2);
-- tick: a group loses all its rows
DELETE FROM l VALUES (3, 2.00, 2.00), (3, 2.00, 2.00), (3, NULL, NULL), (9, 0.01, 1.00), (9, 1.50, 2.50);
