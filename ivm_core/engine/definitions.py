"""What a flow is made of: sources, views and what views share, as they are stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ivm_core.model.schema import Schema, parse_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

FED = "fed"
DELTA = "delta"
INCREMENTAL = "incremental"
"""The one thing that a view can be required to be."""
SOURCE_KINDS = {FED: "rows pushed by tick(source, delta)", DELTA: "an existing Delta table"}


@dataclass(frozen=True)
class SourceDefinition:
    """A source: a kind with options."""

    name: str
    kind: str
    schema: Schema
    primary_key: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def body(self) -> dict[str, Any]:
        """As the tick log stores it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "schema": self.schema.ddl,
            "primary_key": list(self.primary_key),
            "options": dict(self.options),
        }

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> SourceDefinition:
        """Read back what `body` wrote."""
        return cls(
            body["name"],
            body["kind"],
            parse_schema(body["schema"]),
            tuple(body["primary_key"]),
            dict(body["options"]),
        )

    def __str__(self) -> str:
        """The declaration in one line."""
        key = f", primary key ({', '.join(self.primary_key)})" if self.primary_key else ""
        table = f" of {self.options['table']}" if "table" in self.options else ""
        return f"{self.kind} source {self.name}{table} ({self.schema.ddl}){key}"


@dataclass(frozen=True)
class ViewDefinition:
    """A view: its SQL, and what Spark's analyzer said of it when it was registered."""

    name: str
    sql: str
    schema: str
    types: Mapping[str, str]
    fingerprint: str
    functions: Mapping[str, str] = field(default_factory=dict)
    """Fingerprints of the registered functions that it calls."""
    require: str = ""
    """What the view must be, `incremental`, or else it isn't registered; empty for anything."""
    shared: tuple[str, ...] = ()
    """The shared nodes that its steps read."""
    folder: str = ""
    """What its inner nodes are called and kept under, if not the view's name."""
    rows_folder: str = ""
    """Where its rows are, if not in that folder."""
    shadow_of: str = ""
    """The view whose next definition this is, if it is one that is prepared beside it."""
    component: tuple[str, ...] = ()
    """The views that recursion ties together, this one among them; none where it reads none."""
    limits: tuple[int, ...] = ()
    """Iterations, and rows that they derive, that fail a tick of the component."""
    recursions: Mapping[str, str] = field(default_factory=dict)
    """The recursive common table expressions of its text, each with the view that it has become."""
    inside: str = ""
    """The view whose text this one is from, if it is such an expression: nobody else sees it."""
    over: Mapping[str, str] = field(default_factory=dict)
    """Columns of sources that it goes on with, where those that came later would break its ties."""

    @property
    def kept_in(self) -> str:
        """The folder of its inner nodes."""
        return self.folder or self.name

    @property
    def rows_in(self) -> str:
        """The folder of its rows."""
        return self.rows_folder or self.kept_in

    @property
    def body(self) -> dict[str, Any]:
        """As the tick log stores it."""
        more = {
            "require": self.require,
            "shared": list(self.shared),
            "folder": self.folder,
            "rows_folder": self.rows_folder,
            "shadow_of": self.shadow_of,
            "component": list(self.component),
            "limits": list(self.limits),
            "recursions": dict(self.recursions),
            "inside": self.inside,
            "over": dict(self.over),
        }
        return {
            "name": self.name,
            "sql": self.sql,
            "schema": self.schema,
            "types": dict(self.types),
            "fingerprint": self.fingerprint,
            "functions": dict(self.functions),
            **{key: value for key, value in more.items() if value},
        }

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> ViewDefinition:
        """Read back what `body` wrote."""
        return cls(
            body["name"],
            body["sql"],
            body["schema"],
            dict(body["types"]),
            body["fingerprint"],
            dict(body.get("functions", {})),
            body.get("require", ""),
            tuple(body.get("shared", ())),
            body.get("folder", ""),
            body.get("rows_folder", ""),
            body.get("shadow_of", ""),
            tuple(body.get("component", ())),
            tuple(body.get("limits", ())),
            dict(body.get("recursions", {})),
            body.get("inside", ""),
            dict(body.get("over", {})),
        )

    @property
    def known_columns(self) -> dict[str, Schema]:
        """The columns of sources that have others by now."""
        return {name: parse_schema(columns) for name, columns in self.over.items()}


@dataclass(frozen=True)
class SharedDefinition:
    """A node with state that several views have, maintained once for all of them.

    It is a node of a query, so it is stored as one: `sql` is the text of the view in which it was
    found first, and `key` says which node of it. That view may be altered or dropped, and so may
    views that the text names elsewhere: `over` has them as they were.
    """

    name: str
    sql: str
    schema: str
    types: Mapping[str, str]
    shared: tuple[str, ...] = ()
    """The shared nodes that its own steps read."""
    key: str = ""
    """Which node of the query it is: its key over the relations by the names that they have."""
    over: Mapping[str, str] = field(default_factory=dict)
    """What the text names and may change, with the columns that the text was compiled over."""
    functions: Mapping[str, str] = field(default_factory=dict)
    """Fingerprints of the registered functions that the text calls."""

    @property
    def body(self) -> dict[str, Any]:
        """As the tick log stores it."""
        return {
            "name": self.name,
            "sql": self.sql,
            "schema": self.schema,
            "types": dict(self.types),
            "shared": list(self.shared),
            "key": self.key,
            "over": dict(self.over),
            "functions": dict(self.functions),
        }

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> SharedDefinition:
        """Read back what `body` wrote."""
        return cls(
            body["name"],
            body["sql"],
            body["schema"],
            dict(body["types"]),
            tuple(body["shared"]),
            body["key"],
            dict(body["over"]),
            dict(body["functions"]),
        )
