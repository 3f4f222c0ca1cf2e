-- Expressions of every kind: one output row per input row.

-- case: numbers under ANSI
CREATE SOURCE t (id INT, a INT, b BIGINT, d DECIMAL(10, 2), x DOUBLE, f FLOAT) PRIMARY KEY (id);
CREATE VIEW arithmetic AS
SELECT id, a + b AS plus, a - 1 AS minus, a * d AS times, a / 4 AS quotient, a DIV 4 AS whole,
  a % 3 AS rest, -b AS negated, a & 6 AS bits, ~a AS flipped, pmod(a, 3) AS pm
FROM t;
CREATE VIEW rounded AS
SELECT id, round(d, 1) AS r, bround(d) AS br, floor(x) AS fl, ceil(d) AS ce, abs(a) AS ab,
  sign(x) AS sg, CAST(d AS INT) AS i, CAST(x AS DECIMAL(14, 3)) AS dd, x * 0.1 AS tenth,
  CAST(f AS DOUBLE) AS wide, CAST(x AS FLOAT) AS narrow, greatest(a, b, 3) AS g, least(d, 0) AS l
FROM t;
-- tick: ordinary, NULL and extreme values
INSERT INTO t VALUES (1, 7, 5000000000, 12.34, 1.5, 0.1), (2, NULL, NULL, NULL, NULL, NULL);
INSERT INTO t VALUES (3, -7, -1, -0.05, -0.0, -0.0), (4, 2147483647, 0, 99999999.99, 1e10, 3e30);
-- tick: an edit and a deletion
UPSERT INTO t VALUES (1, 8, 5000000000, 12.35, 2.5, 0.1), (2, 0, 0, 0, 0, 0);
DELETE KEYS FROM t VALUES (4);
-- tick: an overflow
-- fails: ARITHMETIC_OVERFLOW
INSERT INTO t VALUES (5, -2147483648, 1, 0, 0, 0);
-- tick: after it
INSERT INTO t VALUES (5, -2147483647, 1, 0, 0, 0);

-- case: strings, patterns and JSON
CREATE SOURCE t (id INT, s STRING, p STRING, js STRING) PRIMARY KEY (id);
CREATE VIEW strings AS
SELECT id, upper(s) AS u, length(s) AS n, substring(s, 2, 2) AS mid, s || '-' || p AS joined,
  concat_ws(',', s, p, NULL) AS ws, trim(BOTH 'x' FROM s) AS trimmed, lpad(s, 5, '*') AS padded,
  replace(s, 'a', 'b') AS replaced, split(s, ',') AS parts, regexp_replace(s, '([a-z])', '<$1>') AS rx,
  regexp_extract(s, '(\\w)(\\w)', 2) AS second, 'it''s \'q\' \\ "d"' AS quoted, reverse(s) AS back,
  position('a' IN s) AS pos, initcap(p) AS ic, translate(s, 'abc', 'xyz') AS tr, md5(s) AS h,
  to_char(id, '099') AS padded_number, format_string('%05d|%s', id, s) AS fmt
FROM t;
CREATE VIEW extracted AS
SELECT id, get_json_object(js, '$.a.b[1]') AS deep, get_json_object(js, '$["c d"]') AS spaced,
  from_json(js, 'a STRUCT<b: ARRAY<INT>>, n INT').a.b AS parsed,
  to_json(struct(id, s AS Name, length(p))) AS made, to_json(named_struct('K', p)) AS named
FROM t;
-- tick: texts
INSERT INTO t VALUES (1, 'abc', 'the end', '{"a": {"b": [1, 2]}, "c d": "z", "n": 4}');
INSERT INTO t VALUES (2, 'xx', NULL, 'no json'), (3, NULL, '', NULL), (4, '日本,ü', 'ß', '{}');
-- tick: changes
UPSERT INTO t VALUES (2, 'xax', 'p', '{"a": null}'), (4, '日本', 'ß', '{"a": {"b": []}}');
DELETE KEYS FROM t VALUES (1);

