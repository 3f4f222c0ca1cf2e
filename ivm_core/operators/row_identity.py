"""Row identity: two rows are the same when their bits are. One encoding, in Python and in Spark.

A row's encoding is the encodings of its columns, in schema order, one after the other. A column's
is `~` for NULL, and otherwise by type (all text is UTF-8, all numbers are plain decimal digits with
a leading `-` where negative):

    BOOLEAN                      `t` or `f`
    TINYINT SMALLINT INT BIGINT  the number, then `;`                          -7       `-7;`
    DATE                         days since 1970-01-01, then `;`
    TIMESTAMP                    microseconds since 1970-01-01 00:00 UTC, then `;`
    TIMESTAMP_NTZ                the same, reading its clock as UTC
    FLOAT DOUBLE                 the IEEE-754 bits of the value as a double, as a signed 64-bit
                                 number, then `;`; every NaN is 0x7ff8000000000000     1.0
                                 `4607182418800017408;`
    DECIMAL(p,s)                 the value with exactly s fraction digits, then `;`    `-0.50;`
    STRING                       number of bytes, `:`, the bytes               'né'     `3:né`
    BINARY                       upper-case hex digits, then `;`               X'00ff'  `00FF;`
    ARRAY                        number of elements, `:`, each element as a column
    STRUCT                       `(`, each field as a column
    MAP                          as the ARRAY of its entries, each a STRUCT of key and value, in the
                                 order that they are stored in

Each of these can be read back when the types are known, and none is the beginning of another, so
different rows have different encodings. The hash of a row is the pair (h0, h1) of unsigned 64-bit
numbers XXH64(00 ‖ encoding), XXH64(01 ‖ encoding) with seed 42, and the digest of a Z-set the sum
of weight · (h0 · 2⁶⁴ + h1) over its rows, mod 2¹²⁸.

In Spark the digest is summed in eight limbs of 16 bits, exact while the absolute weights add up to
less than 2⁴⁷; beyond, ANSI arithmetic raises. The session must have ANSI on; its time zone doesn't
matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from sqlglot import exp

from ivm_core.model.digest import Digest
from ivm_core.model.errors import InternalError
from ivm_core.model.names import WEIGHT
from ivm_core.model.types import FLOAT_KINDS, INTEGER_BITS, Array, DataType, Decimal, Map, Struct
from ivm_core.operators.arrow_types import to_arrow
from ivm_core.operators.sql_trees import call, cast, number, string
from ivm_core.operators.value_bits import double_bits, wall_clock_micros

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ivm_core.model.schema import Schema

_SEED = 42
_CANONICAL_NAN = 0x7FF8000000000000
_ROWS_AT_ONCE = 8192
_NO_EXPONENT = 6
"""Digits behind the point up to which Arrow writes a decimal without an exponent."""
_MARKED = (*INTEGER_BITS, *FLOAT_KINDS, "DECIMAL", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
"""Kinds that are numbers with a mark behind them."""
_LIMB_BITS = 16
_LIMBS = 64 // _LIMB_BITS

# --- In Python -----------------------------------------------------------------------------------


def encode_row(values: Sequence[object], schema: Schema) -> bytes:
    """Encode one row, given as values in schema order; an Arrow error for values of other types."""
    columns = [
        pa.array([value], to_arrow(field.type)) for value, field in zip(values, schema, strict=True)
    ]
    return encoded_rows(pa.table(columns, names=list(schema.names)), schema)[0]


def encoded_rows(table: pa.Table, schema: Schema) -> list[bytes]:
    """Encode each row of a table that has the schema's columns, and maybe others."""
    return [row for batch in _encoded_batches(table, schema) for row in batch.to_pylist()]


def hash_row(encoded: bytes) -> tuple[int, int]:
    """Hash one encoded row to two unsigned 64-bit numbers."""
    return (
        xxhash.xxh64_intdigest(b"\x00" + encoded, _SEED),
        xxhash.xxh64_intdigest(b"\x01" + encoded, _SEED),
    )


def digest_of(table: pa.Table, schema: Schema) -> Digest:
    """Sum up the digest of a Z-set that has the schema's columns and `_weight`, netted or not."""
    weights = iter(table.column(WEIGHT).to_pylist())
    high = low = 0
    digest = xxhash.xxh64_intdigest
    for batch in _encoded_batches(table, schema):
        for row in batch.to_pylist():
            weight = next(weights)
            high += weight * digest(b"\x00" + row, _SEED)
            low += weight * digest(b"\x01" + row, _SEED)
    return Digest((high << 64) + low)


