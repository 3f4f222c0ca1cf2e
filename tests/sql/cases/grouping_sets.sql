-- GROUP BY ROLLUP, CUBE, GROUPING SETS and ALL.

-- case: subtotals and totals, told apart from NULL keys
CREATE SOURCE t (a STRING, b INT, x INT);
CREATE VIEW rolled AS SELECT a, b, SUM(x) AS s, COUNT(*) AS n, GROUPING(a) AS ga, GROUPING(b) AS gb, GROUPING_ID(a, b) AS g FROM t GROUP BY ROLLUP (a, b);
CREATE VIEW cubed AS SELECT a, b, MAX(x) AS m, GROUPING_ID() AS g FROM t GROUP BY CUBE (a, b);
CREATE VIEW sets AS SELECT a, b, COUNT(DISTINCT x) AS d FROM t GROUP BY GROUPING SETS ((a), (b), (a, b), (), (a)) HAVING COUNT(*) > 1;
CREATE VIEW mixed AS SELECT a, b + 1 AS c, COUNT(*) AS n FROM t GROUP BY a, ROLLUP (b + 1);
CREATE VIEW with_rollup AS SELECT b, COUNT(*) AS n FROM t GROUP BY b WITH ROLLUP;
CREATE VIEW by_all AS SELECT a, b % 2 AS odd, SUM(x) AS s FROM t GROUP BY ALL;
-- tick: none
-- tick: NULL keys beside totals
INSERT INTO t VALUES ('p', 1, 10), ('p', 2, 20), ('q', 1, NULL), (NULL, 1, 5), (NULL, NULL, 5);
-- tick: groups change and go
DELETE FROM t VALUES ('q', 1, NULL), (NULL, NULL, 5);
INSERT INTO t VALUES ('p', 2, 20), ('r', NULL, 1);
-- tick: all go
DELETE FROM t VALUES ('p', 1, 10), ('p', 2, 20), ('p', 2, 20), (NULL, 1, 5), ('r', NULL, 1);

-- case: grouping sets behind the keys, and keys behind a ROLLUP
CREATE SOURCE t (a INT, b INT);
CREATE VIEW behind AS SELECT a, b, COUNT(*) AS n FROM t GROUP BY a, b GROUPING SETS ((a), (b));
CREATE VIEW bits AS SELECT b, a, GROUPING_ID() AS g FROM t GROUP BY ROLLUP (b), a;
-- tick: rows
INSERT INTO t VALUES (1, 1), (1, 2), (NULL, 2);
-- tick: one goes
DELETE FROM t VALUES (1, 2);

-- case: positions in grouping sets
CREATE SOURCE t (a STRING, b STRING, x INT);
CREATE VIEW rolled AS SELECT a, b, SUM(x) AS s FROM t GROUP BY ROLLUP (1, 2);
CREATE VIEW sets AS SELECT upper(a) AS u, b, COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((1, 2), (2), ());
-- tick: rows
INSERT INTO t VALUES ('p', 'q', 1), ('p', NULL, 2), (NULL, 'q', 3), ('P', 'q', NULL);
-- tick: changes
DELETE FROM t VALUES ('p', 'q', 1);
INSERT INTO t VALUES ('r', 'q', 5);

-- case: one empty set alone has a row for no rows, and HAVING of a number
CREATE SOURCE t (k INT, v INT);
CREATE VIEW whole AS SELECT SUM(v) AS total, COUNT(*) AS n, GROUPING_ID() AS g FROM t WHERE k > 1 GROUP BY GROUPING SETS (());
CREATE VIEW twice AS SELECT COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((), ());
CREATE VIEW listed AS SELECT COLLECT_SET(v) AS vs FROM t GROUP BY GROUPING SETS (());
CREATE VIEW counted AS SELECT k, SUM(v) AS s FROM t GROUP BY k HAVING SUM(v) + 1;
-- tick: nothing yet
-- tick: rows
INSERT INTO t VALUES (1, 5), (2, 7), (3, -1);
-- tick: they go
DELETE FROM t VALUES (1, 5), (2, 7), (3, -1);
