-- Aggregates that are recomputed for the groups that change.

-- case: lists, percentiles, modes and extremes by another column
CREATE SOURCE t (k STRING, x INT, s STRING);
-- means: SELECT k, ARRAY_SORT(COLLECT_LIST(x)) AS l, ARRAY_SORT(COLLECT_SET(s)) AS d, COUNT(*) AS n, SUM(x) AS total, ARRAY_SORT(ARRAY_AGG(DISTINCT x)) AS a FROM t GROUP BY k
CREATE VIEW lists AS SELECT k, COLLECT_LIST(x) AS l, COLLECT_SET(s) AS d, COUNT(*) AS n, SUM(x) AS total, ARRAY_AGG(DISTINCT x) AS a FROM t GROUP BY k;
CREATE VIEW middles AS SELECT k, PERCENTILE(x, 0.25) AS p, MEDIAN(x) AS m, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x DESC) AS c, PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x) AS d, PERCENTILE(x, ARRAY(0.1, 0.9)) FILTER (WHERE x > 1) AS f FROM t GROUP BY k;
-- means: SELECT k, MODE(s, true) AS m, LISTAGG(s, ',') WITHIN GROUP (ORDER BY s) AS l, LISTAGG(s, '-') WITHIN GROUP (ORDER BY x DESC, s) AS o FROM t GROUP BY k
CREATE VIEW texts AS SELECT k, MODE(s) AS m, LISTAGG(s, ',') AS l, LISTAGG(s, '-') WITHIN GROUP (ORDER BY x DESC) AS o FROM t GROUP BY k;
-- means: SELECT k, MIN_BY(s, CASE WHEN x IS NOT NULL THEN STRUCT(x, s) END) AS lo, MAX_BY(s, CASE WHEN x IS NOT NULL THEN STRUCT(x, s) END) AS hi FROM t GROUP BY k
CREATE VIEW ends AS SELECT k, MIN_BY(s, x) AS lo, MAX_BY(s, x) AS hi FROM t GROUP BY k;
CREATE VIEW others AS SELECT k, BOOL_AND(x > 1) AS b, EVERY(x > 0) AS e, BOOL_OR(x > 3) AS o, COUNT_IF(x > 1) AS c, BIT_AND(x) AS ba, BIT_OR(x) AS bo, BIT_XOR(x) AS bx, APPROX_COUNT_DISTINCT(x) AS ap FROM t GROUP BY k;
-- tick: rows, some several times, NULLs
INSERT INTO t VALUES ('a', 1, 'p'), ('a', 2, 'q') * 2, ('a', NULL, 'r'), ('b', 5, NULL), (NULL, 3, 'z') * 3;
-- tick: one of several goes, ties come
DELETE FROM t VALUES ('a', 2, 'q'), (NULL, 3, 'z');
INSERT INTO t VALUES ('a', 1, 'o'), ('b', 5, 'm'), ('b', 4, NULL);
-- tick: a group goes, another loses its extremes
DELETE FROM t VALUES ('b', 5, NULL), ('b', 5, 'm'), ('b', 4, NULL), ('a', 1, 'p'), ('a', 1, 'o');
-- tick: a new one
INSERT INTO t VALUES ('c', NULL, NULL);

-- case: over all rows, where no rows give a row
CREATE SOURCE t (x INT, f DOUBLE);
-- means: SELECT ARRAY_SORT(COLLECT_LIST(x)) AS l, MEDIAN(x) AS m, COUNT(*) AS n, PERCENTILE(f, 0.5) AS p FROM t
CREATE VIEW whole AS SELECT COLLECT_LIST(x) AS l, MEDIAN(x) AS m, COUNT(*) AS n, PERCENTILE(f, 0.5) AS p FROM t;
CREATE VIEW zeros AS SELECT SIZE(COLLECT_LIST(f)) AS n, SIZE(COLLECT_SET(f)) AS d FROM t;
-- tick: nothing yet
-- tick: some
INSERT INTO t VALUES (3, 0.5), (1, -0.0), (1, 0.0), (NULL, NULL);
-- tick: all go
DELETE FROM t VALUES (3, 0.5), (1, -0.0), (1, 0.0), (NULL, NULL);

-- case: in subqueries, over joins, and beside DISTINCT aggregates
CREATE SOURCE o (id INT, c INT) PRIMARY KEY (id);
CREATE SOURCE i (oid INT, x INT);
-- means: SELECT o.id, (SELECT ARRAY_SORT(COLLECT_LIST(i.x)) FROM i WHERE i.oid = o.id) AS xs FROM o
CREATE VIEW of_each AS SELECT o.id, (SELECT COLLECT_LIST(i.x) FROM i WHERE i.oid = o.id) AS xs FROM o;
CREATE VIEW joined AS SELECT o.c, MEDIAN(i.x) AS m, COUNT(DISTINCT i.x) AS d, SUM(i.x) AS s FROM o JOIN i ON i.oid = o.id GROUP BY o.c HAVING MEDIAN(i.x) > 1;
-- tick: rows
INSERT INTO o VALUES (1, 1), (2, 1), (3, 2);
INSERT INTO i VALUES (1, 5), (1, 5), (2, 1), (4, 9);
-- tick: both change
UPSERT INTO o VALUES (2, 2), (4, 2);
INSERT INTO i VALUES (3, 7);
DELETE FROM i VALUES (1, 5);
-- tick: one side goes
DELETE FROM i VALUES (1, 5), (2, 1), (4, 9), (3, 7);

