-- LEFT, RIGHT and FULL OUTER, SEMI and ANTI joins, on equal keys and on any condition.

-- case: matches come and go on either side
CREATE SOURCE t (id INT, k INT, s STRING) PRIMARY KEY (id);
CREATE SOURCE u (k INT, y INT);
CREATE VIEW lefts AS SELECT t.id, t.s, u.y FROM t LEFT JOIN u ON t.k = u.k;
CREATE VIEW rights AS SELECT t.id, u.k, u.y FROM t RIGHT OUTER JOIN u ON t.k = u.k;
CREATE VIEW both AS SELECT t.id, t.k, u.k AS uk, u.y FROM t FULL OUTER JOIN u ON t.k = u.k;
CREATE VIEW with_match AS SELECT * FROM t LEFT SEMI JOIN u ON t.k = u.k;
CREATE VIEW without AS SELECT * FROM t LEFT ANTI JOIN u ON t.k = u.k;
CREATE VIEW missing AS SELECT t.id FROM t LEFT JOIN u ON t.k = u.k WHERE u.y IS NULL;
-- tick: rows, NULL keys, one to many
INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, NULL, 'c'), (4, 1, NULL);
INSERT INTO u VALUES (1, 10), (1, 11), (NULL, 12), (5, 13);
-- tick: a match comes, another goes
INSERT INTO u VALUES (2, 20);
DELETE FROM u VALUES (1, 10);
-- tick: the last match of a key goes, with a duplicate of the other
DELETE FROM u VALUES (1, 11);
INSERT INTO u VALUES (2, 20);
-- tick: keys change on both sides at once
UPSERT INTO t VALUES (1, 5, 'a'), (2, NULL, 'b');
DELETE FROM u VALUES (5, 13);
INSERT INTO u VALUES (5, NULL), (1, 1);
-- tick: everything on the right goes
DELETE FROM u VALUES (1, 1), (5, NULL), (NULL, 12);
DELETE FROM u VALUES (2, 20) * 2;
-- tick: and comes back, while the left goes
INSERT INTO u VALUES (1, 1), (NULL, 2);
DELETE KEYS FROM t VALUES (1), (2), (3), (4);

-- case: conditions of every kind
CREATE SOURCE t (id INT, x INT, f BOOLEAN);
CREATE SOURCE u (id INT, y INT);
CREATE VIEW ranged AS SELECT t.id, u.y FROM t LEFT JOIN u ON t.x < u.y;
CREATE VIEW mixed AS SELECT t.id, t.x, u.y FROM t LEFT JOIN u ON t.id = u.id AND t.x < u.y AND t.f AND u.y > 2;
CREATE VIEW null_safe AS SELECT t.x, u.y FROM t FULL JOIN u ON t.x <=> u.y;
CREATE VIEW not_smaller AS SELECT t.id, t.x FROM t LEFT ANTI JOIN u ON t.id = u.id AND t.x < u.y;
CREATE VIEW some_larger AS SELECT t.id, t.x FROM t LEFT SEMI JOIN u ON t.x < u.y;
CREATE VIEW computed AS SELECT t.id, u.id AS uid FROM t LEFT JOIN u ON t.id + 1 = u.id;
CREATE VIEW product AS SELECT t.id, u.id AS uid FROM t LEFT JOIN u ON TRUE;
-- tick: rows
INSERT INTO t VALUES (1, 1, TRUE), (2, 5, FALSE), (2, 5, FALSE), (3, NULL, NULL);
INSERT INTO u VALUES (1, 3), (2, 9), (NULL, NULL);
-- tick: both sides change
DELETE FROM t VALUES (2, 5, FALSE);
INSERT INTO t VALUES (2, 1, TRUE);
DELETE FROM u VALUES (1, 3);
INSERT INTO u VALUES (2, 4), (4, 4);
-- tick: the right is empty
DELETE FROM u VALUES (2, 9), (NULL, NULL), (2, 4), (4, 4);
-- tick: one row is back
INSERT INTO u VALUES (3, 3);

