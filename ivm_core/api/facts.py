"""Facts as a program gives them: tuples of plain values, checked against the declared columns.

Also what is to become of facts before the next step: operations fold per fact, in order.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame

from ivm_core.api.row_values import shown
from ivm_core.frontend.datalog.functors import Kind
from ivm_core.model.errors import BatchError

if TYPE_CHECKING:
    from ivm_core.frontend.datalog.relations import Column, Relation

Fact = tuple[Any, ...]
Rows = Any  # tuples, dicts, an Arrow table, a pandas or Spark DataFrame


def checked_facts(relation: Relation, rows: Rows) -> list[Fact]:
    """The facts, each a tuple of the relation's values; `BatchError` for the first that isn't."""
    return [_fact(relation, row, index) for index, row in enumerate(_given(relation, rows))]


def _given(relation: Relation, rows: Rows) -> Iterable[Any]:
    if isinstance(rows, DataFrame):
        rows = rows.toArrow()
    if not isinstance(rows, pa.Table) and hasattr(rows, "__arrow_c_stream__"):
        rows = pa.table(rows)
    if isinstance(rows, pa.Table):
        columns = [column.to_pylist() for column in rows.columns]
        return zip(*columns, strict=True) if columns else []
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise BatchError(
            f"facts of {relation.name} are a list of tuples, not {type(rows).__name__}",
            f"relation {relation.name}",
            "give [(1, 2), …], an Arrow table or a DataFrame",
            got=shown(rows),
        )
    return rows


def _fact(relation: Relation, row: Any, index: int) -> Fact:
    columns = relation.columns
    if isinstance(row, Mapping):
        names = {each.name for each in columns}
        if set(row) != names:
            raise _wrong(relation, index, row, f"a fact of ({', '.join(sorted(names))})")
        row = tuple(row[each.name] for each in columns)
    if isinstance(row, str | bytes) or not isinstance(row, tuple | list):
        raise _wrong(relation, index, row, f"a tuple of {len(columns)}")
    if len(row) != len(columns):
        raise _wrong(relation, index, row, f"a tuple of {len(columns)}, not of {len(row)}")
    return tuple(
        _value(relation, column, value, index) for column, value in zip(columns, row, strict=True)
    )


def _value(relation: Relation, column: Column, value: Any, index: int) -> Any:
    kind = column.kind
    if kind is Kind.SYMBOL:
        if isinstance(value, str) and _is_unicode(value):
            return str(value)
        raise _wrong(relation, index, value, "a text", column)
    if isinstance(value, bool) or value is None or isinstance(value, str):
        raise _wrong(relation, index, value, f"a {_word(kind)}", column)
    if kind is Kind.FLOAT:
        number = _float(value)
        if number is None or math.isnan(number):
            raise _wrong(relation, index, value, "a float; NaN is no fact", column)
        return number + 0.0  # −0.0 is 0.0
    try:
        whole = operator.index(value)
    except TypeError:
        raise _wrong(relation, index, value, f"a {_word(kind)}", column) from None
    if not column.least <= whole <= column.most:
        raise _wrong(
            relation, index, value, f"a number from {column.least} to {column.most}", column
        )
    return whole


def _word(kind: Kind) -> str:
    return "float" if kind is Kind.FLOAT else "whole number"


def _float(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _wrong(
    relation: Relation, index: int, got: Any, expected: str, column: Column | None = None
) -> BatchError:
    at = f", column {column.name}" if column else ""
    return BatchError(
        f"{shown(got)} is no {'value' if column else 'fact'} of {relation.name}",
        f"relation {relation.name}{at}",
        f"it is declared as {relation.text}; nothing of these facts was taken",
        column=column.name if column else "",
        expected=expected,
        got=shown(got),
        row=index,
    )


INSERT, REMOVE = 1, 0


@dataclass
class Operations:
    """What is to become of facts of one relation: for each the first and the last operation.

    An operation that repeats the one before on the same fact changes nothing, and is counted.
    """

    of: dict[Fact, int] = field(default_factory=dict)
    """Twice the first operation, plus the last one."""
    repeated: int = 0

    def add(self, facts: Iterable[Fact], operation: int) -> None:
        """Take an operation on facts, after all that were taken before."""
        for fact in facts:
            known = self.of.get(fact)
            if known is None:
                self.of[fact] = 3 * operation
            elif known % 2 == operation:
                self.repeated += 1
            else:
                self.of[fact] = known // 2 * 2 + operation

    def followed_by(self, later: Operations) -> Operations:
        """These and then those."""
        merged = Operations(dict(self.of), self.repeated + later.repeated)
        for fact, code in later.of.items():
            merged.add([fact], code // 2)
            if code // 2 != code % 2:
                merged.add([fact], code % 2)
        return merged

    def against(self, present: set[Fact]) -> tuple[list[Fact], list[int], int]:
        """Facts that come and go, with their weights, and how many operations change nothing."""
        facts: list[Fact] = []
        weights: list[int] = []
        nothing = self.repeated
        for fact, code in self.of.items():
            there = fact in present
            nothing += (code // 2 == INSERT) == there
            if (code % 2 == INSERT) != there:
                facts.append(fact)
                weights.append(1 if code % 2 == INSERT else -1)
        return facts, weights, nothing
