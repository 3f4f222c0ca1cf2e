"""Values of rows in JSON and text, both ways and without loss.

| type | in JSON |
|---|---|
| integers, BOOLEAN, STRING, NULL | as they are |
| DECIMAL | text, "12.50" |
| FLOAT, DOUBLE | a number, or "NaN", "Infinity", "-Infinity" |
| DATE, TIMESTAMP, TIMESTAMP_NTZ | ISO 8601; a TIMESTAMP with its offset from UTC |
| BINARY | base64 |
| ARRAY, STRUCT | a list, an object |
| MAP | a list of pairs, `[["a", 1], ["b", 2]]`; an object is taken too where keys are STRING |
"""

from __future__ import annotations

import base64
import binascii
import decimal
import json
import math
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from ivm_core.model.types import FLOAT_KINDS, INTEGER_BITS, Array, Map, Nested, Struct

if TYPE_CHECKING:
    from ivm_core.model.types import DataType

_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def to_json(value: Any) -> Any:
    """A value of a row in types that JSON has."""
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    if isinstance(value, dict):
        return {name: to_json(each) for name, each in value.items()}
    return str(value)


def to_text(value: Any) -> str:
    """A value in a table's cell."""
    if value is None:
        return "NULL"
    found = to_json(value)
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    return text.replace("\n", "\\n")


def from_json(value: Any, of: DataType) -> Any:
    """The Python value of a type; `ValueError` says what is wrong with the given one.

    What has no other form in JSON passes: binding the batch looks at it again.
    """
    if value is None:
        return None
    if isinstance(of, Array) and isinstance(value, list):
        return [from_json(each, of.element) for each in value]
    if isinstance(of, Map) and isinstance(value, dict):
        value = list(value.items())
    if isinstance(of, Map) and isinstance(value, list):
        return [_entry(each, of) for each in value]
    if isinstance(of, Struct) and isinstance(value, dict):
        types = {name.lower(): each for name, each in of.fields}
        return {
            name: from_json(each, types[name.lower()]) if name.lower() in types else each
            for name, each in value.items()
        }
    if of.kind in FLOAT_KINDS and isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, str):
        return _from_text(value, of)
    return value


def from_text(text: str | None, of: DataType) -> Any:
    """The Python value of a CSV field; None is NULL."""
    if text is None:
        return None
    if isinstance(of, Nested):
        return from_json(json.loads(text, parse_float=decimal.Decimal), of)
    if of.kind == "BOOLEAN":
        if text.lower() not in ("true", "false"):
            raise ValueError("true or false is expected")
        return text.lower() == "true"
    if of.kind in INTEGER_BITS:
        return int(text)
    if of.kind in FLOAT_KINDS:
        return float(text)
    return _from_text(text, of)


def _entry(given: Any, of: Map) -> Any:
    """An entry of a map; what is no pair passes, to be refused with the batch."""
    if not isinstance(given, list | tuple) or len(given) != 2:
        return given
    return from_json(given[0], of.key), from_json(given[1], of.value)


def _from_text(text: str, of: DataType) -> Any:
    kind = of.kind
    if kind == "DECIMAL":
        try:
            return decimal.Decimal(text)
        except decimal.InvalidOperation:
            raise ValueError("a decimal number is expected") from None
    if kind in FLOAT_KINDS and text in _NOT_FINITE:
        return _NOT_FINITE[text]
    if kind == "DATE":
        return date.fromisoformat(text)
    if kind in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        moment = datetime.fromisoformat(text)
        if kind == "TIMESTAMP" and moment.tzinfo is None:
            raise ValueError("a TIMESTAMP says its offset, as 2024-01-31T12:00:00Z does")
        return moment
    if kind == "BINARY":
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error:
            raise ValueError("base64 is expected") from None
    return text
