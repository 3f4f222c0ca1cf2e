-- current_timestamp() and current_date() mean the tick's logical time, an input like any other.

-- case: filters and expressions that read the time
CREATE SOURCE t (id INT, d DATE, ts TIMESTAMP) PRIMARY KEY (id);
CREATE SOURCE other (x INT);
CREATE VIEW stamped AS SELECT id, current_timestamp() AS at, current_date() AS today FROM t;
CREATE VIEW due AS SELECT id, datediff(current_date(), d) AS late FROM t WHERE d < current_date();
CREATE VIEW recent AS SELECT id FROM t WHERE ts > now() - INTERVAL 1 DAY AND ts <= now();
CREATE VIEW ages AS SELECT datediff(current_date(), d) DIV 30 AS months, COUNT(*) AS n, MIN(id) AS i FROM t GROUP BY datediff(current_date(), d) DIV 30;
CREATE VIEW only_time AS SELECT current_date() AS today, 1 AS one;
CREATE VIEW counted AS SELECT COUNT(*) AS n, current_date() AS day FROM t;
CREATE VIEW timeless AS SELECT id FROM t;
CREATE VIEW over_view AS SELECT late, COUNT(*) AS n FROM due GROUP BY late;
CREATE VIEW having_time AS SELECT d, COUNT(*) AS n FROM t GROUP BY d HAVING d <= current_date();
-- tick: rows
-- at: 2024-01-31 12:00:00
INSERT INTO t VALUES (1, '2024-01-30', '2024-01-31 11:00:00'), (2, '2024-02-01', '2024-02-01 06:00:00'), (3, NULL, NULL), (4, '2023-12-01', '2024-01-30 12:00:00');
-- tick: only time passes
-- at: 2024-02-01 11:30:00
-- tick: time and rows together
-- at: 2024-02-01 23:59:59.999999
INSERT INTO t VALUES (5, '2024-02-01', '2024-02-01 23:59:59.999999');
DELETE KEYS FROM t VALUES (1);
-- tick: rows while time stands still
-- at: 2024-02-01 23:59:59.999999
UPSERT INTO t VALUES (2, '2024-01-01', '2024-02-01 23:00:00');
-- tick: midnight, and a change elsewhere
-- at: 2024-02-02 00:00:00
INSERT INTO other VALUES (1);
