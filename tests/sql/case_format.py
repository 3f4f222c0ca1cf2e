"""Titled cases in `.sql` files: sources, views, then ticks of changes.

    -- case: a group empties and comes back
    CREATE SOURCE t (k INT, x INT) PRIMARY KEY (k);
    -- rounded: s                      columns that Spark's own result gives up to rounding
    -- exact: s = SUM(x) FROM t BY k   what they are, worked out without the product
    -- beyond Spark: why               for a view that Spark's own statement can't answer
    -- means: SELECT …                 the query with what SQL leaves open written out, for Spark
    CREATE VIEW v AS SELECT k, SUM(x) AS s FROM t GROUP BY k;
    -- tick: what happens in it
    -- at: 2024-01-31 12:00:00         logical time, if it matters
    -- only: v, w                      the views that it brings up to date, and what they read
    -- fails: DIVIDE_BY_ZERO           the tick is refused with this text, and nothing changes
    INSERT INTO t VALUES (1, 10), (2, NULL) * 3;
    DELETE FROM t VALUES (1, 10);
    UPSERT INTO t VALUES (1, 11);
    DELETE KEYS FROM t VALUES (2);

A view that is created within a tick is registered then, over sources that have rows already.
A statement ends with `;` at the end of a line. `(…) * n` is a row with weight n.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp

from ivm_core.model.schema import Schema, parse_schema
from ivm_core.model.types import Array, DataType, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DIRECTIVE = re.compile(r"^--\s*(case|tick|at|only|fails|rounded|exact|beyond Spark|means):\s*(.*)$")
SOURCE = re.compile(r"CREATE SOURCE\s+(\S+)\s*\((.*)\)\s*$", re.DOTALL)
PRIMARY_KEY = re.compile(r"\s*PRIMARY KEY\s*\(([^()]*)\)\s*$")
VIEW = re.compile(r"CREATE VIEW\s+(\S+)\s+AS\s+(.*)$", re.DOTALL)
CHANGE = re.compile(
    r"(INSERT INTO|DELETE FROM|UPSERT INTO|DELETE KEYS FROM)\s+(\S+)\s+VALUES\s+(.*)$", re.DOTALL
)


@dataclass(frozen=True)
class SourceSpec:
    name: str
    ddl: str
    primary_key: tuple[str, ...] = ()

    @property
    def schema(self) -> Schema:
        return parse_schema(self.ddl)


@dataclass(frozen=True)
class ExactColumn:
    """`column = SUM(argument) FROM source BY keys`."""

    column: str
    function: str
    argument: str
    source: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class ViewSpec:
    name: str
    sql: str
    rounded: tuple[str, ...] = ()
    exact: tuple[ExactColumn, ...] = ()
    beyond_spark: str = ""
    means: str = ""

    @property
    def recomputed(self) -> str:
        """What Spark is asked."""
        return self.means or self.sql


@dataclass(frozen=True)
class Change:
    verb: str
    source: str
    rows: tuple[tuple[Any, ...], ...]
    weights: tuple[int, ...]


@dataclass
class Tick:
    title: str
    changes: list[Change] = field(default_factory=list)
    at: datetime | None = None
    only: tuple[str, ...] = ()
    """The views to bring up to date; none: all."""
    fails: str | None = None
    views: list[ViewSpec] = field(default_factory=list)
    """Registered before the changes are pushed, over sources that have rows already."""


@dataclass
class Case:
    title: str
    sources: list[SourceSpec] = field(default_factory=list)
    views: list[ViewSpec] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)

    def source(self, name: str) -> SourceSpec:
        return next(each for each in self.sources if each.name == name)


def read_cases(path: Path) -> list[Case]:
    cases: list[Case] = []
    rounded: list[str] = []
    exact: list[ExactColumn] = []
    beyond = means = ""
    for kind, text in _pieces(path.read_text(encoding="utf-8")):
        if kind == "case":
            cases.append(Case(text))
            continue
        case = cases[-1]
        if kind == "tick":
            case.ticks.append(Tick(text))
        elif kind == "at":
            case.ticks[-1].at = datetime.fromisoformat(text).replace(tzinfo=UTC)
        elif kind == "only":
            case.ticks[-1].only = tuple(name.strip() for name in text.split(","))
        elif kind == "fails":
            case.ticks[-1].fails = text
        elif kind == "rounded":
            rounded += [name.strip() for name in text.split(",")]
        elif kind == "exact":
            exact += [_exact(part) for part in text.split(";")]
        elif kind == "beyond Spark":
            beyond = text
        elif kind == "means":
            means = text
        elif text.startswith("CREATE VIEW"):
            name, sql = _view(text)
            views = case.ticks[-1].views if case.ticks else case.views
            views.append(ViewSpec(name, sql, tuple(rounded), tuple(exact), beyond, means))
            rounded, exact, beyond, means = [], [], "", ""
        elif text.startswith("CREATE SOURCE"):
            case.sources.append(_source(text))
        else:
            case.ticks[-1].changes.append(_change(text, case))
    return cases


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Directives and statements in order; comments between statements are nobody's."""
    statement: list[str] = []
    for line in text.splitlines():
        found = DIRECTIVE.match(line)
        if found and not statement:
            yield found[1], found[2].strip()
        elif statement or (line.strip() and not line.startswith("--")):
            statement.append(line)
            if line.rstrip().endswith(";"):
                yield "statement", "\n".join(statement).rstrip()[:-1]
                statement = []
    if statement:
        raise ValueError(f"a statement without `;`: {statement[0]}")


