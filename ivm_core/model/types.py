"""The types that a row of a Z-set may have: what Delta stores and SQL compares.

    parse_type("decimal(12, 2)").ddl        DECIMAL(12,2)
    parse_type("array<struct<a:int>>").ddl  ARRAY<STRUCT<`a`: INT>>

Elements of arrays, fields of structs and values of maps may always be NULL.
"""

from __future__ import annotations

from dataclasses import dataclass

from ivm_core.model.errors import DuplicateName, Unsupported, UserError
from ivm_core.model.names import check_storable, quote

INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
FLOAT_KINDS = frozenset({"FLOAT", "DOUBLE"})
SCALAR_KINDS = frozenset(
    {*INTEGER_BITS, *FLOAT_KINDS, "BOOLEAN", "STRING", "BINARY", "DATE", "TIMESTAMP"}
    | {"TIMESTAMP_NTZ"}
)
SYNONYMS = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "TIMESTAMP_LTZ": "TIMESTAMP",
}
WIDEST_DECIMAL = 38
KEPT_SCALE = 6
"""Spark keeps so many digits behind the point, whatever else a product has."""

_NOT_COMPARABLE = (
    "its values can't be compared or hashed, so they can't be part of a row's identity"
)
_REFUSED = {
    "VARIANT": (_NOT_COMPARABLE, "use STRING with to_json, or a STRUCT of the fields you need"),
    "INTERVAL": (
        "Delta can't store intervals",
        "use BIGINT of the smallest unit (for example microseconds), or both end points",
    ),
    "CHAR": ("Spark pads and checks CHAR only in some writers", "use STRING"),
    "VARCHAR": ("Spark checks lengths only in some writers", "use STRING"),
    "CHARACTER": ("Spark pads and checks CHAR only in some writers", "use STRING"),
    "VOID": ("Delta can't store a column without a type", "CAST(NULL AS STRING), or what it is"),
    "NULL": ("Delta can't store a column without a type", "CAST(NULL AS STRING), or what it is"),
    "TIME": ("Delta can't store TIME", "use BIGINT of microseconds since midnight"),
    "OBJECT": ("Delta can't store it", "use STRING with to_json, or a STRUCT"),
    "GEOMETRY": (_NOT_COMPARABLE, "use BINARY with the well-known binary form"),
    "GEOGRAPHY": (_NOT_COMPARABLE, "use BINARY with the well-known binary form"),
    "COLLATE": (
        "rows are the same when their bits are, which a collation is not about",
        "use plain STRING, and lower(…) or the like where you compare",
    ),
}


def refused_type(word: str, position: str = "") -> Unsupported | None:
    """The refusal of a Spark type that can't be in a row of a Z-set; None for other words."""
    word = word.upper()
    if word not in _REFUSED:
        return None
    reason, rewrite = _REFUSED[word]
    return Unsupported(f"the type {word}", position, reason, rewrite)


class DataType:
    """A type; `kind` is its name without parameters."""

    __slots__ = ()

    @property
    def kind(self) -> str:
        """The type's name without parameters, for example DECIMAL."""
        raise NotImplementedError

    @property
    def ddl(self) -> str:
        """Canonical Spark DDL text, which `parse_type` reads back."""
        raise NotImplementedError

    def __str__(self) -> str:
        """The same as `ddl`."""
        return self.ddl


@dataclass(frozen=True, slots=True)
class Scalar(DataType):
    """A type without parameters; a name that isn't in `SCALAR_KINDS` is refused."""

    name: str

    def __post_init__(self) -> None:
        """Refuse what is not a scalar type."""
        if self.name not in SCALAR_KINDS:
            raise refused_type(self.name) or UserError(f"there is no type {self.name}")

    @property
    def kind(self) -> str:
        """The type's name."""
        return self.name

    @property
    def ddl(self) -> str:
        """The type's name."""
        return self.name

    __str__ = DataType.__str__


