"""Arrow and pandas columns to exactly the declared types, whole columns at a time, without loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.api.row_values import (
    REPEATED,
    Misfit,
    Place,
    column_of,
    is_missing,
    is_nan,
    named_differences,
    shown,
    with_repeated_key,
)
from ivm_core.model.types import (
    FLOAT_KINDS,
    INTEGER_BITS,
    Array,
    DataType,
    Decimal,
    Map,
    Struct,
    has_map,
)
from ivm_core.operators.arrow_types import to_arrow
from ivm_core.operators.shown_rows import shown_values

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

types = pa.types

_TAKES: dict[str, tuple[Callable[[pa.DataType], bool], ...]] = {
    "BOOLEAN": (types.is_boolean,),
    **dict.fromkeys(INTEGER_BITS, (types.is_integer,)),
    **dict.fromkeys(FLOAT_KINDS, (types.is_integer, types.is_floating)),
    "DECIMAL": (types.is_integer, types.is_decimal),
    "STRING": (types.is_string, types.is_large_string, types.is_string_view),
    "BINARY": (
        types.is_binary,
        types.is_large_binary,
        types.is_binary_view,
        types.is_fixed_size_binary,
    ),
    "DATE": (types.is_date,),
    "TIMESTAMP": (lambda given: types.is_timestamp(given) and given.tz is not None,),
    "TIMESTAMP_NTZ": (lambda given: types.is_timestamp(given) and given.tz is None,),
}
_WAYS_OUT = {
    "TIMESTAMP": "make it a point in time: pandas' tz_localize, Arrow's assume_timezone",
    "TIMESTAMP_NTZ": "make it a clock reading: pandas' tz_localize(None), Arrow's local_timestamp",
}


def arrow_column(column: pa.Array | pa.ChunkedArray, of: DataType, place: Place) -> pa.Array:
    """The column as the Arrow type of `of`; a `BatchError` with the first value that can't be."""
    if column.type == to_arrow(of) and not has_map(of):
        return column
    if not len(column):
        return pa.array([], to_arrow(of))
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks)
    try:
        return _fitted(whole, of)
    except (Misfit, pa.ArrowException) as failure:
        index = _first_misfit(whole, of)
        value = shown_values(whole.slice(index, 1))[0]
        fix = failure.fix if isinstance(failure, Misfit) else ""
        got = f"{whole.type}, {shown(value)}"
        raise place.refusal(index, of, got, fix or f"cast the column to {of.ddl}") from None


def _first_misfit(values: pa.Array, of: DataType) -> int:
    """Halve the stretch that holds the first value that doesn't fit until it is one value."""
    start, stop = 0, len(values)
    while stop - start > 1:
        middle = (start + stop) // 2
        stretch = values.slice(start, middle - start)
        try:
            if stretch.null_count < len(stretch):  # any type can stand for nothing but NULLs
                _fitted(stretch, of)
            start = middle
        except (Misfit, pa.ArrowException):
            stop = middle
    return start


def _fitted(values: pa.Array, of: DataType) -> pa.Array:
    given, target = values.type, to_arrow(of)
    if given == target and not has_map(of):
        return values
    if types.is_dictionary(given):
        return _fitted(values.dictionary_decode(), of)
    if types.is_null(given):
        return pa.nulls(len(values), target)
    match of:
        case Array(element):
            return _fitted_lists(values, element, target)
        case Map():
            return _fitted_maps(values, of, target)
        case Struct():
            return _fitted_structs(values, of, target)
    if not any(takes(given) for takes in _TAKES[of.kind]):
        raise Misfit(_WAYS_OUT.get(of.kind, "") if types.is_timestamp(given) else "")
    if isinstance(of, Decimal) and types.is_integer(given):
        values = values.cast(pa.decimal128(20 if types.is_uint64(given) else 19, 0))
    fitted = values.cast(target)
    if of.kind == "FLOAT" and types.is_float64(given):
        same = pc.or_(pc.equal(fitted.cast(given), values), pc.is_nan(values))
        if pc.any(pc.invert(same)).as_py():
            raise Misfit("FLOAT can't hold the value exactly: cast the column to float32 yourself")
    return fitted


def _fitted_lists(values: pa.Array, element: DataType, target: pa.DataType) -> pa.Array:
    given = values.type
    if not (types.is_list(given) or types.is_large_list(given) or types.is_fixed_size_list(given)):
        raise Misfit
    items = _fitted(values.flatten(), element)
    return pa.ListArray.from_arrays(_offsets(values), items, type=target, mask=values.is_null())


def _offsets(lists: pa.Array) -> pa.Array:
    """Where each list begins among the items of all, and where the last one ends."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])


def _fitted_maps(values: pa.Array, of: Map, target: pa.DataType) -> pa.Array:
    given = values.type
    if not types.is_map(given):
        raise Misfit
    pair = pa.struct([("key", given.key_type), ("value", given.item_type)])
    lists = values.cast(pa.list_(pair))
    keys, items = lists.flatten().flatten()
    parts = _fitted(keys, of.key), _fitted(items, of.value)
    made = pa.MapArray.from_arrays(_offsets(lists), *parts, type=target, mask=values.is_null())
    if with_repeated_key(made, of) is not None:
        raise Misfit(REPEATED)
    return made


def _fitted_structs(values: pa.Array, of: Struct, target: pa.DataType) -> pa.Array:
    if not types.is_struct(values.type):
        raise Misfit
    names = [each.name for each in values.type]
    wrong = named_differences(names, [name for name, _ in of.fields])
    if wrong:
        raise Misfit(f"its fields differ: {wrong}")
    parts = dict(zip((name.lower() for name in names), values.flatten(), strict=True))
    fitted = [_fitted(parts[name.lower()], each) for name, each in of.fields]
    return pa.StructArray.from_arrays(fitted, fields=list(target), mask=values.is_null())


def pandas_column(series: pd.Series[Any], of: DataType, place: Place) -> pa.Array:
    """The series as the Arrow type of `of`, missing values as NULL; else a `BatchError`.

    NaN is pandas' mark for a missing value, and becomes NULL (a series of an Arrow type tells them
    apart).
    """
    if series.dtype == object:
        values = [
            None if is_missing(value) or is_nan(value) else value for value in series.tolist()
        ]
        return column_of(values, of, place)
    return arrow_column(pa.Array.from_pandas(series), of, place)
