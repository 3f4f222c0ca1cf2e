"""What SQL is maintained and how: the rows of docs/support.md, with the verdicts of the compiler.

    python -m tests.sql.support          writes the page anew

Every row names a construct, a query that has it, and the case that shows it exact tick by tick.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ivm_core import IncrementalFlow, IvmError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "support.md"
SOURCES = {
    "t": "id INT, k INT, x INT, d DOUBLE, s STRING, ts TIMESTAMP, xs ARRAY<INT>, "
    "p STRUCT<a: INT, b: STRING>",
    "u": "k INT, y INT, s STRING",
}
CONSTRUCTS = """
Rows
  filter, any deterministic expression | SELECT id FROM t WHERE x > 1 AND s LIKE 'a%' | filter.sql
  projection, functions over arrays, JSON, time | SELECT id, transform(xs, e -> e + 1) AS ys FROM t | project.sql
  UNION ALL | SELECT id FROM t UNION ALL SELECT k FROM u | union_all.sql
  LATERAL VIEW, explode, posexplode, inline, stack | SELECT id, e FROM t LATERAL VIEW explode(xs) l AS e | generators.sql
  a generator in the select list | SELECT id, explode(xs) AS e FROM t | lateral.sql
  p.*, all fields of a struct | SELECT id, p.* FROM t | project.sql
  texts by a collation in conditions, ON and ORDER BY | SELECT id FROM t WHERE s COLLATE UTF8_LCASE = 'a' | collations.sql
  columns of type MAP | SELECT id, map('a', x) AS m FROM t | maps.sql
  operators of a pipe | FROM t |> WHERE x > 1 |> AGGREGATE COUNT(*) AS n GROUP BY k | pipes.sql
  VALUES, range, constants | SELECT t.id FROM t JOIN (VALUES (1), (2)) AS v(k) ON t.k = v.k | generators.sql
  UNPIVOT | SELECT * FROM (SELECT id, k, x FROM t) UNPIVOT (v FOR n IN (k, x)) | pivots.sql
  current_timestamp(), current_date() | SELECT id FROM t WHERE ts > current_timestamp() - INTERVAL 1 HOUR | logical_time.sql
Joins
  inner join by equality, USING, NATURAL, self-join | SELECT t.id, u.y FROM t JOIN u USING (k) | join.sql
  inner join by <=> | SELECT t.id, u.y FROM t JOIN u ON t.k <=> u.k | join.sql
  inner join on other conditions, cross join | SELECT t.id, u.y FROM t JOIN u ON t.x < u.y | join.sql
  LEFT, RIGHT, FULL JOIN by equality | SELECT t.id, u.y FROM t FULL JOIN u ON t.k = u.k | outer_joins.sql
  LEFT, RIGHT, FULL JOIN on other conditions | SELECT t.id, u.y FROM t LEFT JOIN u ON t.x < u.y | outer_joins.sql
  LEFT SEMI, LEFT ANTI JOIN | SELECT t.id FROM t LEFT ANTI JOIN u ON t.k = u.k | outer_joins.sql
  LATERAL subquery | SELECT t.id, l.y FROM t, LATERAL (SELECT y FROM u WHERE u.k = t.k ORDER BY y LIMIT 2) AS l | lateral.sql
Subqueries
  EXISTS, NOT EXISTS, IN | SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k) | subqueries.sql
  NOT IN | SELECT id FROM t WHERE x NOT IN (SELECT y FROM u) | subqueries.sql
  a scalar subquery, correlated by equality | SELECT id, (SELECT MAX(y) FROM u WHERE u.k = t.k) AS m FROM t | subqueries.sql
  a scalar subquery, not correlated | SELECT id FROM t WHERE x > (SELECT AVG(y) FROM u) | subqueries.sql
  a subquery that asks more: GROUP BY, LIMIT, UNION, other conditions | SELECT id, (SELECT y FROM u WHERE u.k = t.k ORDER BY y LIMIT 1) AS y FROM t | correlated.sql
  subqueries in HAVING and ON | SELECT k, SUM(x) AS s FROM t GROUP BY k HAVING SUM(x) IN (SELECT y FROM u) | other_ways.sql
