"""WITH RECURSIVE: its recursive common table expressions become relations of their own.

    WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT n + 1 FROM t WHERE n < 9) SELECT n FROM t

reads as two queries: that of `t`, which reads itself, and the one that reads `t`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.spelling import folded
from ivm_core.model.errors import Unsupported
from ivm_core.operators.sql import text_of
from ivm_core.plan.recursion import components

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class RecursiveQuery:
    """A common table expression that reads itself."""

    sql: str
    columns: tuple[str, ...]
    """The names that it gives its columns; none where its query does."""


def relations_named(tree: exp.Expr) -> set[str]:
    """What stands where relations do, without the common table expressions; in lower case."""
    own = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    return {table.name.casefold() for table in tree.find_all(exp.Table)} - own


def has_recursion(tree: exp.Expr) -> bool:
    """Whether the statement, or a query within it, begins WITH RECURSIVE."""
    return bool(_withs(tree))


def circles(tree: exp.Expr) -> list[tuple[str, ...]]:
    """Names of the statement's recursive expressions, those together that read each other."""
    ctes = {folded(cte.alias): cte for found in _withs(tree) for cte in found.expressions}
    reads = {name: _tables(cte.this) & set(ctes) for name, cte in ctes.items()}
    return [g for g in components(reads) if len(g) > 1 or g[0] in reads[g[0]]]


def recursive_queries(
    tree: exp.Expr, relations: Mapping[str, str], where: str
) -> dict[str, RecursiveQuery]:
    """The queries of the recursive expressions, by the relations that they become."""
    if not relations:
        return {}
    _refuse_hidden(tree, relations, where)
    ctes = {folded(cte.alias): cte for found in _withs(tree) for cte in found.expressions}
    queries = {}
    for name, relation in relations.items():
        _refuse_outer_columns(ctes[name], where)
        query = _over(ctes[name].this.copy(), relations)
        columns = tuple(each.name for each in ctes[name].args["alias"].args.get("columns") or ())
        needed = _needed(query, _seen_by(ctes[name]), relations)
        if needed:
            own = query.args.get("with_")
            inner = list(own.expressions) if own is not None else []
            query.set("with_", exp.With(expressions=[*needed, *inner]))
        queries[relation] = RecursiveQuery(text_of(named(query, columns)), columns)
    return queries


def without_recursion(tree: exp.Expr, relations: Mapping[str, str], where: str) -> exp.Expr:
    """The statement with relations in place of its recursive expressions."""
    _refuse_hidden(tree, relations, where)
    return _over(tree, relations)


def begins_with_reads(tree: exp.Expr, unknown: set[str]) -> bool:
    """Whether the first branch of a query's unions reads certain relations, in lower case."""
    while isinstance(tree, exp.Union | exp.Subquery):
        tree = tree.this
    return bool(relations_named(tree) & unknown)


def named(query: exp.Expr, columns: tuple[str, ...]) -> exp.Expr:
    """The query with its columns named in its first branch, where that lists them."""
    first = query
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    items = first.expressions if isinstance(first, exp.Select) else []
    if columns and len(items) == len(columns) and not any(item.is_star for item in items):
        aliased = [
            exp.alias_(item.unalias(), exp.to_identifier(name, quoted=True))
            for item, name in zip(items, columns, strict=True)
        ]
        first.set("expressions", aliased)
    return query


def without_reads(tree: exp.Expr, unknown: set[str]) -> exp.Expr | None:
    """The query without the branches of unions that read certain relations, in lower case.

    None where nothing is left.
    """
    while relations_named(tree) & unknown:
        for union in tree.find_all(exp.Union):
            sides = [
                side for side in (union.left, union.right) if not relations_named(side) & unknown
            ]
            if len(sides) == 1:
                kept = sides[0].copy()
                outer, inner = union.args.get("with_"), kept.args.get("with_")
                if outer is not None:
                    # what the union could name, each of its branches could
                    own = [] if inner is None else inner.expressions
                    kept.set("with_", exp.With(expressions=[*outer.expressions, *own]))
                if union is tree:
                    tree = kept
                else:
                    union.replace(kept)
                break
        else:
            return None
    return tree


def _over(tree: exp.Expr, relations: Mapping[str, str]) -> exp.Expr:
    """A query that reads relations, and has none of the recursive expressions that they were."""
    for found in _withs(tree):
        kept = [cte for cte in found.expressions if folded(cte.alias) not in relations]
        if found.parent is not None:
            found.parent.set("with_", exp.With(expressions=kept) if kept else None)
    return _renamed(tree, relations)


