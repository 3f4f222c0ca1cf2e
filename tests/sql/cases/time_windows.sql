-- Windows of time: tumbling, sliding, sessions; late rows and deletion.

-- case: tumbling and sliding windows
CREATE SOURCE e (id INT, k STRING, ts TIMESTAMP, x INT) PRIMARY KEY (id);
CREATE VIEW hourly AS SELECT window.start AS s, window.end AS f, COUNT(*) AS n, SUM(x) AS t FROM e GROUP BY window(ts, '1 hour');
CREATE VIEW sliding AS SELECT window, k, MAX(x) AS m FROM e GROUP BY window(ts, '10 minutes', '4 minutes'), k;
CREATE VIEW shifted AS SELECT window(ts, '1 day', '1 day', '2 hours').start AS day, id FROM e WHERE x > 0;
-- tick: some rows, one without a time, one before 1970
INSERT INTO e VALUES (1, 'a', '2024-03-01 10:00:00', 1), (2, 'a', '2024-03-01 10:59:59.999999', 2), (3, 'b', '2024-03-01 11:00:00', 3), (4, 'b', NULL, 4), (5, NULL, '1969-12-31 23:58:00', 5);
-- tick: late rows
INSERT INTO e VALUES (6, 'a', '2024-03-01 09:30:00', 6), (7, 'b', '2024-03-01 10:07:00', NULL);
-- tick: a row moves in time, one goes
UPSERT INTO e VALUES (2, 'a', '2024-03-01 12:00:00', 2);
DELETE KEYS FROM e VALUES (1), (5);

-- case: sessions grow together, fall apart and move
CREATE SOURCE e (id INT, k STRING, ts TIMESTAMP) PRIMARY KEY (id);
CREATE VIEW sessions AS SELECT k, session_window.start AS s, session_window.end AS f, COUNT(*) AS n FROM e GROUP BY k, session_window(ts, '5 minutes');
CREATE VIEW of_all AS SELECT session_window(ts, '10 minutes') AS w, COUNT(DISTINCT k) AS ks FROM e GROUP BY session_window(ts, '10 minutes');
-- tick: two sessions, ends that touch
INSERT INTO e VALUES (1, 'a', '2024-03-01 10:00:00'), (2, 'a', '2024-03-01 10:04:00'), (3, 'a', '2024-03-01 10:12:00'), (4, 'b', '2024-03-01 10:00:00'), (5, 'b', '2024-03-01 10:05:00'), (6, NULL, '2024-03-01 10:00:00'), (7, 'a', NULL);
-- tick: a late row joins two sessions
INSERT INTO e VALUES (8, 'a', '2024-03-01 10:08:00');
-- tick: and goes again, while another row changes its key
DELETE KEYS FROM e VALUES (8);
UPSERT INTO e VALUES (5, 'a', '2024-03-01 10:05:00');
-- tick: the first row of a session goes
DELETE KEYS FROM e VALUES (1), (6);

-- case: windows over times that are written as text
CREATE SOURCE e (k STRING, at STRING, n INT);
CREATE VIEW tumbling AS SELECT k, window.start, window.end, COUNT(*) AS c FROM e GROUP BY k, window(at, '5 minutes');
CREATE VIEW sliding AS SELECT window.start AS s, SUM(n) AS n FROM e GROUP BY window(at, '10 minutes', '5 minutes');
CREATE VIEW sessions AS SELECT k, session_window.start AS s, session_window.end AS f, COUNT(*) AS c FROM e GROUP BY k, session_window(at, '5 minutes');
-- tick: some
INSERT INTO e VALUES ('a', '2021-01-01 00:00:00', 1), ('a', '2021-01-01 00:04:30', 2), ('a', '2021-01-01 00:10:00', 3), ('b', '2021-01-01 00:01:00', 4), ('b', NULL, 5);
-- tick: a bridge between sessions, and one that goes
INSERT INTO e VALUES ('a', '2021-01-01 00:07:00', 6);
DELETE FROM e VALUES ('b', '2021-01-01 00:01:00', 4);

-- case: windows over days and over times without a zone, and many windows at once
CREATE SOURCE e (id INT, day DATE, at TIMESTAMP_NTZ, ts TIMESTAMP) PRIMARY KEY (id);
CREATE VIEW weekly AS SELECT window.start AS s, window.end AS f, COUNT(*) AS n FROM e GROUP BY window(day, '7 days');
CREATE VIEW of_days AS SELECT window, COUNT(*) AS n FROM e GROUP BY window(day, '3 days', '1 day', '5 hours');
CREATE VIEW hourly AS SELECT window, COUNT(*) AS n FROM e GROUP BY window(at, '1 hour');
CREATE VIEW sliding AS SELECT window.start AS s, window.end AS f, MIN(id) AS i FROM e GROUP BY window(at, '1 hour', '25 minutes', '3 minutes');
CREATE VIEW many AS SELECT window.start AS s, COUNT(*) AS n FROM e GROUP BY window(ts, '30 minutes', '1 minute');
CREATE VIEW many_local AS SELECT window.start AS s, COUNT(*) AS n FROM e GROUP BY window(at, '40 seconds', '1500 milliseconds');
CREATE VIEW worked_out AS SELECT window.start AS s, COUNT(*) AS n FROM e GROUP BY window(coalesce(ts, timestamp'2024-01-01 00:00:00'), '1 minute');
CREATE VIEW nested AS SELECT w.start AS s, SUM(n) AS n FROM (SELECT window(window_time(window), '1 day') AS w, n FROM (SELECT window, COUNT(*) AS n FROM e GROUP BY window(ts, '1 hour')) AS hours) AS days GROUP BY w;
-- tick: some rows, one without times, one before 1970
INSERT INTO e VALUES (1, '2024-03-01', '2024-03-01 10:00:00', '2024-03-01 10:00:00'), (2, '2024-03-02', '2024-03-01 10:59:59.999999', '2024-03-01 10:00:59.999999'), (3, '2024-03-09', '2024-03-31 02:30:00', '2024-03-31 02:30:00'), (4, NULL, NULL, NULL), (5, '1969-12-30', '1969-12-31 23:58:00', '1969-12-31 23:58:00');
-- tick: late rows, one that moves, one that goes
UPSERT INTO e VALUES (2, '2024-02-29', '2024-03-01 11:00:00', '2024-03-01 10:30:00'), (4, '2024-03-01', '2024-03-01 09:59:59', NULL), (6, '2024-03-03', NULL, '2024-03-01 10:00:00');
DELETE KEYS FROM e VALUES (5);
