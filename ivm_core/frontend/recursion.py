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
    """Whether the statement begins WITH RECURSIVE."""
    return _with(tree) is not None


def circles(tree: exp.Expr) -> list[tuple[str, ...]]:
    """Names of the statement's recursive expressions, those together that read each other."""
    found = _with(tree)
    if found is None:
        return []
    ctes = {folded(cte.alias): cte for cte in found.expressions}
    reads = {name: _tables(cte.this) & set(ctes) for name, cte in ctes.items()}
    return [g for g in components(reads) if len(g) > 1 or g[0] in reads[g[0]]]


def recursive_queries(
    tree: exp.Expr, relations: Mapping[str, str], where: str
) -> dict[str, RecursiveQuery]:
    """The queries of the recursive expressions, by the relations that they become."""
    found = _with(tree)
    if found is None:
        return {}
    ctes = {folded(cte.alias): cte for cte in found.expressions}
    _refuse_hidden(tree, relations, where)
    queries = {}
    for name, relation in relations.items():
        query = _renamed(ctes[name].this.copy(), relations)
        columns = tuple(each.name for each in ctes[name].args["alias"].args.get("columns") or ())
        needed = _needed(query, ctes, relations)
        if needed:
            own = query.args.get("with_")
            inner = list(own.expressions) if own is not None else []
            query.set("with_", exp.With(expressions=[*needed, *inner]))
        queries[relation] = RecursiveQuery(text_of(_named(query, columns)), columns)
    return queries


def without_recursion(tree: exp.Expr, relations: Mapping[str, str], where: str) -> exp.Expr:
    """The statement with relations in place of its recursive expressions."""
    found = _with(tree)
    if found is None:
        return tree
    _refuse_hidden(tree, relations, where)
    kept = [cte for cte in found.expressions if folded(cte.alias) not in relations]
    tree.set("with_", exp.With(expressions=kept) if kept else None)
    return _renamed(tree, relations)


def _with(tree: exp.Expr) -> exp.With | None:
    found = tree.args.get("with_")
    return found if isinstance(found, exp.With) and found.args.get("recursive") else None


def _tables(tree: exp.Expr) -> set[str]:
    return {folded(table.name) for table in tree.find_all(exp.Table) if not table.db}


def _refuse_hidden(tree: exp.Expr, relations: Mapping[str, str], where: str) -> None:
    """A name has to mean one thing in the whole statement."""
    outer = _with(tree)
    for cte in tree.find_all(exp.CTE):
        if folded(cte.alias) in relations and cte.parent is not outer:
            raise Unsupported(
                f"a second common table expression {cte.alias}",
                position=where,
                reason="a recursive one of the statement has the same name",
                rewrite="give it another name",
            )


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
    return [_renamed(cte.copy(), relations) for name, cte in ctes.items() if name in wanted]


def _named(query: exp.Expr, columns: tuple[str, ...]) -> exp.Expr:
    """The query with its columns named in its first branch, where that lists them."""
    first = query
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    items = first.expressions if isinstance(first, exp.Select) else []
    if columns and len(items) == len(columns) and not any(item.is_star for item in items):
        named = [
            exp.alias_(item.unalias(), exp.to_identifier(name, quoted=True))
            for item, name in zip(items, columns, strict=True)
        ]
        first.set("expressions", named)
    return query
