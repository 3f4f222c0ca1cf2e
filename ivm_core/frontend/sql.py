"""The SQL door: a SELECT in Spark's dialect becomes a plan.

sqlglot parses and qualifies; what this build does not maintain is refused by
`frontend.refusals` before anything is built, so that the builder meets only what it knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import OptimizeError, ParseError, SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from ivm_core.frontend.builder import Builder
from ivm_core.frontend.dialect import Verbatim
from ivm_core.frontend.positions import Positions
from ivm_core.frontend.refusals import refuse_unsupported
from ivm_core.frontend.semi_joins import with_exists
from ivm_core.frontend.spelling import folded, remember_spelling
from ivm_core.frontend.time_windows import with_window_columns
from ivm_core.frontend.windows import with_named_windows
from ivm_core.model.errors import SqlError, UnknownName, Unsupported
from ivm_core.plan.nodes import CLOCKS, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ivm_core.model.schema import Schema


@dataclass(frozen=True)
class ParsedView:
    """A view's plan, with output columns named as the user wrote them."""

    plan: Node
    reads: tuple[str, ...]


def parse_statement(sql: str, where: str) -> exp.Expr:
    """One SQL statement as a tree; SqlError with line and column for anything else."""
    try:
        statements = [tree for tree in sqlglot.parse(sql, dialect=Verbatim) if tree is not None]
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        word = first.get("highlight") or ""
        column = first.get("col")
        raise SqlError(
            f"the SQL does not parse: {first.get('description') or error}",
            where=f"{where}: {(first.get('start_context') or '')[-40:]}»{word}«",
            fix="write one SELECT statement in Spark SQL",
            line=first.get("line"),
            column=None if column is None else max(column - len(word) + 1, 1),
        ) from error
    except SqlglotError as error:
        raise SqlError(
            f"the SQL does not parse: {error}", where=where, fix="write one Spark SQL SELECT"
        ) from error
    if len(statements) != 1:
        raise SqlError(
            f"{len(statements)} statements where one SELECT is expected",
            where=where,
            fix="register one view per SELECT",
        )
    return statements[0]


def parse_view(
    sql: str,
    catalog: Mapping[str, Schema],
    where: str,
    judge: Callable[[tuple[str, ...]], object] | None = None,
) -> ParsedView:
    """The plan of a SELECT over the relations of the catalog.

    Raises SqlError for what does not parse, UnknownName for a name the catalog does not have,
    Unsupported for SQL that is not maintained. `judge` is asked about the text, given the names of
    the relations in it, before its columns are looked at here: its messages come first.
    """
    tree = parse_statement(sql, where)
    positions = Positions(sql)
    refuse_unsupported(tree, where, positions)
    known = {folded(name): name for name in catalog}
    reads = _tables(tree, known, where, positions)
    _refuse_unnamed(tree, where, positions)
    if judge is not None:
        judge(reads)
    tree = with_window_columns(with_named_windows(with_exists(tree, where), where))
    remember_spelling(tree)
    schema: dict[str, object] = {
        folded(name): {folded(field.name): field.type.ddl for field in relation}
        for name, relation in catalog.items()
    }
    # names are in lower case already; what else is in them, such as quotes, is theirs
    mapping = MappingSchema(schema, dialect=Verbatim, normalize=False)
    try:
        qualified = qualify(tree, schema=mapping, dialect=Verbatim)
    except OptimizeError as error:
        raise UnknownName(
            str(error), where=where, fix="check the column names against the sources' schemas"
        ) from error
    plan = Builder(catalog, known, where).query(qualified, {})
    return ParsedView(plan, tuple(sorted(plan.relations - set(CLOCKS))))


def _tables(
    tree: exp.Expr, known: Mapping[str, str], where: str, positions: Positions
) -> tuple[str, ...]:
    """The relations that are named; UnknownName for one that is neither relation nor CTE."""
    ctes = {folded(cte.alias) for cte in tree.find_all(exp.CTE)}
    found: dict[str, None] = {}
    for table in tree.find_all(exp.Table):
        name = folded(table.name)
        if not table.db and name in known:
            found[known[name]] = None
        elif table.db or name not in ctes:
            there = ", ".join(sorted(known.values())) or "none yet"
            raise UnknownName(
                f"{table.sql(dialect='spark')} is neither a source nor a view of this flow",
                where=f"{where}, {positions.find(table)}",
                fix=f"register it first, or use one of: {there}",
            )
    return tuple(found)


def _refuse_unnamed(tree: exp.Expr, where: str, positions: Positions) -> None:
    """Output columns are stored, so they need names; Spark's own would be their text."""
    query: exp.Expr = tree
    while not isinstance(query, exp.Select):
        query = query.this
    for item in query.expressions:
        if (not item.is_star and not item.output_name) or isinstance(item, exp.Literal):
            raise Unsupported(
                "an output column without a name",
                position=f"{where}, {positions.find(item)}",
                reason=f"{item.sql(dialect='spark')} names no column",
                rewrite=f"{item.sql(dialect='spark')} AS a_name",
            )
