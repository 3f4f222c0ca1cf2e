"""What can be said in another way is, before names are resolved.

SELECT explode(xs) AS x FROM t      SELECT x FROM t LATERAL VIEW explode(xs) AS x
VALUES (1, 2)                       VALUES (1, 2) AS name(col1, col2)
a UNION BY NAME b                   a UNION SELECT the columns in the order of a FROM b
DISTRIBUTE BY, SORT BY              nothing: a view is a bag
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend import functions
from ivm_core.frontend.aggregates import aggregate_calls
from ivm_core.frontend.spelling import folded
from ivm_core.model.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

ORDERS = ("sort", "cluster", "distribute")


def without_orders(tree: exp.Expr) -> exp.Expr:
    """The query without orders that say nothing about which rows it has."""
    for query in tree.find_all(exp.Query):
        if not query.args.get("limit") and not query.args.get("offset"):
            for key in ORDERS:
                query.set(key, None)
    return tree


def with_value_names(tree: exp.Expr) -> exp.Expr:
    """The query with names for the columns of VALUES, those that Spark gives them."""
    for number, values in enumerate(tree.find_all(exp.Values), 1):
        if values.alias_column_names or not values.expressions:
            continue
        first = values.expressions[0]
        width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
        name = values.alias or f"values_{number}"
        columns = [exp.to_identifier(f"col{place}") for place in range(1, width + 1)]
        values.set("alias", exp.TableAlias(this=exp.to_identifier(name), columns=columns))
    return tree


def with_lateral_views(tree: exp.Expr, where: str) -> exp.Expr:
    """The query with the generators of select lists in FROM."""
    for number, select in enumerate(list(tree.find_all(exp.Select)), 1):
        found = [item for item in select.expressions if _is_generator(item)]
        if not found:
            continue
        item = found[0]
        names = item.expressions if isinstance(item, exp.Aliases) else [item.args.get("alias")]
        has_groups = select.args.get("group") or aggregate_calls(list(select.expressions))
        if len(found) > 1 or has_groups or names[0] is None or select.find(exp.Window):
            raise Unsupported(
                f"the generator {item.unalias().sql(dialect='spark')} in this select list",
                position=where,
                reason="it is unnamed, one of many, or beside aggregates or window functions",
                rewrite="SELECT …, x FROM … LATERAL VIEW explode(xs) name AS x",
            )
        called = exp.to_identifier(f"generated_{number}", quoted=True)
        alias = exp.TableAlias(this=called, columns=[name.copy() for name in names])
        call = item.this.copy()
        is_outer = folded(call.name).endswith("_outer")
        if is_outer:
            call.set("this", call.name[: -len("_outer")])
        lateral = exp.Lateral(this=call, view=True, outer=is_outer, alias=alias)
        select.append("laterals", lateral)
        columns = [exp.column(name.copy(), table=called.copy()) for name in names]
        place = select.expressions.index(item)
        items = list(select.expressions)
        select.set("expressions", [*items[:place], *columns, *items[place + 1 :]])
    return tree


def _is_generator(item: exp.Expr) -> bool:
    call = item.this if isinstance(item, exp.Aliases) else item.unalias()
    return isinstance(call, exp.Anonymous) and folded(call.name) in functions.GENERATORS


def in_one_order(tree: exp.Expr, columns_of: Callable[[exp.Expr], list[str]]) -> exp.Expr:
    """The query with set operations BY NAME as those by position."""
    for number, union in enumerate(list(tree.find_all(exp.SetOperation)), 1):
        if not union.args.get("by_name"):
            continue
        union.set("by_name", None)
        names = columns_of(_derived(union.left, "branch"))
        alias = f"?branch_{number}"
        columns = [exp.column(exp.to_identifier(name, quoted=True)) for name in names]
        ordered = exp.Select(expressions=columns).from_(_derived(union.right, alias))
        union.set("expression", ordered)
    return tree


def _derived(query: exp.Expr, alias: str) -> exp.Subquery:
    inner = query.copy()
    inner = inner.this if isinstance(inner, exp.Subquery) and not inner.alias else inner
    called = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    return exp.Subquery(this=inner, alias=called)
