"""What can be said in another way is, before names are resolved.

SELECT explode(xs) AS x FROM t      SELECT x FROM t LATERAL VIEW explode(xs) AS x
VALUES (1, 2)                       VALUES (1, 2) AS name(col1, col2)
a UNION BY NAME b                   a UNION SELECT the columns in the order of a FROM b
DISTRIBUTE BY, SORT BY              nothing: a view is a bag
TABLE t                             SELECT * FROM t
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend import functions
from ivm_core.frontend.aggregates import aggregate_calls
from ivm_core.frontend.outer import relations
from ivm_core.frontend.spelling import folded
from ivm_core.frontend.table_functions import positional
from ivm_core.model.errors import Unsupported
from ivm_core.operators.sql import column, number

if TYPE_CHECKING:
    from collections.abc import Callable

    from ivm_core.frontend.questions import Questions

GENERATED = {
    "explode": ("col",),
    "explode_outer": ("col",),
    "posexplode": ("pos", "col"),
    "posexplode_outer": ("pos", "col"),
}
"""Names of the columns of generators, where they are always the same."""
LISTED = "listed"
ORDERS = ("sort", "cluster", "distribute")
NAMED_IN = ("group", "having", "qualify", "order")
"""Clauses that may name items of the select list."""


def without_orders(tree: exp.Expr) -> exp.Expr:
    """The query without orders that say nothing about which rows it has."""
    for query in tree.find_all(exp.Query):
        if not query.args.get("limit") and not query.args.get("offset"):
            for key in (*ORDERS, "order"):
                query.set(key, None)
    return tree


def without_doubled_parentheses(tree: exp.Expr) -> exp.Expr:
    """`FROM ((SELECT …)) AS name` with one pair of them."""
    for outer in list(tree.find_all(exp.Subquery)):
        while isinstance(outer.this, exp.Subquery) and _holds_only_a_query(outer.this):
            outer.set("this", outer.this.this)
    return tree


def _holds_only_a_query(inner: exp.Subquery) -> bool:
    others = [key for key, part in inner.args.items() if part and key != "this"]
    return isinstance(inner.this, exp.Query) and not others


def with_columns_outside(tree: exp.Expr) -> exp.Expr:
    """`(q) AS name(a, b)` with q one level down, where clauses of q refer to its own names."""
    for holder in list(tree.find_all(exp.CTE, exp.Subquery)):
        query = holder.this
        if not holder.alias_column_names or not isinstance(query, exp.Select):
            continue
        names = [folded(item.output_name) for item in query.expressions if not item.is_star]
        if any(map(query.args.get, NAMED_IN)) and len(set(names)) == len(names):
            inner = exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier("inner_")))
            holder.set("this", exp.Select(expressions=[exp.Star()]).from_(inner))
    return tree


def as_select(tree: exp.Expr) -> exp.Expr:
    """`TABLE t` and `VALUES …` as the SELECT that they stand for."""
    column = tree.this if isinstance(tree, exp.Alias) else None
    # sqlglot takes `TABLE t` for a column with an alias
    if isinstance(column, exp.Column) and folded(column.sql()) == "table":
        return exp.Select(expressions=[exp.Star()]).from_(exp.Table(this=tree.args["alias"]))
    if isinstance(tree, exp.Values):
        return exp.Select(expressions=[exp.Star()]).from_(tree)
    return tree


def with_value_names(tree: exp.Expr) -> exp.Expr:
    """The query with names for the columns of VALUES, those that Spark gives them."""
    for place, values in enumerate(tree.find_all(exp.Values), 1):
        if values.alias_column_names or not values.expressions:
            continue
        first = values.expressions[0]
        width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
        name = values.alias or f"values_{place}"
        columns = [exp.to_identifier(f"col{each}") for each in range(1, width + 1)]
        values.set("alias", exp.TableAlias(this=exp.to_identifier(name), columns=columns))
    return tree


def with_ranges(tree: exp.Expr) -> exp.Expr:
    """The query with `range(…)` of written numbers as the sequence that it is."""
    for table in list(tree.find_all(exp.Table)):
        bounds = _range(table)
        if bounds is None:
            continue
        start, end, step = bounds
        numbers = range(start, end, step)
        items = [exp.cast(number(each), "BIGINT") for each in (start, numbers[-1], step)]
        array: exp.Expr = exp.Anonymous(this="SEQUENCE", expressions=items)
        query = exp.select(exp.alias_(exp.Anonymous(this="EXPLODE", expressions=[array]), "id"))
        alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier("range"))
        table.replace(exp.Subquery(this=query, alias=alias.copy()))
    return tree


def is_range(table: exp.Table) -> bool:
    """Whether a table function is a range that can be written as a sequence."""
    return _range(table) is not None


def _range(table: exp.Table) -> tuple[int, int, int] | None:
    """Start, end and step of a range that is not empty; None for anything else."""
    call = table.this
    if not isinstance(call, exp.Anonymous) or folded(call.name) != "range":
        return None
    values = [_integer(each) for each in call.expressions]
    numbers = [each for each in values if each is not None]
    if len(numbers) != len(values) or not 1 <= len(numbers) <= 3:
        return None
    start, end = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    step = numbers[2] if len(numbers) == 3 else 1
    return (start, end, step) if step and len(range(start, end, step)) else None


def _integer(tree: exp.Expr) -> int | None:
    if isinstance(tree, exp.Neg):
        found = _integer(tree.this)
        return None if found is None else -found
    is_number = isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdigit()
    return int(tree.name) if is_number else None


def with_star_arguments(tree: exp.Expr, columns_of: Callable[[exp.Expr], list[str]]) -> exp.Expr:
    """The query with `*` as an argument spelled out."""
    for star in list(tree.find_all(exp.Star)):
        select = star.find_ancestor(exp.Select)
        if not is_star_argument(star) or select is None:
            continue
        holder = star.parent if isinstance(star.parent, exp.Column) else star
        only = holder.table if isinstance(holder, exp.Column) else ""
        columns = [
            column(name, relation.alias_or_name)
            for relation in relations(select)
            if not only or folded(relation.alias_or_name) == folded(only)
            for name in columns_of(relation)
        ]
        parent = holder.parent
        if parent is not None and holder.arg_key == "expressions":
            items = parent.expressions
            place = next(number for number, each in enumerate(items) if each is holder)
            parent.set("expressions", [*items[:place], *columns, *items[place + 1 :]])
    return tree


def is_star_argument(star: exp.Star) -> bool:
    """Whether a star stands for the arguments of a call, other than COUNT(*)."""
    holder = star.parent if isinstance(star.parent, exp.Column) else star
    parent = holder.parent
    if isinstance(parent, exp.Count) and holder is star:
        return False
    return not isinstance(parent, exp.Select)


def is_star(item: exp.Expr) -> bool:
    """Whether an item of a select list stands for many columns."""
    last = item.expression if isinstance(item, exp.Dot) else item
    last = last.this if isinstance(last, exp.Column) else last
    return isinstance(last, exp.Star)


def with_window_times(tree: exp.Expr) -> exp.Expr:
    """The query with `window_time(w)` as the last moment of the window."""

    def one(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Anonymous) or folded(node.name) != "window_time":
            return node
        end = exp.Dot(this=node.expressions[0], expression=exp.to_identifier("end"))
        moment: exp.Expr = exp.maybe_parse("MAKE_DT_INTERVAL(0, 0, 0, 0.000001)", dialect="spark")
        return exp.Sub(this=end, expression=moment)

    return tree.transform(one)


def with_grouped_subqueries(tree: exp.Expr) -> exp.Expr:
    """The query with the place of a subquery in GROUP BY as the subquery that stands there."""
    for select in list(tree.find_all(exp.Select)):
        group = select.args.get("group")
        items = select.expressions
        for key in list(group.expressions) if group is not None else ():
            place = _integer(key)
            if place is None or not 0 < place <= len(items) or any(map(is_star, items)):
                continue
            item = items[place - 1].unalias()
            if isinstance(item, exp.Subquery):
                bare = item.copy()
                bare.set("alias", None)
                key.replace(bare)
    return tree


def with_grouping_ids(tree: exp.Expr) -> exp.Expr:
    """The query with `grouping__id`, the column, as GROUPING_ID(), the function."""
    for found in list(tree.find_all(exp.Column)):
        select = found.find_ancestor(exp.Select)
        group = None if select is None else select.args.get("group")
        if folded(found.name) != "grouping__id" or found.table or group is None:
            continue
        if group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is None:
            continue
        call: exp.Expr = exp.Anonymous(this="GROUPING_ID", expressions=[])
        if isinstance(found.parent, exp.Select):
            call = exp.alias_(call, found.this.copy())
        found.replace(call)
    return tree


def with_generated_names(tree: exp.Expr, where: str, questions: Questions) -> exp.Expr:
    """The query with the names that Spark gives to the columns of generators."""
    for place, lateral in enumerate(tree.find_all(exp.Lateral), 1):
        if isinstance(lateral.this, exp.Query) or lateral.alias_column_names:
            continue
        called = exp.to_identifier(lateral.alias or f"generated_{place}", quoted=True)
        lateral.set("alias", exp.TableAlias(this=called.copy()))
        select = lateral.find_ancestor(exp.Select)
        star = exp.Column(this=exp.Star(), table=called.copy())
        found = None if select is None else questions.about([star], select)
        names = [name for name, _ in found or ()] or GENERATED.get(folded(lateral.this.name), ())
        if not names:
            raise Unsupported(
                f"{lateral.this.sql(dialect='spark')} without names for its columns",
                position=where,
                reason="what they are called depends on the types of what it reads",
                rewrite="LATERAL VIEW explode(…) name AS column",
            )
        columns = [exp.to_identifier(name, quoted=True) for name in names]
        lateral.set("alias", exp.TableAlias(this=called.copy(), columns=columns))
    return tree


def with_lateral_views(tree: exp.Expr, where: str, questions: Questions) -> exp.Expr:
    """The query with the generators of select lists in FROM."""
    for count, select in enumerate(list(tree.find_all(exp.Select)), 1):
        found = [item for item in select.expressions if is_generator(item)]
        if not found:
            continue
        item = found[0]
        names = _names(item, select, questions)
        has_groups = select.args.get("group") or aggregate_calls(list(select.expressions))
        if len(found) > 1 or has_groups or not names or select.find(exp.Window):
            raise Unsupported(
                f"the generator {item.unalias().sql(dialect='spark')} in this select list",
                position=where,
                reason="it is unnamed, one of many, or beside aggregates or window functions",
                rewrite="SELECT …, x FROM … LATERAL VIEW explode(xs) name AS x",
            )
        called = exp.to_identifier(f"generated_{count}", quoted=True)
        alias = exp.TableAlias(this=called, columns=[name.copy() for name in names])
        call = positional((item.this if isinstance(item, exp.Aliases) else item.unalias()).copy())
        is_outer = folded(call.name).endswith("_outer")
        if is_outer:
            call.set("this", call.name[: -len("_outer")])
        lateral = exp.Lateral(this=call, view=True, outer=is_outer, alias=alias)
        lateral.meta[LISTED] = True
        select.append("laterals", lateral)
        columns = [exp.column(name.copy(), table=called.copy()) for name in names]
        place = select.expressions.index(item)
        items = list(select.expressions)
        select.set("expressions", [*items[:place], *columns, *items[place + 1 :]])
    return tree


def is_listed(lateral: exp.Expr) -> bool:
    """Whether a generator stood in a select list, so that it sees only rows that WHERE keeps."""
    return LISTED in lateral.meta


def _names(item: exp.Expr, select: exp.Select, questions: Questions) -> list[exp.Expr]:
    """The columns of a generator in a select list, as written or as Spark calls them."""
    if isinstance(item, exp.Aliases):
        return list(item.expressions)
    alias = item.args.get("alias")
    if alias is not None:
        return [alias]
    names = [name for name, _ in questions.about([item], select) or ()]
    names = names or list(GENERATED.get(folded(item.name), ()))
    return [exp.to_identifier(name, quoted=True) for name in names]


def is_generator(item: exp.Expr) -> bool:
    """Whether an item of a select list makes rows."""
    call = item.this if isinstance(item, exp.Aliases) else item.unalias()
    return isinstance(call, exp.Anonymous) and folded(call.name) in functions.GENERATORS
