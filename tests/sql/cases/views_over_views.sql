-- Views that read views: each waits for the delta of the one before it.

-- case: three deep
CREATE SOURCE t (id INT, g STRING, x INT) PRIMARY KEY (id);
CREATE VIEW totals AS SELECT g, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY g;
CREATE VIEW big AS SELECT g, s FROM totals WHERE s > 10;
CREATE VIEW summary AS SELECT COUNT(*) AS groups, MAX(s) AS best, SUM(s) AS total FROM big;
CREATE VIEW with_detail AS SELECT t.id, big.s FROM big JOIN t ON big.g = t.g;
-- tick: rows
INSERT INTO t VALUES (1, 'a', 11), (2, 'b', 5), (3, 'b', 6), (4, 'c', 1), (5, NULL, 50);
-- tick: a group passes the bar, the best one falls
UPSERT INTO t VALUES (4, 'c', 100), (5, NULL, 1);
-- tick: below nothing changes
UPSERT INTO t VALUES (2, 'b', 6), (3, 'b', 5);
-- tick: all fall
UPSERT INTO t VALUES (4, 'c', 0), (1, 'a', 0), (2, 'b', 0);

-- case: a diamond with both inputs changed in one tick
CREATE SOURCE o (id INT, c INT, x INT) PRIMARY KEY (id);
CREATE SOURCE c (id INT, city STRING) PRIMARY KEY (id);
CREATE VIEW joined AS SELECT o.id, o.x, c.city FROM o JOIN c ON o.c = c.id;
CREATE VIEW sums AS SELECT city, SUM(x) AS s FROM joined GROUP BY city;
CREATE VIEW tops AS SELECT city, MAX(x) AS m FROM joined GROUP BY city;
CREATE VIEW shares AS SELECT j.id, j.x, s.s, m.m FROM joined j JOIN sums s ON j.city = s.city JOIN tops m ON m.city = s.city;
CREATE VIEW unions AS SELECT city, s AS v FROM sums UNION ALL SELECT city, m FROM tops;
CREATE VIEW cities AS SELECT DISTINCT city FROM unions WHERE v > 5;
-- tick: rows
INSERT INTO o VALUES (1, 1, 5), (2, 1, 7), (3, 2, 1), (4, 3, 9);
INSERT INTO c VALUES (1, 'X'), (2, 'Y'), (3, 'X');
-- tick: orders and customers change together
UPSERT INTO o VALUES (2, 2, 7), (4, 3, 2);
UPSERT INTO c VALUES (1, 'Y'), (3, 'Z');
-- tick: one side empties
DELETE KEYS FROM c VALUES (1), (2);
-- tick: and comes back elsewhere
INSERT INTO c VALUES (2, 'X'), (1, 'X');
DELETE KEYS FROM o VALUES (1);

-- case: a view over DISTINCT, over MIN and over floating-point keys
CREATE SOURCE t (id INT, k DOUBLE, s STRING) PRIMARY KEY (id);
CREATE VIEW keys AS SELECT DISTINCT k FROM t;
CREATE VIEW firsts AS SELECT k, MIN(s) AS s FROM t GROUP BY k;
CREATE VIEW of_keys AS SELECT COUNT(*) AS n, MAX(k) AS top FROM keys;
CREATE VIEW pairs AS SELECT a.k, b.s FROM keys a JOIN firsts b ON a.k = b.k;
-- tick: rows
INSERT INTO t VALUES (1, 0.0, 'b'), (2, -0.0, 'a'), (3, 'NaN', 'c'), (4, NULL, 'd'), (5, 2.5, NULL);
-- tick: extremes go
DELETE KEYS FROM t VALUES (2), (3);
-- tick: the group of zero goes and comes back from the other side
DELETE KEYS FROM t VALUES (1);
INSERT INTO t VALUES (6, -0.0, 'z'), (7, 'NaN', 'y');
