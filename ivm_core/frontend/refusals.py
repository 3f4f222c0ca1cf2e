"""What the SQL door refuses, with the construct, its position, the reason and a way on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.model.errors import NotIncremental, SqlError, Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_YET = "this version maintains filters, inner joins, UNION ALL, GROUP BY and DISTINCT"
SESSION_FUNCTIONS = frozenset(
    "current_user session_user user current_catalog current_database current_schema "
    "current_timezone version input_file_name input_file_block_start "
    "input_file_block_length spark_partition_id monotonically_increasing_id "
    "typeof_session current_role current_path".split()
)
RANDOM_FUNCTIONS = frozenset("rand randn random uuid shuffle randstr uniform".split())
KNOWN_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
GENERATORS = frozenset(
    "explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple "
    "variant_explode variant_explode_outer".split()
)


def position(tree: exp.Expression) -> str:
    """Line and column of the first token below the tree that remembers them."""
    for node in tree.walk():
        if "line" in node.meta:
            start = node.meta["col"] - (node.meta["end"] - node.meta["start"])
            return f"line {node.meta['line']}, column {start}"
    return "position unknown"


def refuse_unsupported(tree: exp.Expression, where: str) -> None:
    """Raise for the first construct that is not maintained; return for SQL that is."""
    if not isinstance(tree, exp.Select | exp.Union | exp.Subquery):
        if isinstance(tree, exp.SetOperation):
            _refuse(tree, tree.key.upper(), where, "EXCEPT and INTERSECT count rows per side")
        raise SqlError(
            f"a view is a SELECT, not {tree.key.upper()}", where=where, fix="write one SELECT"
        )
    for construct, node, rewrite in _constructs(tree):
        _refuse(node, construct, where, rewrite)
    for node in tree.find_all(exp.Func):
        _refuse_function(node, where)


def _refuse(node: exp.Expression, construct: str, where: str, rewrite: str) -> None:
    raise Unsupported(
        construct, position=f"{where}, {position(node)}", reason=NOT_YET, rewrite=rewrite
    )


def _constructs(tree: exp.Expression) -> Iterator[tuple[str, exp.Expression, str]]:
    for node in tree.walk():
        yield from _of_query(node)
        yield from _of_expression(node)


def _of_query(node: exp.Expression) -> Iterator[tuple[str, exp.Expression, str]]:
    if isinstance(node, exp.With) and node.args.get("recursive"):
        yield "WITH RECURSIVE", node, "unroll the levels that you need as joins"
    if isinstance(node, exp.SetOperation) and not isinstance(node, exp.Union):
        yield node.key.upper(), node, "use joins and DISTINCT"
    if isinstance(node, exp.SetOperation) and node.args.get("by_name"):
        yield "UNION BY NAME", node, "list the columns in one order in both branches"
    if isinstance(node, exp.Join):
        yield from _of_join(node)
    for key, construct in (
        ("order", "ORDER BY"),
        ("limit", "LIMIT"),
        ("offset", "OFFSET"),
        ("sort", "SORT BY"),
        ("cluster", "CLUSTER BY"),
        ("distribute", "DISTRIBUTE BY"),
        ("qualify", "QUALIFY"),
        ("windows", "WINDOW"),
        ("laterals", "LATERAL VIEW"),
        ("pivots", "PIVOT"),
        ("sample", "TABLESAMPLE"),
        ("match", "MATCH_RECOGNIZE"),
        ("version", "time travel of a table"),
    ):
        if isinstance(node, exp.Query | exp.Table) and node.args.get(key):
            yield construct, node, "leave it out of the view and apply it when reading the snapshot"
    if isinstance(node, exp.Distinct) and node.args.get("on"):
        yield "DISTINCT ON", node, "GROUP BY the columns and take MIN or MAX of the rest"
    if isinstance(node, exp.Group):
        for key in ("rollup", "cube", "grouping_sets", "all", "totals"):
            if node.args.get(key):
                name = f"GROUP BY {key.upper().replace('_', ' ')}"
                yield name, node, "write one GROUP BY per grouping, joined by UNION ALL"


def _of_join(node: exp.Join) -> Iterator[tuple[str, exp.Expression, str]]:
    if node.side:
        yield f"{node.side} JOIN", node, "use an inner join and UNION ALL the unmatched rows"
    if node.kind in ("SEMI", "ANTI", "OUTER", "ASOF"):
        yield f"{node.kind} JOIN", node, "use an inner join with a DISTINCT side"
    if node.method:
        yield f"{node.method} JOIN", node, "write the condition with ON"
    if node.args.get("using"):
        yield "JOIN … USING", node, "write the condition with ON"


def _of_expression(node: exp.Expression) -> Iterator[tuple[str, exp.Expression, str]]:
    if isinstance(node, exp.Window):
        yield "a window function (OVER)", node, "compute it when reading the snapshot"
    if isinstance(node, exp.Lateral):
        yield "LATERAL", node, "join the relation with ON"
    if isinstance(node, exp.Values):
        yield "VALUES", node, "push the rows into a source"
    if isinstance(node, exp.Parameter | exp.Placeholder):
        yield "a parameter", node, "write the value as a literal"
    if isinstance(node, exp.Query) and _is_in_expression(node):
        yield "a subquery in an expression", node, "join the subquery as a derived table"
    if isinstance(node, KNOWN_AGGREGATES) and isinstance(node.this, exp.Distinct):
        name = f"{node.key.upper()}(DISTINCT …)"
        yield name, node, "aggregate over a SELECT DISTINCT derived table"
    if isinstance(node, exp.AggFunc) and not isinstance(node, KNOWN_AGGREGATES):
        yield f"the aggregate {node.sql_name()}", node, "use COUNT, SUM, AVG, MIN or MAX"
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Func):
        yield "a table function", node, "push the rows into a source"


def _is_in_expression(node: exp.Expression) -> bool:
    parent = node.parent
    if isinstance(parent, exp.Subquery):
        return _is_in_expression(parent)
    if parent is None or isinstance(parent, exp.SetOperation | exp.CTE | exp.From):
        return False
    return not (isinstance(parent, exp.Join) and parent.this is node)


def _refuse_function(node: exp.Func, where: str) -> None:
    name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).casefold()
    at = f"{where}, {position(node)}"
    if name in RANDOM_FUNCTIONS or isinstance(node, exp.Rand | exp.Randn | exp.Uuid):
        raise NotIncremental(
            f"{name}()",
            position=at,
            reason="it gives another value at every run, so a view of it has no one meaning",
            rewrite="store the random value in the source when the row is made",
        )
    if name in SESSION_FUNCTIONS:
        raise NotIncremental(
            f"{name}()",
            position=at,
            reason="its value depends on the session or on where a row lies, not on the data",
            rewrite="write the value as a literal or store it in the source",
        )
    if name == "unix_timestamp" and not node.args.get("this") and not node.expressions:
        raise NotIncremental(
            "unix_timestamp() without argument",
            position=at,
            reason="it reads the clock while a query runs",
            rewrite="unix_timestamp(current_timestamp()), which means the tick's logical time",
        )
    if name in GENERATORS or isinstance(node, exp.Explode | exp.Posexplode | exp.Inline):
        _refuse(node, f"the generator {name}", where, "unnest the array before it is pushed")