-- case: dates and times
CREATE SOURCE t (id INT, d DATE, ts TIMESTAMP, n TIMESTAMP_NTZ) PRIMARY KEY (id);
CREATE VIEW dates AS
SELECT id, d + 1 AS tomorrow, date_sub(d, 31) AS month_ago, d + INTERVAL 1 MONTH AS later,
  datediff(d, DATE '2024-01-01') AS days, dateadd(WEEK, 2, d) AS fortnight, last_day(d) AS last,
  trunc(d, 'MM') AS month, year(d) * 100 + month(d) AS ym, date_format(d, 'yyyy/MM EEE') AS fmt,
  extract(WEEK FROM d) AS week, to_date('31.01.2024', 'dd.MM.yyyy') AS parsed,
  add_months(d, -1) AS am, datediff(MONTH, d, ts) AS months, dayofweek(d) AS dow
FROM t;
CREATE VIEW times AS
SELECT id, date_trunc('HOUR', ts) AS hour, ts - INTERVAL '90' MINUTE AS earlier, hour(ts) AS h,
  CAST(ts AS DATE) AS day, unix_micros(ts) AS us, CAST(ts AS STRING) AS text, n + INTERVAL 1 DAY AS n1,
  CAST(n AS TIMESTAMP) AS zoned, CAST(ts AS TIMESTAMP_NTZ) AS unzoned, n = CAST(ts AS TIMESTAMP_NTZ) AS same,
  from_utc_timestamp(ts, 'Europe/Berlin') AS berlin, timestampdiff(HOUR, ts, TIMESTAMP '2024-02-01 00:00:00') AS hours
FROM t;
-- tick: ends of months, leap days, before the epoch
INSERT INTO t VALUES (1, '2024-01-31', '2024-01-31 10:11:12.123456', '2024-02-29 23:59:59.999999');
INSERT INTO t VALUES (2, '1969-12-31', '1969-12-31 23:59:59.999999', '1900-01-01 00:00:00'), (3, NULL, NULL, NULL);
-- tick: changes
UPSERT INTO t VALUES (1, '2024-02-29', '2024-03-31 01:30:00', '2024-03-31 01:30:00'), (3, '0001-03-01', '1582-10-15 00:00:00', '9999-11-30 23:59:59');
DELETE KEYS FROM t VALUES (2);

-- case: arrays, structs and functions over them
CREATE SOURCE t (id INT, xs ARRAY<INT>, p STRUCT<a: INT, b: STRING>, ps ARRAY<STRUCT<a: INT, b: DOUBLE>>) PRIMARY KEY (id);
CREATE VIEW arrays AS
SELECT id, xs, size(xs) AS n, get(xs, 0) AS first, transform(xs, x -> x * id) AS scaled,
  filter(xs, (x, i) -> x > i) AS kept, aggregate(xs, 0, (acc, x) -> acc + x) AS total,
  exists(xs, x -> x = 2) AS has_two, array_distinct(xs) AS uniq, sort_array(xs, false) AS sorted,
  array_contains(xs, 1) AS has_one, transform(xs, id -> id + 1) AS shadowed, array(1, id)[1] AS second,
  zip_with(xs, xs, (L, r) -> l + R) AS doubled, sequence(1, id) AS seq, concat(xs, array(9)) AS longer
FROM t;
CREATE VIEW structs AS
SELECT id, p, p.a, t.p.b AS pb, ps.a AS all_a, transform(ps, e -> e.b / 2) AS halves,
  struct(id, p.a, xs) AS remade, named_struct('X', id) AS n, struct(p.b AS Z, id + 1) AS m,
  (id, xs) AS pair, arrays_zip(xs, array(1)) AS zipped, map('k', id)['k'] AS looked_up
FROM t;
-- tick: values, empty ones, NULLs inside and outside
INSERT INTO t VALUES (1, ARRAY(1, 2, 2), STRUCT(1, 'x'), ARRAY(STRUCT(1, 0.5), STRUCT(NULL, -0.0)));
INSERT INTO t VALUES (2, ARRAY(), STRUCT(NULL, NULL), ARRAY()), (3, NULL, NULL, NULL), (4, ARRAY(NULL, 1), NULL, ARRAY(NULL));
-- tick: changes inside
UPSERT INTO t VALUES (1, ARRAY(2, 1, 2), STRUCT(1, 'y'), ARRAY(STRUCT(1, 0.5), STRUCT(NULL, 0.0))), (3, ARRAY(3), STRUCT(3, NULL), NULL);
DELETE KEYS FROM t VALUES (4);

