-- INTERVALs that are compared, summed and grouped by.

-- case: how long, at least, at most, together
CREATE SOURCE emp (id INT, name STRING, dept INT, at TIMESTAMP, until TIMESTAMP, hired DATE) PRIMARY KEY (id);
CREATE SOURCE dept (id INT, name STRING);
CREATE VIEW extremes AS SELECT dept, MAX(until - at) > INTERVAL '1' DAY AS late, CAST(MIN(until - at) AS STRING) AS m FROM emp GROUP BY dept;
CREATE VIEW sums AS SELECT dept, extract(DAY FROM AVG(until - at)) AS d, CAST(SUM(until - at) AS STRING) AS s, CAST(AVG(until - at) AS STRING) AS a, COUNT(until - at) AS n, COUNT(*) AS r FROM emp GROUP BY dept;
CREATE VIEW gaps AS SELECT CAST(until - at AS STRING) AS gap, COUNT(*) AS n FROM emp GROUP BY until - at;
CREATE VIEW long_gaps AS SELECT CAST(g AS STRING) AS g, c FROM (SELECT until - at AS g, COUNT(*) AS c FROM emp GROUP BY until - at HAVING until - at > INTERVAL '1' HOUR);
CREATE VIEW distinct_gaps AS SELECT COUNT(DISTINCT until - at) AS n, CAST(SUM(DISTINCT until - at) AS STRING) AS s FROM emp;
CREATE VIEW hours AS SELECT DISTINCT extract(HOUR FROM g) AS h FROM (SELECT DISTINCT until - at AS g FROM emp);
CREATE VIEW months AS SELECT dept, CAST(MAX(INTERVAL '1' MONTH * id) AS STRING) AS m, CAST(AVG(INTERVAL '1' MONTH * id) AS STRING) AS a, CAST(SUM(INTERVAL '1' YEAR) AS STRING) AS y FROM emp GROUP BY dept;
CREATE VIEW of_all AS SELECT CAST(SUM(until - at) AS STRING) AS s, CAST(AVG(hired - DATE '2024-01-01') AS STRING) AS d, CAST(MAX(hired - DATE '2024-01-01') AS STRING) AS md FROM emp;
CREATE VIEW above_average AS SELECT e.id FROM emp e WHERE until - at > (SELECT AVG(until - at) FROM emp);
CREATE VIEW longest AS SELECT id FROM emp ORDER BY until - at DESC NULLS LAST, id LIMIT 2;
CREATE VIEW places AS SELECT id, rank() OVER (ORDER BY until - at) AS r FROM emp;
CREATE VIEW span AS SELECT dept, MAX(until) - MIN(at) > INTERVAL '2' HOURS AS b, CAST(MAX(until) - MIN(at) AS STRING) AS t FROM emp GROUP BY dept;
CREATE VIEW of_partition AS SELECT id, CAST(MAX(until - at) OVER (PARTITION BY dept) AS STRING) AS m FROM emp;
-- tick: load
INSERT INTO emp VALUES (1, 'ann', 1, '2024-01-01 00:00:00', '2024-01-02 10:00:00.000001', '2024-01-31'), (2, 'Bob', 1, '2024-01-01 00:00:00', '2023-12-31 00:00:00', NULL), (3, 'eve', 2, NULL, NULL, '2023-01-01'), (4, 'ANN', NULL, '2024-01-01 00:00:00', '2024-01-02 10:00:00.000001', '2024-05-05'), (5, 'Änn', 2, '2024-01-01 00:00:00', '2024-01-01 01:00:00', '2024-01-01');
INSERT INTO dept VALUES (1, 'ANN'), (2, 'ops'), (NULL, 'EVE'), (1, NULL);
-- tick: change
UPSERT INTO emp VALUES (2, 'bob', 2, '2024-01-01 00:00:00', '2024-01-03 00:00:00', '2024-03-01'), (6, 'fay', 1, '2024-01-01 00:00:00', '2024-01-01 00:00:00.5', '2024-01-01');
DELETE KEYS FROM emp VALUES (1);
DELETE FROM dept VALUES (2, 'ops');
INSERT INTO dept VALUES (4, 'FAY'), (2, 'bOb');
-- tick: more
UPSERT INTO emp VALUES (3, 'Eve', 1, '2024-01-01 00:00:00', '2024-01-01 00:00:01', '2024-02-01');
DELETE FROM dept VALUES (1, 'ANN');
DELETE KEYS FROM emp VALUES (4), (5);

-- case: intervals of any number of minutes
CREATE SOURCE e (a TIMESTAMP, b TIMESTAMP);
CREATE VIEW i1 AS SELECT CAST(MAX(b - a) AS STRING) AS m, CAST(SUM(b - a) AS STRING) AS s, CAST(AVG(a - b) AS STRING) AS v FROM e;
-- tick: one
INSERT INTO e VALUES ('2024-01-01 00:00:00', '2024-01-01 00:36:00'), ('2024-01-01 00:00:00', '2023-12-31 00:00:01.5');
-- tick: two
-- tick: three
INSERT INTO e VALUES ('2024-01-01 00:00:00', '2024-01-11 23:59:59.999999');
