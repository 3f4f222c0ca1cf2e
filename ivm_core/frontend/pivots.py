"""PIVOT and UNPIVOT as the queries that they stand for.

    t PIVOT (SUM(x) FOR k IN ('a'))     SELECT rest, SUM(x) FILTER (WHERE k <=> 'a') AS a
                                        FROM t GROUP BY rest
    t UNPIVOT (v FOR n IN (a, b))       SELECT rest, n, v FROM t
                                        LATERAL VIEW inline(array(('a', a), ('b', b))) AS n, v

What Spark does where a group has no row of a pivoted value depends on the types of the aggregates:
NULL for all of them if all are numbers or booleans, else what each gives over no rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.aggregates import OF_NO_ROWS, aggregate_calls
from ivm_core.frontend.spelling import folded
from ivm_core.model.errors import Unsupported
from ivm_core.operators.calls import core, function_name
from ivm_core.operators.sql import column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ivm_core.frontend.questions import Questions

COUNTS = {"count", "approx_count_distinct", "count_if"}
NUMBERS = {*COUNTS, "sum", "avg", "mean", "stddev", "variance", "corr", "median", "percentile"}
LISTS = set(OF_NO_ROWS) - COUNTS
PLAIN = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
"""How the names of types begin whose values Spark pivots by place."""


def without_pivots(
    tree: exp.Expr,
    columns_of: Callable[[exp.Expr], list[str]],
    where: str,
    questions: Questions,
) -> exp.Expr:
    """The query with derived tables in place of (UN)PIVOTs, innermost first."""
    found = [node for node in tree.walk(bfs=False) if node.args.get("pivots")]
    for relation in reversed(found):
        pivots = relation.args["pivots"]
        relation.set("pivots", None)
        derived: exp.Expr = relation
        for pivot in pivots:
            names = columns_of(derived)
            inner = derived.copy()
            if pivot.args.get("unpivot"):
                query = _unpivoted(pivot, inner, names, where)
            else:
                query = _pivoted(pivot, inner, names, where, _types(pivot, derived, questions))
            alias = pivot.args.get("alias") or exp.TableAlias(this=exp.to_identifier("pivoted"))
            replaced = exp.Subquery(this=query, alias=alias.copy())
            derived.replace(replaced)
            derived = replaced
    return tree


def _types(pivot: exp.Expr, relation: exp.Expr, questions: Questions) -> list[str]:
    """The types of the aggregates, where they are known."""
    over = exp.Select(expressions=[exp.Star()]).from_(relation.copy())
    over.parent = relation.parent
    items = [exp.alias_(e.unalias(), f"c{n}") for n, e in enumerate(pivot.expressions)]
    return [found for _, found in questions.about(items, over) or ()]


def _pivoted(
    pivot: exp.Expr, relation: exp.Expr, names: list[str], where: str, types: list[str]
) -> exp.Select:
    aggregates: list[exp.Expr] = pivot.expressions
    field = pivot.args["fields"][0]
    keys = field.this.expressions if isinstance(field.this, exp.Tuple) else [field.this]
    used = {folded(c.name) for tree in (*aggregates, *keys) for c in tree.find_all(exp.Column)}
    rest = [column(name) for name in names if folded(name) not in used]
    needs_row = _is_null_without_rows(aggregates, where, types)
    items: list[exp.Expr] = [*rest]
    for each in field.expressions:
        value = each.this if isinstance(each, exp.PivotAlias) else each
        values = value.expressions if isinstance(value, exp.Tuple) else [value]
        pairs = zip(keys, values, strict=True)
        here = exp.and_(
            *[exp.NullSafeEQ(this=k.copy(), expression=v.copy()) for k, v in pairs], copy=False
        )
        for aggregate in aggregates:
            result = _only_where(aggregate.unalias(), here)
            if needs_row:
                rows = _filtered(exp.Count(this=exp.Star(), big_int=True), here)
                some = exp.GT(this=rows, expression=exp.Literal.number(0))
                result = exp.case().when(some, result)
            name = _name(each, aggregate, many=len(aggregates) > 1, where=where)
            items.append(exp.alias_(result, exp.to_identifier(name, quoted=True)))
    query = exp.Select(expressions=items).from_(relation)
    if rest:
        query.set("group", exp.Group(expressions=[each.copy() for each in rest]))
    return query


def _only_where(tree: exp.Expr, here: exp.Expr) -> exp.Expr:
    """The expression with every aggregate in it over the rows of one pivoted value."""
    tree = tree.copy()
    for call in aggregate_calls([tree]):
        filtered = _filtered(call.copy(), here)
        if call is tree:
            return filtered
        call.replace(filtered)
    return tree


def _filtered(call: exp.Expr, here: exp.Expr) -> exp.Expr:
    if isinstance(call, exp.Filter):
        both = exp.and_(call.expression.this, here.copy())
        return exp.Filter(this=call.this, expression=exp.Where(this=both))
    return exp.Filter(this=call, expression=exp.Where(this=here.copy()))


def _is_null_without_rows(aggregates: list[exp.Expr], where: str, types: list[str]) -> bool:
    calls = aggregate_calls([each.unalias() for each in aggregates])
    names = {function_name(core(call)) for call in calls}
    if names & LISTS or not names & COUNTS:
        return False
    if types:
        return all(each.startswith(PLAIN) for each in types)
    if names - NUMBERS:
        raise Unsupported(
            f"PIVOT with a count beside {', '.join(sorted(names - NUMBERS))}",
            position=where,
            reason="what it counts where there are no rows depends on the types of the others",
            rewrite="COUNT(*) FILTER (WHERE key = value) with GROUP BY, or two PIVOTs and a join",
        )
    return True


def _name(value: exp.Expr, aggregate: exp.Expr, *, many: bool, where: str) -> str:
    alias = value.args.get("alias")
    name = _as_text(value) if alias is None else str(alias.name)
    if not name or (many and not aggregate.alias):
        raise Unsupported(
            "PIVOT without names for its columns",
            position=where,
            reason=f"{(aggregate if name else value).sql(dialect='spark')} names no column",
            rewrite="PIVOT (SUM(x) AS total, COUNT(*) AS n FOR k IN ('a' AS first))",
        )
    return f"{name}_{aggregate.alias}" if many else name


def _as_text(value: exp.Expr) -> str:
    if isinstance(value, exp.Tuple):
        parts = [_as_text(each) for each in value.expressions]
        return "{" + ", ".join(parts) + "}" if all(parts) else ""
    if isinstance(value, exp.Null):
        return "null"
    return str(value.name) if isinstance(value, exp.Literal) else ""


def _unpivoted(pivot: exp.Expr, relation: exp.Expr, names: list[str], where: str) -> exp.Select:
    field = pivot.args["fields"][0]
    first = pivot.expressions[0]
    values = [each.name for each in (first.expressions if _is_tuple(first) else [first])]
    structs: list[exp.Expr] = []
    used: set[str] = set()
    for each, columns, name in _unpivoted_columns(field):
        used |= {folded(column.name) for column in columns}
        if len(columns) != len(values):
            raise Unsupported(
                f"UNPIVOT of {each.sql(dialect='spark')} into {len(values)} columns",
                position=where,
                reason="it has another number of columns",
                rewrite="UNPIVOT ((v, w) FOR n IN ((a, b), (c, d)))",
            )
        parts: list[exp.Expr] = [exp.Literal.string(field.this.name), exp.Literal.string(name)]
        for value, each_column in zip(values, columns, strict=True):
            parts += [exp.Literal.string(value), each_column.copy()]
        structs.append(exp.Anonymous(this="NAMED_STRUCT", expressions=parts))
    rest = [column(name) for name in names if folded(name) not in used]
    array = exp.Anonymous(this="ARRAY", expressions=structs)
    made = [field.this.name, *values]
    alias = exp.TableAlias(
        this=exp.to_identifier("?unpivot", quoted=True),
        columns=[exp.to_identifier(name, quoted=True) for name in made],
    )
    lateral = exp.Lateral(
        this=exp.Anonymous(this="INLINE", expressions=[array]), view=True, alias=alias
    )
    query = exp.Select(expressions=[*rest, *map(column, made)]).from_(relation)
    query.set("laterals", [lateral])
    derived = exp.Select(expressions=[column(each.name) for each in query.expressions])
    derived = derived.from_(exp.Subquery(this=query, alias=exp.TableAlias(this="?unpivot_rows")))
    if not pivot.args.get("include_nulls"):
        present = [column(value).is_(exp.null()).not_() for value in values]
        derived.set("where", exp.Where(this=exp.or_(*present)))
    return derived


def _unpivoted_columns(field: exp.Expr) -> Iterator[tuple[exp.Expr, list[exp.Expr], str]]:
    for each in field.expressions:
        value = each.this if isinstance(each, exp.PivotAlias) else each
        columns = value.expressions if _is_tuple(value) else [value]
        name = "_".join(column.name for column in columns)
        yield each, columns, each.args["alias"].name if isinstance(each, exp.PivotAlias) else name


def _is_tuple(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Tuple)
