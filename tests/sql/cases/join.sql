-- Inner and cross joins: Δ(A ⋈ B) = ΔA ⋈ B + A′ ⋈ ΔB, with everything changing at once.

-- case: two tables, both sides changing in one tick
CREATE SOURCE a (id INT, k INT, v STRING) PRIMARY KEY (id);
CREATE SOURCE b (id INT, k INT, w STRING) PRIMARY KEY (id);
CREATE VIEW joined AS SELECT a.id AS a, b.id AS b, v, w FROM a JOIN b ON a.k = b.k;
CREATE VIEW non_equal AS SELECT a.id AS a, b.id AS b FROM a, b WHERE a.k < b.k AND v <> w;
CREATE VIEW crossed AS SELECT a.v, b.w FROM a CROSS JOIN b;
CREATE VIEW null_safe AS SELECT a.id AS a, b.id AS b FROM a JOIN b ON a.k <=> b.k;
CREATE VIEW by_expression AS SELECT a.id AS a, b.id AS b FROM a JOIN b ON a.k + 1 = b.k * 2 AND length(v) > 0;
CREATE VIEW either AS SELECT a.id AS a, b.id AS b FROM a JOIN b ON a.k = b.k OR a.id = b.id;
-- tick: rows on both sides, NULL keys too
INSERT INTO a VALUES (1, 1, 'x'), (2, 1, 'y'), (3, 2, 'z'), (4, NULL, 'n'), (5, 3, '');
INSERT INTO b VALUES (1, 1, 'p'), (2, 2, 'q'), (3, NULL, 'r'), (4, 2, 'x');
-- tick: the key is updated on both sides, so that pairs part and meet
UPSERT INTO a VALUES (1, 2, 'x'), (3, 1, 'z'), (4, 2, 'n');
UPSERT INTO b VALUES (1, 2, 'p'), (2, 1, 'q'), (3, 3, 'r');
-- tick: one side goes where the other comes
DELETE KEYS FROM a VALUES (1), (2);
INSERT INTO b VALUES (5, 1, 's');
INSERT INTO a VALUES (6, NULL, 'x');
DELETE KEYS FROM b VALUES (4);
-- tick: one side empties
DELETE KEYS FROM b VALUES (1), (2), (3), (5);
-- tick: and comes back while the other goes
INSERT INTO b VALUES (1, 1, 'p');
DELETE KEYS FROM a VALUES (3);

-- case: duplicates multiply
CREATE SOURCE a (k INT, v STRING);
CREATE SOURCE b (k INT, w STRING);
CREATE VIEW joined AS SELECT a.k, v, w FROM a JOIN b ON a.k = b.k;
CREATE VIEW only_keys AS SELECT a.k FROM a JOIN b ON a.k = b.k;
CREATE VIEW self AS SELECT x.v, y.v AS v2 FROM a x JOIN a y ON x.k = y.k;
CREATE VIEW self_less AS SELECT x.v, y.v AS v2 FROM a x JOIN a y ON x.k <= y.k AND x.v > y.v;
-- tick: weights on both sides
INSERT INTO a VALUES (1, 'x') * 3, (1, 'y'), (2, 'x') * 2, (NULL, 'x') * 2;
INSERT INTO b VALUES (1, 'p') * 2, (2, 'q'), (2, NULL), (NULL, 'p');
-- tick: changes that meet changes
INSERT INTO a VALUES (2, 'x') * 2, (1, 'z');
DELETE FROM a VALUES (1, 'x') * 2, (NULL, 'x');
INSERT INTO b VALUES (2, 'q') * 3;
DELETE FROM b VALUES (1, 'p'), (2, NULL);
-- tick: a row comes and goes on one side while its partner changes
INSERT INTO a VALUES (3, 'w');
DELETE FROM a VALUES (3, 'w'), (2, 'x') * 4;
INSERT INTO b VALUES (3, 'w');
-- tick: all go at once
DELETE FROM a VALUES (1, 'x'), (1, 'y'), (1, 'z'), (NULL, 'x');
DELETE FROM b VALUES (1, 'p'), (2, 'q') * 4, (3, 'w'), (NULL, 'p');