-- case: variances, correlations and regressions, the same in any order of rows
CREATE SOURCE t (k INT, y DOUBLE, x INT);
-- rounded: v, p, s, d, sk, ku
CREATE VIEW spreads AS SELECT k, VAR_SAMP(y) AS v, VAR_POP(x) AS p, STDDEV(y) AS s, STDDEV_POP(x) AS d, SKEWNESS(y) AS sk, KURTOSIS(y) AS ku FROM t GROUP BY k;
-- rounded: c, p, r, sl, i, r2, ax, sxx
CREATE VIEW pairs AS SELECT k, COVAR_SAMP(y, x) AS c, COVAR_POP(y, x) AS p, CORR(y, x) AS r, REGR_SLOPE(y, x) AS sl, REGR_INTERCEPT(y, x) AS i, REGR_R2(y, x) AS r2, REGR_COUNT(y, x) AS n, REGR_AVGX(y, x) AS ax, REGR_SXX(y, x) AS sxx FROM t WHERE k < 3 GROUP BY k;
-- rounded: v, w
CREATE VIEW some AS SELECT VARIANCE(y) FILTER (WHERE x > 1) AS v, VAR_POP(DISTINCT x) AS w, COUNT(*) AS n FROM t;
-- tick: groups of one, two and many
INSERT INTO t VALUES (1, 0.1, 1), (1, 0.25, 2), (1, 1e10, 4), (1, -3.5, NULL), (2, 5.0, 1), (2, 6.5, 3), (3, 7.0, 1);
-- tick: values go and come
DELETE FROM t VALUES (1, 1e10, 4), (2, 5.0, 1);
INSERT INTO t VALUES (1, NULL, 5), (1, 0.75, 7), (2, 7.5, 4), (3, 7.0, 2);
-- tick: a correlation with what does not vary divides by zero, as Spark has it
-- fails: DIVIDE_BY_ZERO
INSERT INTO t VALUES (0, 1.0, 1), (0, 1.0, 2);
-- tick: a group goes
DELETE FROM t VALUES (3, 7.0, 1), (3, 7.0, 2);

-- case: the first and the last of a group by all columns that it reads, and approximate percentiles, exact
CREATE SOURCE t (k INT, x INT, s STRING, d DOUBLE, day DATE);
-- means: SELECT k, MIN_BY(x, STRUCT(x, s)) AS fx, MIN_BY(s, STRUCT(x, s)) AS fs, MAX_BY(x, STRUCT(x, s)) AS lx, MAX_BY(s, STRUCT(x, s)) AS ls, COUNT(*) AS n FROM t GROUP BY k
CREATE VIEW ends AS SELECT k, FIRST(x) AS fx, first_value(s) AS fs, LAST(x) AS lx, last_value(s) AS ls, COUNT(*) AS n FROM t GROUP BY k;
-- means: SELECT k, MIN_BY(x, CASE WHEN x IS NOT NULL THEN STRUCT(x, d) END) AS f, MAX_BY(d, CASE WHEN d IS NOT NULL THEN STRUCT(x, d) END) AS l, MIN_BY(x * 2, STRUCT(x, d, x * 2)) FILTER (WHERE d > 0) AS g FROM t GROUP BY k
CREATE VIEW known AS SELECT k, FIRST(x) IGNORE NULLS AS f, LAST(d, true) AS l, FIRST(x * 2) FILTER (WHERE d > 0) AS g FROM t GROUP BY k;
CREATE VIEW dependent AS SELECT k, FIRST(k + 1) AS f, any_value(k * 2) AS a, LAST(k) AS l FROM t GROUP BY k;
CREATE VIEW percentiles AS SELECT k, approx_percentile(x, 0.5) AS m, percentile_approx(x, 0.1, 100) AS p, approx_percentile(d, array(0, 0.25, 1)) AS q, approx_percentile(day, 0.75) AS t, approx_percentile(x, 0.9) FILTER (WHERE x > 1) AS f, approx_percentile(DISTINCT x, 0.5) AS u FROM t GROUP BY k;
CREATE VIEW of_all AS SELECT approx_percentile(x, 0.3) AS m, approx_percentile(x, array(0.3)) AS ms FROM t;
-- tick: nothing yet
-- tick: rows with ties and NULLs
INSERT INTO t VALUES (1, 5, 'b', 0.5, '2024-01-01'), (1, 5, 'a', -0.5, '2024-02-01'), (1, NULL, 'z', 0.0, NULL), (1, 7, NULL, 2.5, '2023-01-01') * 3, (2, NULL, NULL, NULL, NULL), (3, 1, 'c', 1e300, '2024-01-01');
-- tick: the ends go, others come
DELETE FROM t VALUES (1, NULL, 'z', 0.0, NULL), (1, 7, NULL, 2.5, '2023-01-01');
INSERT INTO t VALUES (1, 9, 'q', -1.5, '2022-01-01'), (2, 4, 'm', 1.0, NULL), (3, 2, 'c', 0.25, NULL), (3, 3, 'c', NULL, NULL);
-- tick: groups go
DELETE FROM t VALUES (2, NULL, NULL, NULL, NULL), (2, 4, 'm', 1.0, NULL), (1, 5, 'a', -0.5, '2024-02-01');
