"""The SQL door: a SELECT in Spark's dialect becomes a plan.

sqlglot parses and qualifies; what this build does not maintain is refused by
`frontend.refusals` before anything is built, so that the builder meets only what it knows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import OptimizeError, ParseError, SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from ivm_core.frontend.builder import Builder
from ivm_core.frontend.dialect import Verbatim
from ivm_core.frontend.field_names import with_field_names
from ivm_core.frontend.negations import with_negations_inside
from ivm_core.frontend.other_ways import (
    as_select,
    with_columns_outside,
    with_generated_names,
    with_grouped_subqueries,
    with_grouping_ids,
    with_lateral_views,
    with_ranges,
    with_star_arguments,
    with_value_names,
    with_window_times,
    without_doubled_parentheses,
    without_orders,
)
from ivm_core.frontend.parser_words import parser_words
from ivm_core.frontend.pivots import without_pivots
from ivm_core.frontend.positions import Positions
from ivm_core.frontend.questions import Ask, Questions, never, visible
from ivm_core.frontend.recursion import circles, has_recursion, without_recursion
from ivm_core.frontend.refusals import refuse_unsupported
from ivm_core.frontend.semi_joins import with_exists
from ivm_core.frontend.spelling import folded, remember_spelling
from ivm_core.frontend.sql_functions import SqlFunction, SqlFunctions
from ivm_core.frontend.struct_stars import with_fields
from ivm_core.frontend.table_functions import with_laterals
from ivm_core.frontend.time_windows import with_times, with_window_columns
from ivm_core.frontend.twins import without_twins
from ivm_core.frontend.unnamed import with_names
from ivm_core.frontend.using_columns import with_using_columns
from ivm_core.frontend.windows import with_named_windows
from ivm_core.model.errors import SqlError, UnknownName, Unsupported
from ivm_core.operators.sql import text_of
from ivm_core.plan.nodes import CLOCKS, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ivm_core.frontend.unnamed import Given
    from ivm_core.model.schema import Schema


MAX_LEVEL = re.compile(r"\bMAX\s+RECURSION\s+LEVEL\s+\d+", re.IGNORECASE)


@dataclass(frozen=True)
class ParsedView:
    """A view's plan, with output columns named as the user wrote them."""

    plan: Node
    reads: tuple[str, ...]


def too_deep(where: str) -> SqlError:
    """That a text has more levels than can be compiled."""
    return SqlError(
        "the SQL is nested too deeply", where=where, fix="split the query into several views"
    )


def parse_statement(sql: str, where: str) -> exp.Expr:
    """One SQL statement as a tree; SqlError with line and column for anything else."""
    try:
        statements = [tree for tree in sqlglot.parse(sql, dialect=Verbatim) if tree is not None]
    except ParseError as error:
        if MAX_LEVEL.search(sql):
            raise Unsupported(
                "MAX RECURSION LEVEL",
                position=where,
                reason="beyond that level Spark fails; a tick that derives from a change doesn't "
                "know at which level a row would come",
                rewrite="leave it out: a recursion without end fails the tick, max_iterations= of "
                "register_views says when; or count levels in a column: WHERE level < n",
            ) from error
        first = error.errors[0] if error.errors else {}
        word = first.get("highlight") or ""
        column = first.get("col")
        raise SqlError(
            f"the SQL does not parse: {parser_words(first.get('description') or str(error), word)}",
            where=f"{where}: {(first.get('start_context') or '')[-40:]}»{word}«",
            fix="write one SELECT statement in Spark SQL",
            line=first.get("line"),
            column=None if column is None else max(column - len(word) + 1, 1),
        ) from error
    except RecursionError as error:
        raise too_deep(where) from error
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
    if isinstance(statements[0], exp.Create):
        # before it is asked whether the view reads itself, which this names
        raise SqlError("a view is a SELECT, not CREATE", where=where, fix="write one SELECT")
    if any(not select.expressions for select in statements[0].find_all(exp.Select)):
        line, column = Positions(sql).empty_select()
        raise SqlError(
            "a SELECT has no columns",
            where=where,
            fix="name what it selects, or write SELECT *",
            line=line,
            column=column,
        )
    return statements[0]


