"""Sources declared in a file, `pipeline.yaml` or any JSON or YAML of the same form.

    sources:
      orders:
        schema: id BIGINT, customer STRING, amount DECIMAL(12,2)
        primary_key: [id]
      events: id BIGINT, at TIMESTAMP        # a schema is enough

Every complaint names the file and the key.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ivm_core.model.errors import InvalidName, IvmError, UserError
from ivm_core.model.names import check_relation_name
from ivm_core.model.schema import Schema, parse_schema

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEYS = {"name", "description", "sources"}
SOURCE_KEYS = {"description", "schema", "primary_key"}


@dataclass(frozen=True)
class DeclaredSource:
    """A source as a file declares it."""

    name: str
    schema: Schema
    primary_key: tuple[str, ...]
    description: str = ""


class Declaration:
    """The content of a declaration file."""

    def __init__(self, file: Path) -> None:
        """Read the file; what is no such file is a `UserError` with line and column."""
        self._file = file
        self._content = self._mapping(_parsed(file), "", KEYS)

    def name(self) -> str:
        """The name of what is declared."""
        try:
            return check_relation_name(self.text("name"), "pipeline")
        except InvalidName as error:
            raise InvalidName(error.what, self._where("name"), error.fix) from error

    def text(self, key: str, default: str | None = None) -> str:
        """The text of a key; one that is missing, without a default, is a `UserError`."""
        return self._text(self._content, key, key, default)

    def sources(self) -> Iterator[DeclaredSource]:
        """The sources in the order of the file."""
        declared = self._content.get("sources")
        for name, body in self._mapping(declared, "sources", None).items():
            key = f"sources.{name}"
            given = {"schema": body} if isinstance(body, str) else body
            fields = self._mapping(given, key, SOURCE_KEYS)
            where = self._where(f"{key}.schema")
            schema = parse_schema(self._text(fields, "schema", f"{key}.schema", None), where)
            primary_key = fields.get("primary_key", [])
            if isinstance(primary_key, str):
                primary_key = [primary_key]
            if not isinstance(primary_key, list):
                raise self._wrong(f"{key}.primary_key", "a list of columns", primary_key)
            try:
                columns = tuple(schema.field(column).name for column in primary_key)
            except IvmError as error:
                what = str(error).splitlines()[0]
                raise UserError(what, where=self._where(f"{key}.primary_key")) from error
            description = self._text(fields, "description", f"{key}.description", "")
            yield DeclaredSource(name, schema, columns, description)

    def _text(self, fields: dict[str, Any], name: str, key: str, default: str | None) -> str:
        value = fields.get(name, default)
        if not isinstance(value, str) or (default is None and not value.strip()):
            raise self._wrong(key, "text", value)
        return value.strip()

    def _mapping(self, value: object, key: str, known: set[str] | None) -> dict[str, Any]:
        if not isinstance(value, dict) or not all(isinstance(each, str) for each in value):
            raise self._wrong(key, "names with what belongs to them", value)
        for each in value:
            if known is not None and each not in known:
                raise UserError(
                    f"{each!r} is not a key that is known here",
                    where=self._where(key),
                    fix=f"the keys are {', '.join(sorted(known))}",
                )
        return value

    def _wrong(self, key: str, expected: str, got: object) -> UserError:
        found = "nothing" if got is None else f"{got!r}"
        return UserError(f"{expected} expected, {found} found", where=self._where(key))

    def _where(self, key: str) -> str:
        return f"{self._file}, key {key}" if key else str(self._file)


def _parsed(file: Path) -> object:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UserError(
            "there is no such file", where=str(file), fix="a pipeline's folder has one"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the file can't be read: {error}", where=str(file)) from error
    return _from_json(text, file) if file.suffix == ".json" else _from_yaml(text, file)


def _from_json(text: str, file: Path) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{file}, line {error.lineno}, column {error.colno}"
        raise UserError(f"the file is not JSON: {error.msg}", where=where) from error


def _from_yaml(text: str, file: Path) -> object:
    try:
        import yaml
    except ImportError as error:
        raise UserError(
            "reading YAML needs PyYAML, which is not installed",
            where=str(file),
            fix="pip install pyyaml, or write the same as a .json file",
        ) from error
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        raise UserError(f"the file is not YAML: {error.problem}", where=f"{file}{line}") from error