def _encoded_batches(table: pa.Table, schema: Schema) -> Iterator[pa.Array]:
    columns = []
    for field in schema:
        column, wanted = table.column(field.name), to_arrow(field.type)
        columns.append(column if column.type == wanted else column.cast(wanted))
    kept = pa.table(columns, names=list(schema.names))
    for batch in kept.to_batches(max_chunksize=_ROWS_AT_ONCE):
        parts: list[Any] = []
        for column, of in zip(batch.columns, schema, strict=True):
            # its mark goes into the row at once where no NULL has to be told from it
            if of.type.kind in _MARKED and not column.null_count:
                parts += [_digits(column, of.type), b";"]
            else:
                parts.append(_encoded(column, of.type))
        yield _joined(*parts)


def _encoded(values: pa.Array, of: DataType) -> pa.Array:
    return pc.fill_null(_payload(values, of), b"~")


def _joined(*parts: Any) -> pa.Array:
    """Concatenate binary arrays and byte literals row by row; NULL where any part is."""
    return pc.binary_join_element_wise(*parts, b"")


def _text(values: pa.Array) -> pa.Array:
    return values.cast(pa.string()).cast(pa.binary())


def _payload(values: pa.Array, of: DataType) -> pa.Array:
    """Encode an array without the mark for NULL: NULL where a value is."""
    match of:
        case Array(element):
            return _list_payload(values, element)
        case Map():
            return _payload(values.cast(to_arrow(of.entries)), of.entries)
        case Struct(fields):
            parts = [
                _encoded(part, field)
                for part, (_, field) in zip(values.flatten(), fields, strict=True)
            ]
            return pc.if_else(
                values.is_valid(), _joined(b"(", *parts), pa.scalar(None, pa.binary())
            )
    kind = of.kind
    if kind == "BOOLEAN":
        return pc.if_else(values, pa.scalar(b"t"), pa.scalar(b"f"))
    if kind in _MARKED:
        return _joined(_digits(values, of), b";")
    if kind == "STRING":
        raw = values.cast(pa.binary())
        return _joined(_text(pc.binary_length(raw)), b":", raw)
    if kind == "BINARY":
        digits = [None if raw is None else raw.hex().upper().encode() for raw in values.to_pylist()]
        return _joined(pa.array(digits, pa.binary()), b";")
    raise InternalError(f"there is no encoding for the type {of.ddl}")


def _digits(values: pa.Array, of: DataType) -> pa.Array:
    """Numbers as text, those that stand for days, clocks and bits among them."""
    if isinstance(of, Decimal):
        return _plain_decimal(values, of.scale)
    if of.kind in FLOAT_KINDS:
        doubles = values.cast(pa.float64())
        return _text(pc.if_else(pc.is_nan(doubles), _CANONICAL_NAN, doubles.view(pa.int64())))
    if of.kind == "DATE":
        return _text(values.view(pa.int32()))
    if of.kind in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return _text(values.view(pa.int64()))
    return _text(values)


def _plain_decimal(values: pa.Array, scale: int) -> pa.Array:
    if scale <= _NO_EXPONENT:
        return _text(values)
    unscaled = values.view(pa.decimal128(38, 0)).cast(pa.string())
    sign = pc.if_else(pc.starts_with(unscaled, "-"), pa.scalar("-"), pa.scalar(""))
    digits = pc.utf8_lpad(pc.utf8_ltrim(unscaled, "-"), scale + 1, "0")
    whole = pc.utf8_slice_codeunits(digits, 0, -scale)
    fraction = pc.utf8_slice_codeunits(digits, -scale)
    return pc.binary_join_element_wise(sign, whole, ".", fraction, "").cast(pa.binary())


def _list_payload(values: pa.Array, element: DataType) -> pa.Array:
    """Encode the elements in one go; the bytes of a list are those of its elements in a row."""
    counts = pc.list_value_length(values)
    elements = _encoded(values.flatten(), element)
    ends = pc.cumulative_sum(pc.fill_null(counts, 0)).cast(pa.int32())
    item_starts = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    byte_starts = pa.concat_arrays(
        [
            pa.array([0], pa.int32()),
            pc.cumulative_sum(pc.binary_length(elements)).cast(pa.int32()),
        ]
    ).take(item_starts)
    content = _joined(elements, b"") if elements.offset else elements
    body = pa.Array.from_buffers(
        pa.binary(), len(values), [None, byte_starts.buffers()[1], content.buffers()[2]]
    )
    return _joined(_text(counts), b":", body)


# --- In Spark ------------------------------------------------------------------------------------


def encoded_column(column: str | exp.Expr, of: DataType) -> exp.Expr:
    """Build the encoding of a column, given by name or as a tree; of type BINARY, never NULL."""
    return cast(_sql_encoded(_tree(column), of, 0), "BINARY")