Groups
  COUNT, SUM, AVG, count_if, FILTER, HAVING | SELECT k, SUM(x) AS s, COUNT(*) FILTER (WHERE x > 1) AS n FROM t GROUP BY k | aggregate.sql
  the global aggregate | SELECT SUM(x) AS s, COUNT(*) AS n FROM t | aggregate.sql
  SUM and AVG of FLOAT and DOUBLE, exact | SELECT k, SUM(d) AS s FROM t GROUP BY k | exact_sums.sql
  MIN, MAX, bool_and, bool_or, any_value | SELECT k, MIN(x) AS m FROM t GROUP BY k | min_max.sql
  DISTINCT aggregates, several at once | SELECT k, COUNT(DISTINCT x) AS n, SUM(DISTINCT id) AS s FROM t GROUP BY k | distinct_aggregates.sql
  collect_list, collect_set, array_agg, listagg | SELECT k, collect_list(x) AS xs FROM t GROUP BY k | other_aggregates.sql
  first, last, approx_percentile | SELECT k, first(x) AS f, approx_percentile(x, 0.5) AS p FROM t GROUP BY k | other_aggregates.sql
  percentile, median, mode, min_by, max_by, bit_*, any other aggregate | SELECT k, median(x) AS m, max_by(id, x) AS b FROM t GROUP BY k | other_aggregates.sql
  INTERVALs in COUNT, SUM, AVG, MIN, MAX, GROUP BY, DISTINCT | SELECT k, AVG(ts - TIMESTAMP '2024-01-01') > INTERVAL '1' DAY AS a FROM t GROUP BY k | intervals.sql
  variances, correlations, regressions, exact | SELECT k, stddev(d) AS s, corr(d, x) AS c FROM t GROUP BY k | other_aggregates.sql
  ROLLUP, CUBE, GROUPING SETS, GROUPING() | SELECT k, s, GROUPING(s) AS g, COUNT(*) AS n FROM t GROUP BY ROLLUP (k, s) | grouping_sets.sql
  PIVOT | SELECT * FROM (SELECT k, s, x FROM t) PIVOT (SUM(x) FOR s IN ('a', 'b')) | pivots.sql
  window(ts, …) tumbling and sliding | SELECT window(ts, '1 hour').start AS w, COUNT(*) AS n FROM t GROUP BY window(ts, '1 hour') | time_windows.sql
  session_window(ts, …) with keys | SELECT k, session_window(ts, '5 minutes').start AS w, COUNT(*) AS n FROM t GROUP BY k, session_window(ts, '5 minutes') | time_windows.sql
Sets
  DISTINCT, UNION | SELECT DISTINCT k, s FROM t | distinct.sql
  INTERSECT, EXCEPT | SELECT k FROM t EXCEPT SELECT k FROM u | set_operations.sql
  INTERSECT ALL, EXCEPT ALL | SELECT k FROM t INTERSECT ALL SELECT k FROM u | set_operations.sql
Windows
  ranks, LAG, LEAD, NTILE, frames, with PARTITION BY | SELECT id, LAG(x) OVER (PARTITION BY k ORDER BY ts) AS p FROM t | windows.sql
  aggregates of the whole partition | SELECT id, SUM(x) OVER (PARTITION BY k) AS s FROM t | windows.sql
  without PARTITION BY: LAG, LEAD, frames of ROWS, places, running COUNT, SUM, MIN, MAX | SELECT id, LAG(x) OVER (ORDER BY ts) AS p, SUM(x) OVER (ORDER BY ts) AS s FROM t | windows.sql
  without PARTITION BY: other frames and functions | SELECT id, NTILE(4) OVER (ORDER BY x) AS q FROM t | windows.sql
  QUALIFY, top-k per group | SELECT id, k FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) <= 3 | windows.sql
  ORDER BY … LIMIT … OFFSET | SELECT id FROM t ORDER BY x DESC LIMIT 10 OFFSET 5 | limits.sql
