-- ORDER BY … LIMIT … OFFSET.

-- case: the first rows, as rows come and go on either side of the boundary
CREATE SOURCE t (id INT, x INT, s STRING) PRIMARY KEY (id);
-- means: SELECT id, x FROM t ORDER BY x DESC, id LIMIT 3
CREATE VIEW top AS SELECT id, x FROM t ORDER BY x DESC LIMIT 3;
-- means: SELECT x, id FROM t ORDER BY x, id LIMIT 2 OFFSET 1
CREATE VIEW after AS SELECT x, id FROM t ORDER BY x LIMIT 2 OFFSET 1;
CREATE VIEW by_hidden AS SELECT s FROM t ORDER BY id DESC NULLS FIRST LIMIT 2;
-- means: SELECT id, s FROM t ORDER BY id, s LIMIT 2
CREATE VIEW no_order AS SELECT id, s FROM t LIMIT 2;
CREATE VIEW rest AS SELECT id FROM t ORDER BY id OFFSET 3;
CREATE VIEW only_ordered AS SELECT id, s FROM t ORDER BY s;
CREATE VIEW none AS SELECT id FROM t ORDER BY id LIMIT 0;
-- tick: fewer than the limit
INSERT INTO t VALUES (1, 10, 'a'), (2, NULL, 'b');
-- tick: more than the limit, with ties at the boundary
INSERT INTO t VALUES (3, 10, 'c'), (4, 20, 'd'), (5, 10, 'e'), (6, 5, 'f');
-- tick: rows below the boundary change
UPSERT INTO t VALUES (6, 6, 'g');
DELETE KEYS FROM t VALUES (5);
-- tick: a row within goes, and another comes in its place
DELETE KEYS FROM t VALUES (4);
INSERT INTO t VALUES (7, 30, 'h');
-- tick: rows within go, others move up
DELETE KEYS FROM t VALUES (1), (7);
-- tick: almost all go
DELETE KEYS FROM t VALUES (2), (3);
-- tick: and come back
INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c'), (8, 4, 'd');

-- case: equal rows count as often as they are there
CREATE SOURCE t (x INT);
CREATE VIEW top AS SELECT x FROM t ORDER BY x LIMIT 3;
CREATE VIEW two_distinct AS SELECT DISTINCT x FROM t ORDER BY x DESC LIMIT 2;
CREATE VIEW of_union AS SELECT x FROM t UNION ALL SELECT -x FROM t ORDER BY x LIMIT 2;
-- tick: several of one
INSERT INTO t VALUES (5) * 4, (7) * 2;
-- tick: one smaller
INSERT INTO t VALUES (4);
-- tick: all but one of the first go
DELETE FROM t VALUES (5) * 3;
-- tick: NULLs are the least
INSERT INTO t VALUES (NULL) * 2;

-- case: the largest groups, and rows joined with them
CREATE SOURCE o (id INT, c STRING, x INT) PRIMARY KEY (id);
CREATE VIEW largest AS SELECT c, SUM(x) AS s FROM o GROUP BY c ORDER BY s DESC, c LIMIT 2;
CREATE VIEW of_largest AS SELECT o.id, l.s FROM o JOIN (SELECT c, SUM(x) AS s FROM o GROUP BY c ORDER BY SUM(x) DESC, c LIMIT 1) l ON o.c = l.c;
CREATE VIEW best_alone AS SELECT id, (SELECT c FROM o ORDER BY x DESC, id LIMIT 1) AS best FROM o;
CREATE VIEW of_view AS SELECT COUNT(*) AS n, MAX(s) AS m FROM largest;
-- tick: groups
INSERT INTO o VALUES (1, 'a', 5), (2, 'b', 7), (3, 'a', 1), (4, 'c', 6);
-- tick: the order of groups changes
UPSERT INTO o VALUES (3, 'a', 9), (2, 'c', 1);
-- tick: the largest goes
DELETE KEYS FROM o VALUES (1), (3);

-- case: ORDER BY ALL, computed numbers, and expressions over a set operation
CREATE SOURCE t (k INT, x INT);
CREATE SOURCE u (y INT);
CREATE VIEW all_ AS SELECT x, k + 1 AS j FROM t ORDER BY ALL DESC LIMIT 1 + 1;
CREATE VIEW each AS SELECT k, (SELECT y FROM u WHERE u.y > t.x ORDER BY ALL LIMIT 1) AS next FROM t;
CREATE VIEW of_union AS SELECT x FROM t UNION SELECT y FROM u ORDER BY x % 5, -x LIMIT CAST(3 AS INT);
CREATE VIEW of_union_all AS SELECT x FROM t UNION ALL SELECT y FROM u ORDER BY ALL LIMIT 2 OFFSET 1;
CREATE VIEW turned AS SELECT x + k AS s, 2 * (x + k) AS d, COUNT(*) AS n FROM t GROUP BY k + x HAVING (x + k) * 3 > 3;
-- tick: rows
INSERT INTO t VALUES (1, 5), (2, 5), (3, 9), (4, NULL), (5, 1);
INSERT INTO u VALUES (7), (10), (5), (NULL);
-- tick: the first go
DELETE FROM t VALUES (3, 9), (5, 1);
INSERT INTO u VALUES (11), (0);
-- tick: others come
INSERT INTO t VALUES (9, 12), (8, 12), (0, 3);
DELETE FROM u VALUES (NULL), (0);
