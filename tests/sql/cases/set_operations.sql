-- INTERSECT and EXCEPT, with and without ALL.

-- case: rows on both sides, counted and not
CREATE SOURCE a (x INT, s STRING);
CREATE SOURCE b (x INT, s STRING);
CREATE VIEW common AS SELECT x, s FROM a INTERSECT SELECT x, s FROM b;
CREATE VIEW only_a AS SELECT x, s FROM a EXCEPT SELECT x, s FROM b;
CREATE VIEW common_all AS SELECT x, s FROM a INTERSECT ALL SELECT x, s FROM b;
CREATE VIEW only_all AS SELECT x, s FROM a EXCEPT ALL SELECT x, s FROM b;
CREATE VIEW minus_it AS SELECT x FROM a MINUS SELECT x FROM b;
CREATE VIEW several AS (SELECT x FROM a UNION SELECT x FROM b) EXCEPT (SELECT x FROM a INTERSECT SELECT x FROM b);
CREATE VIEW widened AS SELECT x FROM a INTERSECT SELECT CAST(x AS BIGINT) AS x FROM b;
-- tick: duplicates and NULLs
INSERT INTO a VALUES (1, 'p') * 3;
INSERT INTO a VALUES (2, NULL), (NULL, NULL) * 2;
INSERT INTO b VALUES (1, 'p'), (NULL, NULL), (3, 'q');
-- tick: counts cross
DELETE FROM a VALUES (1, 'p') * 2;
INSERT INTO b VALUES (1, 'p'), (NULL, NULL) * 2;
-- tick: both sides at once
DELETE FROM a VALUES (NULL, NULL);
INSERT INTO a VALUES (3, 'q'), (3, 'q');
DELETE FROM b VALUES (1, 'p') * 2;
-- tick: the right goes
DELETE FROM b VALUES (NULL, NULL) * 3;
DELETE FROM b VALUES (3, 'q');

-- case: rows of set operations that are only counted
CREATE SOURCE a (x INT, s STRING);
CREATE SOURCE b (x INT, s STRING);
CREATE VIEW left_over AS SELECT COUNT(*) AS n FROM (SELECT x FROM a EXCEPT ALL SELECT x FROM b);
CREATE VIEW in_both AS SELECT COUNT(*) AS n FROM (SELECT x, s FROM a INTERSECT ALL SELECT x, s FROM b);
CREATE VIEW ones AS SELECT 1 AS one FROM (SELECT x FROM a EXCEPT ALL SELECT x FROM b);
-- tick: duplicates and NULLs
INSERT INTO a VALUES (1, 'p') * 3;
INSERT INTO a VALUES (NULL, NULL) * 2;
INSERT INTO b VALUES (1, 'p'), (NULL, NULL), (3, 'q');
-- tick: both sides
DELETE FROM a VALUES (1, 'p') * 2;
INSERT INTO b VALUES (NULL, NULL);