Recursion
  WITH RECURSIVE … UNION ALL | WITH RECURSIVE r(id, n) AS (SELECT id, 1 FROM t WHERE k IS NULL UNION ALL SELECT t.id, r.n + 1 FROM r JOIN t ON t.k = r.id WHERE r.n < 9) SELECT id, n FROM r | recursion.sql
  WITH RECURSIVE … UNION | WITH RECURSIVE r AS (SELECT id, k FROM t UNION SELECT r.id, t.k FROM r JOIN t ON r.k = t.id) SELECT id, k FROM r | recursion.sql
  WITH RECURSIVE in a subquery or derived table | SELECT id FROM t WHERE x IN (WITH RECURSIVE r(n) AS (SELECT k FROM u UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r) | recursion.sql
Not maintained
  WITH RECURSIVE with columns of the query around, MAX RECURSION LEVEL | SELECT id FROM t WHERE EXISTS (WITH RECURSIVE r(n) AS (SELECT t.x UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r) | unsupported.sql
  sketches | SELECT k, hll_sketch_agg(x) AS h FROM t GROUP BY k | not_incremental.sql
  random functions | SELECT id, rand() AS r FROM t | not_incremental.sql
  values of the session | SELECT id, current_user() AS u FROM t | not_incremental.sql
  TABLESAMPLE | SELECT id FROM t TABLESAMPLE (10 PERCENT) | unsupported.sql
  columns of type VARIANT, INTERVAL, of texts with a collation | SELECT parse_json(s) AS v FROM t | unsupported.sql
"""
COSTS = {
    "incremental": "the change and what it touches",
    "affected keys only": "all rows of the changed keys, or around the change",
    "read in full": "the change, and a relation in full",
    "recomputed": "all rows, when they can be reached",
}
HEAD = """# What SQL is maintained, and how

Made by `python -m tests.sql.support` from the compiler's own verdicts; do not edit. The verdict is the worst that any
change can cause: `explain` says it for a view of yours, node by node. Every case runs tick by tick against Spark's own
answer. [limits.md](limits.md) says what differs from Spark and what costs more than the change,
[functions.md](functions.md) how views call functions of your own.
"""


@dataclass(frozen=True)
class Construct:
    """One row of the table."""

    group: str
    name: str
    sql: str
    test: str

    @property
    def path(self) -> Path:
        """The file of the test."""
        folder = "refusals" if self.group == "Not maintained" else "cases"
        return Path(__file__).with_name(folder) / self.test


def constructs() -> list[Construct]:
    found, group = [], ""
    for line in CONSTRUCTS.strip().splitlines():
        if not line.startswith(" "):
            group = line
            continue
        name, sql, test = (part.strip() for part in line.split(" | "))
        found.append(Construct(group, name, sql, test))
    return found


def page(spark: SparkSession) -> str:
    """The whole page."""
    lines = [HEAD]
    with (
        tempfile.TemporaryDirectory() as folder,
        IncrementalFlow.open(Path(folder) / "flow", spark) as flow,
    ):
        for name, ddl in SOURCES.items():
            flow.register_source(name, ddl)
        group = ""
        for each in constructs():
            if each.group != group:
                group = each.group
                lines += [
                    f"\n## {group}\n",
                    "| construct | verdict | costs | shown by |",
                    "|---|---|---|---|",
                ]
            verdict, cost = judged(flow, each)
            folder_name = each.path.parent.name
            shown = f"`tests/sql/{folder_name}/{each.test}`"
            lines.append(
                f"| {each.name.replace('|', chr(92) + '|')} | {verdict} | {cost} | {shown} |"
            )
    return "\n".join(lines) + "\n"


def judged(flow: IncrementalFlow, construct: Construct) -> tuple[str, str]:
    """Verdict and cost class; for what is refused the reason."""
    try:
        verdict = flow.explain(sql=construct.sql).verdict
    except IvmError as refusal:
        return "refused", str(getattr(refusal, "reason", refusal))
    return verdict, COSTS[verdict]


if __name__ == "__main__":
    from ivm_core.engine.local_spark import local_spark

    PAGE.write_text(page(local_spark()), encoding="utf-8")
