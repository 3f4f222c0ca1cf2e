-- Window functions: ranks, neighbours, frames, running and whole totals.

-- case: ranks and neighbours within partitions that come, change and go
CREATE SOURCE t (id INT, k STRING, x INT) PRIMARY KEY (id);
CREATE VIEW ranks AS SELECT id, RANK() OVER w AS r, DENSE_RANK() OVER w AS d, PERCENT_RANK() OVER w AS p, CUME_DIST() OVER w AS c, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x, id) AS n, NTILE(2) OVER (PARTITION BY k ORDER BY x, id) AS half FROM t WINDOW w AS (PARTITION BY k ORDER BY x);
CREATE VIEW neighbours AS SELECT id, LAG(x) OVER w AS before, LEAD(x, 2, -1) OVER w AS after, LAG(x) IGNORE NULLS OVER w AS known FROM t WINDOW w AS (PARTITION BY k ORDER BY id);
CREATE VIEW newest AS SELECT * FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY id DESC) = 1;
CREATE VIEW second AS SELECT k, x FROM (SELECT k, x, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC, id) AS n FROM t) WHERE n = 2;
-- tick: NULL is a partition, and NULLs come first
INSERT INTO t VALUES (1, 'a', 10), (2, 'a', 10), (3, 'b', 5), (4, NULL, 1), (5, 'a', NULL), (6, NULL, 2);
-- tick: a row moves to another partition, one is new, one changes
UPSERT INTO t VALUES (2, 'b', 10), (7, 'c', 1), (1, 'a', 11);
-- tick: a partition goes, another empties by a move
DELETE KEYS FROM t VALUES (7);
UPSERT INTO t VALUES (4, 'a', 1), (6, 'a', 2);
-- tick: nothing that a window sees
UPSERT INTO t VALUES (3, 'b', 5);
-- tick: all of it goes
DELETE KEYS FROM t VALUES (1), (2), (3), (4), (5), (6);