-- case: all fields of a struct
CREATE SOURCE t (id INT, s STRUCT<a: INT, B: STRING>, items ARRAY<STRUCT<sku: STRING, qty: INT>>, j STRING);
CREATE VIEW alone AS SELECT s.* FROM t;
CREATE VIEW beside AS SELECT id, t.s.*, id + 1 AS more FROM t WHERE s.a > 0;
CREATE VIEW exploded AS SELECT id, i.* FROM t LATERAL VIEW explode(items) e AS i;
CREATE VIEW parsed AS SELECT q.id, v.* FROM (SELECT id, from_json(j, 'page STRING, ms INT') AS v FROM t) AS q;
CREATE VIEW longer AS SELECT id, struct(s.*, id AS c) AS s FROM t;
CREATE VIEW shorter AS SELECT id, s.* EXCEPT (a) FROM t;
CREATE VIEW newest AS SELECT id, r.* FROM (SELECT id, MAX(s) AS r FROM t GROUP BY id);
CREATE VIEW common AS WITH c AS (SELECT id, struct(id AS x, s) AS v FROM t) SELECT v.*, v.s.* FROM c;
-- tick: rows
INSERT INTO t VALUES (1, STRUCT(1, 'x'), ARRAY(STRUCT('p', 1), STRUCT('q', NULL)), '{"page":"a","ms":5}'), (1, STRUCT(2, NULL), NULL, 'no'), (2, NULL, ARRAY(), NULL);
-- tick: changes
DELETE FROM t VALUES (1, STRUCT(2, NULL), NULL, 'no');
INSERT INTO t VALUES (2, STRUCT(NULL, 'y'), ARRAY(STRUCT('r', 2)), '{"ms":7}');

-- case: parts of a variant
CREATE SOURCE t (id INT, j STRING);
CREATE VIEW parts AS SELECT id, try_parse_json(j):a.b::INT AS b, try_parse_json(j):xs[0]::STRING AS x, try_parse_json(j):['a key']::STRING AS k FROM t;
CREATE VIEW counts AS SELECT try_parse_json(j):a.b::INT AS b, COUNT(*) AS n FROM t GROUP BY try_parse_json(j):a.b::INT;
-- tick: rows
INSERT INTO t VALUES (1, '{"a":{"b":1},"xs":["u","v"],"a key":"z"}'), (2, '{"a":{"b":1}}'), (3, 'no json'), (4, NULL);
-- tick: changes
DELETE FROM t VALUES (2, '{"a":{"b":1}}');
INSERT INTO t VALUES (3, '{"a":{},"xs":[]}');

-- case: whole relations and columns of one name in derived tables
CREATE SOURCE t (id INT, x INT);
CREATE SOURCE u (id INT, x INT);
CREATE VIEW whole AS TABLE t;
CREATE VIEW fixed AS VALUES (1, 'a'), (2, NULL);
CREATE VIEW counted AS SELECT COUNT(*) AS n FROM (SELECT * FROM t JOIN u ON t.id = u.id);
CREATE VIEW some_of_it AS SELECT q.total FROM (SELECT t.id, u.id, t.x + u.x AS total FROM t JOIN u ON t.id = u.id) AS q;
CREATE VIEW through_cte AS WITH c AS (SELECT t.id, u.id, u.x AS y FROM t LEFT JOIN u ON t.id = u.id) SELECT y, COUNT(*) AS n FROM c GROUP BY y;
CREATE VIEW named_outside AS SELECT * FROM (SELECT * FROM t JOIN u ON t.id = u.id) AS q(a, b, C, d);
-- tick: rows
INSERT INTO t VALUES (1, 10), (2, NULL), (2, 20), (NULL, 5);
INSERT INTO u VALUES (1, 1), (2, 2), (2, 2), (3, 3);
-- tick: changes
DELETE FROM u VALUES (2, 2), (1, 1);
INSERT INTO t VALUES (3, 30);

