-- Views registered over sources that have a history: what is gone from them is gone.

-- case: late views of every kind
CREATE SOURCE t (id INT, g STRING, x INT) PRIMARY KEY (id);
CREATE SOURCE u (g STRING, w INT);
-- tick: rows
INSERT INTO t VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 0), (4, NULL, 5);
INSERT INTO u VALUES ('a', 10) * 2, ('b', 0), (NULL, 1);
-- tick: changes before any view
UPSERT INTO t VALUES (1, 'b', 1), (4, 'c', 6);
DELETE FROM u VALUES ('a', 10);
-- tick: the views come, with a change of their own
CREATE VIEW plain AS SELECT id, x * 2 AS y FROM t WHERE x >= 0;
CREATE VIEW joined AS SELECT t.id, u.w FROM t JOIN u ON t.g = u.g;
CREATE VIEW grouped AS SELECT g, SUM(x) AS s, COUNT(*) AS n, MIN(x) AS lo, MAX(x) AS hi FROM t GROUP BY g;
CREATE VIEW distincts AS SELECT DISTINCT g FROM t UNION SELECT g FROM u;
CREATE VIEW over_view AS SELECT s, COUNT(*) AS k FROM grouped GROUP BY s;
DELETE KEYS FROM t VALUES (2);
INSERT INTO u VALUES ('c', 3);
-- tick: another view over them, nothing else
CREATE VIEW later AS SELECT joined.id, grouped.hi FROM joined JOIN grouped ON joined.w = grouped.s;
-- tick: rows go on
UPSERT INTO t VALUES (3, 'a', 10), (5, 'a', -1);
DELETE FROM u VALUES ('b', 0), ('a', 10);
-- tick: nothing is left
DELETE KEYS FROM t VALUES (1), (3), (4), (5);
DELETE FROM u VALUES ('c', 3), (NULL, 1);
-- tick: a view over nothing
CREATE VIEW last AS SELECT COUNT(*) AS n, MAX(id) AS m FROM t;

-- case: what may raise is not asked of rows that are gone
CREATE SOURCE t (id INT, x INT, s STRING) PRIMARY KEY (id);
-- tick: a zero and a word
INSERT INTO t VALUES (1, 0, 'word'), (2, 2, '2');
-- tick: they go
DELETE KEYS FROM t VALUES (1);
-- tick: the views come
CREATE VIEW inverse AS SELECT id, 10 / x AS y, CAST(s AS INT) AS n FROM t;
CREATE VIEW kept AS SELECT id FROM t WHERE 10 DIV x > 1;
CREATE VIEW summed AS SELECT SUM(10 / x) AS s, MAX(CAST(s AS INT)) AS m FROM t GROUP BY 10 DIV x;
-- tick: a row comes
INSERT INTO t VALUES (3, 5, '7');

-- case: what may raise is not asked of pairs with rows that are gone
CREATE SOURCE a (k INT, n INT);
CREATE SOURCE b (k INT, d INT, s STRING);
CREATE VIEW quotient AS SELECT a.n / b.d AS q FROM a JOIN b ON a.k = b.k;
CREATE VIEW kept AS SELECT a.n FROM a JOIN b ON a.k = b.k WHERE a.n DIV b.d > 1;
CREATE VIEW grouped AS SELECT a.k, MAX(CAST(b.s AS INT)) AS m FROM a JOIN b ON a.k = b.k GROUP BY a.k;
CREATE VIEW by_quotient AS SELECT q.n, c.n AS cn FROM (SELECT a.n, b.d FROM a JOIN b ON a.k = b.k) q JOIN a c ON q.n DIV q.d = c.n;
-- tick: a zero without a partner
INSERT INTO a VALUES (1, 10), (5, 5);
INSERT INTO b VALUES (1, 2, '3'), (2, 0, 'word');
-- tick: it goes
DELETE FROM b VALUES (2, 0, 'word');
-- tick: its partner comes
INSERT INTO a VALUES (2, 20);
-- tick: a partner comes and the other goes, in one tick and in both orders
INSERT INTO b VALUES (3, 0, 'x'), (2, 4, '5');
DELETE FROM a VALUES (2, 20);
INSERT INTO a VALUES (4, 1);
-- tick: past each other
DELETE FROM b VALUES (3, 0, 'x');
INSERT INTO a VALUES (3, 30);
-- tick: a late view over all of it
CREATE VIEW late AS SELECT a.n DIV b.d AS q, CAST(b.s AS INT) AS s FROM a JOIN b ON a.k = b.k;
INSERT INTO a VALUES (2, 8);