def _source(text: str) -> SourceSpec:
    key = PRIMARY_KEY.search(text)
    found = SOURCE.match(PRIMARY_KEY.sub("", text))
    if found is None:
        raise ValueError(f"not a source: {text}")
    keys = tuple(each.strip().strip("`") for each in key[1].split(",")) if key else ()
    return SourceSpec(found[1].strip("`"), found[2].strip(), keys)


def _view(text: str) -> tuple[str, str]:
    found = VIEW.match(text)
    if found is None:
        raise ValueError(f"not a view: {text}")
    return found[1].strip("`"), found[2]


def _exact(text: str) -> ExactColumn:
    found = re.match(r"\s*(\w+) = (SUM|AVG)\((\w+)\) FROM (\w+)(?: BY ([\w, ]+))?\s*$", text)
    if found is None:
        raise ValueError(f"not an exact column: {text}")
    keys = tuple(key.strip() for key in (found[5] or "").split(",") if key.strip())
    return ExactColumn(found[1], found[2], found[3], found[4], keys)


def _change(text: str, case: Case) -> Change:
    found = CHANGE.match(text)
    if found is None:
        raise ValueError(f"not a change: {text}")
    verb, name, values = found[1], found[2].strip("`"), found[3]
    source = case.source(name)
    types = [each.type for each in source.schema]
    if verb == "DELETE KEYS FROM":
        types = [source.schema.field(key).type for key in source.primary_key]
    rows, weights = [], []
    tree = sqlglot.parse_one(f"SELECT {values}", dialect="spark")
    for item in tree.expressions:
        weight = 1
        if isinstance(item, exp.Mul):
            weight = int(item.expression.sql())
            item = item.this
        parts = [item.this] if isinstance(item, exp.Paren) else item.expressions
        if len(parts) != len(types):
            raise ValueError(f"{len(parts)} values for {len(types)} columns: {item.sql('spark')}")
        rows.append(tuple(value_of(p, t) for p, t in zip(parts, types, strict=True)))
        weights.append(weight)
    return Change(verb, name, tuple(rows), tuple(weights))


def value_of(tree: exp.Expression, of: DataType) -> Any:
    """The Python value of a literal in a column of this type."""
    if isinstance(tree, exp.Null):
        return None
    if isinstance(tree, exp.Boolean):
        return tree.this
    if isinstance(tree, exp.HexString):
        return bytes.fromhex(tree.this)
    if isinstance(of, Array):
        return [value_of(each, of.element) for each in tree.expressions]
    if isinstance(of, Map):
        keys, values = tree.args["keys"].expressions, tree.args["values"].expressions
        return [
            (value_of(k, of.key), value_of(v, of.value)) for k, v in zip(keys, values, strict=True)
        ]
    if isinstance(of, Struct):
        parts = zip(of.fields, tree.expressions, strict=True)
        return {name: value_of(_bare(each), kind) for (name, kind), each in parts}
    if isinstance(tree, exp.Neg):
        value = value_of(tree.this, of)
        # a minus sign in front of a Decimal would round it
        return value.copy_negate() if isinstance(value, Decimal) else -value
    if not isinstance(tree, exp.Literal):
        raise ValueError(f"not a literal: {tree.sql('spark')}")
    return scalar(tree.this, of)


def _bare(field: exp.Expression) -> exp.Expression:
    return field.expression if isinstance(field, exp.PropertyEQ) else field


def scalar(text: str, of: DataType) -> Any:
    kind = of.kind
    if kind in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        return int(text)
    if kind == "FLOAT":
        return struct.unpack("f", struct.pack("f", float(text)))[0]
    if kind == "DOUBLE":
        return float(text)
    if kind == "DECIMAL":
        return Decimal(text)
    if kind == "DATE":
        return date.fromisoformat(text)
    if kind == "TIMESTAMP":
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    if kind == "TIMESTAMP_NTZ":
        return datetime.fromisoformat(text)
    if kind == "STRING":
        return text
    raise ValueError(f"{text!r} in a column of {of.ddl}")
