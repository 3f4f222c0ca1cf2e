-- LATERAL VIEW, and rows that are written out.

-- case: arrays unfolded
CREATE SOURCE t (id INT, xs ARRAY<INT>, ps ARRAY<STRUCT<a: INT, b: STRING>>, s STRING);
CREATE VIEW each_one AS SELECT id, x FROM t LATERAL VIEW explode(xs) e AS x;
CREATE VIEW outer_one AS SELECT id, i, x FROM t LATERAL VIEW OUTER posexplode(xs) e AS i, x;
CREATE VIEW fields AS SELECT id, a, b FROM t LATERAL VIEW inline(ps) e AS a, b WHERE a > 0;
CREATE VIEW twice AS SELECT id, x, w FROM t LATERAL VIEW explode(xs) e AS x LATERAL VIEW explode(split(s, ' ')) f AS w;
CREATE VIEW totals AS SELECT x, COUNT(*) AS n FROM t LATERAL VIEW explode(xs) e AS x GROUP BY x;
-- tick: rows
INSERT INTO t VALUES (1, ARRAY(1, 2, NULL), ARRAY(STRUCT(1, 'p'), STRUCT(0, 'q')), 'one two'), (2, ARRAY(), NULL, ''), (3, NULL, ARRAY(), NULL);
-- tick: a duplicate, and one goes
INSERT INTO t VALUES (1, ARRAY(1, 2, NULL), ARRAY(STRUCT(1, 'p'), STRUCT(0, 'q')), 'one two');
DELETE FROM t VALUES (2, ARRAY(), NULL, '');
-- tick: both go
DELETE FROM t VALUES (1, ARRAY(1, 2, NULL), ARRAY(STRUCT(1, 'p'), STRUCT(0, 'q')), 'one two') * 2;
INSERT INTO t VALUES (4, ARRAY(2), NULL, 'x');

-- case: rows that are written out
CREATE SOURCE t (id INT, k STRING);
CREATE VIEW named AS SELECT t.id, v.name FROM t JOIN VALUES ('a', 'Ann'), ('b', 'Bob') AS v(k, name) ON t.k = v.k;
CREATE VIEW fixed AS SELECT x, y FROM VALUES (1, NULL), (2, 'b') AS v(x, y) WHERE x > 0;
-- tick: rows
INSERT INTO t VALUES (1, 'a'), (2, 'c');
-- tick: changes
DELETE FROM t VALUES (1, 'a');
INSERT INTO t VALUES (3, 'b');

-- case: generators that would fail on rows that are filtered out
CREATE SOURCE t (id INT, xs ARRAY<STRING>);
CREATE SOURCE u (id INT);
CREATE VIEW listed AS SELECT id, explode(split(xs[0], '')) AS letter FROM t WHERE size(xs) > 0;
CREATE VIEW beside AS SELECT id, letter FROM t LATERAL VIEW explode(split(xs[0], '')) e AS letter WHERE size(xs) > 0 AND letter <> 'b';
CREATE VIEW known AS SELECT id, explode(split(xs[0], '')) AS letter FROM t WHERE id IN (SELECT id FROM u);
-- tick: rows
INSERT INTO t VALUES (1, ARRAY('ab', 'c')), (2, ARRAY()), (3, NULL), (4, ARRAY('bb'));
INSERT INTO u VALUES (1), (4), (5);
-- tick: changes
DELETE FROM t VALUES (1, ARRAY('ab', 'c'));
INSERT INTO t VALUES (1, ARRAY('b')), (6, ARRAY());
DELETE FROM u VALUES (4);

-- case: generators whose argument has its name
CREATE SOURCE t (id INT, xs ARRAY<INT>);
CREATE VIEW listed AS SELECT id, explode(collection => xs) AS x FROM t;
CREATE VIEW outer_listed AS SELECT id, explode_outer(collection => xs) AS x FROM t;
-- tick: some
INSERT INTO t VALUES (1, array(1, 2)), (2, array()), (3, NULL);
-- tick: one goes
DELETE FROM t VALUES (1, array(1, 2));
