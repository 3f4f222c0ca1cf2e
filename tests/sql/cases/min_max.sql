-- MIN and MAX under deletion: of the extreme, of a duplicate of it, of the last row.

-- case: the extreme goes
CREATE SOURCE t (id INT, g STRING, x INT, s STRING, d DATE) PRIMARY KEY (id);
CREATE VIEW lows AS SELECT g, MIN(x) AS x, MIN(s) AS s, MIN(d) AS d FROM t GROUP BY g;
CREATE VIEW highs AS SELECT g, MAX(x) AS x, MAX(s) AS s, MAX(d) AS d, COUNT(*) AS n FROM t GROUP BY g;
CREATE VIEW overall AS SELECT MIN(x) AS lo, MAX(x) AS hi, MAX(x) - MIN(x) AS span, SUM(x) AS total FROM t;
CREATE VIEW having_low AS SELECT g FROM t GROUP BY g HAVING MIN(x) < 0;
CREATE VIEW by_expression AS SELECT length(g) AS n, MAX(x * x) AS m FROM t GROUP BY length(g);
-- tick: rows
INSERT INTO t VALUES (1, 'a', 1, 'p', '2024-01-01'), (2, 'a', 5, 'q', '2024-01-02'), (3, 'a', 5, 'z', NULL), (4, 'b', -3, 'x', '2020-01-01'), (5, 'b', NULL, NULL, NULL), (6, NULL, 4, 'n', '2024-06-01');
-- tick: one of two equal maxima goes, a minimum goes
DELETE KEYS FROM t VALUES (2);
UPSERT INTO t VALUES (4, 'b', -1, 'y', '2021-01-01');
-- tick: the other maximum goes while a new minimum comes
DELETE KEYS FROM t VALUES (3);
INSERT INTO t VALUES (7, 'a', 0, 'a', '2023-01-01');
-- tick: the extreme is replaced by an equal one
DELETE FROM t VALUES (7, 'a', 0, 'a', '2023-01-01');
INSERT INTO t VALUES (8, 'a', 0, 'a', '2023-01-01');
-- tick: the last row with a value goes, a NULL stays
DELETE KEYS FROM t VALUES (4);
-- tick: a group goes, another loses its extreme to it
DELETE KEYS FROM t VALUES (5), (8);
UPSERT INTO t VALUES (1, NULL, 100, 'p', '2024-01-01');
-- tick: the group comes back with less
INSERT INTO t VALUES (9, 'b', 1, 'b', '1999-01-01');
DELETE KEYS FROM t VALUES (1);

-- case: of every ordered type, with duplicates
CREATE SOURCE t (g INT, x DOUBLE, f FLOAT, n DECIMAL(20, 5), ts TIMESTAMP, b BIGINT, y BINARY);
CREATE VIEW lows AS SELECT g, MIN(x) AS x, MIN(f) AS f, MIN(n) AS n, MIN(ts) AS ts, MIN(b) AS b, MIN(y) AS y FROM t GROUP BY g;
CREATE VIEW highs AS SELECT g, MAX(x) AS x, MAX(f) AS f, MAX(n) AS n, MAX(ts) AS ts, MAX(b) AS b, MAX(y) AS y FROM t GROUP BY g;
-- tick: NaN is the greatest, zeros are one
INSERT INTO t VALUES (1, 'NaN', 'NaN', 1.5, '2024-01-01 00:00:00', 9223372036854775807, X'FF') * 2, (1, 1.5, -1.5, -1.5, '1960-01-01 00:00:00.5', -9223372036854775808, X'00');
INSERT INTO t VALUES (2, 3.5, 0.5, NULL, NULL, 0, X''), (2, '-Infinity', 'Infinity', 0, '2024-01-01 00:00:00', NULL, NULL);
-- tick: one NaN of two goes, the infinity goes
DELETE FROM t VALUES (1, 'NaN', 'NaN', 1.5, '2024-01-01 00:00:00', 9223372036854775807, X'FF'), (2, '-Infinity', 'Infinity', 0, '2024-01-01 00:00:00', NULL, NULL);
-- tick: the other NaN goes, NULLs come
DELETE FROM t VALUES (1, 'NaN', 'NaN', 1.5, '2024-01-01 00:00:00', 9223372036854775807, X'FF');
INSERT INTO t VALUES (2, NULL, NULL, NULL, NULL, NULL, NULL) * 2;
-- tick: only NULLs are left of one group
DELETE FROM t VALUES (2, 3.5, 0.5, NULL, NULL, 0, X'');

-- case: over joins, where a deletion on either side reaches the extreme
CREATE SOURCE o (id INT, c INT, x INT) PRIMARY KEY (id);
CREATE SOURCE c (id INT, g STRING) PRIMARY KEY (id);
CREATE VIEW per_group AS SELECT c.g, MIN(o.x) AS lo, MAX(o.x) AS hi, COUNT(*) AS n FROM o JOIN c ON o.c = c.id GROUP BY c.g;
CREATE VIEW per_customer AS SELECT o.c, MAX(c.g) AS g, MIN(o.x) AS lo FROM o, c WHERE o.c = c.id AND o.x > 0 GROUP BY o.c;
CREATE VIEW of_groups AS SELECT MAX(s) AS best FROM (SELECT c, SUM(x) AS s FROM o GROUP BY c);
CREATE VIEW of_union AS SELECT g, MIN(x) AS lo FROM (SELECT c AS g, x FROM o UNION ALL SELECT id, length(g) FROM c) GROUP BY g;
-- tick: rows
INSERT INTO o VALUES (1, 1, 10), (2, 1, 20), (3, 2, 5), (4, 2, 50), (5, 3, 1), (6, 9, 99);
INSERT INTO c VALUES (1, 'a'), (2, 'a'), (3, 'bb');
-- tick: a customer changes its group and takes the extremes along
UPSERT INTO c VALUES (2, 'bb');
-- tick: the customer of the extreme goes while an order of the other comes
DELETE KEYS FROM c VALUES (1);
INSERT INTO o VALUES (7, 3, 0), (8, 2, 51);
INSERT INTO c VALUES (9, 'a');
-- tick: order and customer of one pair go together
DELETE KEYS FROM o VALUES (6), (8);
DELETE KEYS FROM c VALUES (9);
-- tick: keys move on both sides
UPSERT INTO o VALUES (3, 3, 5), (5, 2, 1);
UPSERT INTO c VALUES (3, 'a'), (2, 'a');
