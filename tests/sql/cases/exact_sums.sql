-- SUM and AVG that don't depend on the order of rows: exact, rounded once, retractable.

-- case: doubles that cancel
CREATE SOURCE t (id INT, g INT, x DOUBLE) PRIMARY KEY (id);
-- rounded: s, a
-- exact: s = SUM(x) FROM t BY g; a = AVG(x) FROM t BY g
CREATE VIEW sums AS SELECT g, SUM(x) AS s, AVG(x) AS a, COUNT(x) AS n FROM t GROUP BY g;
-- rounded: s, a
-- exact: s = SUM(x) FROM t; a = AVG(x) FROM t
CREATE VIEW overall AS SELECT SUM(x) AS s, AVG(x) AS a FROM t;
-- tick: tenths
INSERT INTO t VALUES (1, 1, 0.1), (2, 1, 0.2), (3, 1, 0.3), (4, 2, 1e-320), (5, 2, NULL), (6, 3, -0.0);
-- tick: more tenths, some go
INSERT INTO t VALUES (7, 1, 0.7), (8, 2, 5e-324), (9, 3, 0.0);
DELETE KEYS FROM t VALUES (2);
-- tick: all but one go
DELETE KEYS FROM t VALUES (1), (7), (4), (9);
-- tick: nothing but NULL is left in a group
DELETE KEYS FROM t VALUES (8), (3);

-- case: magnitudes that swallow each other, infinities and NaN
CREATE SOURCE t (id INT, g INT, x DOUBLE) PRIMARY KEY (id);
-- exact: s = SUM(x) FROM t BY g; a = AVG(x) FROM t BY g
-- rounded: s, a
CREATE VIEW sums AS SELECT g, SUM(x) AS s, AVG(x) AS a FROM t GROUP BY g;
-- tick: infinities and NaN
INSERT INTO t VALUES (1, 1, 'Infinity'), (2, 1, 5.0), (3, 2, '-Infinity'), (4, 2, 'Infinity'), (5, 3, 'NaN'), (6, 3, 1.0), (7, 4, 1e308);
-- tick: they go again
DELETE KEYS FROM t VALUES (1), (4), (5);
-- tick: a large value comes
INSERT INTO t VALUES (8, 4, 7e307), (9, 1, 1e-300);
-- tick: and goes
DELETE KEYS FROM t VALUES (7), (3);

-- case: floats, and averages of integers
CREATE SOURCE t (g INT, f FLOAT, i INT, l BIGINT, d DECIMAL(10, 2));
-- rounded: s, a
-- exact: s = SUM(f) FROM t BY g; a = AVG(f) FROM t BY g
CREATE VIEW floats AS SELECT g, SUM(f) AS s, AVG(f) AS a FROM t GROUP BY g;
-- rounded: a, b
-- exact: a = AVG(i) FROM t BY g; b = AVG(l) FROM t BY g; s = SUM(i) FROM t BY g
CREATE VIEW averages AS SELECT g, AVG(i) AS a, AVG(l) AS b, SUM(i) AS s FROM t GROUP BY g;
CREATE VIEW decimals AS SELECT g, SUM(d) AS s, AVG(d) AS a FROM t GROUP BY g;
-- tick: rows with weights
INSERT INTO t VALUES (1, 0.1, 1, 9007199254740993, 0.01) * 3, (1, 0.2, 2, 1, 0.02), (2, NULL, NULL, NULL, NULL), (3, 1e30, -7, -9007199254740993, -99999999.99);
-- tick: changes
INSERT INTO t VALUES (3, -1e30, 5, 4, 0.01), (2, 1.5, 1, 1, 1.00) * 2;
DELETE FROM t VALUES (1, 0.1, 1, 9007199254740993, 0.01);
-- tick: deletions
DELETE FROM t VALUES (3, 1e30, -7, -9007199254740993, -99999999.99), (2, 1.5, 1, 1, 1.00);

-- case: overflow is that of the final value
CREATE SOURCE t (id INT, l BIGINT, d DECIMAL(38, 0)) PRIMARY KEY (id);
-- beyond Spark: its sum overflows on the way
-- exact: s = SUM(l) FROM t
CREATE VIEW longs AS SELECT SUM(l) AS s, COUNT(*) AS n FROM t;
-- beyond Spark: its sum overflows on the way
-- exact: s = SUM(d) FROM t
CREATE VIEW decimals AS SELECT SUM(d) AS s FROM t;
-- tick: at the edge
INSERT INTO t VALUES (1, 9223372036854775807, 99999999999999999999999999999999999999), (2, 0, 0);
-- tick: past it
-- fails: OVERFLOW
INSERT INTO t VALUES (3, 1, 0);
-- tick: past it and back in one tick
INSERT INTO t VALUES (3, 1, 1), (4, -1, -1);
-- tick: a decimal past it
-- fails: NUMERIC_VALUE_OUT_OF_RANGE
INSERT INTO t VALUES (5, 0, 1);
-- tick: the edge goes while more comes
DELETE KEYS FROM t VALUES (1);
INSERT INTO t VALUES (6, 9223372036854775807, 5);
