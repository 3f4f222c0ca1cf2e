"""Output columns without a name get one: the words of their text.

    SELECT k, COUNT(*), SUM(x + 1) FROM t …     k, count, sum_x_1

Spark would call them `count(1)` and `sum((x + 1))`, which Delta can't store.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.other_ways import is_generator, is_star
from ivm_core.frontend.outer import relations
from ivm_core.frontend.spelling import folded
from ivm_core.model.names import is_storable

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 60
WORD = re.compile(r"[a-z0-9_]+")


@dataclass(frozen=True)
class Given:
    """Names of output columns that had none."""

    names: tuple[str, ...] = ()
    """In the order of the columns."""
    columns: tuple[str, ...] = ()
    """All columns; nothing where a star or a generator stands for nobody knows how many."""

    def renamed(self, theirs: Sequence[str]) -> list[str]:
        """The names that Spark gives, but ours where it calls a column by its text."""
        if len(theirs) == len(self.columns):
            pairs = zip(theirs, self.columns, strict=True)
            return [own if own in self.names or _is_text(name) else name for name, own in pairs]
        names = iter(self.names)
        return [next(names, name) if _is_text(name) else name for name in theirs]


def with_names(tree: exp.Expr) -> Given:
    """Name the items of the outermost select list that have no name.

    Where a star stands for the columns of derived tables, theirs are named.
    """
    query = _select(tree)
    if query is None:
        return Given()
    names = _named(query)
    if any(map(is_star, query.expressions)):
        if not _has_written_names(tree):
            for relation in relations(query):
                names += _of_derived(relation)
        return Given(tuple(names))
    if any(map(is_generator, query.expressions)):
        return Given(tuple(names))
    return Given(tuple(names), tuple(item.output_name for item in query.expressions))


def _is_text(name: str) -> bool:
    """Whether Spark calls a column by its text."""
    return not is_storable(name) or "[" in name


def _select(tree: exp.Expr) -> exp.Select | None:
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    return tree if isinstance(tree, exp.Select) else None


def _of_derived(relation: exp.Expr) -> list[str]:
    """The names that the columns of a derived table get, if it has no list of them."""
    is_derived = isinstance(relation, exp.Subquery | exp.Lateral)
    inner = _select(relation.this) if is_derived and not relation.alias_column_names else None
    if inner is None:
        return []
    names = _named(inner)
    if any(map(is_star, inner.expressions)):
        for each in relations(inner):
            names += _of_derived(each)
    return names


def _has_written_names(tree: exp.Expr) -> bool:
    """Whether it calls a column by the text that is Spark's name of it."""
    quoted = (each for each in tree.find_all(exp.Identifier) if each.args.get("quoted"))
    return any(not is_storable(each.name) for each in quoted)


def _named(query: exp.Select) -> list[str]:
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
    return given


def _has_name(item: exp.Expr) -> bool:
    bare = item
    while isinstance(bare, exp.Dot):
        bare = bare.this
    if isinstance(item, exp.Dot) and not isinstance(bare, exp.Column | exp.Identifier):
        return False
    while isinstance(bare, exp.Cast | exp.Paren):
        bare = bare.this
    return bool(item.output_name) and not isinstance(bare, exp.Literal | exp.Bracket)


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
