"""Python values to Arrow columns, refusing whatever isn't exactly a value of the declared type."""

from __future__ import annotations

import decimal
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.model.errors import BatchError
from ivm_core.model.names import WEIGHT
from ivm_core.model.schema import Field, Schema
from ivm_core.model.types import FLOAT_KINDS, INTEGER_BITS, Array, DataType, Decimal, Map, Struct
from ivm_core.operators.arrow_types import to_arrow
from ivm_core.operators.row_identity import encoded_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

_LARGEST_FLOAT = 3.4028234663852886e38
_EXACT = decimal.Context(prec=200, traps=[decimal.InvalidOperation])
_TAKEN_AS_THEY_ARE: dict[str, frozenset[type]] = {
    "BOOLEAN": frozenset({bool}),
    **dict.fromkeys(INTEGER_BITS, frozenset({int})),
    "DOUBLE": frozenset({float}),
    "DECIMAL": frozenset({decimal.Decimal, int}),
    "STRING": frozenset({str}),
    "BINARY": frozenset({bytes}),
    "DATE": frozenset({date}),
}


class Misfit(Exception):
    """A value that isn't of the type; how to put it right, where that isn't obvious."""

    def __init__(self, fix: str = "", got: str = "") -> None:
        self.fix = fix
        self.got = got


@dataclass(frozen=True)
class Place:
    """Where values come from: the source, the column, and the row of each value."""

    source: str
    column: str
    rows: Sequence[int]

    def inside(self, step: str, rows: Sequence[int]) -> Place:
        """The elements or a field of the values here."""
        return replace(self, column=self.column + step, rows=rows)

    def refusal(self, index: int, of: DataType, got: str, fix: str = "") -> BatchError:
        """The error for the value at an index."""
        return BatchError(
            f"column {self.column} has a value that is not of its type",
            f"batch for source {self.source}",
            fix or f"give {of.ddl} values{'' if self.column == WEIGHT else ', or NULL'}",
            column=self.column,
            expected=of.ddl,
            got=got,
            row=self.rows[index],
        )


def shown(value: object) -> str:
    """A value and its type for a message, cut where it is long."""
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"


def column_of(values: Sequence[Any], of: DataType, place: Place) -> pa.Array:
    """The Arrow array of these values; a `BatchError` with the first one that doesn't fit."""
    match of:
        case Array(element):
            return _lists(values, element, of, place)
        case Map():
            return _maps(values, of, place)
        case Struct():
            return _structs(values, of, place)
    target = to_arrow(of)
    if {type(value) for value in values} - {type(None)} <= _TAKEN_AS_THEY_ARE.get(
        of.kind, frozenset()
    ):
        try:
            return pa.array(values, target)
        except (pa.ArrowException, OverflowError, ValueError):
            pass  # the slower way finds the first value that doesn't fit
    plain: list[Any] = []
    for index, value in enumerate(values):
        try:
            plain.append(_plain(value, of))
        except Misfit as misfit:
            raise place.refusal(index, of, misfit.got or shown(value), misfit.fix) from None
    return pa.array(plain, target)


def _plain(value: Any, of: DataType) -> Any:
    """The value as the plain Python type that Arrow takes without loss; else `Misfit`."""
    if is_missing(value):
        return None
    kind = of.kind
    if kind == "BOOLEAN":
        if type(value).__name__ in ("bool", "bool_"):
            return bool(value)
    elif type(value).__name__ in ("bool", "bool_"):
        raise Misfit
    elif kind in INTEGER_BITS:
        if isinstance(value, numbers.Integral):
            return _in_range(int(value), INTEGER_BITS[kind])
    elif kind in FLOAT_KINDS:
        return _float(value, kind)
    elif isinstance(of, Decimal):
        return _decimal(value, of)
    elif kind == "STRING":
        if isinstance(value, str):
            return _encodable(value)
    elif kind == "BINARY":
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
    elif kind == "DATE":
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
    elif isinstance(value, datetime):
        return _datetime(value, is_aware=kind == "TIMESTAMP")
    raise Misfit


