-- Texts compared by a collation, where no row has to keep them.

-- case: texts in the order of a collation, and equal by it
CREATE SOURCE emp (id INT, name STRING, dept INT, at TIMESTAMP, until TIMESTAMP, hired DATE) PRIMARY KEY (id);
CREATE SOURCE dept (id INT, name STRING);
CREATE VIEW asked AS SELECT id, name COLLATE UTF8_LCASE = 'ANN' AS is_ann, collation(name) AS c FROM emp WHERE name COLLATE UNICODE_CI <> 'BOB';
CREATE VIEW joined AS SELECT e.id, d.id AS did FROM emp e JOIN dept d ON e.name COLLATE UTF8_LCASE = d.name COLLATE UTF8_LCASE;
CREATE VIEW by_name AS SELECT id, name FROM emp ORDER BY name COLLATE UNICODE_CI, id LIMIT 3;
CREATE VIEW ranked AS SELECT id, rank() OVER (ORDER BY name COLLATE UTF8_LCASE) AS r, dense_rank() OVER (PARTITION BY dept ORDER BY name COLLATE UTF8_LCASE DESC) AS d FROM emp;
CREATE VIEW there AS SELECT e.id FROM emp e WHERE EXISTS (SELECT 1 FROM dept d WHERE d.name COLLATE UTF8_LCASE = e.name COLLATE UTF8_LCASE);
CREATE VIEW not_there AS SELECT e.id FROM emp e WHERE NOT EXISTS (SELECT 1 FROM dept d WHERE d.name COLLATE UTF8_LCASE = e.name COLLATE UTF8_LCASE AND d.id = e.dept);
CREATE VIEW beside AS SELECT e.id, d.id AS did FROM emp e LEFT JOIN dept d ON d.name COLLATE UTF8_LCASE = e.name COLLATE UTF8_LCASE;
CREATE VIEW among AS SELECT e.id FROM emp e WHERE e.name COLLATE UTF8_LCASE IN (SELECT name FROM dept);
CREATE VIEW first_two AS SELECT id FROM emp QUALIFY row_number() OVER (PARTITION BY dept ORDER BY name COLLATE UNICODE_CI_AI, id) <= 2;
CREATE VIEW parts AS SELECT id, contains(name COLLATE UTF8_LCASE, 'N') AS c, replace(name COLLATE UTF8_LCASE, 'A', 'z') = 'zNN' AS r FROM emp;
CREATE VIEW page AS SELECT name, id FROM (SELECT name COLLATE UTF8_LCASE AS n, name, id FROM emp) WHERE n > 'b' ORDER BY n, id LIMIT 2 OFFSET 1;
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
