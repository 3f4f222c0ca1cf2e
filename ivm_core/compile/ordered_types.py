"""Types that change the order of values: a text that is taken for a number, a float for a decimal.

'10' comes before '9', and 10 after 9; an infinite float is a NULL among decimals. An extreme of the
one order is none of the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.compile.nulls import chosen_from
from ivm_core.model.types import FLOAT_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

TEXT, FLOAT = "STRING", "DOUBLE"
_COMPARED = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.EQ, exp.NEQ, exp.NullSafeEQ)
_FLOATS = (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)


def kind_of_value(tree: exp.Expr, kind_of: Callable[[str], str]) -> str:
    """TEXT, FLOAT, or nothing for all others."""
    if is_text(tree, kind_of):
        return TEXT
    return FLOAT if _has_float(tree, kind_of) else ""


def reordered(tree: exp.Expr, moving: Collection[str], kind_of: Callable[[str], str]) -> str:
    """Why the order of moving columns is another one in an expression; nothing where it is not."""
    for column in tree.find_all(exp.Column):
        if column.name in moving and kind_of(column.name) == TEXT and not _stays(column, kind_of):
            return (
                "a text is in another order than the number that it spells; compare it with texts "
                "('10', CAST(x AS STRING)), or make it a number below the recursion"
            )
    for cast in tree.find_all(exp.Cast):
        to_decimal = cast.to.this == exp.DataType.Type.DECIMAL
        if to_decimal and _reads(cast, moving) and _has_float(cast.this, kind_of):
            return "an infinite float is a NULL among decimals"
    return ""


def is_text(tree: exp.Expr, kind_of: Callable[[str], str]) -> bool:
    """Whether a value is a text, and known to be one."""
    tree = tree.unnest()
    if isinstance(tree, exp.Column):
        return kind_of(tree.name) == TEXT
    if isinstance(tree, exp.Literal):
        return bool(tree.is_string)
    if isinstance(tree, exp.Cast):
        return tree.to.this in exp.DataType.TEXT_TYPES
    parts = chosen_from(tree, "least") or chosen_from(tree, "greatest")
    return bool(parts) and all(is_text(part, kind_of) for part in parts)


def _stays(tree: exp.Expr, kind_of: Callable[[str], str]) -> bool:
    """Whether a text is used as one in all that is around it."""
    around = tree.parent
    while isinstance(around, exp.Paren):
        tree, around = around, around.parent
    if around is None or isinstance(around, exp.And | exp.Or | exp.Not | exp.Is | exp.Alias):
        return True
    if isinstance(around, _COMPARED):
        return is_text(around.left, kind_of) and is_text(around.right, kind_of)
    return is_text(around, kind_of) and _stays(around, kind_of)


def _has_float(tree: exp.Expr, kind_of: Callable[[str], str]) -> bool:
    if any(kind_of(each.name) in FLOAT_KINDS for each in tree.find_all(exp.Column)):
        return True
    return any(each.to.this in _FLOATS for each in tree.find_all(exp.Cast))


def _reads(tree: exp.Expr, columns: Collection[str]) -> bool:
    return any(each.name in columns for each in tree.find_all(exp.Column))
