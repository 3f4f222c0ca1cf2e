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

from ivm_core.frontend.refusals import position, refuse_unsupported
from ivm_core.model.errors import SqlError, UnknownName
from ivm_core.operators.sql import column as column_tree
from ivm_core.operators.sql import scalar_of
from ivm_core.plan.nodes import (
    CLOCKS,
    NOW,
    TODAY,
    Aggregate,
    AggregateCall,
    Constant,
    Distinct,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    UnionAll,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ivm_core.model.schema import Schema
    from ivm_core.plan.scalar import Scalar

ORIGINAL = "written"
AGGREGATES: dict[type[exp.Expression], str] = {
    exp.Count: "COUNT",
    exp.Sum: "SUM",
    exp.Avg: "AVG",
    exp.Min: "MIN",
    exp.Max: "MAX",
}


@dataclass(frozen=True)
class ParsedView:
    """A view's plan, with output columns named as the user wrote them."""

    plan: Node
    reads: tuple[str, ...]


def parse_statement(sql: str, where: str) -> exp.Expression:
    """One SQL statement as a tree; SqlError with line and column for anything else."""
    try:
        statements = [tree for tree in sqlglot.parse(sql, dialect="spark") if tree is not None]
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        raise SqlError(
            f"the SQL does not parse: {first.get('description') or error}",
            where=f"{where}, line {first.get('line')}, column {first.get('col')}: "
            f"{first.get('start_context', '')[-40:]}»{first.get('highlight', '')}«",
            fix="write one SELECT statement in Spark SQL",
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


def parse_view(sql: str, catalog: Mapping[str, Schema], where: str) -> ParsedView:
    """The plan of a SELECT over the relations of the catalog.

    Raises SqlError for what does not parse, UnknownName for a name the catalog does not have,
    Unsupported for SQL that is not maintained.
    """
    tree = parse_statement(sql, where)
    refuse_unsupported(tree, where)
    known = {name.casefold(): name for name in catalog}
    for identifier in tree.find_all(exp.Identifier):
        identifier.meta[ORIGINAL] = identifier.this
    _check_tables(tree, known, where)
    schema = {
        name.casefold(): {field.name.casefold(): field.type.ddl for field in relation}
        for name, relation in catalog.items()
    }
    try:
        qualified = qualify(tree, schema=schema, dialect="spark")
    except OptimizeError as error:
        raise UnknownName(
            str(error), where=where, fix="check the column names against the sources' schemas"
        ) from error
    plan = _Builder(catalog, known, where).query(qualified, {})
    return ParsedView(plan, tuple(sorted(plan.relations - set(CLOCKS))))


def _check_tables(tree: exp.Expression, known: Mapping[str, str], where: str) -> None:
    ctes = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        name = table.name.casefold()
        if table.db or (name not in known and name not in ctes):
            written = table.sql(dialect="spark")
            near = ", ".join(sorted(known.values())) or "none yet"
            raise UnknownName(
                f"{written} is neither a source nor a view of this flow",
                where=f"{where}, {position(table)}",
                fix=f"register it first, or use one of: {near}",
            )


class _Builder:
    def __init__(self, catalog: Mapping[str, Schema], known: Mapping[str, str], where: str):
        self._catalog = catalog
        self._known = known
        self._where = where

    def query(self, tree: exp.Expression, ctes: Mapping[str, Node]) -> Node:
        ctes = dict(ctes)
        for cte in tree.ctes if isinstance(tree, exp.Query) else ():
            ctes[cte.alias.casefold()] = self._named(self.query(cte.this, ctes), cte)
        if isinstance(tree, exp.Subquery):
            return self.query(tree.this, ctes)
        if isinstance(tree, exp.Union):
            branches = (self.query(tree.left, ctes), self.query(tree.right, ctes))
            union = UnionAll(branches)
            return Distinct(union) if tree.args.get("distinct") else union
        if isinstance(tree, exp.Select):
            return self._select(tree, ctes)
        raise SqlError(
            f"{tree.key.upper()} is not a query", where=self._where, fix="write a SELECT"
        )

    @staticmethod
    def _named(node: Node, alias: exp.Expression) -> Node:
        names = alias.alias_column_names
        if not names:
            return node
        columns = zip(names, node.columns, strict=True)
        return Project(node, tuple((name, scalar_of(column_tree(c))) for name, c in columns))

    def _select(self, tree: exp.Select, ctes: Mapping[str, Node]) -> Node:
        node, conditions = self._sources(tree, ctes)
        where = tree.args.get("where")
        if where is not None:
            conditions.append(where.this)
        bound = [_internal(condition) for condition in conditions]
        projections = [
            (_output_name(item, self._declared), _internal(item.unalias()))
            for item in tree.expressions
        ]
        having = tree.args.get("having")
        having_tree = _internal(having.this) if having is not None else None
        group = tree.args.get("group")
        keys = [_internal(key) for key in group.expressions] if group is not None else []
        above = [expression for _, expression in projections]
        above += [having_tree] if having_tree is not None else []
        calls = _aggregate_calls(above)
        if keys or calls:
            node = _with_clocks(node, [*bound, *keys, *calls])
            node = _filtered(node, bound)
            node, replace = _aggregated(node, keys, calls)
            projections = [(name, replace(expression)) for name, expression in projections]
            node = _with_clocks(node, [expression for _, expression in projections])
            if having_tree is not None:
                having_tree = replace(having_tree)
                node = _with_clocks(node, [having_tree])
                node = Filter(node, scalar_of(having_tree))
        else:
            node = _with_clocks(node, [*bound, *above])
            node = _filtered(node, bound)
            if having_tree is not None:
                node = Filter(node, scalar_of(having_tree))
        node = Project(node, tuple((name, scalar_of(tree)) for name, tree in projections))
        return Distinct(node) if tree.args.get("distinct") else node

    def _sources(
        self, tree: exp.Select, ctes: Mapping[str, Node]
    ) -> tuple[Node, list[exp.Expression]]:
        conditions: list[exp.Expression] = []
        start = tree.args.get("from_") or tree.args.get("from")
        if start is None:
            return Constant(), conditions
        parts = [self._relation(start.this, ctes)]
        for join in tree.args.get("joins") or ():
            parts.append(self._relation(join.this, ctes))
            if join.args.get("on") is not None:
                conditions.append(join.args["on"])
        return (parts[0] if len(parts) == 1 else Join(tuple(parts), ())), conditions

    def _relation(self, tree: exp.Expression, ctes: Mapping[str, Node]) -> Node:
        alias = tree.alias_or_name
        if isinstance(tree, exp.Table):
            name = tree.name.casefold()
            if name in ctes:
                return _aliased(ctes[name], alias)
            relation = self._known[name]
            fields = tuple(field.name for field in self._catalog[relation])
            scan = Scan(relation, alias, fields)
            return _aliased(scan, alias, folded=True)
        return _aliased(self._named(self.query(tree, ctes), tree), alias)

    def _declared(self, tree: exp.Expression) -> str | None:
        """How the catalog spells the column that a star expanded to."""
        if not isinstance(tree, exp.Column):
            return None
        for relation in self._catalog.values():
            for field in relation:
                if field.name.casefold() == tree.name.casefold():
                    return field.name
        return None


def _aliased(node: Node, alias: str, *, folded: bool = False) -> Node:
    """The node with its columns named `alias.column`, as expressions of the SELECT call them."""
    outputs = []
    for column in node.columns:
        bare = column.removeprefix(f"{alias}.") if folded else column
        outputs.append((f"{alias}.{bare.casefold()}", scalar_of(column_tree(column))))
    if all(name == scalar.column for name, scalar in outputs):
        return node
    return Project(node, tuple(outputs))


def _internal(tree: exp.Expression) -> exp.Expression:
    """The expression with qualified columns turned into internal names and clocks bound."""

    def bind(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Column) and node.table:
            return column_tree(f"{node.table}.{node.name}")
        if isinstance(node, exp.CurrentTimestamp):
            return _clock(NOW)
        if isinstance(node, exp.CurrentDate):
            return _clock(TODAY)
        if isinstance(node, exp.Localtimestamp):
            return exp.cast(_clock(NOW), "TIMESTAMP_NTZ", dialect="spark")
        if isinstance(node, exp.Anonymous) and node.name.casefold() in ("now", "curdate"):
            return _clock(NOW if node.name.casefold() == "now" else TODAY)
        return node

    return tree.copy().transform(bind)


def _clock(relation: str) -> exp.Column:
    return column_tree(f"{relation}.{CLOCKS[relation][0]}")


def _with_clocks(node: Node, trees: Iterable[exp.Expression]) -> Node:
    """Join in the logical-time relations that the expressions read."""
    names = {column.name for tree in trees for column in tree.find_all(exp.Column)}
    wanted = []
    for relation, (field, _) in CLOCKS.items():
        column = f"{relation}.{field}"
        if column in names and column not in node.columns:
            wanted.append(Scan(relation, relation, (field,)))
    if not wanted:
        return node
    parts = node.parts if isinstance(node, Join) and not node.conditions else (node,)
    if isinstance(node, Constant):
        parts = ()
        if len(wanted) == 1:
            return wanted[0]
    return Join((*parts, *wanted), ())


def _filtered(node: Node, conditions: list[exp.Expression]) -> Node:
    """WHERE and ON conditions above the product; rewrites place them."""
    for condition in conditions:
        node = Filter(node, scalar_of(condition))
    return node


def _aggregate_calls(trees: list[exp.Expression]) -> list[exp.Expression]:
    found: dict[str, exp.Expression] = {}
    for tree in trees:
        for node in tree.walk():
            filtered = isinstance(node, exp.Filter) and isinstance(node.this, tuple(AGGREGATES))
            bare = isinstance(node, tuple(AGGREGATES)) and not isinstance(node.parent, exp.Filter)
            if filtered or bare:
                found.setdefault(node.sql(dialect="spark"), node)
    return list(found.values())


def _aggregated(
    node: Node, keys: list[exp.Expression], calls: list[exp.Expression]
) -> tuple[Node, Callable[[exp.Expression], exp.Expression]]:
    """Aggregate over projected keys and arguments, and how expressions above refer to it."""
    outputs: dict[str, Scalar] = {}

    def place(tree: exp.Expression, name: str) -> str:
        scalar = scalar_of(tree)
        name = scalar.column if scalar.is_column else name
        outputs.setdefault(name, scalar)
        return name

    replacements: dict[str, str] = {}
    key_names: dict[str, None] = {}
    for number, key in enumerate(keys, 1):
        name = place(key, f"key_{number}")
        key_names[name] = None
        replacements.setdefault(key.unnest().sql(dialect="spark"), name)
    aggregate_calls = []
    for number, call in enumerate(calls, 1):
        function, argument = _call_parts(call)
        column = None if argument is None else place(argument, f"argument_{number}")
        aggregate_calls.append(AggregateCall(f"aggregate_{number}", function, column))
        replacements[call.sql(dialect="spark")] = f"aggregate_{number}"
    if not outputs and not node.columns:
        projected: Node = node
    else:
        projected = Project(node, tuple(outputs.items()))
    aggregate = Aggregate(projected, tuple((n, n) for n in key_names), tuple(aggregate_calls))

    def replace(tree: exp.Expression) -> exp.Expression:
        def one(part: exp.Expression) -> exp.Expression:
            name = replacements.get(part.sql(dialect="spark"))
            return part if name is None else column_tree(name)

        return tree.transform(one)

    return aggregate, replace


def _call_parts(call: exp.Expression) -> tuple[str, exp.Expression | None]:
    """Function and argument; a FILTER clause becomes a CASE around the argument."""
    where = None
    if isinstance(call, exp.Filter):
        where = call.expression.this
        call = call.this
    function = AGGREGATES[type(call)]
    argument: exp.Expression | None = call.this
    if function == "COUNT":
        extra = call.args.get("expressions") or []
        if isinstance(argument, exp.Star) or isinstance(argument, exp.Literal):
            argument = None
        elif extra:
            present = exp.and_(*[part.is_(exp.null()).not_() for part in [argument, *extra]])
            argument = exp.case().when(present, exp.Literal.number(1))
    if where is not None:
        argument = exp.case().when(where, argument or exp.Literal.number(1))
    if argument is None:
        return "COUNT_STAR", None
    return function, argument


def _output_name(item: exp.Expression, declared: Callable[[exp.Expression], str | None]) -> str:
    """The name as written: of the alias, else of the column, else as the catalog spells it."""
    bare = item.unalias()
    for holder in (item.args.get("alias"), bare.this if isinstance(bare, exp.Column) else None):
        if isinstance(holder, exp.Identifier) and isinstance(holder.meta.get(ORIGINAL), str):
            return str(holder.meta[ORIGINAL])
    spelled = declared(bare)
    name = item.alias_or_name
    return spelled if spelled is not None and spelled.casefold() == name.casefold() else name
