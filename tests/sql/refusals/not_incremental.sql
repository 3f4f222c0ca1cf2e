-- Expressions whose value is not a function of the row: refused as NotIncremental.

-- refused: NotIncremental | rand() | line 1, column 12 | another value at every run
SELECT id, rand() AS r FROM t;
-- refused: NotIncremental | rand() | line 1, column 24
SELECT id FROM t WHERE rand(42) < 0.5;
-- refused: NotIncremental | randn() | line 2, column 5
SELECT
    randn(1) AS r FROM t;
-- refused: NotIncremental | uuid() | line 1, column 8
SELECT uuid() AS u FROM t;
-- refused: NotIncremental | shuffle() | line 1, column 8
SELECT shuffle(xs) AS u FROM t;
-- refused: NotIncremental | random() | line 1, column 12
SELECT SUM(random()) AS u FROM t;
-- refused: NotIncremental | uniform() | line 1, column 8
SELECT uniform(1, 5) AS u FROM t;
-- refused: NotIncremental | aes_encrypt() | line 1, column 8 | initialisation vector
SELECT aes_encrypt(s, '0000111122223333') AS u FROM t;
-- refused: NotIncremental | current_user() | line 1, column 8 | depends on the session
SELECT current_user() AS u FROM t;
-- refused: NotIncremental | current_user()
SELECT current_user AS u FROM t;
-- refused: NotIncremental | session_user() | line 1, column 8
SELECT session_user() AS u FROM t;
-- refused: NotIncremental | current_database() | line 1, column 8
SELECT current_database() AS u FROM t;
-- refused: NotIncremental | current_catalog() | line 1, column 8
SELECT current_catalog() AS u FROM t;
-- refused: NotIncremental | current_timezone() | line 1, column 8
SELECT current_timezone() AS u FROM t;
-- refused: NotIncremental | version() | line 1, column 8
SELECT version() AS u FROM t;
-- refused: NotIncremental | input_file_name() | line 1, column 8
SELECT input_file_name() AS u FROM t;
-- refused: NotIncremental | monotonically_increasing_id() | line 1, column 8
SELECT monotonically_increasing_id() AS u FROM t;
-- refused: NotIncremental | spark_partition_id() | line 1, column 8
SELECT spark_partition_id() AS u FROM t;
-- refused: NotIncremental | unix_timestamp() | line 1, column 8 | reads the clock
SELECT unix_timestamp() AS u FROM t;
-- refused: NotIncremental | reflect() | line 1, column 8
SELECT reflect('java.util.UUID', 'randomUUID') AS u FROM t;
-- refused: NotIncremental | rand() | line 1, column 30
SELECT t.id FROM t JOIN u ON rand() < t.x;
-- refused: NotIncremental | the aggregate hll_sketch_agg
SELECT hll_sketch_agg(x) AS x FROM t;
