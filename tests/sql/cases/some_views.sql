-- Ticks that bring some views up to date: the others keep their frontier and catch up later.

-- case: views that lag and catch up
CREATE SOURCE t (id INT, g STRING, x INT) PRIMARY KEY (id);
CREATE SOURCE u (g STRING, w INT);
CREATE VIEW sums AS SELECT g, SUM(x) AS s, MAX(x) AS m FROM t GROUP BY g;
CREATE VIEW joined AS SELECT t.id, t.x, u.w FROM t JOIN u ON t.g = u.g;
CREATE VIEW over_both AS SELECT j.id, s.s, s.m FROM joined j JOIN sums s ON j.w = s.s OR j.x = s.m;
CREATE VIEW counted AS SELECT COUNT(*) AS n, MIN(w) AS lo FROM joined;
CREATE VIEW once AS SELECT DISTINCT g FROM t;
-- tick: rows
INSERT INTO t VALUES (1, 'a', 1), (2, 'a', 5), (3, 'b', 2);
INSERT INTO u VALUES ('a', 6), ('b', 2), ('b', 9);
-- tick: only the sums move on
-- only: sums
UPSERT INTO t VALUES (2, 'b', 5), (4, 'c', 7);
-- tick: only the join moves on, past a row that came and went in between
-- only: joined
DELETE KEYS FROM t VALUES (4);
INSERT INTO u VALUES ('c', 7), ('a', 1);
-- tick: a view over both brings both up to date
-- only: over_both
UPSERT INTO t VALUES (1, 'a', 6);
-- tick: all catch up, with no change of their own
-- tick: all again
DELETE KEYS FROM t VALUES (2);
DELETE FROM u VALUES ('b', 9);
