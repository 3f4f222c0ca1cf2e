-- Expressions that may raise are asked only of rows that are there.

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