def parse_view(
    sql: str,
    catalog: Mapping[str, Schema],
    where: str,
    judge: Callable[[str, tuple[str, ...], Given], object] | None = None,
    ask: Ask = never,
    functions: Mapping[str, SqlFunction] | None = None,
    recursions: Mapping[str, str] | None = None,
) -> ParsedView:
    """The plan of a SELECT over the relations of the catalog.

    Raises SqlError for what does not parse, UnknownName for a name the catalog does not have,
    Unsupported for SQL that is not maintained. `judge` is asked about the text, given the names of
    the relations in it and of columns that the text doesn't name, before its columns are
    looked at here: its messages come first. `ask` is asked for the columns of parts of it. Calls
    of SQL `functions` are written out. `recursions` are the relations that the statement's
    recursive common table expressions have become.
    """
    tree = as_select(parse_statement(sql, where))
    positions = Positions(sql)
    is_recursive = has_recursion(tree)
    if recursions or (is_recursive and not circles(tree)):
        tree = without_recursion(tree, recursions or {}, where)
    refuse_unsupported(tree, where, positions)
    tree = with_laterals(with_ranges(tree))
    known = {folded(name): name for name in catalog}
    reads = _tables(tree, known, where, positions)
    given = with_names(tree)
    text = sql
    if is_recursive:
        text = text_of(tree)
    if functions:
        tree = SqlFunctions(functions, parse_statement).written_out(tree)
        text = text_of(tree)
    if judge is not None:
        judge(text, reads, given)
    plan = _Planner(catalog, known, where, Questions(ask, reads)).plan(tree)
    return ParsedView(plan, tuple(sorted(plan.relations - set(CLOCKS))))


def refuse_unknown_relations(sql: str, relations: Iterable[str], where: str) -> None:
    """`UnknownName`, with line and column, for what is no relation and stands where one does."""
    known = {folded(name): name for name in relations}
    _tables(parse_statement(sql, where), known, where, Positions(sql))


class _Planner:
    """From a parsed query to its plan."""

    def __init__(
        self,
        catalog: Mapping[str, Schema],
        known: Mapping[str, str],
        where: str,
        questions: Questions,
    ) -> None:
        self._catalog = catalog
        self._questions = questions
        self._known = known
        self._where = where
        schema: dict[str, object] = {
            folded(name): {folded(field.name): field.type.ddl for field in relation}
            for name, relation in catalog.items()
        }
        # names are in lower case already; what else is in them, such as quotes, is theirs
        self._schema = MappingSchema(schema, dialect=Verbatim, normalize=False)

    def plan(self, tree: exp.Expr) -> Node:
        """The plan of a query, whose tree is changed on the way."""
        tree = with_value_names(without_doubled_parentheses(without_orders(tree)))
        tree = with_negations_inside(tree)
        tree = with_columns_outside(tree)
        tree = without_pivots(tree, self._columns_of, self._where, self._questions)
        tree = with_generated_names(tree, self._where, self._questions)
        tree = with_exists(tree, self._columns_of, self._where)
        tree = with_fields(tree, self._catalog, self._known, self._questions)
        tree = with_field_names(with_star_arguments(tree, self._columns_of))
        tree = with_lateral_views(tree, self._where, self._questions)
        tree = with_window_times(with_grouping_ids(with_grouped_subqueries(tree)))
        tree = with_times(with_named_windows(tree, self._where), self._questions)
        tree = with_window_columns(tree)
        remember_spelling(tree)
        try:
            qualified = qualify(tree, schema=self._schema, dialect=Verbatim)
        except OptimizeError as error:
            raise UnknownName(
                str(error),
                where=self._where,
                fix="check the column names against the sources' schemas",
            ) from error
        without_twins(with_using_columns(qualified))
        return Builder(self._catalog, self._known, self._where).query(qualified, {})

    def _columns_of(self, relation: exp.Expr) -> list[str]:
        """The columns of a relation in FROM, given the common table expressions that it sees."""
        query = exp.Select(expressions=[exp.Star()]).from_(relation.copy())
        seen = visible(relation)
        if seen:
            query.set("with_", exp.With(expressions=[each.copy() for each in seen]))
        return list(self.plan(query).columns)


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
