-- WITH RECURSIVE: what Spark's own recursive common table expressions say, tick by tick.

-- case: a tree, its levels and what hangs below
CREATE SOURCE t (id INT, parent INT, cost INT) PRIMARY KEY (id);
CREATE VIEW levels AS WITH RECURSIVE down(id, level, path) AS (SELECT id, 0, CAST(id AS STRING) FROM t WHERE parent IS NULL UNION ALL SELECT t.id, d.level + 1, concat(d.path, '/', t.id) FROM down d JOIN t ON t.parent = d.id) SELECT id, level, path FROM down WHERE level < 9;
CREATE VIEW totals AS WITH RECURSIVE up AS (SELECT id, id AS root, cost FROM t UNION ALL SELECT t.id, u.root, u.cost FROM up u JOIN t ON u.id = t.parent WHERE t.id <> u.root) SELECT root, COUNT(*) AS n FROM up GROUP BY root;
CREATE VIEW counted AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4), m AS (SELECT i * 10 AS j FROM n) SELECT m.j, t.id FROM m JOIN t ON m.j = t.cost;
CREATE VIEW deepest AS SELECT MAX(level) AS level, COUNT(*) AS n FROM levels;
-- tick: a tree
INSERT INTO t VALUES (1, NULL, 10), (2, 1, 20), (3, 1, 5), (4, 2, 40), (5, 4, 1);
-- tick: a branch is moved, a leaf goes
UPSERT INTO t VALUES (4, 3, 40);
DELETE FROM t VALUES (5, 4, 1);
-- tick: a second tree, and a root that becomes a leaf
INSERT INTO t VALUES (8, NULL, 30), (9, 8, 2);
UPSERT INTO t VALUES (1, 9, 10);
-- tick: the trunk goes
DELETE FROM t VALUES (9, 8, 2);

-- case: paths of parallel edges count as often as they are there
CREATE SOURCE e (a INT, b INT);
CREATE VIEW paths AS WITH RECURSIVE p AS (SELECT a, b, 1 AS hops FROM e UNION ALL SELECT p.a, e.b, p.hops + 1 FROM p JOIN e ON p.b = e.a WHERE p.hops < 3) SELECT a, b, hops FROM p;
CREATE VIEW dead_ends AS WITH RECURSIVE p AS (SELECT a, b FROM e WHERE a = 1 UNION ALL SELECT p.a, e.b FROM p JOIN e ON p.b = e.a WHERE NOT EXISTS (SELECT 1 FROM e x WHERE x.a = e.b AND x.b = e.a)) SELECT b, COUNT(*) AS n FROM p GROUP BY b;
-- tick: a diamond, one edge twice
INSERT INTO e VALUES (1, 2), (1, 3), (2, 4), (3, 4), (3, 4), (4, 5);
-- tick: one of the two goes, another comes
DELETE FROM e VALUES (3, 4);
INSERT INTO e VALUES (5, 6), (2, 5);
-- tick: both halves of the diamond, and a way back
INSERT INTO e VALUES (6, 5);
DELETE FROM e VALUES (2, 4), (3, 4);

-- case: recursions in subqueries and derived tables
CREATE SOURCE e (a INT, b INT);
CREATE SOURCE n (x INT);
CREATE VIEW near AS WITH few AS (SELECT x FROM n WHERE x < 9) SELECT q.b, q.h FROM (WITH RECURSIVE p AS (SELECT a, b, 1 AS h FROM e JOIN few ON a = x UNION ALL SELECT p.a, e.b, p.h + 1 FROM p JOIN e ON p.b = e.a WHERE p.h < 3), two AS (SELECT b, h FROM p WHERE h > 1) SELECT b, h FROM two) q JOIN n ON q.b <> n.x;
CREATE VIEW met AS SELECT x FROM n WHERE EXISTS (WITH RECURSIVE r(b) AS (SELECT 1 UNION ALL SELECT e.b FROM r JOIN e ON r.b = e.a WHERE e.b > e.a) SELECT 1 FROM r WHERE r.b = n.x) OR x > (WITH RECURSIVE i(k) AS (SELECT 7 UNION ALL SELECT k + 1 FROM i WHERE k < 9) SELECT MAX(k) FROM i);
-- tick: a chain
INSERT INTO e VALUES (1, 2), (2, 3), (3, 4);
INSERT INTO n VALUES (1), (3), (10);
-- tick: shorter, and another way
DELETE FROM e VALUES (2, 3);
INSERT INTO e VALUES (1, 3);
INSERT INTO n VALUES (4), (2);
-- tick: another start
DELETE FROM n VALUES (1);
