-- SQL that means nothing here: a UserError with the place, and Spark's own words where it has some.

-- refused: SqlError | does not parse | line 1, column 15
SELECT FROM t WHERE;
-- refused: SqlError | does not parse | line 2, column
SELECT id
FROM t WHERE (x > 1;
-- refused: SqlError | does not parse
SELECT 'unfinished FROM t;
-- refused: SqlError | a view is a SELECT, not INSERT
INSERT INTO t SELECT * FROM t;
-- refused: SqlError | a view is a SELECT, not CREATE
CREATE TABLE x AS SELECT 1 AS one;
-- refused: SqlError | a view is a SELECT, not CREATE
CREATE VIEW refused AS SELECT 1 AS one;
-- refused: SqlError | a view is a SELECT, not DELETE
DELETE FROM t;
-- refused: SqlError | 2 statements
SELECT id FROM t; SELECT id FROM u;
-- refused: UnknownName | nowhere is neither a source nor a view | line 2, column 6 | use one of: t, u
SELECT id
FROM nowhere;
-- refused: UnknownName | other.t is neither a source nor a view | line 1, column
SELECT id FROM other.t;
-- refused: UnknownName | nope | Did you mean
SELECT nope FROM t;
-- refused: UnknownName | z | Did you mean
SELECT z.id FROM t;
-- refused: UnknownName | no_such_function
SELECT no_such_function(id) AS x FROM t;
-- refused: UserError | ambiguous
SELECT id FROM t, u;
-- refused: UserError | MISSING_AGGREGATION
SELECT id, COUNT(*) AS n FROM t GROUP BY s;
-- refused: UserError | MISSING_GROUP_BY
SELECT id, COUNT(*) AS n FROM t;
-- refused: UserError | DATATYPE_MISMATCH
SELECT id FROM t WHERE x;
-- refused: UserError | NESTED_AGGREGATE_FUNCTION
SELECT SUM(SUM(x)) AS n FROM t;
-- refused: UserError | 
SELECT id, x FROM t UNION ALL SELECT id FROM u;
-- refused: UnknownName | c
SELECT * FROM (WITH c AS (SELECT id FROM t) SELECT id FROM c) q JOIN c ON q.id = c.id;
-- refused: DuplicateName | two columns are called 'id'
SELECT t.id, u.id FROM t JOIN u ON t.id = u.id;
-- refused: DuplicateName | two columns are called
SELECT * FROM t JOIN u ON t.id = u.id;
-- refused: InvalidName | has a space in it
SELECT id AS `the id` FROM t;
-- refused: InvalidName | _weight
SELECT id AS _weight FROM t;
-- refused: InvalidName | _tick
SELECT id, x AS _tick FROM t;
-- refused: UserError | rank
SELECT rank() AS r FROM t;
-- refused: UserError | GROUPING
SELECT grouping(s) AS g FROM t GROUP BY s;
-- refused: UserError | w
SELECT id, SUM(x) OVER w AS n FROM t;
