"""Binding: the parts of a batch checked against the columns of their source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from ivm_core.api.frame_columns import arrow_column, pandas_column
from ivm_core.api.row_values import (
    Misfit,
    Place,
    column_of,
    in_order,
    is_missing,
    is_nan,
    named_differences,
    shown,
)
from ivm_core.engine.evaluation import spark_message
from ivm_core.model.errors import BatchError, ConstraintViolation
from ivm_core.model.names import WEIGHT
from ivm_core.model.types import BIGINT
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.frame_checks import fitted_frame
from ivm_core.operators.netting import repeated
from ivm_core.operators.row_sets import with_weight
from ivm_core.operators.shown_rows import shown_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ivm_core.model.schema import Schema


class Role(Enum):
    """What the rows of a part are."""

    CHANGES = "changes"
    UPSERTS = "upserts"
    DELETE_KEYS = "delete_keys"


@dataclass(frozen=True)
class Part:
    """Rows of one role, with weights of their own, one for all, or given beside them."""

    role: Role
    content: Any  # a list of rows, a pa.Table, a pandas DataFrame or a Spark DataFrame
    weights: Sequence[Any] | None = None
    sign: int | None = None

    @property
    def has_own_weights(self) -> bool:
        """Whether the rows may bring a `_weight`."""
        return self.role is Role.CHANGES and self.sign is None and self.weights is None


class Binder:
    """Binds the parts of one batch to one source."""

    def __init__(self, source: str, schema: Schema, keys: tuple[str, ...]) -> None:
        self._source = source
        self._where = f"batch for source {source}"
        self._schema = schema
        self._keys = keys

    def frame(self, part: Part) -> DataFrame:
        """A Spark DataFrame fitted, still lazy."""
        self._check_names(part.content.columns, self._schema, part.has_own_weights)
        return fitted_frame(part.content, self._source, self._schema, self._keys, part.sign)

    def table(self, part: Part) -> pa.Table:
        """Anything else as a table of exact types, with `_weight` where it holds changes."""
        if part.role is not Role.CHANGES and not self._keys:
            raise BatchError(
                f"{part.role.value} need a primary key, and source {self._source} has none",
                self._where,
                "register the source with primary_key=[…], or give whole rows to inserts, "
                "deletes or edits",
            )
        schema = self._schema
        content = part.content
        if part.role is Role.DELETE_KEYS:
            schema = schema.select(self._keys)
            if isinstance(content, list) and len(self._keys) == 1:
                content = [
                    each if isinstance(each, tuple | list | Mapping) else (each,)
                    for each in content
                ]
        if isinstance(content, DataFrame):
            content = self._collected(content)
        columns, weights = (
            self._from_rows(part, content, schema)
            if isinstance(content, list)
            else self._from_frame(part, content, schema)
        )
        for field, column in zip(schema, columns, strict=True):
            if column.null_count and (not field.nullable or field.name in self._keys):
                raise self._refusal(
                    "a key column is NULL" if field.nullable else "NULL where none may be",
                    field.name,
                    f"{field.type.ddl} NOT NULL",
                    "NULL",
                    pc.index(pc.is_null(column), value=True).as_py(),
                )
        if part.role is not Role.CHANGES:
            return pa.table(columns, schema=arrow_schema(schema))
        table = pa.table([*columns, weights], schema=arrow_schema(schema, weight=True))
        return table.filter(pc.not_equal(table.column(WEIGHT), 0))

    def _collected(self, frame: DataFrame) -> pa.Table:
        try:
            return frame.toArrow()
        except PySparkException as error:
            raise BatchError(
                f"the DataFrame can't be evaluated: {spark_message(error)}",
                self._where,
                "correct the DataFrame; the message is Spark's own",
            ) from error

    def _from_rows(
        self, part: Part, rows: list[Any], schema: Schema
    ) -> tuple[list[pa.Array], pa.Array]:
        names = list(schema.names)
        own = part.has_own_weights and bool(rows) and _has_weight(rows[0])
        values = _columns(rows, [*names, WEIGHT] if own else names, self._misshapen)
        weights = values.pop() if own else part.weights
        numbers = range(len(rows))
        columns = [
            column_of(each, field.type, Place(self._source, field.name, numbers))
            for each, field in zip(values, schema, strict=True)
        ]
        return columns, self._weights(weights, part, len(rows))

    def _from_frame(
        self, part: Part, content: Any, schema: Schema
    ) -> tuple[list[pa.Array], pa.Array]:
        is_arrow = isinstance(content, pa.Table)
        names = content.column_names if is_arrow else list(content.columns)
        self._check_names(names, schema, part.has_own_weights)
        fit: Callable[..., pa.Array] = arrow_column if is_arrow else pandas_column
        place = {str(name).lower(): name for name in names}
        numbers = range(len(content))
        columns = [
            fit(
                content[place[each.name.lower()]],
                each.type,
                Place(self._source, each.name, numbers),
            )
            for each in schema
        ]
        weights = part.weights
        if weights is None and WEIGHT in place:
            given = content[place[WEIGHT]]
            if not is_arrow and given.dtype == object:
                return columns, self._weights(given.tolist(), part, len(content))
            given = given if is_arrow else pa.Array.from_pandas(given)
            if not pa.types.is_integer(given.type):
                return columns, self._weights(given.to_pylist(), part, len(content))
            weights = arrow_column(given, BIGINT, Place(self._source, WEIGHT, numbers))
            if weights.null_count == 0:
                return columns, weights
            weights = weights.to_pylist()
        return columns, self._weights(weights, part, len(content))

    def _weights(self, weights: Sequence[Any] | None, part: Part, size: int) -> pa.Array:
        if weights is None:
            return pa.array([part.sign or 1] * size, pa.int64())
        for index, weight in enumerate(weights):
            if is_missing(weight) or is_nan(weight):  # NaN is how pandas says NULL
                raise self._refusal("a weight is NULL", WEIGHT, "BIGINT", "NULL", index)
        return column_of(weights, BIGINT, Place(self._source, WEIGHT, range(size)))

    def _check_names(self, given: Iterable[object], schema: Schema, weighed: bool) -> None:
        names = [str(name) for name in given]
        kept = [name for name in names if name.lower() != WEIGHT] if weighed else names
        wrong = named_differences(kept, schema.names)
        if wrong:
            fix = f"give exactly {', '.join(schema.names)}"
            if any(name.lower() == WEIGHT for name in kept):
                fix += f"; {WEIGHT} goes with DeltaBatch.of only"
            raise BatchError(f"columns don't match: {wrong}", self._where, fix)

    def _misshapen(self, row: Any, index: int, misfit: Misfit) -> BatchError:
        return BatchError(
            f"a row doesn't match the columns: {misfit.got or shown(row)}",
            self._where,
            misfit.fix,
            row=index,
        )

    def _refusal(self, what: str, column: str, expected: str, got: str, row: int) -> BatchError:
        fix = "give every row a value there"
        return BatchError(
            what, self._where, fix, column=column, expected=expected, got=got, row=row
        )

    def refuse_repeated_keys(self, tables: list[pa.Table]) -> None:
        """Refuse a key that comes twice."""
        names = list(self._schema.select(self._keys).names)
        keys = pa.concat_tables([table.select(names) for table in tables])
        twice = repeated(with_weight(keys, 1), names).select(names)
        if twice.num_rows:
            raise ConstraintViolation(
                "a key comes more than once among upserts and delete_keys",
                self._where,
                "give each key one change",
                keys=tuple(tuple(key.values()) for key in shown_rows(twice)),
            )


def _has_weight(row: Any) -> bool:
    names = row if isinstance(row, Mapping) else getattr(row, "__fields__", ())
    return WEIGHT in names


def _columns(
    rows: list[Any], names: list[str], refusal: Callable[[Any, int, Misfit], BatchError]
) -> list[list[Any]]:
    """Turn rows into columns."""
    kinds = {type(row) for row in rows}
    if kinds == {dict} and all(len(row) == len(names) for row in rows):
        try:
            return [[row[name] for row in rows] for name in names]
        except KeyError:
            pass  # names in another case, or wrong ones: found below
    ordered: list[Sequence[Any]] = []
    for index, row in enumerate(rows):
        try:
            ordered.append(in_order(row, names))
        except Misfit as misfit:
            raise refusal(row, index, misfit) from None
    return [list(column) for column in zip(*ordered, strict=True)] if rows else [[] for _ in names]