def _withs(tree: exp.Expr) -> list[exp.With]:
    return [each for each in tree.find_all(exp.With) if each.args.get("recursive")]


def _seen_by(cte: exp.CTE) -> dict[str, exp.CTE]:
    """The expressions that a recursive one may name: those beside it, and those around."""
    found: dict[str, exp.CTE] = {}
    query = cte.find_ancestor(exp.Query)
    while query is not None:
        beside = query.args.get("with_")
        near = [] if beside is None else beside.expressions
        # what is around comes first, and what is nearer hides it
        found = {**{folded(each.alias): each for each in near}, **found}
        query = query.find_ancestor(exp.Query)
    return found


def _tables(tree: exp.Expr) -> set[str]:
    return {folded(table.name) for table in tree.find_all(exp.Table) if not table.db}


def _refuse_hidden(tree: exp.Expr, relations: Mapping[str, str], where: str) -> None:
    """A name has to mean one thing in the whole statement, and a recursion to be one WITH's."""
    ctes: dict[str, exp.CTE] = {}
    for cte in tree.find_all(exp.CTE):
        name = folded(cte.alias)
        if name in relations and name in ctes:
            raise Unsupported(
                f"a second common table expression {cte.alias}",
                position=where,
                reason="a recursive one of the statement has the same name",
                rewrite="give it another name",
            )
        ctes[name] = cte
    for name in relations:
        beside = ctes[name].parent
        query = None if beside is None else beside.parent
        others = [each for each in tree.find_all(exp.Table) if folded(each.name) == name]
        if query is not None and any(not _is_within(each, query) for each in others):
            raise Unsupported(
                f"a recursive expression {name} beside a relation {name}",
                position=where,
                reason="outside of the query that has the expression the name means the relation",
                rewrite="give the expression another name",
            )
        around = ctes[name].find_ancestor(exp.CTE)
        while around is not None:
            if folded(around.alias) in relations:
                raise Unsupported(
                    f"the recursive expression {name} within {around.alias}, which is one too",
                    position=where,
                    reason="it would have to be complete in every iteration of the other",
                    rewrite="write both beside each other, behind one WITH RECURSIVE",
                )
            around = around.find_ancestor(exp.CTE)


def _is_within(tree: exp.Expr, query: exp.Expr) -> bool:
    while tree is not query and tree.parent is not None:
        tree = tree.parent
    return tree is query


def _refuse_outer_columns(cte: exp.CTE, where: str) -> None:
    """A recursion within a query has one result, not one for every row around it."""
    own = {folded(each.alias_or_name) for each in cte.find_all(exp.Table, exp.Subquery)}
    around: set[str] = set()
    query = cte.find_ancestor(exp.Query)
    outer = None if query is None else query.find_ancestor(exp.Select)
    while outer is not None:
        around |= {folded(each.alias_or_name) for each in _sources(outer)}
        outer = outer.find_ancestor(exp.Select)
    for column in cte.find_all(exp.Column):
        if folded(column.table) in around - own:
            raise Unsupported(
                f"{column.sql()} of the query around in the recursive expression {cte.alias}",
                position=where,
                reason="Spark doesn't allow it, and a recursion for every row is not maintained",
                rewrite="let the recursion begin with all values of the column, carry it along, "
                "and compare it where the recursion is read",
            )


def _sources(select: exp.Select) -> list[exp.Expr]:
    """What a SELECT reads in FROM."""
    found = select.args.get("from_") or select.args.get("from")
    first = [found.this] if found is not None else []
    return [*first, *(join.this for join in select.args.get("joins") or ())]


def _renamed(tree: exp.Expr, relations: Mapping[str, str]) -> exp.Expr:
    for table in list(tree.find_all(exp.Table)):
        relation = relations.get(folded(table.name))
        if relation is None or table.db:
            continue
        alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name))
        table.set("this", exp.to_identifier(relation, quoted=True))
        table.set("alias", alias)
    return tree


def _needed(
    query: exp.Expr, ctes: Mapping[str, exp.CTE], relations: Mapping[str, str]
) -> list[exp.Expr]:
    """The other expressions of the statement that a query reads, in the order written."""
    wanted: set[str] = set()
    waiting = [query]
    while waiting:
        new = (_tables(waiting.pop()) & set(ctes)) - wanted - set(relations)
        wanted |= new
        waiting += [ctes[name].this for name in new]
    return [_over(cte.copy(), relations) for name, cte in ctes.items() if name in wanted]
