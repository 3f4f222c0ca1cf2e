-- UNION ALL adds bags; UNION keeps each row once. Branches meet in common types.

-- case: branches of different types
CREATE SOURCE i (x INT, s STRING);
CREATE SOURCE l (x BIGINT, d DECIMAL(12, 3));
CREATE VIEW widened AS SELECT x FROM i UNION ALL SELECT x FROM l;
CREATE VIEW decimals AS SELECT x AS n FROM i UNION ALL SELECT d FROM l UNION ALL SELECT 1.5;
CREATE VIEW with_nulls AS SELECT x, NULL AS d FROM i UNION ALL SELECT NULL, d FROM l UNION ALL SELECT 7, NULL;
CREATE VIEW texts AS SELECT s AS t FROM i UNION ALL SELECT CAST(x AS STRING) FROM l;
CREATE VIEW doubles AS SELECT x + 0.5D AS y FROM i UNION ALL SELECT x FROM l;
-- tick: rows in both
INSERT INTO i VALUES (1, 'a') * 2, (NULL, NULL);
INSERT INTO l VALUES (1, 1.000), (5000000000, NULL);
-- tick: only one branch changes
INSERT INTO l VALUES (2, 2.125) * 3;
-- tick: what one branch loses the other wins
DELETE FROM i VALUES (1, 'a');
INSERT INTO l VALUES (1, 1.000);
DELETE FROM l VALUES (5000000000, NULL);
INSERT INTO i VALUES (2, 'b');
-- tick: the rest goes
DELETE FROM i VALUES (1, 'a'), (NULL, NULL), (2, 'b');

-- case: one table in several branches
CREATE SOURCE t (id INT, g STRING, x INT) PRIMARY KEY (id);
CREATE VIEW doubled AS SELECT g, x FROM t UNION ALL SELECT g, x FROM t;
CREATE VIEW both_ways AS SELECT g, x FROM t WHERE x > 0 UNION ALL SELECT g, -x FROM t WHERE x < 0;
CREATE VIEW nested AS
SELECT g FROM t WHERE x > 1
UNION ALL (SELECT g FROM t WHERE x < 1 UNION SELECT upper(g) FROM t)
UNION ALL SELECT 'z';
CREATE VIEW once AS SELECT g, x % 2 AS odd FROM t UNION SELECT g, 1 FROM t;
CREATE VIEW mixed AS SELECT g FROM t UNION SELECT g FROM t UNION ALL SELECT g FROM t;
CREATE VIEW summed AS
SELECT g, SUM(x) AS s, COUNT(*) AS n, MAX(x) AS m
FROM (SELECT g, x FROM t UNION ALL SELECT 'all', x FROM t UNION ALL SELECT g, NULL FROM t WHERE x = 0) GROUP BY g;
-- tick: rows
INSERT INTO t VALUES (1, 'a', 1), (2, 'a', -1), (3, 'b', 0), (4, NULL, NULL), (5, 'a', 2);
-- tick: rows change branches
UPSERT INTO t VALUES (1, 'a', -1), (2, 'a', 1), (3, 'c', 5);
-- tick: rows go and come
DELETE KEYS FROM t VALUES (1), (5);
INSERT INTO t VALUES (6, 'b', 0), (7, NULL, 3);
-- tick: a change that changes nothing
DELETE FROM t VALUES (6, 'b', 0);
INSERT INTO t VALUES (6, 'b', 0);
