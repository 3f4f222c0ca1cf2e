"""What the SQL door refuses, with the construct, its position, the reason and a way on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend import functions
from ivm_core.frontend.other_ways import ORDERS, is_range, is_star_argument
from ivm_core.frontend.outer import from_clause
from ivm_core.frontend.subquery_parts import (
    BELOW_THE_JOIN,
    NOT_IN_OF_ROWS_THAT_STAY,
    TAKEN_FOR_TRUE,
    conjuncts,
    is_not_in,
)
from ivm_core.model.errors import NotIncremental, SqlError, Unsupported
from ivm_core.operators.calls import WRAPPERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ivm_core.frontend.positions import Positions

NOT_YET = "this version does not maintain it"
NOT_IN_SPARK = "Spark SQL does not have it"
WHEN_READING = "leave it out of the view and apply it when reading the snapshot"
MODIFIERS = (
    ("sample", "TABLESAMPLE"),
    ("match", "MATCH_RECOGNIZE"),
)


@dataclass(frozen=True)
class Finding:
    """A construct that is not maintained."""

    construct: str
    node: exp.Expr
    rewrite: str
    phrase: str = ""
    """Words of the text that stand where the construct does."""
    reason: str = NOT_YET


def refuse_unsupported(tree: exp.Expr, where: str, positions: Positions) -> None:
    """Raise for the first construct that is not maintained; return for SQL that is."""
    if not isinstance(tree, exp.Query):
        raise SqlError(
            f"a view is a SELECT, not {positions.word.upper()}", where=where, fix="write one SELECT"
        )
    for node in tree.walk(bfs=False):
        for finding in _of_query(node):
            _refuse(finding, where, positions)
        for finding in _of_expression(node):
            _refuse(finding, where, positions)
        if isinstance(node, exp.Func):
            _refuse_function(node, where, positions)


def called(node: exp.Expr) -> str:
    """The name of a function call, in lower case."""
    if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous):
        return node.sql_name().lower()
    return node.name.lower()


def _refuse(finding: Finding, where: str, positions: Positions) -> None:
    raise Unsupported(
        finding.construct,
        position=_at(where, positions, finding.node, finding.phrase),
        reason=finding.reason,
        rewrite=finding.rewrite,
    )


def _at(where: str, positions: Positions, node: exp.Expr, phrase: str = "") -> str:
    found = positions.find(node, phrase)
    return f"{where}, {found}" if found else where


def _of_query(node: exp.Expr) -> Iterator[Finding]:
    if isinstance(node, exp.With) and node.args.get("recursive"):
        rewrite = "register it as a view"
        yield Finding("WITH RECURSIVE outside of a flow", node, rewrite, "RECURSIVE")
    if isinstance(node, exp.SetOperation) and node.args.get("by_name"):
        name = node.key.upper()
        rewrite = "list the columns in one order in both branches"
        yield Finding(f"{name} BY NAME", node.expression, rewrite, name, NOT_IN_SPARK)
    if isinstance(node, exp.Join):
        yield from _of_join(node)
    if isinstance(node, exp.Query | exp.Table):
        yield from _of_modifiers(node)
    if node.args.get("limit") and any(node.args.get(key) for key in ORDERS):
        yield Finding("LIMIT of rows that are sorted in parts", node, "use ORDER BY", "LIMIT")
    if isinstance(node, exp.QueryTransform):
        yield Finding("SELECT TRANSFORM", node, "register a function with flow.register_function")
    if isinstance(node, exp.Distinct) and node.args.get("on"):
        rewrite = "GROUP BY the columns and take MIN or MAX of the rest"
        yield Finding("DISTINCT ON", node, rewrite, "DISTINCT")
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Func) and not _is_known(node):
        yield Finding(
            f"the table function {called(node.this)}", node, "push the rows into a source"
        )


def _is_known(table: exp.Table) -> bool:
    """Whether a table function is a range or a generator."""
    return is_range(table) or called(table.this) in functions.GENERATORS


def _of_modifiers(node: exp.Expr) -> Iterator[Finding]:
    for key, construct in MODIFIERS:
        found = node.args.get(key)
        if found:
            part = found[0] if isinstance(found, list) else found
            yield Finding(construct, part, WHEN_READING, construct)
    for key in ("version", "when"):
        if isinstance(node, exp.Table) and node.args.get(key):
            rewrite = "read the snapshot of an older tick with snapshot(…, at=…)"
            yield Finding("time travel of a table", node, rewrite)


def _of_join(node: exp.Join) -> Iterator[Finding]:
    words = [word for word in (node.method, node.side, node.kind) if word]
    phrase = words[0] if words else "JOIN"
    if node.kind == "ASOF" or (node.side and node.side not in ("LEFT", "RIGHT", "FULL")):
        name = " ".join([*words, "JOIN"])
        yield Finding(name, node, "use a LEFT JOIN with a condition", phrase)
    for condition in conjuncts(node.args.get("on")):
        for found in condition.find_all(exp.In):
            negation = found.find_ancestor(exp.Not)
            is_within = negation is not None and negation.find_ancestor(exp.Join) is node
            if found.args.get("query") and is_within and negation is not condition:
                yield Finding(
                    "NOT IN (SELECT …) within a larger condition of a join",
                    found,
                    "write it with AND, in WHERE, or as NOT EXISTS",
                    "IN",
                    TAKEN_FOR_TRUE,
                )
        if node.kind == "ANTI" and is_not_in(condition):
            operand = condition.unnest().this.unnest().this
            right = node.this.alias_or_name
            if any(column.table != right for column in operand.find_all(exp.Column)):
                yield Finding(
                    NOT_IN_OF_ROWS_THAT_STAY, condition, BELOW_THE_JOIN, "IN", TAKEN_FOR_TRUE
                )
    if node.method not in ("", "NATURAL"):
        yield Finding(f"{node.method} JOIN", node, "write the condition with ON", node.method)


def _of_expression(node: exp.Expr) -> Iterator[Finding]:
    if isinstance(node, exp.Parameter | exp.Placeholder):
        yield Finding("a parameter", node, "write the value as a literal")
    if isinstance(node, exp.Any | exp.All) and node.find(exp.Query):
        construct = "a comparison with ANY or ALL of a subquery"
        yield Finding(construct, node, "use EXISTS", "SELECT", NOT_IN_SPARK)
    if isinstance(node, exp.Star) and is_star_argument(node) and not _is_expanded(node):
        yield Finding("* as an argument", node, "name the columns")


def _is_expanded(star: exp.Star) -> bool:
    """Whether the relations are known that the star stands for."""
    holder = star.parent if isinstance(star.parent, exp.Column) else star
    select = star.find_ancestor(exp.Select)
    has_from = select is not None and from_clause(select) is not None
    return has_from and holder.arg_key == "expressions"


def _refuse_function(node: exp.Func, where: str, positions: Positions) -> None:
    name = called(node)
    if name in functions.OPEN_AGGREGATES and not _is_over(node):
        raise NotIncremental(
            f"the aggregate {name}",
            position=_at(where, positions, node),
            reason="its result depends on the order in which Spark meets the rows",
            rewrite=functions.OPEN_AGGREGATES[name],
        )
    if name in functions.GENERATORS and not _is_relation_or_item(node):
        rewrite = f"… FROM … LATERAL VIEW {name}(…) name AS column"
        _refuse(Finding(f"the generator {name}", node, rewrite), where, positions)
    reason, rewrite = _why_not_a_function_of_the_row(name, node)
    if reason:
        raise NotIncremental(
            f"{name}()", position=_at(where, positions, node), reason=reason, rewrite=rewrite
        )


def _is_relation_or_item(call: exp.Expr) -> bool:
    """Whether a generator stands where it makes rows: in FROM, or as an item of a select list."""
    holder = call.parent
    if isinstance(holder, exp.Alias | exp.Aliases):
        holder = holder.parent
    return isinstance(holder, exp.Lateral | exp.Select | exp.Table)


def _is_over(node: exp.Expr) -> bool:
    """Whether a call is the function of a window, which has an order."""
    if called(node) not in functions.ORDERED_BY_WINDOW:
        return False
    part, parent = node, node.parent
    while isinstance(parent, WRAPPERS):
        part, parent = parent, parent.parent
    return isinstance(parent, exp.Window) and parent.this is part


def _why_not_a_function_of_the_row(name: str, node: exp.Func) -> tuple[str, str]:
    if name in functions.RANDOM:
        return (
            "it gives another value at every run, so a view of it has no one meaning",
            "store the random value in the source when the row is made",
        )
    if name in functions.OF_THE_SESSION:
        return (
            "its value depends on the session or on where a row lies, not on the data",
            "write the value as a literal or store it in the source",
        )
    if name in functions.CALLS_OF_JAVA:
        return (
            "nobody knows what the Java method depends on",
            "register a function with flow.register_function(…, deterministic=True)",
        )
    if name == "aes_encrypt" and not _has_fixed_cipher(node):
        return (
            "it draws a random initialisation vector",
            "aes_encrypt(value, key, 'ECB'), or give mode, padding and vector",
        )
    if name in functions.OTHER_CLOCKS:
        return "it reads the clock", "use current_timestamp(), the tick's logical time"
    if name == "unix_timestamp" and not node.expressions:
        return (
            "without an argument it reads the clock while a query runs",
            "unix_timestamp(current_timestamp()), which means the tick's logical time",
        )
    return "", ""


def _has_fixed_cipher(call: exp.Func) -> bool:
    arguments = call.expressions
    return len(arguments) > 4 or (len(arguments) > 2 and arguments[2].name.upper() == "ECB")
