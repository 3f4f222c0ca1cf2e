-- case: seed 1002: InternalError
CREATE SOURCE t0 (n STRING, x INT);
CREATE SOURCE t1 (id INT, a INT) PRIMARY KEY (id);
CREATE VIEW v0 AS SELECT r5.x AS m, r1.a AS b FROM t1 AS r1 RIGHT JOIN ((SELECT r2.x AS b FROM t0 AS r2) AS r3 INNER JOIN t0 AS r5 ON r3.b = r5.x) ON r1.id < r5.x;
-- tick: batch 1
INSERT INTO t0 VALUES ('a', 2), (NULL, NULL);
UPSERT INTO t1 VALUES (1, 0);
-- tick: batch 2
DELETE KEYS FROM t1 VALUES (1);