-- case: outer joins in chains, over and under other things
CREATE SOURCE a (id INT, b INT);
CREATE SOURCE b (id INT, c INT);
CREATE SOURCE c (id INT, x DOUBLE);
CREATE VIEW chain AS SELECT a.id, b.c, c.x FROM a LEFT JOIN b ON a.b = b.id LEFT JOIN c ON b.c = c.id;
CREATE VIEW summed AS SELECT a.id, COUNT(c.x) AS n, SUM(c.x) AS s, MAX(c.x) AS m FROM a LEFT JOIN b ON a.b = b.id LEFT JOIN c ON b.c = c.id GROUP BY a.id;
CREATE VIEW inner_first AS SELECT a.id, b.c, c.x FROM a JOIN b ON a.b = b.id LEFT JOIN c ON b.c = c.id AND a.id > 1;
CREATE VIEW of_aggregates AS SELECT q.b, q.n, p.m FROM (SELECT b, COUNT(*) AS n FROM a GROUP BY b) q LEFT JOIN (SELECT id, MIN(c) AS m FROM b GROUP BY id) p ON q.b = p.id;
CREATE VIEW over_it AS SELECT s.id, m.x FROM summed s LEFT JOIN chain m ON s.id = m.id AND m.x > 1;
CREATE VIEW quotient AS SELECT a.id, 10 / b.c AS q FROM a LEFT JOIN b ON a.b = b.id WHERE b.c <> 0 OR b.c IS NULL;
CREATE VIEW by_name AS SELECT id, c FROM a LEFT JOIN b USING (id);
-- tick: rows
INSERT INTO a VALUES (1, 1), (2, 1), (3, 2), (4, NULL);
INSERT INTO b VALUES (1, 7), (2, 8);
INSERT INTO c VALUES (7, 1.5), (7, 2.5);
-- tick: the middle goes and comes
DELETE FROM b VALUES (1, 7);
INSERT INTO b VALUES (1, 8), (1, 0);
-- tick: the end changes
DELETE FROM c VALUES (7, 1.5);
INSERT INTO c VALUES (8, 0.1), (8, 0.2);
-- tick: all at once
DELETE FROM a VALUES (1, 1);
INSERT INTO a VALUES (4, 2);
DELETE FROM b VALUES (1, 0);
DELETE FROM c VALUES (8, 0.1);

-- case: semi and anti joins before RIGHT and FULL joins
CREATE SOURCE a (x INT, n INT);
CREATE SOURCE b (x INT, n INT);
CREATE SOURCE c (x INT);
CREATE VIEW semi_full AS SELECT a.x, a.n, c.x AS y FROM a LEFT SEMI JOIN b ON a.x = b.x FULL JOIN c ON c.x = a.x;
CREATE VIEW anti_right AS SELECT * FROM a LEFT ANTI JOIN b ON a.x = b.x AND b.n > 1 RIGHT JOIN (SELECT x AS y FROM c) AS c ON c.y <= a.n;
CREATE VIEW both AS
SELECT a.n, b.n AS m FROM a LEFT SEMI JOIN c ON c.x = a.x LEFT ANTI JOIN b AS d ON d.n = a.n FULL JOIN b ON b.x = a.x WHERE a.n IS NULL OR a.n > 0;
-- tick: rows
INSERT INTO a VALUES (1, 1), (1, 2) * 2, (2, NULL), (NULL, 3);
INSERT INTO b VALUES (1, 1), (2, 2), (NULL, NULL);
INSERT INTO c VALUES (1), (2) * 2, (NULL), (5);
-- tick: matches come and go on every side
DELETE FROM b VALUES (1, 1);
INSERT INTO b VALUES (5, 3), (2, 2);
INSERT INTO a VALUES (5, 1);
DELETE FROM c VALUES (2);
-- tick: and back
INSERT INTO b VALUES (1, 2);
DELETE FROM a VALUES (2, NULL), (NULL, 3);

