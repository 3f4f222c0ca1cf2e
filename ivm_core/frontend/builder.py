"""Qualified SELECT trees become plan nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.aggregates import aggregate_calls, simplified
from ivm_core.frontend.clauses import Clauses, limited
from ivm_core.frontend.grouping import aggregated, group_by
from ivm_core.frontend.other_ways import is_listed, is_star
from ivm_core.frontend.outer import (
    Outer,
    aliases,
    from_clause,
    outer_columns,
    read_in_place,
)
from ivm_core.frontend.outer_aggregates import OuterAggregates
from ivm_core.frontend.scalars import internal, with_clocks
from ivm_core.frontend.sources import Sources, filtered
from ivm_core.frontend.spelling import column_list, folded, output_name, plan_alias, plan_column
from ivm_core.frontend.subqueries import Subqueries
from ivm_core.frontend.subquery_parts import conjuncts, has_subquery, replaced
from ivm_core.frontend.time_windows import in_time_windows
from ivm_core.frontend.unions import united
from ivm_core.frontend.windows import window_calls, windowed
from ivm_core.model.errors import DuplicateName, SqlError, UnknownName, Unsupported
from ivm_core.operators.sql import column as column_tree
from ivm_core.operators.sql import scalar_of
from ivm_core.plan.nodes import (
    Constant,
    Distinct,
    Filter,
    Listed,
    Node,
    Project,
    Scan,
    SetOperation,
    UnionAll,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.model.schema import Schema

MANY_ROWS = 8
"""Rows of VALUES from which on they are one node of the plan, and not a SELECT each."""


class Builder:
    """Builds the plan of one statement."""

    def __init__(self, catalog: Mapping[str, Schema], known: Mapping[str, str], where: str):
        """`known` maps relation names as they are compared to those of the catalog."""
        self._catalog = catalog
        self._known = known
        self.where = where

    def query(
        self,
        tree: exp.Expr,
        ctes: Mapping[str, Node],
        *,
        is_named: bool = True,
        outer: Outer | None = None,
    ) -> Node:
        """The plan of a query, given the common table expressions that it sees.

        Nobody asks for the column names of a query that is not `is_named`. With `outer` the result
        has the outer values behind its own columns.
        """
        ctes = dict(ctes)
        for cte in tree.ctes if isinstance(tree, exp.Query) else ():
            if next(outer_columns(cte.this), None) is not None:
                # what it gives is another for every outer row
                read_in_place(cte, tree)
                continue
            ctes[folded(cte.alias)] = self._renamed(self.query(cte.this, ctes), cte)
        if isinstance(tree, exp.Subquery):
            node = self.query(tree.this, ctes, is_named=is_named, outer=outer)
            names = dict(zip(tree.this.named_selects, node.columns, strict=False))
            return limited(node, tree, names, self.where, outer)
        if isinstance(tree, exp.SetOperation):
            return self._set_operation(tree, ctes, outer, is_named=is_named)
        if isinstance(tree, exp.Select):
            return self._select(tree, ctes, outer, is_named=is_named)
        raise SqlError(f"{tree.key.upper()} is not a query", where=self.where, fix="write a SELECT")

    def _set_operation(
        self,
        tree: exp.SetOperation,
        ctes: Mapping[str, Node],
        outer: Outer | None,
        *,
        is_named: bool,
    ) -> Node:
        kind = tree.key.upper()
        names = tree.named_selects
        operands = united(tree) if isinstance(tree, exp.Union) else [tree.left, tree.right]
        branches = tuple(
            self.query(each, ctes, is_named=is_named and place == 0, outer=outer)
            for place, each in enumerate(operands)
        )
        widths = [len(branch.columns) for branch in branches]
        other = next((width for width in widths if width != widths[0]), None)
        if other is not None:
            raise SqlError(
                f"{kind} of {widths[0]} columns with {other} columns",
                where=self.where,
                fix="give all branches the same number of columns",
            )
        is_distinct = bool(tree.args.get("distinct"))
        node: Node
        if not isinstance(tree, exp.Union):
            left, right = branches
            node = SetOperation(left, right, kind if is_distinct else f"{kind} ALL")
        else:
            node = UnionAll(branches)
            node = Distinct(node) if is_distinct else node
        return limited(node, tree, dict(zip(names, node.columns, strict=False)), self.where, outer)

    def _renamed(self, node: Node, relation: exp.Expr) -> Node:
        """The node with the columns of `relation AS alias(a, b)`."""
        names = column_list(relation)
        if not names:
            return node
        if len(names) != len(node.columns):
            raise SqlError(
                f"{len(names)} column names for the {len(node.columns)} columns of "
                f"{relation.alias_or_name}",
                where=self.where,
                fix="name every column once",
            )
        columns = zip(names, node.columns, strict=True)
        return Project(node, tuple((name, scalar_of(column_tree(c))) for name, c in columns))

    def _select(
        self, tree: exp.Select, ctes: Mapping[str, Node], outer: Outer | None, *, is_named: bool
    ) -> Node:
        self._refuse_stars(tree)
        subqueries = Subqueries(self, ctes)
        clauses = Clauses(tree, self.where)
        grouping = group_by(clauses.group)
        within = Subqueries(self, ctes, "?argument_subquery")
        asked = within.extracted_from_keys(grouping.keys)
        plain = [replaced(simplified(each), asked) for each in clauses.expressions]
        lent = OuterAggregates()
        plain = [lent.taken_from(within.extracted_from_arguments(each)) for each in plain]
        above = [subqueries.extracted(each) for each in plain]
        above += [internal(call) for call in lent.calls]
        above += subqueries.operands
        keys = [internal(replaced(key, asked)) for key in grouping.keys]
        calls = aggregate_calls(above)
        if (clauses.having is not None or clauses.group) and not keys and not calls:
            calls = [exp.Count(this=exp.Star())]  # one group of all rows, asked for nothing
        where = tree.args.get("where")
        below = [*keys, *calls] if keys or calls else above
        conditions = [] if where is None else [where.this]
        node, spelled = self.read(tree, ctes, conditions, clocks_of=below, outer=outer)
        node = within.attached(node)
        names = [output_name(item, spelled) for item in tree.expressions]
        if is_named:
            self._refuse_duplicates(names)
        else:
            names = [f"column_{number}" for number in range(1, len(names) + 1)]
        given = [] if outer is None else outer.keys
        node, replace = in_time_windows(node, [*keys, *given], above, self.where)
        keys, calls, above = ([replace(each) for each in trees] for trees in (keys, calls, above))
        if keys or calls:
            sets = grouping.sets_with(len(given))
            node, replace = aggregated(node, [*keys, *given], calls, sets)
            if outer is not None and not keys:
                node = outer.with_empty_groups(node, calls)
            above = [replace(expression) for expression in above]
            node = with_clocks(node, above)
            node = lent.beside(node, above[len(plain) : len(plain) + len(lent.calls)])
        node = subqueries.attached(node, above)
        if keys or calls:
            self._refuse_ungrouped(node, above)
        if clauses.having is not None:
            node = Filter(node, scalar_of(above[clauses.having]))
        windows = window_calls(above)
        if windows:
            node, replace = windowed(node, windows, () if outer is None else outer.columns)
            above = [replace(expression) for expression in above]
        if clauses.qualify is not None:
            node = Filter(node, scalar_of(above[clauses.qualify]))
        return clauses.finished(node, names, above, outer)

    def read(
        self,
        tree: exp.Select,
        ctes: Mapping[str, Node],
        conditions: list[exp.Expr],
        clocks_of: list[exp.Expr] | None = None,
        outer: Outer | None = None,
    ) -> tuple[Node, dict[str, str]]:
        """What a SELECT reads, kept where the conditions hold, and how its columns are spelled.

        `clocks_of` are expressions above that may read the clock.
        """
        spelled: dict[str, str] = {}
        node, joined = self._sources(tree, ctes, spelled, outer)
        plain: list[exp.Expr] = []
        asking: list[exp.Expr] = []
        for condition in [part for each in (*joined, *conditions) for part in conjuncts(each)]:
            (asking if has_subquery(condition) else plain).append(condition)
        bound = [internal(condition) for condition in plain]
        node = filtered(with_clocks(node, [*bound, *(clocks_of or [])]), bound)
        subqueries = Subqueries(self, ctes)
        for condition in asking:
            node = subqueries.filtered(node, condition)
        for lateral in tree.args.get("laterals") or ():
            if is_listed(lateral):
                made = Sources(self, ctes, spelled)
                made.begin(node)
                made.generate(lateral)
                node = made.node
        return node, spelled

    def _sources(
        self,
        tree: exp.Select,
        ctes: Mapping[str, Node],
        spelled: dict[str, str],
        outer: Outer | None,
    ) -> tuple[Node, list[exp.Expr]]:
        """What stands in FROM, beside the outer values, and the conditions of its inner joins."""
        start = from_clause(tree)
        joins, laterals = tree.args.get("joins") or [], tree.args.get("laterals") or []
        whole = Sources(self, ctes, spelled)
        # a RIGHT JOIN keeps rows of what it joins: outer values come first only if FROM reads them
        parts = [each for each in (start, *joins, *laterals) if each is not None]
        own = aliases(tree)
        read = (found.table for each in parts for found in outer_columns(each))
        is_read = start is None or any(alias not in own for alias in read)
        if outer is not None and is_read:
            whole.begin(outer.values)
        elif start is None:
            whole.begin(Constant())
        if start is not None:
            whole.add(start.this)
        whole.join(joins)
        for lateral in laterals:
            if not is_listed(lateral):
                whole.generate(lateral)
        if outer is not None and not is_read:
            whole.begin(outer.values)
        return whole.node, whole.conditions

    def relation(self, tree: exp.Expr, ctes: Mapping[str, Node], spelled: dict[str, str]) -> Node:
        """A named relation, a common table expression or a derived table."""
        alias = tree.alias_or_name
        if isinstance(tree, exp.Values):
            return _aliased(self._values(tree), alias, spelled)
        if not isinstance(tree, exp.Table):
            return _aliased(self._renamed(self.query(tree, ctes), tree), alias, spelled)
        name = folded(tree.name)
        if name in ctes:
            return _aliased(self._renamed(ctes[name], tree), alias, spelled)
        if name not in self._known:
            raise UnknownName(
                f"{tree.name} is neither a source nor a view of this flow",
                where=self.where,
                fix="a common table expression is visible only within its own query",
            )
        relation = self._known[name]
        fields = tuple(field.name for field in self._catalog[relation])
        scan: Node = Scan(relation, plan_alias(alias), fields)
        pairs = zip(fields, scan.columns, strict=True)
        bare: Node = Project(scan, tuple((f, scalar_of(column_tree(c))) for f, c in pairs))
        return _aliased(self._renamed(bare, tree), alias, spelled)

    def _values(self, tree: exp.Values) -> Node:
        """Rows that are written out."""
        names = column_list(tree)
        rows = []
        for row in tree.expressions:
            items = row.expressions if isinstance(row, exp.Tuple) else [row]
            if len(items) != len(names):
                raise Unsupported(
                    "VALUES whose columns are not named",
                    position=self.where,
                    reason=f"{len(names)} names for rows of {len(items)} values",
                    rewrite="VALUES (…), (…) AS name(column, column)",
                )
            trees = [internal(item.unalias()) for item in items]
            values = [scalar_of(tree) for tree in trees]
            rows.append((trees, values))
        literals = all(_is_literal(tree) for trees, _ in rows for tree in trees)
        if literals and len(rows) >= MANY_ROWS:
            return Listed(tuple(names), tuple(tuple(values) for _, values in rows))
        single = [
            Project(with_clocks(Constant(), trees), tuple(zip(names, values, strict=True)))
            for trees, values in rows
        ]
        return single[0] if len(single) == 1 else UnionAll(tuple(single))

    def _refuse_duplicates(self, names: list[str]) -> None:
        seen = [folded(name) for name in names]
        twice = sorted({name for name in names if seen.count(folded(name)) > 1})
        if twice:
            raise DuplicateName(
                f"a SELECT with two columns named {', '.join(twice)}",
                where=self.where,
                fix="give each column a name of its own with AS",
            )

    def _refuse_stars(self, tree: exp.Select) -> None:
        for item in tree.expressions:
            left_out = _left_out(item, tree)
            if left_out and not _has_twins(tree.root()):
                raise SqlError(
                    f"SELECT * EXCEPT ({', '.join(left_out)}) leaves no columns",
                    where=self.where,
                    fix="leave a column of the relation in",
                )
            if isinstance(item, exp.Star):
                raise DuplicateName(
                    "a SELECT * from a derived table that has two columns of one name",
                    where=self.where,
                    fix="give each column of the derived table a name of its own with AS",
                )
            if is_star(item):
                raise Unsupported(
                    f"{item.sql(dialect='spark')}, all fields of a struct",
                    position=self.where,
                    reason="the star of a relation is expanded, that of a column is not",
                    rewrite="name the fields",
                )

    def _refuse_ungrouped(self, node: Node, trees: list[exp.Expr]) -> None:
        there = set(node.columns)
        for tree in trees:
            missing = sorted({c.name for c in tree.find_all(exp.Column)} - there)
            if missing:
                raise Unsupported(
                    f"{', '.join(missing)} outside of the aggregates",
                    position=self.where,
                    reason="no expression of GROUP BY is written like this",
                    rewrite="write the expression in SELECT or HAVING as it stands in GROUP BY",
                )


def _is_literal(tree: exp.Expr) -> bool:
    """Whether it is a value as it is written, with a sign and a type perhaps."""
    if isinstance(tree, exp.Paren | exp.Neg | exp.Cast):
        return _is_literal(tree.this)
    return isinstance(tree, exp.Literal | exp.Null | exp.Boolean)


def _aliased(node: Node, alias: str, spelled: dict[str, str]) -> Node:
    """The node with its columns named `alias.column`, as expressions of the SELECT call them."""
    outputs = []
    for column in node.columns:
        name = plan_column(alias, column)
        spelled[name] = column
        outputs.append((name, scalar_of(column_tree(column))))
    return Project(node, tuple(outputs))


def _left_out(item: exp.Expr, select: exp.Select) -> list[str]:
    """The columns that the star of a relation, or of all, leaves out."""
    star = item.this if isinstance(item, exp.Column) else item
    if not isinstance(star, exp.Star):
        return []
    names = {each.alias_or_name for each in select.find_all(exp.Table, exp.Subquery)}
    is_of_relation = star is item or item.text("table") in names
    return [each.name for each in star.args.get("except_") or ()] if is_of_relation else []


def _has_twins(tree: exp.Expr) -> bool:
    """Whether any SELECT of a query gives two columns one name."""
    given = ([folded(n) for n in each.named_selects] for each in tree.find_all(exp.Select))
    return any(len(set(names)) < len(names) for names in given)
