-- SELECT DISTINCT: a row is there while its count is positive.

-- case: whole rows with NULLs, counts going up and down
CREATE SOURCE t (a INT, b STRING, d DECIMAL(4, 1));
CREATE VIEW rows_once AS SELECT DISTINCT a, b, d FROM t;
CREATE VIEW one_column AS SELECT DISTINCT b FROM t;
CREATE VIEW computed AS SELECT DISTINCT a % 2 AS odd, b IS NULL AS no_b FROM t WHERE a >= 0;
CREATE VIEW constant AS SELECT DISTINCT 1 AS one FROM t;
-- tick: duplicates and NULLs
INSERT INTO t VALUES (1, 'x', 1.0) * 3, (NULL, NULL, NULL) * 2, (1, NULL, 1.0), (2, 'y', NULL);
-- tick: one of several goes, the last of another
DELETE FROM t VALUES (1, 'x', 1.0) * 2, (2, 'y', NULL);
INSERT INTO t VALUES (3, 'x', 1.0);
-- tick: the last goes and comes again in one tick; another comes with a new duplicate
DELETE FROM t VALUES (1, 'x', 1.0), (NULL, NULL, NULL) * 2;
INSERT INTO t VALUES (1, 'x', 1.0), (2, 'y', NULL) * 2;
-- tick: everything goes
DELETE FROM t VALUES (1, 'x', 1.0), (1, NULL, 1.0), (3, 'x', 1.0), (2, 'y', NULL) * 2;
-- tick: and comes back
INSERT INTO t VALUES (NULL, NULL, NULL);

-- case: over joins and aggregates, and under them
CREATE SOURCE t (id INT, g STRING, x INT) PRIMARY KEY (id);
CREATE SOURCE u (g STRING, h STRING);
CREATE VIEW over_join AS SELECT DISTINCT u.h, t.x > 0 AS positive FROM t JOIN u ON t.g = u.g;
CREATE VIEW over_group AS SELECT DISTINCT COUNT(*) AS n, MAX(x) > 1 AS big FROM t GROUP BY g;
CREATE VIEW under_group AS SELECT h, COUNT(*) AS n FROM (SELECT DISTINCT g, h FROM u) GROUP BY h;
CREATE VIEW under_join AS SELECT a.g, t.id FROM (SELECT DISTINCT g FROM u) a JOIN t ON a.g = t.g;
CREATE VIEW of_distinct AS SELECT DISTINCT g FROM (SELECT DISTINCT g, x FROM t);
-- tick: rows
INSERT INTO t VALUES (1, 'a', 1), (2, 'a', -1), (3, 'b', 2), (4, 'c', 2), (5, NULL, 0);
INSERT INTO u VALUES ('a', 'p') * 2, ('b', 'p'), ('c', 'q'), (NULL, 'q');
-- tick: pairs come and go while counts stay
UPSERT INTO t VALUES (3, 'a', 2), (2, 'b', 2);
DELETE FROM u VALUES ('a', 'p');
INSERT INTO u VALUES ('c', 'p');
-- tick: the last pair of some
DELETE FROM u VALUES ('a', 'p'), ('b', 'p');
INSERT INTO u VALUES ('b', 'q');
DELETE KEYS FROM t VALUES (4);

-- case: floating point, arrays and structs by SQL's equality
CREATE SOURCE t (x DOUBLE, f FLOAT, xs ARRAY<DOUBLE>, p STRUCT<a: DOUBLE, b: STRING>);
CREATE VIEW doubles AS SELECT DISTINCT x FROM t;
CREATE VIEW floats AS SELECT DISTINCT f, x FROM t;
CREATE VIEW arrays AS SELECT DISTINCT xs FROM t;
CREATE VIEW structs AS SELECT DISTINCT p FROM t;
CREATE VIEW plain AS SELECT x, f, xs, p FROM t;
-- tick: zeros of both signs, NaN
INSERT INTO t VALUES (0.0, 0.0, ARRAY(0.0), STRUCT(0.0, 'a')), (-0.0, -0.0, ARRAY(-0.0), STRUCT(-0.0, 'a'));
INSERT INTO t VALUES ('NaN', 'NaN', ARRAY('NaN', NULL), STRUCT('NaN', NULL)) * 2, (NULL, 1.5, NULL, NULL);
-- tick: the zeros that came first go
DELETE FROM t VALUES (0.0, 0.0, ARRAY(0.0), STRUCT(0.0, 'a')), ('NaN', 'NaN', ARRAY('NaN', NULL), STRUCT('NaN', NULL));
-- tick: the others go, infinities come
DELETE FROM t VALUES (-0.0, -0.0, ARRAY(-0.0), STRUCT(-0.0, 'a')), ('NaN', 'NaN', ARRAY('NaN', NULL), STRUCT('NaN', NULL));
INSERT INTO t VALUES ('Infinity', '-Infinity', ARRAY(), STRUCT(NULL, 'b'));
