"""A query as a tree of typed choices, so that it can be made at random, counted and made smaller.

Aliases are unique within a query, and columns are always named with theirs: a subtree means the
same wherever it stands.
"""

from __future__ import annotations

from dataclasses import dataclass

Columns = tuple[tuple[str, str], ...]
"""Names and types."""


@dataclass(frozen=True)
class Column:
    """A column of something in FROM, here or in a query around this one."""

    alias: str
    name: str
    type: str

    @property
    def text(self) -> str:
        return f"{self.alias}.{self.name}"


@dataclass(frozen=True)
class Expression:
    """A value: how it is written around its parts, which are values or queries."""

    type: str
    shape: str
    parts: tuple[Value | Query, ...] = ()
    construct: str = ""
    is_open: bool = False
    """SQL leaves open what it is where rows are tied."""

    @property
    def text(self) -> str:
        return self.shape.format(*(part.text for part in self.parts))


Value = Column | Expression


@dataclass(frozen=True)
class Item:
    name: str
    value: Value

    @property
    def text(self) -> str:
        return f"{self.value.text} AS {self.name}"


@dataclass(frozen=True)
class Table:
    """A source, a view or a common table expression."""

    name: str
    alias: str
    columns: Columns
    rows: int = 8

    @property
    def text(self) -> str:
        return f"{self.name} AS {self.alias}"


@dataclass(frozen=True)
class Derived:
    query: Query
    alias: str
    rows: int

    @property
    def columns(self) -> Columns:
        return self.query.columns

    @property
    def text(self) -> str:
        return f"({self.query.text}) AS {self.alias}"


@dataclass(frozen=True)
class Join:
    kind: str
    left: From
    right: From
    on: tuple[Value, ...]
    rows: int

    @property
    def construct(self) -> str:
        return f"{self.kind} JOIN"

    @property
    def text(self) -> str:
        condition = f" ON {_all(self.on)}" if self.on else ""
        lateral = "LATERAL " if self.kind.endswith("LATERAL") else ""
        kind = self.kind.removesuffix("LATERAL").strip()
        right = f"({self.right.text})" if isinstance(self.right, Join) else self.right.text
        return f"{self.left.text} {kind} JOIN {lateral}{right}{condition}"


@dataclass(frozen=True)
class Exploded:
    """LATERAL VIEW: a row for each element of an array."""

    source: From
    array: Value
    alias: str
    name: str
    is_outer: bool
    rows: int
    construct: str = "LATERAL VIEW explode"

    @property
    def text(self) -> str:
        outer = "OUTER " if self.is_outer else ""
        call = f"explode({self.array.text}) {self.alias} AS {self.name}"
        return f"{self.source.text} LATERAL VIEW {outer}{call}"


From = Table | Derived | Join | Exploded


@dataclass(frozen=True)
class Select:
    items: tuple[Item, ...]
    source: From
    keys: tuple[Item, ...] = ()
    """Grouped by, and the first of the select list."""
    where: tuple[Value, ...] = ()
    having: tuple[Value, ...] = ()
    qualify: tuple[Value, ...] = ()
    grouping: str = ""
    is_distinct: bool = False

    @property
    def construct(self) -> str:
        return "DISTINCT" if self.is_distinct else "GROUP BY" if self.keys else ""

    @property
    def columns(self) -> Columns:
        return tuple((item.name, item.value.type) for item in (*self.keys, *self.items))

    @property
    def text(self) -> str:
        listed = ", ".join(item.text for item in (*self.keys, *self.items))
        text = f"SELECT {'DISTINCT ' if self.is_distinct else ''}{listed} FROM {self.source.text}"
        if self.where:
            text += f" WHERE {_all(self.where)}"
        if self.keys:
            text += f" GROUP BY {self._groups()}"
        if self.having:
            text += f" HAVING {_all(self.having)}"
        if self.qualify:
            text += f" QUALIFY {_all(self.qualify)}"
        return text

    def _groups(self) -> str:
        keys = [item.value.text for item in self.keys]
        if self.grouping == "GROUPING SETS":
            return f"GROUPING SETS (({', '.join(keys)}), ({keys[-1]}), ())"
        return f"{self.grouping}({', '.join(keys)})" if self.grouping else ", ".join(keys)


@dataclass(frozen=True)
class Combined:
    """A set operation of two queries with the same types."""

    construct: str
    left: Query
    right: Query

    @property
    def columns(self) -> Columns:
        return self.left.columns

    @property
    def text(self) -> str:
        return f"{_operand(self.left)} {self.construct} {_operand(self.right)}"


@dataclass(frozen=True)
class Top:
    """ORDER BY … LIMIT … OFFSET."""

    query: Query
    order: tuple[tuple[str, str], ...]
    limit: int
    offset: int
    is_open: bool
    construct: str = "ORDER BY LIMIT"

    @property
    def columns(self) -> Columns:
        return self.query.columns

    @property
    def text(self) -> str:
        order = ", ".join(f"{name}{way}" for name, way in self.order)
        offset = f" OFFSET {self.offset}" if self.offset else ""
        inner = f"({self.query.text})" if isinstance(self.query, Top | With) else self.query.text
        return f"{inner} ORDER BY {order} LIMIT {self.limit}{offset}"


@dataclass(frozen=True)
class With:
    name: str
    body: Query
    main: Query
    construct: str = "WITH"

    @property
    def columns(self) -> Columns:
        return self.main.columns

    @property
    def text(self) -> str:
        return f"WITH {self.name} AS ({self.body.text}) {self.main.text}"


Query = Select | Combined | Top | With
Node = Value | Item | From | Query
NODES = (Column, Expression, Item, Table, Derived, Join, Exploded, Select, Combined, Top, With)


def scope(source: From) -> tuple[Column, ...]:
    """The columns that can be named beside this FROM."""
    if isinstance(source, Join):
        if source.kind in ("LEFT SEMI", "LEFT ANTI"):
            return scope(source.left)
        return (*scope(source.left), *scope(source.right))
    if isinstance(source, Exploded):
        return (*scope(source.source), Column(source.alias, source.name, "INT"))
    return tuple(Column(source.alias, name, kind) for name, kind in source.columns)


def _all(conditions: tuple[Value, ...]) -> str:
    return " AND ".join(each.text for each in conditions)


def _operand(query: Query) -> str:
    return query.text if isinstance(query, Select) else f"({query.text})"
