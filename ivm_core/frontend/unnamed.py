"""Output columns without a name get one: the words of their text.

    SELECT k, COUNT(*), SUM(x + 1) FROM t …     k, count, sum_x_1

Spark would call them `count(1)` and `sum((x + 1))`, which Delta can't store.
"""

from __future__ import annotations

import re

from sqlglot import exp

from ivm_core.frontend.other_ways import is_generator, is_star
from ivm_core.frontend.spelling import folded
from ivm_core.model.names import is_storable

LONGEST = 60
WORD = re.compile(r"[a-z0-9_]+")


def with_names(tree: exp.Expr) -> tuple[str, ...]:
    """Name the items of the outermost select list that have no name; the names, in order."""
    query: exp.Expr = tree
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    if not isinstance(query, exp.Select):
        return ()
    items: list[exp.Expr] = []
    taken = {folded(item.output_name) for item in query.expressions if _has_name(item)}
    given: list[str] = []
    for place, item in enumerate(query.expressions, 1):
        if is_star(item) or is_generator(item) or _has_name(item):
            items.append(item)
            continue
        # a literal is called by its value, in Spark too
        is_value = isinstance(item, exp.Literal) and is_storable(item.name)
        name = _free((item.name if is_value else _words(item)) or f"column_{place}", taken)
        given += [] if is_value else [name]
        items.append(exp.alias_(item.copy(), exp.to_identifier(name, quoted=True)))
    query.set("expressions", items)
    return tuple(given)


def _has_name(item: exp.Expr) -> bool:
    bare = item
    while isinstance(bare, exp.Dot):
        bare = bare.this
    if isinstance(item, exp.Dot) and not isinstance(bare, exp.Column | exp.Identifier):
        return False
    return bool(item.output_name) and not isinstance(item.unnest(), exp.Literal | exp.Bracket)


def _words(item: exp.Expr) -> str:
    name = "_".join(WORD.findall(item.sql(dialect="spark").lower()))
    return name if len(name) <= LONGEST and not name[:1].isdigit() else ""


def _free(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while folded(found) in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(folded(found))
    return found