-- case: keys of different types
CREATE SOURCE i (k INT, v STRING);
CREATE SOURCE l (k BIGINT, d DECIMAL(12, 2), x DOUBLE, s STRING);
CREATE VIEW wide AS SELECT v, d FROM i JOIN l ON i.k = l.k;
CREATE VIEW exact AS SELECT v, x FROM i JOIN l ON i.k = l.d;
CREATE VIEW floating AS SELECT i.v, l.x, m.x AS x2 FROM i JOIN l ON i.k = l.x JOIN l AS m ON l.x = m.x;
CREATE VIEW textual AS SELECT v, s FROM i JOIN l ON i.v = l.s;
-- tick: values at the edges of the types
INSERT INTO i VALUES (1, 'a'), (0, 'b'), (2147483647, 'c'), (NULL, 'd');
INSERT INTO l VALUES (1, 1.00, 1.0, 'a'), (2147483647, 0.00, -0.0, 'b'), (4294967297, 1.50, 'NaN', ''), (NULL, NULL, 0.0, NULL);
-- tick: changes
INSERT INTO l VALUES (1, 1.00, 1.0, 'a'), (0, 2147483647.00, 'NaN', 'd');
DELETE FROM l VALUES (2147483647, 0.00, -0.0, 'b');
INSERT INTO i VALUES (1, 'b');
-- tick: more
DELETE FROM i VALUES (1, 'a'), (0, 'b');
INSERT INTO i VALUES (0, 'e');
DELETE FROM l VALUES (4294967297, 1.50, 'NaN', '');

-- case: a chain and a star of four, reached from two ends at once
CREATE SOURCE a (x INT, n STRING);
CREATE SOURCE b (x INT, y INT, z INT);
CREATE SOURCE c (y INT, n STRING);
CREATE SOURCE d (z INT, n STRING);
CREATE VIEW star AS
SELECT a.n AS an, c.n AS cn, d.n AS dn
FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y JOIN d ON b.z = d.z;
CREATE VIEW chain AS
SELECT a.n AS an, d.n AS dn FROM a JOIN b ON a.x = b.x JOIN c ON c.y = b.y JOIN d ON d.z = c.y;
CREATE VIEW twice AS
SELECT p.n AS pn, q.n AS qn FROM a p JOIN b r ON p.x = r.x JOIN b s ON r.y = s.y JOIN a q ON s.x = q.x;
-- tick: everything that will meet, and much that will not
INSERT INTO a VALUES (1, 'a1'), (2, 'a2'), (3, 'a3');
INSERT INTO b VALUES (1, 10, 100), (2, 20, 200), (3, 30, 300), (4, 40, 400), (4, 10, 200);
INSERT INTO c VALUES (10, 'c10'), (20, 'c20'), (30, 'c30'), (40, 'c40');
INSERT INTO d VALUES (100, 'd100'), (200, 'd200'), (10, 'd10'), (20, 'd20');
-- tick: two ends change; what the second reaches is not what the first reaches
INSERT INTO a VALUES (4, 'a4');
INSERT INTO d VALUES (300, 'd300'), (30, 'd30');
-- tick: the same ends the other way round
DELETE FROM a VALUES (2, 'a2');
DELETE FROM d VALUES (100, 'd100');
INSERT INTO c VALUES (20, 'c20b');
-- tick: the middle changes with both ends
DELETE FROM b VALUES (3, 30, 300), (4, 40, 400);
INSERT INTO b VALUES (1, 30, 300), (2, 40, 400);
INSERT INTO d VALUES (400, 'd400');
DELETE FROM a VALUES (1, 'a1');
INSERT INTO a VALUES (1, 'a1 again');

