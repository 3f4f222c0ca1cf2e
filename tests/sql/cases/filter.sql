-- What WHERE keeps: rows for which the predicate is true, neither false nor NULL.

-- case: predicates of every kind, over NULLs
CREATE SOURCE t (id INT, x INT, s STRING, b BOOLEAN) PRIMARY KEY (id);
CREATE VIEW positive AS SELECT id, x FROM t WHERE x > 0;
CREATE VIEW negated AS SELECT id FROM t WHERE NOT (x > 0);
CREATE VIEW flagged AS SELECT id, b FROM t WHERE b;
CREATE VIEW cased AS
SELECT id FROM t
WHERE CASE WHEN x IS NULL THEN s = 'null x' WHEN x > 5 THEN b ELSE NULL END;
CREATE VIEW liked AS SELECT id, s FROM t WHERE s LIKE 'a%' OR s LIKE '%\\_%' OR s ILIKE 'B';
CREATE VIEW listed AS SELECT id FROM t WHERE x IN (1, 2, NULL) OR s NOT IN ('a', 'b');
CREATE VIEW between_both AS SELECT id FROM t WHERE x BETWEEN -1 AND 1 AND s BETWEEN 'a' AND 'b';
CREATE VIEW null_safe AS SELECT id FROM t WHERE x <=> NULL AND (b IS NOT TRUE OR s <=> 'a');
-- tick: rows of all kinds
INSERT INTO t VALUES (1, 1, 'a', TRUE), (2, NULL, 'null x', FALSE), (3, -1, NULL, NULL);
INSERT INTO t VALUES (4, 7, 'a_b', TRUE), (5, 0, 'B', FALSE), (6, NULL, NULL, NULL);
-- tick: rows move into and out of the views
UPSERT INTO t VALUES (1, NULL, 'a', NULL), (3, 1, 'a', TRUE), (4, 7, 'z', NULL);
DELETE FROM t VALUES (6, NULL, NULL, NULL);
-- tick: a row comes and goes in one tick, another is replaced by itself
INSERT INTO t VALUES (9, 1, 'a', TRUE);
DELETE FROM t VALUES (9, 1, 'a', TRUE), (5, 0, 'B', FALSE);
INSERT INTO t VALUES (5, 0, 'B', FALSE);
-- tick: all go
DELETE KEYS FROM t VALUES (1), (2), (3), (4), (5);

-- case: duplicates keep their number
CREATE SOURCE t (x INT, s STRING);
CREATE VIEW kept AS SELECT s, x FROM t WHERE x <> 2;
CREATE VIEW nothing AS SELECT s FROM t WHERE FALSE;
CREATE VIEW everything AS SELECT x FROM t WHERE TRUE OR x > 1;
-- tick: three of one row, two of another
INSERT INTO t VALUES (1, 'a') * 3, (2, 'a') * 2, (NULL, 'a'), (3, NULL) * 2;
-- tick: some go, some come again
INSERT INTO t VALUES (1, 'a') * 2, (2, 'b') * 5;
DELETE FROM t VALUES (1, 'a') * 4, (2, 'b') * 4, (3, NULL);
-- tick: nothing is left of most
DELETE FROM t VALUES (1, 'a'), (3, NULL), (2, 'a') * 2, (2, 'b');

-- case: a predicate that raises fails the tick, and the flow goes on
CREATE SOURCE t (id INT, x INT) PRIMARY KEY (id);
CREATE VIEW inverse AS SELECT id FROM t WHERE 10 / x > 2;
-- tick: fine
INSERT INTO t VALUES (1, 1), (2, 10);
-- tick: a zero
-- fails: DIVIDE_BY_ZERO
INSERT INTO t VALUES (3, 0);
-- tick: the same key without the zero
INSERT INTO t VALUES (3, 2);
-- tick: a zero that goes at once is never looked at
INSERT INTO t VALUES (4, 0), (5, 3);
DELETE FROM t VALUES (4, 0);
