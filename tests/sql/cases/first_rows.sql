-- Rows by their place: only the first of every partition are kept, and those that come are compared with them.

-- case: the first rows of every key, while rows only come and when some go
CREATE SOURCE t (id INT, k STRING, x INT) PRIMARY KEY (id);
CREATE VIEW newest AS SELECT * FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY id DESC) = 1;
CREATE VIEW two AS SELECT id, k, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC, id) AS n FROM t) WHERE n <= 2 AND id <> 5;
CREATE VIEW second AS SELECT k, x FROM (SELECT k, x, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC, id) AS n FROM t) WHERE 2 = n;
-- tick: the first rows; NULL is a key
INSERT INTO t VALUES (1, 'a', 10), (2, 'a', 10), (3, 'b', 5), (4, NULL, 1), (5, 'a', NULL), (6, NULL, 2);
-- tick: rows come, before the first ones, among them and behind them
INSERT INTO t VALUES (7, 'a', 11), (8, 'b', 5), (9, NULL, 0), (10, 'c', 1), (11, 'a', 10);
-- tick: rows come for one key only
INSERT INTO t VALUES (12, 'a', 12), (13, 'a', 13), (14, 'a', 1);
-- tick: a first row goes, one moves to another key
DELETE KEYS FROM t VALUES (13);
UPSERT INTO t VALUES (12, 'b', 12);
-- tick: one that is not among the first goes
DELETE KEYS FROM t VALUES (14);
-- tick: a key goes, rows come for it again
DELETE KEYS FROM t VALUES (10), (4), (6), (9);
INSERT INTO t VALUES (20, NULL, 3);
-- tick: and again
INSERT INTO t VALUES (21, NULL, 3), (22, 'c', 3);

-- case: the first rows of a join by key, with equal rows, and of a union that takes away
CREATE SOURCE o (c INT, x INT);
CREATE SOURCE c (id INT, region STRING);
CREATE VIEW best AS SELECT region, x FROM o JOIN c ON o.c = c.id QUALIFY ROW_NUMBER() OVER (PARTITION BY region ORDER BY x DESC) <= 2;
CREATE VIEW lone AS SELECT c, x FROM o LEFT ANTI JOIN c ON o.c = c.id QUALIFY ROW_NUMBER() OVER (PARTITION BY c ORDER BY x) = 1;
CREATE VIEW least AS SELECT c, MIN(x) AS m, MAX(x) AS n FROM o GROUP BY c;
CREATE VIEW few AS SELECT c, x FROM o ORDER BY x, c LIMIT 2;
-- tick: rows
INSERT INTO o VALUES (1, 5) * 2, (1, 4), (2, 7), (3, 1);
INSERT INTO c VALUES (1, 'n'), (2, 's');
-- tick: more of one side
INSERT INTO o VALUES (2, 6), (2, 8) * 3, (1, 5), (4, 0), (NULL, 2);
-- tick: more of the other, which takes rows from the anti join
INSERT INTO c VALUES (3, 'n'), (4, 's'), (NULL, 'z');
-- tick: both
INSERT INTO o VALUES (3, 9), (5, 5);
INSERT INTO c VALUES (5, 'w') * 2;
-- tick: rows go
DELETE FROM o VALUES (2, 8) * 2, (1, 5);
DELETE FROM c VALUES (3, 'n');