@dataclass(frozen=True, slots=True)
class Decimal(DataType):
    """DECIMAL(precision, scale) with 1 ≤ precision ≤ 38 and 0 ≤ scale ≤ precision."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        """Refuse what Spark has no decimal for."""
        if not (1 <= self.precision <= WIDEST_DECIMAL and 0 <= self.scale <= self.precision):
            raise UserError(
                f"there is no type DECIMAL({self.precision},{self.scale})",
                fix=f"precision 1 to {WIDEST_DECIMAL}, scale 0 to precision",
            )

    @property
    def kind(self) -> str:
        """DECIMAL."""
        return "DECIMAL"

    @property
    def ddl(self) -> str:
        """With precision and scale."""
        return f"DECIMAL({self.precision},{self.scale})"

    __str__ = DataType.__str__


@dataclass(frozen=True, slots=True)
class Array(DataType):
    """ARRAY of elements that may be NULL."""

    element: DataType

    @property
    def kind(self) -> str:
        """ARRAY."""
        return "ARRAY"

    @property
    def ddl(self) -> str:
        """With the element's type."""
        return f"ARRAY<{self.element.ddl}>"

    __str__ = DataType.__str__


@dataclass(frozen=True, slots=True)
class Struct(DataType):
    """STRUCT of named fields that may be NULL; refuses none, repeated and unstorable names."""

    fields: tuple[tuple[str, DataType], ...]

    def __post_init__(self) -> None:
        """Refuse structs that Delta can't store."""
        if not self.fields:
            raise Unsupported("a STRUCT without fields", "", "Delta can't store it", "leave it out")
        seen: set[str] = set()
        for name, _ in self.fields:
            check_storable(name, "a field of a STRUCT")
            if name.lower() in seen:
                raise DuplicateName(f"the field {name!r} comes twice in a STRUCT")
            seen.add(name.lower())

    @property
    def kind(self) -> str:
        """STRUCT."""
        return "STRUCT"

    @property
    def ddl(self) -> str:
        """With names and types of the fields."""
        inner = ", ".join(f"{quote(name)}: {of.ddl}" for name, of in self.fields)
        return f"STRUCT<{inner}>"

    __str__ = DataType.__str__


@dataclass(frozen=True, slots=True)
class Map(DataType):
    """MAP of keys, none of them NULL, to values that may be; a key that is a MAP is refused."""

    key: DataType
    value: DataType

    def __post_init__(self) -> None:
        """Refuse keys that Spark can't look up."""
        if has_map(self.key):
            raise UserError("there is no MAP whose keys are MAPs", fix="use map_entries(…) as key")

    @property
    def kind(self) -> str:
        """MAP."""
        return "MAP"

    @property
    def ddl(self) -> str:
        """With the types of keys and values."""
        return f"MAP<{self.key.ddl}, {self.value.ddl}>"

    @property
    def entries(self) -> Array:
        """The type of its entries, one after the other."""
        return Array(Struct((("key", self.key), ("value", self.value))))

    __str__ = DataType.__str__


Nested = Array | Struct | Map
"""Types whose values are made of others."""


def parts_of(of: DataType) -> tuple[DataType, ...]:
    """The types that the values of a type are made of; none for a scalar."""
    match of:
        case Array(element):
            return (element,)
        case Struct(fields):
            return tuple(each for _, each in fields)
        case Map(key, value):
            return (key, value)
    return ()


def has_map(of: DataType) -> bool:
    """Whether a type is a MAP, or made of some: SQL neither compares nor orders its values."""
    return isinstance(of, Map) or any(has_map(part) for part in parts_of(of))


def has_float(of: DataType) -> bool:
    """Whether a type is FLOAT or DOUBLE, or made of them."""
    return of.kind in FLOAT_KINDS or any(has_float(part) for part in parts_of(of))


BOOLEAN = Scalar("BOOLEAN")
TINYINT = Scalar("TINYINT")
SMALLINT = Scalar("SMALLINT")
INT = Scalar("INT")
BIGINT = Scalar("BIGINT")
FLOAT = Scalar("FLOAT")
DOUBLE = Scalar("DOUBLE")
STRING = Scalar("STRING")
BINARY = Scalar("BINARY")
DATE = Scalar("DATE")
TIMESTAMP = Scalar("TIMESTAMP")
TIMESTAMP_NTZ = Scalar("TIMESTAMP_NTZ")
