-- Common table expressions, derived tables, stars, and names of all kinds.

-- case: common table expressions and derived tables
CREATE SOURCE t (id INT, g STRING, x INT) PRIMARY KEY (id);
CREATE VIEW used_twice AS
WITH totals AS (SELECT g, SUM(x) AS s FROM t GROUP BY g)
SELECT a.g, b.g AS h, a.s - b.s AS gap FROM totals a JOIN totals b ON a.s >= b.s AND a.g <> b.g;
CREATE VIEW chained AS
WITH p AS (SELECT id, g, x FROM t WHERE x > 0), q(G, n) AS (SELECT g, COUNT(*) FROM p GROUP BY g)
SELECT q.*, p.id FROM p JOIN q ON p.g = q.g;
CREATE VIEW shadowing AS WITH t AS (SELECT id, x FROM t WHERE x < 10) SELECT * FROM t;
CREATE VIEW nested AS
SELECT n, COUNT(*) AS groups FROM (SELECT g, COUNT(*) AS n FROM (SELECT g FROM t WHERE x IS NOT NULL) AS i GROUP BY g) GROUP BY n;
CREATE VIEW inner_with AS
SELECT * FROM (WITH c AS (SELECT max(x) AS m FROM t) SELECT m FROM c) AS d(top) WHERE top > 0;
CREATE VIEW three_levels AS
SELECT MAX(n) AS most FROM (SELECT s, COUNT(*) AS n FROM (SELECT g, SUM(x) AS s FROM t GROUP BY g) GROUP BY s);
-- tick: rows
INSERT INTO t VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 3), (4, 'c', 30), (5, NULL, 3);
-- tick: sums become equal
UPSERT INTO t VALUES (4, 'c', 3), (5, 'd', NULL);
-- tick: groups change places
UPSERT INTO t VALUES (1, 'b', 1), (3, 'a', -3);
DELETE KEYS FROM t VALUES (4);
-- tick: little is left
DELETE KEYS FROM t VALUES (1), (2), (5);

-- case: stars
CREATE SOURCE Orders (Id INT, Customer STRING, x INT);
CREATE SOURCE customers (NAME STRING, `City` STRING);
CREATE VIEW plain AS SELECT * FROM orders;
CREATE VIEW qualified AS SELECT o.*, c.city FROM Orders o JOIN customers C ON o.customer = c.name;
CREATE VIEW both AS SELECT * FROM orders JOIN customers ON customer = name;
CREATE VIEW derived AS SELECT * FROM (SELECT *, x * 2 AS Twice FROM orders WHERE x > 0) q;
CREATE VIEW spelled AS SELECT ID, customer AS Who, ORDERS.X FROM orders;
CREATE VIEW parenthesised AS SELECT o.id, c.city FROM (orders o JOIN customers c ON o.customer = c.name);
-- tick: rows
INSERT INTO Orders VALUES (1, 'a', 1), (2, 'b', -1), (2, 'b', -1), (3, NULL, NULL);
INSERT INTO customers VALUES ('a', 'X'), ('b', 'Y');
-- tick: changes on both sides
DELETE FROM Orders VALUES (2, 'b', -1);
INSERT INTO Orders VALUES (4, 'c', 5);
DELETE FROM customers VALUES ('a', 'X');
INSERT INTO customers VALUES ('c', 'X'), ('a', 'Z');

-- case: hostile names
CREATE SOURCE `p0` (`t` INT, `p0` INT, aggregate_1 INT, key_1 STRING, argument_1 INT, `select` INT, `Größe` INT, `日本` STRING, `it's` INT, `"q"` INT, present BOOLEAN, `a.b` INT);
CREATE SOURCE `old` (`t` INT, `_rows` INT, `delta` STRING, `order` STRING);
CREATE VIEW everything AS SELECT * FROM p0;
CREATE VIEW grouped AS
SELECT key_1, `t`, SUM(aggregate_1) AS aggregate_1, MAX(argument_1) AS key_2, COUNT(`it's`) AS `count`, MIN(`Größe`) AS `t_1`
FROM p0 GROUP BY key_1, `t`;
CREATE VIEW joined AS
SELECT p0.`p0`, old.`order`, p0.`select` AS `from`, `日本`, `"q"` + `_rows` AS `weight`, `a.b` AS `x.y`
FROM p0 JOIN old ON p0.`t` = old.t;
CREATE VIEW aliased AS
SELECT aggregate.`1_n`, SUM(aggregate.x) AS s, MAX(aggregate.x) AS m FROM (SELECT `t` AS `1_n`, `p0` AS x FROM p0) AS aggregate GROUP BY aggregate.`1_n`;
CREATE VIEW dotted AS SELECT `a.b`.`c` AS one, a.`b.c` AS two FROM (SELECT `t` AS c FROM p0) AS `a.b` JOIN (SELECT `p0` AS `b.c` FROM p0) AS a ON `a.b`.c = a.`b.c`;
CREATE VIEW distinct_names AS SELECT DISTINCT `select` AS `_rows`, present AS present, key_1 AS `key` FROM p0;
CREATE VIEW functions AS SELECT `t` AS `sum`, upper(key_1) AS `count`, `sum` + 1 AS `min` FROM p0;
-- tick: rows
INSERT INTO `p0` VALUES (1, 1, 10, 'k', 7, 3, 170, 'x', 1, 2, TRUE, 5), (1, 2, NULL, 'k', 8, NULL, 180, NULL, NULL, 3, NULL, 6), (2, 2, 30, NULL, NULL, 3, NULL, 'y', 4, 4, FALSE, NULL);
INSERT INTO `old` VALUES (1, 100, 'd', 'o'), (2, NULL, NULL, 'n');
-- tick: changes
DELETE FROM `p0` VALUES (1, 1, 10, 'k', 7, 3, 170, 'x', 1, 2, TRUE, 5);
INSERT INTO `p0` VALUES (2, 1, 11, 'k', 9, 3, 160, 'z', 1, 2, TRUE, 5);
DELETE FROM `old` VALUES (1, 100, 'd', 'o');
INSERT INTO `old` VALUES (1, 200, 'd', 'o');

-- case: constants
CREATE SOURCE t (x INT);
CREATE VIEW one_row AS SELECT 1 AS one, 'two' AS two, DATE '2024-01-31' AS three, array(1, 2) AS four;
CREATE VIEW no_row AS SELECT 1 AS one WHERE 1 > 2;
CREATE VIEW count_of_one AS SELECT COUNT(*) AS n, SUM(5) AS s, MAX('x') AS m;
CREATE VIEW with_rows AS SELECT 0 AS x UNION ALL SELECT x FROM t;
CREATE VIEW beside AS SELECT c.k, t.x FROM (SELECT 7 AS k) c CROSS JOIN t;
CREATE VIEW constants_of AS SELECT SUM(1) AS ones, COUNT(1) AS n, COUNT(NULL) AS none, MIN(3) AS three FROM t;
-- tick: nothing
-- tick: rows
INSERT INTO t VALUES (1), (2) * 2;
-- tick: none again
DELETE FROM t VALUES (1), (2) * 2;
