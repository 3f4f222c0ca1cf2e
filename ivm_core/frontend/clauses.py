"""What stands around the select list: GROUP BY, HAVING, QUALIFY, DISTINCT, ORDER BY, LIMIT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

from ivm_core.frontend.aggregates import aggregate_calls, text
from ivm_core.frontend.scalars import internal
from ivm_core.frontend.spelling import folded
from ivm_core.model.errors import Unsupported
from ivm_core.operators.sql import column as column_tree
from ivm_core.operators.sql import scalar_of, unchanged
from ivm_core.plan.nodes import Distinct, Node, Project
from ivm_core.plan.partitioned import Top

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ivm_core.frontend.outer import Outer

NUMBERS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Sum, exp.Count, exp.Avg)
"""What Spark casts to a truth value in HAVING."""


class Clauses:
    """The expressions of a SELECT that are evaluated over its groups, in one list.

    A view is a bag, so ORDER BY alone says nothing; with LIMIT or OFFSET it says which rows.
    """

    def __init__(self, tree: exp.Select, where: str) -> None:
        """`where` says whose SQL it is."""
        self._tree = tree
        self._where = where
        items = [item.unalias() for item in tree.expressions]
        self.expressions = list(items)
        self.group = _group(tree, items)
        self.having = self._clause("having")
        self.qualify = self._clause("qualify")
        self._order: list[tuple[exp.Ordered, int]] = []
        order = tree.args.get("order")
        if order is not None and (tree.args.get("limit") or tree.args.get("offset")):
            aliases = {folded(item.alias_or_name): item.unalias() for item in tree.expressions}
            known = [text(item) for item in items]
            for each in _all_spelled_out(order.expressions, items, aliases):
                value = _without_aliases(each.this, aliases)
                if text(value) in known:
                    self._order.append((each, known.index(text(value))))
                else:
                    self._order.append((each, len(self.expressions)))
                    self.expressions.append(value)

    def _clause(self, key: str) -> int | None:
        clause = self._tree.args.get(key)
        if clause is None:
            return None
        is_number = key == "having" and isinstance(clause.this.unnest(), NUMBERS)
        self.expressions.append(exp.cast(clause.this, "BOOLEAN") if is_number else clause.this)
        return len(self.expressions) - 1

    def finished(
        self, node: Node, names: list[str], above: list[exp.Expr], outer: Outer | None = None
    ) -> Node:
        """The select list, DISTINCT and LIMIT; `above` are the expressions, bound."""
        names_of_outer = () if outer is None else outer.names
        outputs = [(name, scalar_of(tree)) for name, tree in zip(names, above, strict=False)]
        ordered: list[exp.Ordered] = []
        for each, place in self._order:
            name = names[place] if place < len(names) else f"?order_{place}"
            if place >= len(names) and name not in dict(outputs):
                outputs.append((name, scalar_of(above[place])))
            ordered.append(_ordered(each, name))
        hidden = len(outputs) > len(names)
        outputs += [] if outer is None else outer.outputs
        node = Project(node, tuple(outputs))
        if self._tree.args.get("distinct"):
            node = Distinct(node)
        node = _top(node, self._tree, ordered, self._where, names_of_outer)
        return Project(node, unchanged([*names, *names_of_outer])) if hidden else node


def limited(
    node: Node,
    tree: exp.Expr,
    columns: Mapping[str, str],
    where: str,
    outer: Outer | None = None,
) -> Node:
    """What LIMIT leaves of a set operation or of a query in parentheses.

    `columns` are those of the node by the names that the query gives them.
    """
    order = tree.args.get("order")
    given = {folded(name): column for name, column in columns.items()}
    if order is None or not (tree.args.get("limit") or tree.args.get("offset")):
        return _top(node, tree, [], where, () if outer is None else outer.names)
    items: list[exp.Expr] = [exp.column(name) for name in columns]
    ordered, computed = [], list(unchanged(node.columns))
    for each in _all_spelled_out(order.expressions, items, given):
        found = list(each.this.find_all(exp.Column))
        if each.this.find(exp.Query) or any(folded(column.name) not in given for column in found):
            raise Unsupported(
                f"ORDER BY {each.this.sql(dialect='spark')} of a set operation",
                position=where,
                reason="its rows have no columns but those of the result",
                rewrite="order by columns of the result, or select from it as a derived table",
            )
        bare = each.this.unnest()
        if isinstance(bare, exp.Column):
            ordered.append(_ordered(each, given[folded(bare.name)]))
            continue
        value = _without_aliases(bare, {name: column_tree(own) for name, own in given.items()})
        computed.append((f"?order_{len(computed)}", scalar_of(internal(value))))
        ordered.append(_ordered(each, computed[-1][0]))
    columns_before = node.columns
    if len(computed) > len(columns_before):
        node = Project(node, tuple(computed))
    node = _top(node, tree, ordered, where, () if outer is None else outer.names)
    return node if node.columns == columns_before else Project(node, unchanged(columns_before))


def _top(
    node: Node, tree: exp.Expr, order: list[exp.Ordered], where: str, partition: tuple[str, ...]
) -> Node:
    limit, offset = (_count(tree, key, where) for key in ("limit", "offset"))
    if limit is None and not offset:
        return node
    return Top(node, partition, tuple(scalar_of(each) for each in order), limit, offset or 0)


def _count(tree: exp.Expr, key: str, where: str) -> int | None:
    clause = tree.args.get(key)
    if clause is None:
        return None
    value = clause.expression
    if isinstance(value, exp.Var | exp.Column) and folded(value.name) == "all":
        return None
    number = simplify(value.copy().transform(_without_cast))
    if isinstance(number, exp.Literal) and not number.is_string and number.name.isdigit():
        return int(number.name)
    raise Unsupported(
        f"{key.upper()} {value.sql(dialect='spark')}",
        position=where,
        reason="how many rows a view has at most is part of what it means",
        rewrite=f"write the number: {key.upper()} 10",
    )


def _without_cast(node: exp.Expr) -> exp.Expr:
    is_whole = isinstance(node, exp.Cast) and node.to.this in exp.DataType.INTEGER_TYPES
    literal = node.this.unnest() if is_whole else None
    is_number = isinstance(literal, exp.Literal) and literal.name.isdigit()
    return exp.Literal.number(literal.name) if literal is not None and is_number else node


def _all_spelled_out(
    order: list[exp.Ordered], items: list[exp.Expr], known: Mapping[str, object]
) -> list[exp.Ordered]:
    """`ORDER BY ALL` as all items of the select list."""
    first = order[0].this
    is_all = isinstance(first, exp.Column | exp.Var) and folded(first.name) == "all"
    if len(order) > 1 or not is_all or "all" in known or first.args.get("table"):
        return order
    spelled = []
    for item in items:
        each = order[0].copy()
        each.set("this", item.copy())
        spelled.append(each)
    return spelled


def _ordered(each: exp.Ordered, name: str) -> exp.Ordered:
    ordered = each.copy()
    ordered.set("this", column_tree(name))
    return ordered


def _without_aliases(tree: exp.Expr, aliases: Mapping[str, exp.Expr]) -> exp.Expr:
    """ORDER BY may name columns of the select list."""

    def one(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table:
            found = aliases.get(folded(node.name))
            return node if found is None else found.copy()
        return node

    return tree.copy().transform(one)


def _group(tree: exp.Select, items: list[exp.Expr]) -> exp.Group | None:
    """GROUP BY, with ALL spelled out: every item that has no aggregate."""
    group: exp.Group | None = tree.args.get("group")
    if group is not None and not group.args.get("all"):
        return _without_positions(group, items)
    if group is None:
        return None
    keys = [item.copy() for item in items if not aggregate_calls([item])]
    return exp.Group(expressions=keys or [exp.Tuple(expressions=[])])


def _without_positions(group: exp.Group, items: list[exp.Expr]) -> exp.Group:
    """GROUP BY with the positions in ROLLUP, CUBE and GROUPING SETS as what stands there."""

    def one(node: exp.Expr) -> exp.Expr:
        is_place = isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()
        holder = node.parent
        while isinstance(holder, exp.Paren | exp.Tuple):
            holder = holder.parent
        is_key = isinstance(holder, exp.Rollup | exp.Cube | exp.GroupingSets)
        if is_place and is_key and 0 < int(node.name) <= len(items):
            return items[int(node.name) - 1].copy()
        return node

    return exp.Group(**{key: _each(part, one) for key, part in group.args.items()})


def _each(part: Any, one: Callable[[exp.Expr], exp.Expr]) -> Any:
    if isinstance(part, list):
        return [_each(each, one) for each in part]
    return part.transform(one) if isinstance(part, exp.Expr) else part