-- case: phantom pairs don't raise
CREATE SOURCE a (id INT, k INT, n INT) PRIMARY KEY (id);
CREATE SOURCE b (id INT, k INT, d INT, s STRING) PRIMARY KEY (id);
CREATE VIEW quotient AS SELECT a.id AS a, b.id AS b, n / d AS q FROM a JOIN b ON a.k = b.k;
CREATE VIEW kept AS SELECT a.id AS a, b.id AS b FROM a JOIN b ON a.k = b.k WHERE n / d > 1;
CREATE VIEW parsed AS SELECT a.id AS a, CAST(s AS INT) + n AS i FROM a JOIN b ON a.k = b.k AND n <> d;
CREATE VIEW summed AS SELECT a.k, SUM(n / d) AS q, MAX(n DIV d) AS m, COUNT(*) AS c FROM a JOIN b ON a.k = b.k GROUP BY a.k;
CREATE VIEW grouped AS SELECT n DIV d AS g, COUNT(*) AS c FROM a JOIN b ON a.k = b.k GROUP BY n DIV d;
-- tick: legal pairs
INSERT INTO a VALUES (1, 1, 10), (2, 2, 20);
INSERT INTO b VALUES (1, 1, 2, '5'), (2, 3, 0, 'no number');
-- tick: a row comes on one side while the partner that would divide by zero goes
INSERT INTO a VALUES (3, 3, 30);
DELETE KEYS FROM b VALUES (2);
-- tick: the other way round
UPSERT INTO a VALUES (3, 4, 30);
INSERT INTO b VALUES (3, 3, 0, 'x'), (4, 4, 3, '7');
-- tick: both keys move past each other
UPSERT INTO a VALUES (3, 1, 30), (1, 4, 10);
UPSERT INTO b VALUES (3, 2, 5, '9'), (1, 5, 0, 'y');
-- tick: a pair that divides by zero is there indeed
-- fails: DIVIDE_BY_ZERO
UPSERT INTO a VALUES (3, 5, 30);
-- tick: the flow goes on
UPSERT INTO a VALUES (3, 4, 30);
DELETE KEYS FROM b VALUES (3);

-- case: conditions that read one side, and sides that are derived
CREATE SOURCE t (id INT, g INT, x INT, s STRING) PRIMARY KEY (id);
CREATE SOURCE u (g INT, lo INT, hi INT);
CREATE VIEW ranged AS SELECT t.id, u.g FROM t JOIN u ON t.g = u.g AND t.x BETWEEN u.lo AND u.hi AND u.lo > 0;
CREATE VIEW of_sums AS
SELECT q.g, q.total, u.hi FROM (SELECT g, SUM(x) AS total FROM t GROUP BY g) q JOIN u ON q.g = u.g WHERE q.total < u.hi;
CREATE VIEW of_unions AS
SELECT a.id, u.lo FROM (SELECT id, g FROM t WHERE x > 0 UNION ALL SELECT id + 100, x FROM t) a JOIN u ON a.g = u.g;
CREATE VIEW of_distincts AS
SELECT a.g, b.s FROM (SELECT DISTINCT g FROM t) a JOIN (SELECT DISTINCT g, s FROM t) b ON a.g = b.g;
CREATE VIEW with_literal AS SELECT t.id, u.lo FROM t JOIN u ON t.g = 1 AND u.g = t.g AND t.s = 'a';
-- tick: rows
INSERT INTO t VALUES (1, 1, 5, 'a'), (2, 1, 15, 'b'), (3, 2, 5, 'a'), (4, NULL, 1, NULL);
INSERT INTO u VALUES (1, 0, 10), (1, 1, 20), (2, 5, 5), (NULL, 1, 1), (5, 1, 100);
-- tick: the sums and the ranges change together
UPSERT INTO t VALUES (1, 2, 5, 'a'), (2, 1, 3, 'b'), (4, 2, 1, 'a');
DELETE FROM u VALUES (1, 0, 10);
INSERT INTO u VALUES (2, 0, 50), (1, 3, 4);
-- tick: groups vanish and appear
DELETE KEYS FROM t VALUES (2);
INSERT INTO t VALUES (5, 5, 7, 'c'), (6, 5, -7, 'c');
DELETE FROM u VALUES (2, 5, 5);

-- case: parentheses that begin with a derived table
CREATE SOURCE a (x INT, n INT);
CREATE SOURCE b (x INT, n INT);
CREATE VIEW kept AS SELECT r1.x, b.n FROM ((SELECT x FROM a) AS r1 LEFT JOIN b ON b.x = r1.x);
CREATE VIEW nested AS
SELECT a.n, r3.x, r4.n AS m FROM a RIGHT JOIN ((SELECT x FROM b) AS r3 JOIN (b AS r4 JOIN a AS r5 ON r4.x = r5.x) ON r3.x <= r5.n) ON a.x < r5.x;
CREATE VIEW asking AS
SELECT a.x FROM a WHERE EXISTS (SELECT 1 FROM ((SELECT x, n FROM b) AS r1 JOIN b AS r2 ON r1.n = r2.n) WHERE r2.x = a.x);
-- tick: rows
INSERT INTO a VALUES (1, 1), (1, 2), (2, NULL), (3, 3);
INSERT INTO b VALUES (1, 1), (2, 2) * 2, (NULL, 1);
-- tick: matches come and go
DELETE FROM a VALUES (1, 2);
INSERT INTO a VALUES (2, 2);
DELETE FROM b VALUES (2, 2);
INSERT INTO b VALUES (3, 1), (1, NULL);