def is_missing(value: object) -> bool:
    """Whether the value stands for NULL: None, or one of pandas' marks."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def is_nan(value: object) -> bool:
    """Whether the value is a floating-point NaN."""
    return isinstance(value, float) and math.isnan(value)


def _in_range(value: int, bits: int) -> int:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise Misfit(f"it holds {-(1 << bits - 1)} to {(1 << bits - 1) - 1}")
    return value


def _float(value: Any, kind: str) -> float:
    if isinstance(value, numbers.Integral):
        whole = int(value)
        limit = 1 << (53 if kind == "DOUBLE" else 24)
        if abs(whole) > limit and (abs(whole) > 1 << 127 or _rounded(whole, kind) != whole):
            raise Misfit(f"{kind} can't hold this integer exactly: give a float")
        return float(whole)
    if not isinstance(value, numbers.Real) or isinstance(value, numbers.Rational):
        raise Misfit
    result = float(value)
    if kind == "FLOAT" and math.isfinite(result) and abs(result) > _LARGEST_FLOAT:
        raise Misfit(f"FLOAT holds up to {_LARGEST_FLOAT}")
    return result


def _rounded(value: int, kind: str) -> int:
    kept = pa.array([float(value)], pa.float64() if kind == "DOUBLE" else pa.float32())
    return int(kept[0].as_py())


def _decimal(value: Any, of: Decimal) -> decimal.Decimal:
    if isinstance(value, numbers.Integral):
        value = decimal.Decimal(int(value))
    if not isinstance(value, decimal.Decimal):
        raise Misfit("give decimal.Decimal or int values: a float isn't a decimal fraction")
    if not value.is_finite():
        raise Misfit("a DECIMAL has no NaN and no infinity")
    try:
        exact = value.quantize(decimal.Decimal(1).scaleb(-of.scale), context=_EXACT)
    except decimal.InvalidOperation:
        raise Misfit(f"it holds {of.precision - of.scale} digits before the point") from None
    if exact != value:
        raise Misfit(f"it keeps {of.scale} fraction digits; round the value yourself")
    if len(exact.as_tuple().digits) > of.precision:
        raise Misfit(f"it holds {of.precision - of.scale} digits before the point")
    return exact


def _encodable(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Misfit("the text has a lone surrogate, which UTF-8 doesn't have") from None
    return str(value)


def _datetime(value: datetime, is_aware: bool) -> datetime:
    if getattr(value, "nanosecond", 0):
        raise Misfit("microseconds are the finest that is kept; round the value yourself")
    if is_aware and value.utcoffset() is None:
        raise Misfit(
            "TIMESTAMP is a point in time: give an aware datetime, for example "
            "value.replace(tzinfo=timezone.utc), or declare the column TIMESTAMP_NTZ"
        )
    if not is_aware and value.tzinfo is not None:
        raise Misfit(
            "TIMESTAMP_NTZ is a clock reading: give a naive datetime, for example "
            "value.replace(tzinfo=None), or declare the column TIMESTAMP"
        )
    return value


def _lists(values: Sequence[Any], element: DataType, of: DataType, place: Place) -> pa.Array:
    offsets = [0]
    missing: list[bool] = []
    flat: list[Any] = []
    rows: list[int] = []
    for index, value in enumerate(values):
        missing.append(is_missing(value))
        if not missing[-1]:
            items = value.tolist() if type(value).__name__ == "ndarray" else value
            if not isinstance(items, list | tuple):
                raise place.refusal(index, of, shown(value))
            flat.extend(items)
            rows.extend([place.rows[index]] * len(items))
        offsets.append(len(flat))
    items = column_of(flat, element, place.inside("[]", rows))
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), items, type=to_arrow(of), mask=pa.array(missing, pa.bool_())
    )


def _maps(values: Sequence[Any], of: Map, place: Place) -> pa.Array:
    """Maps from mappings, or from lists of pairs of key and value."""
    offsets = [0]
    missing: list[bool] = []
    entries: list[tuple[Any, Any]] = []
    rows: list[int] = []
    for index, value in enumerate(values):
        missing.append(is_missing(value))
        if not missing[-1]:
            pairs = list(value.items()) if isinstance(value, Mapping) else value
            if not isinstance(pairs, list | tuple) or not all(map(_is_pair, pairs)):
                raise place.refusal(index, of, shown(value), "give a dict, or pairs of key, value")
            if any(is_missing(key) for key, _ in pairs):
                raise place.refusal(index, of, shown(value), "keys of a MAP are never NULL")
            entries.extend(pairs)
            rows.extend([place.rows[index]] * len(pairs))
        offsets.append(len(entries))
    keys = column_of([key for key, _ in entries], of.key, place.inside(".key", rows))
    items = column_of([item for _, item in entries], of.value, place.inside(".value", rows))
    mask = pa.array(missing, pa.bool_())
    made = pa.MapArray.from_arrays(
        pa.array(offsets, pa.int32()), keys, items, type=to_arrow(of), mask=mask
    )
    repeated = with_repeated_key(made, of)
    if repeated is not None:
        raise place.refusal(repeated, of, shown(values[repeated]), REPEATED)
    return made


def _is_pair(entry: Any) -> bool:
    return isinstance(entry, list | tuple) and len(entry) == 2


REPEATED = "a key of a MAP comes once: leave one of the entries out"


def with_repeated_key(values: pa.Array, of: Map) -> int | None:
    """The place of the first map that has a key twice; None where none has."""
    lists = values.cast(to_arrow(of.entries))
    keys = Schema((Field("key", of.key),), internal=True)
    table = pa.table({"key": lists.flatten().field(0)})
    encoded = pa.array(encoded_rows(table, keys), pa.binary())
    seen = pa.table({"row": pc.list_parent_indices(lists), "key": encoded})
    counts = seen.group_by(["row", "key"]).aggregate([([], "count_all")])
    rows = counts.filter(pc.greater(counts["count_all"], 1))["row"]
    return pc.min(rows).as_py() if len(rows) else None


def _structs(values: Sequence[Any], of: Struct, place: Place) -> pa.Array:
    names = [name for name, _ in of.fields]
    missing = [is_missing(value) for value in values]
    parts: list[list[Any]] = [[] for _ in names]
    for index, value in enumerate(values):
        try:
            items = [None] * len(names) if missing[index] else in_order(value, names)
        except Misfit as misfit:
            raise place.refusal(index, of, misfit.got or shown(value), misfit.fix) from None
        for part, item in zip(parts, items, strict=True):
            part.append(item)
    arrays = [
        column_of(part, each, place.inside(f".{name}", place.rows))
        for part, (name, each) in zip(parts, of.fields, strict=True)
    ]
    return pa.StructArray.from_arrays(
        arrays, fields=list(to_arrow(of)), mask=pa.array(missing, pa.bool_())
    )


def in_order(row: Any, names: Sequence[str]) -> Sequence[Any]:
    """The values of one row (a dict, a tuple or list in order, a Row) by these names.

    Else a `Misfit` that lists the missing and the extra names.
    """
    fields = getattr(row, "__fields__", None) or getattr(row, "_fields", None)
    if isinstance(row, Mapping):
        by_name = {str(name).lower(): value for name, value in row.items()}
        given: Iterable[str] = row
    elif fields and isinstance(row, tuple):
        by_name = {name.lower(): value for name, value in zip(fields, row, strict=True)}
        given = fields
    elif isinstance(row, tuple | list):
        if len(row) != len(names):
            raise Misfit(
                f"give the values of {', '.join(names)}, in this order", f"{len(row)} values"
            )
        return row
    else:
        raise Misfit("a row is a dict, a tuple in the order of the columns, or a Row")
    wrong = named_differences(given, names)
    if wrong:
        raise Misfit(f"give exactly {', '.join(names)}", wrong)
    return [by_name[name.lower()] for name in names]


def named_differences(given: Iterable[object], wanted: Iterable[str]) -> str:
    """`missing: a, b; extra: c`, whatever the case of names; empty when they are the same."""
    have = [str(name) for name in given]
    need = list(wanted)
    lowered = [name.lower() for name in have]
    needed = {name.lower() for name in need}
    lists = {
        "missing": [name for name in need if name.lower() not in lowered],
        "extra": [name for name in have if name.lower() not in needed],
        "twice": sorted({name for name in have if lowered.count(name.lower()) > 1}),
    }
    return "; ".join(f"{label}: {', '.join(names)}" for label, names in lists.items() if names)
