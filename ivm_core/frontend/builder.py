"""Qualified SELECT trees become plan nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.grouping import aggregate_calls, aggregated
from ivm_core.frontend.scalars import internal, with_clocks
from ivm_core.frontend.spelling import column_list, folded, output_name, plan_alias, plan_column
from ivm_core.model.errors import DuplicateName, SqlError, UnknownName, Unsupported
from ivm_core.operators.sql import column as column_tree
from ivm_core.operators.sql import scalar_of
from ivm_core.plan.nodes import Constant, Distinct, Filter, Join, Node, Project, Scan, UnionAll

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.model.schema import Schema


class Builder:
    """Builds the plan of one statement."""

    def __init__(self, catalog: Mapping[str, Schema], known: Mapping[str, str], where: str):
        """`known` maps relation names as they are compared to those of the catalog."""
        self._catalog = catalog
        self._known = known
        self._where = where

    def query(self, tree: exp.Expr, ctes: Mapping[str, Node], *, is_named: bool = True) -> Node:
        """The plan of a query, given the common table expressions that it sees.

        Nobody asks for the column names of a query that is not `is_named`.
        """
        ctes = dict(ctes)
        for cte in tree.ctes if isinstance(tree, exp.Query) else ():
            ctes[folded(cte.alias)] = self._renamed(self.query(cte.this, ctes), cte)
        if isinstance(tree, exp.Subquery):
            return self.query(tree.this, ctes, is_named=is_named)
        if isinstance(tree, exp.Union):
            return self._union(tree, ctes, is_named=is_named)
        if isinstance(tree, exp.Select):
            return self._select(tree, ctes, is_named=is_named)
        raise SqlError(
            f"{tree.key.upper()} is not a query", where=self._where, fix="write a SELECT"
        )

    def _union(self, tree: exp.Union, ctes: Mapping[str, Node], *, is_named: bool) -> Node:
        first = self.query(tree.left, ctes, is_named=is_named)
        branches = (first, self.query(tree.right, ctes, is_named=False))
        widths = [len(branch.columns) for branch in branches]
        if widths[0] != widths[1]:
            raise SqlError(
                f"UNION of {widths[0]} columns with {widths[1]} columns",
                where=self._where,
                fix="give both branches the same number of columns",
            )
        union = UnionAll(branches)
        return Distinct(union) if tree.args.get("distinct") else union

    def _renamed(self, node: Node, relation: exp.Expr) -> Node:
        """The node with the columns of `relation AS alias(a, b)`."""
        names = column_list(relation)
        if not names:
            return node
        if len(names) != len(node.columns):
            raise SqlError(
                f"{len(names)} column names for the {len(node.columns)} columns of "
                f"{relation.alias_or_name}",
                where=self._where,
                fix="name every column once",
            )
        columns = zip(names, node.columns, strict=True)
        return Project(node, tuple((name, scalar_of(column_tree(c))) for name, c in columns))

    def _select(self, tree: exp.Select, ctes: Mapping[str, Node], *, is_named: bool) -> Node:
        node, conditions, spelled = self._sources(tree, ctes)
        where = tree.args.get("where")
        if where is not None:
            conditions.append(where.this)
        bound = [internal(condition) for condition in conditions]
        self._refuse_stars(tree)
        names = [output_name(item, spelled) for item in tree.expressions]
        if is_named:
            self._refuse_duplicates(names)
        else:
            names = [f"column_{number}" for number in range(1, len(names) + 1)]
        having = tree.args.get("having")
        above = [internal(item.unalias()) for item in tree.expressions]
        above += [internal(having.this)] if having is not None else []
        group = tree.args.get("group")
        keys = [internal(key) for key in group.expressions if not _is_empty(key)] if group else []
        calls = aggregate_calls(above)
        if (having is not None or group is not None) and not keys and not calls:
            raise Unsupported(
                "GROUP BY or HAVING without keys and aggregates",
                position=self._where,
                reason="there is nothing that it groups",
                rewrite="use WHERE, or group by something",
            )
        if keys or calls:
            node = _filtered(with_clocks(node, [*bound, *keys, *calls]), bound)
            node, replace = aggregated(node, keys, calls)
            above = [replace(expression) for expression in above]
            node = with_clocks(node, above)
            self._refuse_ungrouped(node, above)
        else:
            node = _filtered(with_clocks(node, [*bound, *above]), bound)
        if having is not None:
            node = Filter(node, scalar_of(above.pop()))
        node = Project(node, tuple(zip(names, map(scalar_of, above), strict=True)))
        return Distinct(node) if tree.args.get("distinct") else node

    def _sources(
        self, tree: exp.Select, ctes: Mapping[str, Node]
    ) -> tuple[Node, list[exp.Expr], dict[str, str]]:
        """What is read, the join conditions, and how the columns are spelled."""
        conditions: list[exp.Expr] = []
        spelled: dict[str, str] = {}
        start = tree.args.get("from_") or tree.args.get("from")
        if start is None:
            return Constant(), conditions, spelled
        parts: list[Node] = []

        def collect(relation: exp.Expr) -> None:
            while isinstance(relation, exp.Subquery) and isinstance(relation.this, exp.Table):
                collect_joins(relation.args.get("joins"))
                relation = relation.this
            parts.append(self._relation(relation, ctes, spelled))
            if isinstance(relation, exp.Table):
                collect_joins(relation.args.get("joins"))

        def collect_joins(joins: list[exp.Join] | None) -> None:
            for join in joins or ():
                collect(join.this)
                if join.args.get("on") is not None:
                    conditions.append(join.args["on"])

        collect(start.this)
        collect_joins(tree.args.get("joins"))
        return (parts[0] if len(parts) == 1 else Join(tuple(parts), ())), conditions, spelled

    def _relation(self, tree: exp.Expr, ctes: Mapping[str, Node], spelled: dict[str, str]) -> Node:
        alias = tree.alias_or_name
        if not isinstance(tree, exp.Table):
            return _aliased(self._renamed(self.query(tree, ctes), tree), alias, spelled)
        name = folded(tree.name)
        if name in ctes:
            return _aliased(self._renamed(ctes[name], tree), alias, spelled)
        if name not in self._known:
            raise UnknownName(
                f"{tree.name} is neither a source nor a view of this flow",
                where=self._where,
                fix="a common table expression is visible only within its own query",
            )
        relation = self._known[name]
        fields = tuple(field.name for field in self._catalog[relation])
        scan: Node = Scan(relation, plan_alias(alias), fields)
        pairs = zip(fields, scan.columns, strict=True)
        bare: Node = Project(scan, tuple((f, scalar_of(column_tree(c))) for f, c in pairs))
        return _aliased(self._renamed(bare, tree), alias, spelled)

    def _refuse_duplicates(self, names: list[str]) -> None:
        seen = [folded(name) for name in names]
        twice = sorted({name for name in names if seen.count(folded(name)) > 1})
        if twice:
            raise DuplicateName(
                f"a SELECT with two columns named {', '.join(twice)}",
                where=self._where,
                fix="give each column a name of its own with AS",
            )

    def _refuse_stars(self, tree: exp.Select) -> None:
        for item in tree.expressions:
            if item.is_star:
                raise Unsupported(
                    f"{item.sql(dialect='spark')}, all fields of a struct",
                    position=self._where,
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
                    position=self._where,
                    reason="no expression of GROUP BY is written like this",
                    rewrite="write the expression in SELECT or HAVING as it stands in GROUP BY",
                )


def _aliased(node: Node, alias: str, spelled: dict[str, str]) -> Node:
    """The node with its columns named `alias.column`, as expressions of the SELECT call them."""
    outputs = []
    for column in node.columns:
        name = plan_column(alias, column)
        spelled[name] = column
        outputs.append((name, scalar_of(column_tree(column))))
    return Project(node, tuple(outputs))


def _filtered(node: Node, conditions: list[exp.Expr]) -> Node:
    """WHERE and ON conditions above the product; rewrites place them."""
    for condition in conditions:
        node = Filter(node, scalar_of(condition))
    return node


def _is_empty(key: exp.Expr) -> bool:
    """`GROUP BY ()` is one group of all rows."""
    return isinstance(key, exp.Tuple) and not key.expressions