-- case: ties are broken by the remaining columns
CREATE SOURCE t (k INT, x INT, s STRING);
-- means: SELECT k, x, s, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x, s) AS n FROM t
CREATE VIEW numbered AS SELECT k, x, s, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x) AS n FROM t;
-- means: SELECT k, s, FIRST_VALUE(s) OVER (PARTITION BY k ORDER BY x, s) AS f, FIRST_VALUE(s) OVER (PARTITION BY k, x ORDER BY s DESC) AS l FROM t
CREATE VIEW ends AS SELECT k, s, FIRST_VALUE(s) OVER (PARTITION BY k ORDER BY x) AS f, LAST_VALUE(s) OVER (PARTITION BY k ORDER BY x) AS l FROM t;
-- means: SELECT k, x, s, SUM(x) OVER (PARTITION BY k ORDER BY x, s ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS around FROM t
CREATE VIEW around AS SELECT k, x, s, SUM(x) OVER (PARTITION BY k ORDER BY x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS around FROM t;
CREATE VIEW running AS SELECT k, x, s, SUM(x) OVER (PARTITION BY k ORDER BY x) AS so_far, COUNT(*) OVER (PARTITION BY k ORDER BY x DESC) AS above, MAX(s) OVER (PARTITION BY k ORDER BY x) AS last_s FROM t;
-- tick: equal rows, several times
INSERT INTO t VALUES (1, 5, 'q'), (1, 5, 'p'), (1, 5, 'p') * 2, (1, NULL, 'z'), (2, 0, NULL) * 3, (NULL, 1, 'n');
-- tick: one of several equal ones goes
DELETE FROM t VALUES (1, 5, 'p') * 2;
INSERT INTO t VALUES (1, 4, 'a');
-- tick: peers come
INSERT INTO t VALUES (2, 0, 'm'), (NULL, 1, 'm');
DELETE FROM t VALUES (2, 0, NULL);

-- case: totals of whole partitions beside each row, and of all rows
CREATE SOURCE t (id INT, k INT, x DECIMAL(10, 2), f DOUBLE) PRIMARY KEY (id);
CREATE VIEW shares AS SELECT id, x, SUM(x) OVER (PARTITION BY k) AS s, COUNT(*) OVER (PARTITION BY k) AS c, MAX(x) OVER () AS top, x = MAX(x) OVER (PARTITION BY k) AS is_top FROM t;
-- rounded: s, a, m
CREATE VIEW floats AS SELECT id, SUM(f) OVER (PARTITION BY k) AS s, AVG(f) OVER () AS a, SUM(f) OVER (PARTITION BY k ORDER BY id) AS m FROM t;
CREATE VIEW of_groups AS SELECT k, SUM(x) AS s, SUM(SUM(x)) OVER () AS whole, RANK() OVER (ORDER BY SUM(x) DESC) AS r FROM t GROUP BY k HAVING COUNT(*) > 0;
-- tick: rows
INSERT INTO t VALUES (1, 1, 1.10, 0.1), (2, 1, 2.20, 0.2), (3, 2, 3.30, 1e3), (4, NULL, NULL, NULL), (5, 2, 0.00, -1e2);
-- tick: one value changes, all rows of its partition do
UPSERT INTO t VALUES (2, 1, 5.00, 0.3);
-- tick: the top goes, a partition too
DELETE KEYS FROM t VALUES (2), (4);
-- tick: everything goes and one row comes
DELETE KEYS FROM t VALUES (1), (3), (5);
INSERT INTO t VALUES (9, 9, 9.99, 9.5);

-- case: frames of RANGE and of time, and lists of what a frame holds
CREATE SOURCE t (id INT, d DATE, x INT) PRIMARY KEY (id);
CREATE VIEW lately AS SELECT id, SUM(x) OVER (ORDER BY d RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW) AS s, COUNT(*) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS near FROM t;
CREATE VIEW lists AS SELECT id, COLLECT_LIST(x) OVER (PARTITION BY d ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS xs, NTH_VALUE(x, 2) OVER (PARTITION BY d ORDER BY id) AS nth, FIRST_VALUE(x) IGNORE NULLS OVER (ORDER BY id) AS first_x FROM t;
-- means: SELECT id, TRANSFORM(ARRAY_SORT(COLLECT_LIST(STRUCT(d, id)) OVER (ORDER BY d)), e -> e.id) AS ids FROM t
CREATE VIEW of_peers AS SELECT id, COLLECT_LIST(id) OVER (ORDER BY d, x) AS ids FROM (SELECT id, d, 0 AS x FROM t);
-- tick: days
INSERT INTO t VALUES (1, '2024-01-01', 1), (2, '2024-01-02', NULL), (3, '2024-01-02', 3), (4, '2024-01-09', 4);
-- tick: one comes between
INSERT INTO t VALUES (5, '2024-01-03', 2);
-- tick: one goes, one moves
DELETE KEYS FROM t VALUES (1);
UPSERT INTO t VALUES (4, '2024-01-04', 4);

-- case: windows over joins, over windows, and views over views with windows
CREATE SOURCE o (id INT, c INT, x INT) PRIMARY KEY (id);
CREATE SOURCE c (id INT, region STRING) PRIMARY KEY (id);
CREATE VIEW best AS SELECT region, o.id, ROW_NUMBER() OVER (PARTITION BY region ORDER BY x DESC, o.id) AS n FROM o JOIN c ON o.c = c.id;
CREATE VIEW best_two AS SELECT region, SUM(n) AS s, COUNT(*) AS c FROM best WHERE n <= 2 GROUP BY region;
CREATE VIEW nested AS SELECT id, n, SUM(n) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS s FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY c ORDER BY id) AS n FROM o);
-- tick: rows on both sides
INSERT INTO o VALUES (1, 1, 5), (2, 1, 7), (3, 2, 7), (4, 3, 1);
INSERT INTO c VALUES (1, 'n'), (2, 'n'), (3, NULL);
-- tick: a customer moves to another region
UPSERT INTO c VALUES (2, 's');
-- tick: both sides change at once
UPSERT INTO o VALUES (2, 2, 9), (5, 3, 3);
UPSERT INTO c VALUES (1, NULL), (4, 'n');
-- tick: a region goes
DELETE KEYS FROM c VALUES (2);

-- case: one query that is read twice has one order, and an aggregate is its own window
CREATE SOURCE t (id INT, s STRING, x INT) PRIMARY KEY (id);
-- means: SELECT s FROM t ORDER BY x, s, id LIMIT 1
CREATE VIEW same_row AS WITH c AS (SELECT s, id FROM t ORDER BY x LIMIT 1) SELECT a.s FROM c a JOIN c b ON a.id = b.id;
CREATE VIEW own_window AS SELECT x, COUNT(*) AS n, COUNT(*) OVER () AS g, SUM(COUNT(*)) OVER () AS whole FROM t GROUP BY x;
CREATE VIEW in_parentheses AS (SELECT id, s FROM t) ORDER BY id, s LIMIT 2;
CREATE VIEW dated AS SELECT id, current_date() AS d, RANK() OVER (PARTITION BY current_date() ORDER BY id) AS n FROM t;
-- tick: ties
-- at: 2024-01-31 12:00:00
INSERT INTO t VALUES (1, 'b', 0), (2, 'a', 0), (3, 'c', 1);
-- tick: the same day
-- at: 2024-01-31 13:00:00
INSERT INTO t VALUES (4, 'a', 0);
-- tick: the next day, and a row goes
-- at: 2024-02-01 12:00:00
DELETE KEYS FROM t VALUES (2);

-- case: picking window functions with FILTER
CREATE SOURCE t (id INT, g STRING, x INT);
CREATE VIEW firsts AS SELECT id, g, first_value(x) FILTER (WHERE g = 'a') OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS f, last_value(x) FILTER (WHERE g = 'a') OVER (ORDER BY id) AS l FROM t;
CREATE VIEW lists AS SELECT id, x, collect_list(x) FILTER (WHERE x > 1) OVER (PARTITION BY g ORDER BY id) AS xs, first_value(x) IGNORE NULLS OVER (PARTITION BY g ORDER BY id) AS f FROM t;
-- tick: rows
INSERT INTO t VALUES (1, 'b', 1), (2, 'a', 2), (3, 'a', NULL), (4, 'b', 4), (5, 'a', 5), (6, NULL, 3);
-- tick: the first goes
DELETE FROM t VALUES (2, 'a', 2);
INSERT INTO t VALUES (7, 'b', 9), (0, 'a', 1);

-- case: rows around a change, of windows without PARTITION BY
CREATE SOURCE t (d DATE, x INT, s STRING);
-- means: SELECT d, x, LAG(x) OVER (ORDER BY d, x) AS b, LEAD(x, 2, 0) OVER (ORDER BY d, x) AS a, SUM(x) OVER (ORDER BY d, x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS n FROM t
CREATE VIEW near AS SELECT d, x, LAG(x) OVER w AS b, LEAD(x, 2, 0) OVER w AS a, SUM(x) OVER (ORDER BY d ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS n FROM t WINDOW w AS (ORDER BY d);
CREATE VIEW so_far AS SELECT d, x, SUM(x) OVER w AS s, COUNT(x) OVER w AS c, MIN(x) OVER w AS l, MAX(x) FILTER (WHERE x < 7) OVER w AS h, RANK() OVER w AS r, DENSE_RANK() OVER w AS p FROM t WINDOW w AS (ORDER BY d DESC NULLS FIRST);
-- means: SELECT d, x, SUM(x) OVER (ORDER BY d, x ROWS UNBOUNDED PRECEDING) AS s, ROW_NUMBER() OVER (ORDER BY d, x) AS n FROM t
CREATE VIEW by_row AS SELECT d, x, SUM(x) OVER (ORDER BY d ROWS UNBOUNDED PRECEDING) AS s, ROW_NUMBER() OVER (ORDER BY d) AS n FROM t;
-- tick: days with several rows, equal ones and NULL
INSERT INTO t VALUES ('2024-01-01', 1, 'a'), ('2024-01-02', 2, 'a'), ('2024-01-02', 2, 'a') * 2, ('2024-01-02', 9, 'b'), (NULL, 5, 'c'), ('2024-01-05', NULL, 'd'), ('2024-01-06', 6, 'd'), ('2024-01-08', 8, 'e');
-- tick: one at the end
INSERT INTO t VALUES ('2024-01-09', 3, 'f');
-- tick: one between, behind rows that are equal
INSERT INTO t VALUES ('2024-01-03', 4, 'f');
-- tick: some of the equal ones go, and one comes before all others
DELETE FROM t VALUES ('2024-01-02', 2, 'a') * 2, ('2024-01-08', 8, 'e');
INSERT INTO t VALUES ('2023-12-31', -1, 'z'), (NULL, NULL, NULL);
-- tick: a change that no window sees
DELETE FROM t VALUES ('2024-01-06', 6, 'd');
INSERT INTO t VALUES ('2024-01-06', 6, 'other');
-- tick: the first and the last go
DELETE FROM t VALUES (NULL, 5, 'c'), ('2024-01-09', 3, 'f'), ('2023-12-31', -1, 'z');

-- case: orders among rows with lists of floating point numbers
CREATE SOURCE t (id INT, v ARRAY<DOUBLE>, p STRUCT<x: ARRAY<FLOAT>>);
CREATE VIEW numbered AS SELECT id, v, ROW_NUMBER() OVER (ORDER BY id) AS n FROM t;
CREATE VIEW first_two AS SELECT id, v, p FROM t ORDER BY id LIMIT 2;
CREATE VIEW before AS SELECT id, LAG(v) OVER (PARTITION BY id ORDER BY v) AS b FROM t;
-- tick: some
INSERT INTO t VALUES (1, ARRAY(1.5, NULL), STRUCT(ARRAY(1))), (2, ARRAY(), NULL), (4, NULL, STRUCT(NULL)), (3, ARRAY('NaN'), NULL);
-- tick: one goes, another comes
DELETE FROM t VALUES (2, ARRAY(), NULL);
INSERT INTO t VALUES (5, ARRAY(0.5), NULL);
