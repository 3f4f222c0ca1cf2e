-- Columns of type MAP: in sources, in views, on the way.

-- case: maps in rows
CREATE SOURCE t (id INT, m MAP<STRING, INT>, d MAP<INT, DOUBLE>);
CREATE SOURCE u (id INT, y INT);
CREATE VIEW same AS SELECT id, m, d FROM t WHERE id > 0;
CREATE VIEW read AS SELECT id, m['a'] AS a, cardinality(m) AS n, map_keys(m) AS ks, map_values(d) AS ds, map_contains_key(m, 'b') AS b FROM t;
CREATE VIEW made AS SELECT id, map_concat(coalesce(m, map()), map('z', id)) AS m, transform_values(d, (k, v) -> v * k) AS d, map_filter(m, (k, v) -> v > 1) AS f FROM t WHERE NOT map_contains_key(coalesce(m, map()), 'z');
CREATE VIEW exploded AS SELECT id, k, v FROM t LATERAL VIEW OUTER explode(m) AS k, v;
CREATE VIEW nested AS SELECT id, array(m, map('q', id)) AS ms, named_struct('m', m, 'id', id) AS s, map(id, m) AS mm FROM t WHERE id IS NOT NULL;
CREATE VIEW joined AS SELECT t.id, u.y, t.m FROM t JOIN u ON t.m['a'] = u.y;
CREATE VIEW beside AS SELECT u.id, u.y, t.m, t.d FROM u LEFT JOIN t ON u.id = t.id;
CREATE VIEW missing AS SELECT id, m FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id);
CREATE VIEW together AS SELECT id, m FROM t UNION ALL SELECT id, map('y', y) FROM u;
CREATE VIEW entries AS SELECT k, SUM(v) AS s, COUNT(*) AS n FROM (SELECT explode(m) AS (k, v) FROM t) GROUP BY k;
CREATE VIEW grouped AS SELECT array_sort(map_entries(m)) AS es, COUNT(*) AS n, COUNT(m) AS filled FROM t GROUP BY array_sort(map_entries(m));
CREATE VIEW over_view AS SELECT id, m['z'] AS z FROM made;
-- tick: rows, some of them twice, zeros of both signs, another order of entries
INSERT INTO t VALUES (1, MAP('a', 1, 'b', 2), MAP(1, 0.0)), (1, MAP('b', 2, 'a', 1), MAP(1, -0.0)), (2, NULL, MAP(2, 'NaN', 3, NULL)), (3, MAP(), NULL) * 2, (0, MAP('a', NULL), MAP()), (NULL, MAP('a', 5), NULL);
INSERT INTO u VALUES (1, 1), (2, 5), (4, 5), (NULL, 1);
-- tick: rows go, by their bits
DELETE FROM t VALUES (1, MAP('b', 2, 'a', 1), MAP(1, -0.0)), (3, MAP(), NULL);
INSERT INTO t VALUES (4, MAP('c', 7), MAP(4, 2.5)), (2, MAP('a', 5), NULL);
-- tick: both sides
DELETE FROM u VALUES (1, 1), (4, 5);
INSERT INTO u VALUES (3, 1), (2, 1);
DELETE FROM t VALUES (2, NULL, MAP(2, 'NaN', 3, NULL));
-- tick: the rest goes
DELETE FROM t VALUES (1, MAP('a', 1, 'b', 2), MAP(1, 0.0)), (3, MAP(), NULL), (0, MAP('a', NULL), MAP()), (NULL, MAP('a', 5), NULL), (4, MAP('c', 7), MAP(4, 2.5)), (2, MAP('a', 5), NULL);

-- case: maps beside orders and aggregates
CREATE SOURCE t (id INT, k INT, m MAP<STRING, INT>) PRIMARY KEY (id);
CREATE VIEW best AS SELECT k, max_by(m, id) AS m, min_by(m['a'], id) AS a FROM t GROUP BY k;
-- means: SELECT k, array_sort(collect_list(struct(concat(cardinality(m), ':', array_join(transform(map_entries(m), e -> concat('(', octet_length(e.key), ':', e.key, e.value, ';')), '')) AS s, m)), (a, b) -> CASE WHEN a.s < b.s THEN -1 WHEN a.s > b.s THEN 1 ELSE 0 END).m AS ms FROM t WHERE m IS NOT NULL GROUP BY k
CREATE VIEW listed AS SELECT k, collect_list(m) AS ms FROM t WHERE m IS NOT NULL GROUP BY k;
CREATE VIEW ranked AS SELECT k, m, row_number() OVER (PARTITION BY k ORDER BY id DESC) AS r, lag(m) OVER (PARTITION BY k ORDER BY id) AS before FROM t;
CREATE VIEW newest AS SELECT id, m FROM t ORDER BY id DESC LIMIT 2;
CREATE VIEW leader AS SELECT k, m FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY id) = 1;
CREATE VIEW top_entry AS SELECT k, max(m['a']) AS a, count_if(cardinality(m) > 1) AS n FROM t GROUP BY k HAVING count(m) > 0;
-- tick: rows
INSERT INTO t VALUES (1, 1, MAP('a', 1)), (2, 1, MAP('a', 2, 'b', 2)), (3, 2, NULL), (4, 2, MAP('c', 1)), (5, NULL, MAP('a', 9));
-- tick: upserts move a row to another group
UPSERT INTO t VALUES (2, 2, MAP('a', 2, 'b', 2)), (4, 2, MAP('c', 2)), (6, 1, MAP('a', 0));
-- tick: keys go
DELETE KEYS FROM t VALUES (6), (5);
UPSERT INTO t VALUES (1, 1, NULL);
