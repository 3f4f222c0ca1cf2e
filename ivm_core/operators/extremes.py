"""MIN and MAX: monotone under insertion, recomputed where a deletion reaches the value.

    Δ⁺ the inserted arguments, Δ⁻ the deleted ones:
    MIN(A + Δ) = LEAST(MIN(A), MIN(Δ⁺)) unless MIN(Δ⁻) ≤ MIN(A), and so with MAX and ≥

−0.0 counts as 0.0 and every NaN as one NaN, greater than all numbers, so that the value never
depends on which of two equal rows came first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ivm_core.model.names import WEIGHT
from ivm_core.model.types import Array, DataType, Struct, has_float
from ivm_core.operators.accumulator import AccColumn, Accumulator, Finalised, required
from ivm_core.operators.formula import Level, formula
from ivm_core.operators.sql import column, named

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot import exp


@dataclass(frozen=True)
class Extreme(Accumulator):
    """MIN or MAX of any type that Spark can order."""

    function: Literal["MIN", "MAX"]
    argument_type: DataType

    @property
    def result_type(self) -> DataType:
        """The argument's type."""
        return self.argument_type

    @property
    def columns(self) -> tuple[AccColumn, ...]:
        """The value at the newest tick."""
        return (AccColumn(self.named("m"), self.argument_type, "latest"),)

    def prepare(self, argument: exp.Expr | None) -> tuple[Level, ...]:
        """The argument, with one form of each number."""
        return (((self.named("x"), with_one_zero(required(argument), self.argument_type)),),)

    @property
    def fold(self) -> Level:
        """The extreme of the insertions."""
        return ((self.named("m"), self._over("> 0")),)

    @property
    def deleted(self) -> Level:
        """The extreme of the deletions, for `is_reached`."""
        return ((self.named("gone"), self._over("< 0")),)

    def is_reached(self, old: exp.Expr, gone: exp.Expr) -> exp.Expr:
        """Whether deletions can have taken the old value away; never NULL."""
        test = ":gone <= :old" if self.function == "MIN" else ":gone >= :old"
        return formula(f"COALESCE({test}, FALSE)", gone=gone, old=old)

    def merge(self, old: exp.Expr, new: exp.Expr) -> exp.Expr:
        """The extreme of two values, of which either may be NULL."""
        best = "LEAST(:old, :new)" if self.function == "MIN" else "GREATEST(:old, :new)"
        return formula(best, old=old, new=new)

    def _over(self, rows: str) -> exp.Expr:
        return formula(
            f"{self.function}(:x) FILTER(WHERE :weight {rows})",
            x=column(self.named("x")),
            weight=column(WEIGHT),
        )

    def finalise(self, state: Callable[[str], exp.Expr], tag: str = "") -> Finalised:
        """The value itself."""
        return Finalised((), state(self.named("m")))


def with_one_zero(tree: exp.Expr, of: DataType) -> exp.Expr:
    """The value with −0.0 as 0.0 and one NaN, also within arrays and structs."""
    if not has_float(of):
        return tree
    if isinstance(of, Array):
        element = with_one_zero(formula("element"), of.element)
        return formula("TRANSFORM(:x, element -> :one)", x=tree, one=element)
    if isinstance(of, Struct):
        fields = [named(with_one_zero(_field(tree, name), kind), name) for name, kind in of.fields]
        struct = formula("STRUCT()")
        struct.set("expressions", fields)
        return formula("IF(:x IS NULL, NULL, :struct)", x=tree, struct=struct)
    return formula(f"NANVL(:x + CAST(0 AS {of.ddl}), CAST('NaN' AS {of.ddl}))", x=tree)


def _field(tree: exp.Expr, name: str) -> exp.Expr:
    hole = formula(":x.f", x=tree)
    hole.set("expression", column(name).this)
    return hole
