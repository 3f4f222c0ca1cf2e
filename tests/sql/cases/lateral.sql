-- LATERAL: relations that read those before them.

-- case: lateral subqueries
CREATE SOURCE t (id INT, x INT, k INT);
CREATE SOURCE u (k INT, y INT);
CREATE VIEW top_two AS SELECT t.id, l.y FROM t, LATERAL (SELECT y FROM u WHERE u.k = t.k ORDER BY y DESC LIMIT 2) AS l;
CREATE VIEW kept AS SELECT t.id, l.* FROM t LEFT JOIN LATERAL (SELECT y, y - t.x AS d FROM u WHERE u.k = t.k) AS l ON l.d > 0;
CREATE VIEW totals AS SELECT t.id, l.n, l.s FROM t JOIN LATERAL (SELECT COUNT(*) AS n, SUM(y) AS s FROM u WHERE u.y > t.x) AS l;
CREATE VIEW computed AS SELECT id, twice, more FROM t, LATERAL (SELECT x * 2 AS twice) AS a, LATERAL (SELECT a.twice + 1 AS more) AS b;
CREATE VIEW named AS SELECT t.id, l.a FROM t, LATERAL (SELECT DISTINCT y FROM u WHERE u.k >= t.k) AS l(a);
CREATE VIEW ranked AS SELECT t.id, l.y, l.r FROM t, LATERAL (SELECT y, ROW_NUMBER() OVER (ORDER BY y) AS r FROM u WHERE u.k = t.k) AS l;
-- tick: rows
INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (2, 20, 2), (3, NULL, 1), (4, 40, NULL);
INSERT INTO u VALUES (1, 5), (1, 15), (1, 11), (2, 30), (NULL, 50);
-- tick: the first rows change
INSERT INTO u VALUES (1, 16), (2, 31), (2, 19);
DELETE FROM u VALUES (1, 15);
-- tick: both sides
DELETE FROM t VALUES (2, 20, 2), (3, NULL, 1);
INSERT INTO t VALUES (5, 12, 1), (6, 1, 9);
DELETE FROM u VALUES (1, 16), (1, 5);
-- tick: nothing on the right
DELETE FROM u VALUES (1, 11), (2, 30), (2, 31), (2, 19), (NULL, 50);

-- case: generators as relations
CREATE SOURCE t (id INT, xs ARRAY<INT>);
CREATE VIEW each AS SELECT id, x FROM t, LATERAL explode(xs) AS e(x);
CREATE VIEW outer_each AS SELECT id, x FROM t LEFT JOIN LATERAL explode(xs) AS e(x) ON TRUE;
CREATE VIEW placed AS SELECT id, p, x FROM t, LATERAL posexplode(xs) AS e(p, x) WHERE x > 1;
CREATE VIEW listed AS SELECT id, explode(xs) AS x FROM t;
CREATE VIEW listed_places AS SELECT id, posexplode(xs) AS (p, x) FROM t WHERE id > 1;
-- tick: rows
INSERT INTO t VALUES (1, ARRAY(1, 2)), (2, ARRAY(3)), (3, NULL), (4, ARRAY()), (4, ARRAY(NULL, 1));
-- tick: changes
DELETE FROM t VALUES (2, ARRAY(3)), (3, NULL);
INSERT INTO t VALUES (2, ARRAY(4, 4)), (5, ARRAY(1));

-- case: natural joins and stars without some columns
CREATE SOURCE t (id INT, x INT, k INT);
CREATE SOURCE u (k INT, y INT);
CREATE VIEW natural_inner AS SELECT * FROM t NATURAL JOIN u;
CREATE VIEW natural_left AS SELECT * FROM t NATURAL LEFT JOIN u;
CREATE VIEW natural_full AS SELECT k, id, y FROM t NATURAL FULL JOIN u;
CREATE VIEW but_x AS SELECT * EXCEPT (x) FROM t;
CREATE VIEW but_k AS SELECT t.* EXCEPT (k, id), u.* FROM t JOIN u ON t.k = u.k;
CREATE VIEW semi_using AS SELECT * FROM t LEFT SEMI JOIN u USING (k);
CREATE VIEW anti_using AS SELECT id, x FROM t LEFT ANTI JOIN u USING (k);
CREATE VIEW sorted AS SELECT id, x FROM t DISTRIBUTE BY k SORT BY x;
CREATE VIEW unnamed AS SELECT id, col2 FROM t JOIN (VALUES (1, 'a'), (2, 'b')) ON col1 = k;
-- tick: rows
INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (2, 20, 2), (3, NULL, 1), (4, 40, NULL);
INSERT INTO u VALUES (1, 5), (1, 15), (3, 30), (NULL, 50);
-- tick: changes
DELETE FROM t VALUES (2, 20, 2), (3, NULL, 1);
INSERT INTO t VALUES (5, 12, 3);
DELETE FROM u VALUES (1, 5), (NULL, 50);
INSERT INTO u VALUES (2, 6);

-- case: generators whose columns have the names that Spark gives them
CREATE SOURCE t (id INT, xs ARRAY<INT>, items ARRAY<STRUCT<sku: STRING, qty: INT>>);
CREATE VIEW listed AS SELECT id, inline(items) FROM t;
CREATE VIEW beside AS SELECT t.id, i.sku, i.qty FROM t, LATERAL inline(items) AS i;
CREATE VIEW pairs AS SELECT id, explode(map('a', id, 'b', id + 1)) FROM t;
CREATE VIEW parts AS SELECT id, json_tuple(to_json(items[0]), 'sku', 'qty') FROM t WHERE size(items) > 0;
CREATE VIEW of_outer_row AS SELECT id, (SELECT SUM(x) FROM explode(xs) AS e(x)) AS total FROM t;
CREATE VIEW fixed AS SELECT t.id, e.x FROM t, explode(array(1, 2)) AS e(x) WHERE e.x <= t.id;
CREATE VIEW first_fixed AS SELECT t.id, e.x FROM explode(array(1, 2)) AS e(x) LEFT JOIN t ON t.id = e.x;
-- tick: rows
INSERT INTO t VALUES (1, ARRAY(1, 2), ARRAY(STRUCT('p', 1), STRUCT('q', NULL))), (2, ARRAY(3), ARRAY()), (3, NULL, NULL), (4, ARRAY(), ARRAY(STRUCT('p', 2)));
-- tick: changes
DELETE FROM t VALUES (2, ARRAY(3), ARRAY()), (4, ARRAY(), ARRAY(STRUCT('p', 2)));
INSERT INTO t VALUES (2, ARRAY(4, NULL), ARRAY(STRUCT('r', 3))), (2, ARRAY(4, NULL), ARRAY(STRUCT('r', 3)));