def encoded_row(schema: Schema, table: str | None = None) -> exp.Expr:
    """Build the encoding of a row with the schema's columns (of `table`); BINARY, never NULL."""
    columns = (
        _sql_encoded(exp.column(field.name, table, quoted=True), field.type, 0) for field in schema
    )
    return cast(call("CONCAT", *columns), "BINARY")


def row_hashes(schema: Schema, encoded: exp.Expr | None = None) -> tuple[exp.Expr, exp.Expr]:
    """Build the two hashes of a row, signed BIGINT, from its encoding where that is given."""
    row = encoded_row(schema) if encoded is None else encoded
    high, low = (
        call("XXHASH64", call("CONCAT", exp.HexString(this=prefix), row.copy()))
        for prefix in ("00", "01")
    )
    return high, low


def digest_aggregates(
    schema: Schema,
    weight: str | exp.Expr = WEIGHT,
    hashes: tuple[exp.Expr, exp.Expr] | None = None,
) -> list[tuple[str, exp.Expr]]:
    """Build the (alias, SUM of weighted limbs) that `digest_from_limbs` reads; all BIGINT.

    They are plain aggregates, fit for a SELECT and for `DataFrame.observe`. `hashes` names the
    row's hashes where an inner query has computed them.
    """
    sums: list[tuple[str, exp.Expr]] = []
    for half, hashed in enumerate(row_hashes(schema) if hashes is None else hashes):
        for limb in range(_LIMBS):
            shifted = call("SHIFTRIGHTUNSIGNED", hashed.copy(), number(limb * _LIMB_BITS))
            part = exp.BitwiseAnd(this=shifted, expression=number((1 << _LIMB_BITS) - 1))
            weighted = exp.Mul(this=_tree(weight), expression=exp.Paren(this=part))
            sums.append((_limb_alias(half, limb), exp.Sum(this=weighted)))
    return sums


def digest_from_limbs(row: Mapping[str, int | None]) -> Digest:
    """Put a digest together from the sums by alias; NULL sums are those of no rows."""
    total = 0
    for half in range(2):
        for limb in range(_LIMBS):
            place = 64 * (1 - half) + limb * _LIMB_BITS
            total += (row[_limb_alias(half, limb)] or 0) << place
    return Digest(total)


def _limb_alias(half: int, limb: int) -> str:
    return f"_tv_digest_{half}_{limb}"


def _sql_encoded(value: exp.Expr, of: DataType, depth: int) -> exp.Expr:
    return call("COALESCE", _sql_payload(value, of, depth), string("~"))


def _sql_payload(value: exp.Expr, of: DataType, depth: int) -> exp.Expr:
    """Build the encoding as STRING without the mark for NULL: NULL where the value is."""
    match of:
        case Array(element):
            item = exp.to_identifier(f"_tv_item_{depth}")
            # a name and no column: who looks for the columns that are read must not find it
            encoded = _sql_encoded(item.copy(), element, depth + 1)
            items = call("TRANSFORM", value, exp.Lambda(this=encoded, expressions=[item]))
            body = call("ARRAY_JOIN", items, string(""))
            return call("CONCAT", cast(call("ARRAY_SIZE", value), "STRING"), string(":"), body)
        case Map():
            return _sql_payload(call("MAP_ENTRIES", value), of.entries, depth)
        case Struct(fields):
            parts = (
                _sql_encoded(
                    exp.Dot(this=value.copy(), expression=exp.to_identifier(name, quoted=True)),
                    field,
                    depth,
                )
                for name, field in fields
            )
            return exp.Case().when(
                exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null())),
                call("CONCAT", string("("), *parts),
            )
    kind = of.kind
    if kind == "BOOLEAN":
        return exp.Case().when(value, string("t")).when(exp.Not(this=value.copy()), string("f"))
    if kind == "STRING":
        return call("CONCAT", cast(call("OCTET_LENGTH", value), "STRING"), string(":"), value)
    if kind == "BINARY":
        text = call("HEX", value)
    elif kind in FLOAT_KINDS:
        text = cast(double_bits(cast(value, "DOUBLE") if kind == "FLOAT" else value), "STRING")
    elif kind == "DATE":
        text = cast(call("UNIX_DATE", value), "STRING")
    elif kind == "TIMESTAMP":
        text = cast(call("UNIX_MICROS", value), "STRING")
    elif kind == "TIMESTAMP_NTZ":
        text = cast(wall_clock_micros(value), "STRING")
    else:
        text = cast(value, "STRING")
    return call("CONCAT", text, string(";"))


def _tree(column: str | exp.Expr) -> exp.Expr:
    return exp.column(column, quoted=True) if isinstance(column, str) else column.copy()