-- case: conditions of both sides with a subquery that asks one of them
CREATE SOURCE x (x1 INT, x2 INT);
CREATE SOURCE y (y1 INT, y2 INT);
CREATE SOURCE z (z1 INT);
CREATE VIEW left_or AS SELECT * FROM x LEFT JOIN y ON x1 = y1 OR EXISTS (SELECT * FROM z WHERE z1 = x1);
CREATE VIEW right_or AS SELECT * FROM x LEFT JOIN y ON x1 = y1 OR y2 IN (SELECT z1 FROM z);
CREATE VIEW and_not AS SELECT * FROM x LEFT JOIN y ON x1 <= y1 AND y2 NOT IN (SELECT z1 FROM z);
CREATE VIEW full_or AS SELECT * FROM x FULL JOIN y ON x1 = y1 OR (x2 < y2 AND y2 IN (SELECT z1 FROM z) AND x2 > (SELECT MIN(z1) FROM z));
-- tick: rows
INSERT INTO x VALUES (1, 1), (2, 5), (3, NULL), (NULL, 4);
INSERT INTO y VALUES (1, 10), (2, 7), (NULL, 8), (9, NULL);
INSERT INTO z VALUES (3), (7);
-- tick: the list changes
INSERT INTO z VALUES (10), (2);
DELETE FROM z VALUES (3);
-- tick: a NULL in the list, other rows
INSERT INTO z VALUES (NULL);
INSERT INTO x VALUES (10, 9);
DELETE FROM y VALUES (1, 10);

-- case: joins in parentheses, and in subqueries
CREATE SOURCE t0 (id INT, x INT);
CREATE SOURCE t1 (id INT, y INT);
CREATE SOURCE t2 (id INT, z INT);
CREATE VIEW p1 AS SELECT a.y, c.x, b.z FROM t1 a CROSS JOIN (t2 b RIGHT JOIN t0 c ON b.id = c.id);
CREATE VIEW p2 AS SELECT a.y, c.x, b.z FROM t1 a JOIN (t2 b FULL JOIN t0 c ON b.id = c.id) ON a.id = c.id;
CREATE VIEW p3 AS SELECT a.y, c.x, b.z FROM t1 a, (t2 b FULL JOIN t0 c ON TRUE);
CREATE VIEW p4 AS SELECT a.y, c.x, b.z, d.z AS dz FROM t1 a JOIN ((t2 b JOIN t2 d ON b.id = d.id) RIGHT JOIN t0 c ON b.id = c.id AND c.x > 0) ON a.id = c.id WHERE a.y > 0;
CREATE VIEW p5 AS SELECT a.y, c.x, b.z FROM t1 a LEFT JOIN (t2 b RIGHT JOIN t0 c ON b.id = c.id) ON a.id = b.id;
CREATE VIEW p6 AS SELECT a.y, c.x, b.z FROM (t1 a JOIN t2 b ON a.id = b.id) RIGHT JOIN t0 c ON b.id = c.id;
CREATE VIEW p7 AS SELECT a.id, (SELECT count(*) FROM t2 b RIGHT JOIN t0 c ON b.id = c.id WHERE c.x > a.id) AS n FROM t1 a;
CREATE VIEW p8 AS SELECT a.y, c.x, b.z FROM t1 a JOIN (t2 b LEFT JOIN t0 c ON b.id = c.id AND c.x > 1) ON a.id = b.id;
CREATE VIEW a1 AS SELECT a.id, (SELECT count(*) FROM t0 c WHERE c.x > a.id) AS n FROM t1 a;
CREATE VIEW a2 AS SELECT a.id, (SELECT count(*) FROM t0 c LEFT JOIN t2 b ON b.id = c.id WHERE c.x > a.id) AS n FROM t1 a;
CREATE VIEW a3 AS SELECT a.id, (SELECT count(*) FROM t2 b RIGHT JOIN t0 c ON b.id = c.id WHERE c.x > a.id) AS n FROM t1 a;
CREATE VIEW a4 AS SELECT a.id, (SELECT max(c.x) FROM t2 b RIGHT JOIN t0 c ON b.id = c.id WHERE c.x > a.id) AS n FROM t1 a;
CREATE VIEW a5 AS SELECT a.id, n FROM t1 a, LATERAL (SELECT count(*) AS n FROM t2 b FULL JOIN t0 c ON b.id = c.id WHERE c.x > a.id);
-- tick: one
INSERT INTO t0 VALUES (1, 1), (2, 2), (NULL, 3);
INSERT INTO t2 VALUES (1, 5), (7, 7), (NULL, 0);
-- tick: two
INSERT INTO t1 VALUES (1, 1), (2, 2), (NULL, 3), (7, 4);
DELETE FROM t0 VALUES (1, 1);
-- tick: three
DELETE FROM t2 VALUES (7, 7);
INSERT INTO t0 VALUES (7, 9), (2, 2);
DELETE FROM t1 VALUES (1, 1), (2, 2), (NULL, 3), (7, 4);