-- case: columns that the text does not name
CREATE SOURCE t (k STRING, x INT);
-- means: SELECT k, COUNT(*) AS count, SUM(x + 1) AS sum_x_1, 'text' AS text, MAX(x) AS max_x, COUNT(*) AS count_2 FROM t GROUP BY k
CREATE VIEW groups AS SELECT k, COUNT(*), SUM(x + 1), 'text', MAX(x), COUNT(*) FROM t GROUP BY k ORDER BY COUNT(*);
-- means: SELECT MAX(x) - MIN(x) AS max_x_min_x FROM t
CREATE VIEW spans AS SELECT MAX(x) - MIN(x) FROM t;
CREATE VIEW outside AS SELECT * FROM (SELECT k AS key, COUNT(*) FROM t GROUP BY key ORDER BY COUNT(*) DESC, key LIMIT 2) AS q(a, b);
-- tick: rows
INSERT INTO t VALUES ('a', 1), ('a', 2), ('b', 3), (NULL, 4), ('c', NULL);
-- tick: changes
DELETE FROM t VALUES ('a', 1), ('b', 3);
INSERT INTO t VALUES ('c', 5), ('c', 5);

-- case: operators on bits bind as Spark's do
CREATE SOURCE b (x INT, y INT, z BIGINT);
CREATE VIEW shifted AS SELECT x | 1 << 3 AS a, x & y << 1 AS c, x ^ y & 3 | 4 AS d, z >>> 1 AS e, z >> 1 + 1 AS f, z << 1 << 2 AS g, x | y >>> 1 & 7 AS h, ~x & y AS i FROM b WHERE x | y > 2 AND z >>> 60 >= 0;
CREATE VIEW matched AS SELECT l.x, r.y FROM b AS l JOIN b AS r ON l.x << 1 | 1 = r.y | 1;
-- tick: rows
INSERT INTO b VALUES (1, 2, -1), (3, 5, 8), (2, 5, 9223372036854775807), (NULL, 1, 4), (0, 0, -8);
-- tick: others
DELETE FROM b VALUES (3, 5, 8), (0, 0, -8);
INSERT INTO b VALUES (7, 3, -9223372036854775808), (1, 2, NULL);

-- case: names of fields are those of the text
CREATE SOURCE t (k INT, x INT);
CREATE VIEW s2 AS SELECT k, to_json(struct(max(x), k)) AS s FROM t GROUP BY k;
CREATE VIEW s4 AS SELECT to_json(struct(rank() OVER (ORDER BY k), k)) AS s FROM t;
CREATE VIEW s5 AS SELECT to_json(struct((SELECT max(x) FROM t), k)) AS s FROM t;
CREATE VIEW s6 AS SELECT to_json(struct(k + 1, count(*))) AS s FROM t GROUP BY k + 1;
CREATE VIEW s14 AS SELECT to_json(struct(k)) AS z FROM t a FULL JOIN t b USING (k);
CREATE VIEW s13 AS SELECT to_json(struct(k, x)) AS z FROM (SELECT k FROM t) NATURAL JOIN t;
CREATE VIEW s15 AS SELECT to_json(struct(window, count(*) AS n)) AS z FROM (SELECT TIMESTAMP'2024-01-01 00:00:00' AS ts FROM t) GROUP BY window(ts, '1 day');
CREATE VIEW s3 AS SELECT k, typeof(struct(count(*), k)) AS s FROM t GROUP BY k;
CREATE VIEW s11 AS SELECT to_json(arrays_zip(collect_list(k), collect_list(k))) AS z FROM t GROUP BY k, x;
CREATE VIEW s16 AS SELECT k, struct(max(x), min(x)) AS s FROM t GROUP BY k;
CREATE VIEW s17 AS SELECT k, struct(max(x)).col1 AS s FROM t GROUP BY k;
CREATE VIEW s18 AS SELECT k, (SELECT struct(max(x), min(x)) FROM t AS b WHERE b.k = a.k) AS s FROM t AS a;
CREATE VIEW s19 AS SELECT to_json(arrays_zip(a, b)) AS j FROM (SELECT array(k) AS a, array(x) AS b FROM t);
CREATE VIEW s20 AS SELECT to_json(struct(*)) AS j, to_json(struct(t.k, (x), K + 1, *)) AS j2, arrays_zip(array(k), sequence(1, 2)) AS z, transform(array(k), q -> struct(q, q + 1)) AS tr FROM t;
CREATE VIEW s21 AS SELECT to_json(struct(s.K, s, s.k + 1)) AS j FROM (SELECT struct(k, x AS Y) AS s FROM t);
-- tick: one
INSERT INTO t VALUES (1, 1), (2, 5), (NULL, 6), (NULL, 7), (9, 1), (9, 2);
-- tick: two
INSERT INTO t VALUES (3, 3), (NULL, 6);
-- tick: three
DELETE FROM t VALUES (9, 1);