-- case: rows that a condition takes away reach nothing, and all others do
CREATE SOURCE t (id INT, k INT, s STRING, n DECIMAL(8,2), d DATE) PRIMARY KEY (id);
CREATE SOURCE u (k INT, y STRING);
CREATE VIEW like_it AS SELECT t.id, u.y FROM t JOIN u ON t.k = u.k WHERE t.s LIKE '%a%b%';
CREATE VIEW not_like AS SELECT t.id, u.y FROM t JOIN u ON t.k = u.k WHERE t.s NOT LIKE '%a%b%';
CREATE VIEW not_like_left AS SELECT u.y, COUNT(t.id) AS n FROM u LEFT JOIN t ON t.k = u.k AND t.s NOT LIKE 'a%' GROUP BY u.y;
CREATE VIEW unlike_case AS SELECT t.id, u.y FROM t JOIN u ON t.k = u.k WHERE t.s NOT ILIKE 'A%' AND u.y NOT LIKE '_z';
CREATE VIEW among AS SELECT t.id, u.y FROM t JOIN u ON t.k = u.k WHERE t.id NOT IN (2, 3) AND t.s IN ('ab', 'x', 'é');
CREATE VIEW outside AS SELECT t.id, u.y FROM t JOIN u ON t.k = u.k WHERE t.n NOT BETWEEN 1 AND 2.5;
CREATE VIEW known AS SELECT t.id, u.y FROM t JOIN u ON t.k = u.k WHERE t.s IS NOT NULL AND t.d IS NULL;
CREATE VIEW opposite AS SELECT t.id, u.y FROM t JOIN u ON t.k = u.k WHERE NOT (t.n > 1 OR t.s = 'ab');
CREATE VIEW different AS SELECT t.id, u.y FROM t JOIN u ON t.k = u.k WHERE t.s IS DISTINCT FROM 'ab' AND t.d <> DATE'2024-02-29';
CREATE VIEW either AS SELECT t.id, u.y FROM t JOIN u ON t.k = u.k WHERE t.s NOT LIKE 'a_' OR t.n = 2.50;
-- tick: rows
INSERT INTO t VALUES (1, 1, 'ab', 1.00, '2024-02-29'), (2, 1, 'acb', 2.50, NULL), (3, 2, NULL, NULL, NULL), (4, 2, 'x', 9.00, '2024-03-01');
INSERT INTO u VALUES (1, 'az'), (2, 'b'), (2, NULL);
-- tick: only what is filtered changes
INSERT INTO t VALUES (5, 1, 'é', 0.10, NULL), (6, 2, 'b', 2.00, '2023-01-01'), (7, 1, 'ba', NULL, NULL);
-- tick: rows come to pass and cease to
UPSERT INTO t VALUES (1, 2, 'x', 3.00, NULL), (4, 1, 'aab', 1.50, '2024-02-29'), (3, 2, 'ab', 2.50, '2025-01-01');
-- tick: both sides
INSERT INTO u VALUES (1, 'zz'), (3, 'c');
INSERT INTO t VALUES (8, 3, 'A%b', 2.51, NULL);
DELETE KEYS FROM t VALUES (6);
-- tick: and away
DELETE FROM u VALUES (2, NULL), (1, 'az');
DELETE KEYS FROM t VALUES (1), (7);

-- case: NULLs of either side
CREATE SOURCE a (k BIGINT, v BIGINT);
CREATE SOURCE b (k BIGINT, w BIGINT);
CREATE VIEW j AS SELECT a.k, b.w FROM a JOIN b ON a.k = b.k WHERE a.v IS NULL OR b.w IS NULL;
CREATE VIEW n AS SELECT a.k, b.w FROM a JOIN b ON a.k = b.k WHERE a.v IS NOT NULL OR b.w IS NOT NULL OR a.k > 5;
-- tick: one side
INSERT INTO a VALUES (1, NULL), (2, 2), (3, NULL);
-- tick: the other
INSERT INTO b VALUES (1, 1), (2, NULL), (3, NULL);
-- tick: both
INSERT INTO b VALUES (1, NULL);
DELETE FROM a VALUES (2, 2);
