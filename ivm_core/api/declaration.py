"""Sources declared in a file, `pipeline.yaml` or any JSON or YAML of the same form.

    sources:
      orders:
        schema: id BIGINT, customer STRING, amount DECIMAL(12,2)
        primary_key: [id]
      events: id BIGINT, at TIMESTAMP        # a schema is enough
      prices: {delta_table: /lake/prices}    # and a table that is there has one

Every complaint names the file, the line and the key. `pipeline.schema.json` says what there is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ivm_core.api.arguments import key_columns
from ivm_core.api.document_rules import check_document
from ivm_core.api.documents import read_document
from ivm_core.api.places import expanded, located
from ivm_core.api.table_schema import table_schema
from ivm_core.model.errors import DuplicateName, InvalidName, UserError
from ivm_core.model.names import check_relation_name
from ivm_core.model.schema import Schema, parse_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ivm_core.api.documents import Key

SCHEMA_FILE = Path(__file__).with_name("pipeline.schema.json")


@dataclass(frozen=True)
class DeclaredSource:
    """A source as a file declares it."""

    name: str
    schema: Schema
    primary_key: tuple[str, ...]
    description: str
    settings: Mapping[str, Any]
    """What else the file says of it, by key."""
    where: str


@cache
def pipeline_rules() -> dict[str, Any]:
    """The JSON Schema of `pipeline.yaml`."""
    rules: dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return rules


def rules_of(definition: str) -> dict[str, Any]:
    """The part of the schema under a name of its `$defs`."""
    return {"$ref": f"#/$defs/{definition}", "$defs": pipeline_rules()["$defs"]}


class Declaration:
    """The content of a declaration file."""

    def __init__(self, file: Path, *, of_sources: bool = False, store: Path | None = None) -> None:
        """Read and check the file; a file of sources alone needs no name.

        `${store}` is the usual store, unless another one is given.
        """
        self._store = store
        self.folder = file.absolute().parent
        self.document = read_document(file)
        if not isinstance(self.document.content, dict):
            raise UserError(
                "the file has no keys", where=str(file), fix="begin with name: and sources:"
            )
        self.content: dict[str, Any] = self.document.content
        needed = {"required": ["sources"]} if of_sources else {}
        check_document(self.document, pipeline_rules() | needed)

    def name(self) -> str:
        """The name of what is declared."""
        try:
            return check_relation_name(self.content["name"], "pipeline")
        except InvalidName as error:
            raise InvalidName(error.what, self.where(("name",)), error.fix) from error

    def where(self, key: Key = ()) -> str:
        """File, line and key."""
        return self.document.where(key)

    @property
    def source_names(self) -> tuple[str, ...]:
        """The sources in the order of the file."""
        return tuple(self.content["sources"])

    def sources(self) -> Iterator[DeclaredSource]:
        """All sources; errors as `source`."""
        yield from (self.source(name) for name in self.source_names)

    def source(self, name: str) -> DeclaredSource:
        """One source; what is wrong with it is an `IvmError` with its line."""
        body = self.content["sources"][name]
        key: Key = ("sources", name)
        try:
            check_relation_name(name, "source")
        except InvalidName as error:
            raise InvalidName(error.what, self.where(key), error.fix) from error
        for other in takewhile(lambda other: other != name, self.source_names):
            if other.casefold() == name.casefold():
                what = f"source {name} has the name of source {other}"
                raise DuplicateName(what, self.where(key))
        given = {"schema": body} if isinstance(body, str) else body
        schema = self._columns(given, key)
        try:
            columns = key_columns(given.get("primary_key"), schema, "")
        except UserError as error:
            raise UserError(error.what, self.where((*key, "primary_key")), error.fix) from error
        description = str(given.get("description", "")).strip()
        return DeclaredSource(name, schema, columns, description, given, self.where(key))

    def place(self, key: Key, text: str) -> str:
        """A location of the file, seen from its folder, variables left as they are."""
        found = located(text, self.folder)
        expanded(found, self._store, self.where(key))
        return found

    def _columns(self, given: Mapping[str, Any], key: Key) -> Schema:
        if "schema" in given:
            return parse_schema(given["schema"], self.where((*key, "schema")))
        table = given.get("delta_table")
        if table is None:
            raise UserError(
                "a source needs a schema, or a Delta table that has one; nothing found",
                where=self.where((*key, "schema")),
                fix="give schema: id BIGINT, name STRING; or delta_table: path",
            )
        place = (*key, "delta_table")
        return table_schema(expanded(self.place(place, table), self._store), self.where(place))
