"""A pipeline as a folder: `pipeline.yaml` with its sources, and `views/*.sql`, one view a file.

Reading it needs neither Spark nor Dagster, so that a code location loads fast and a program may
use the same folder without either.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ivm_core import InvalidName, IvmError, UserError
from ivm_core.api.outline import ViewOutline, ViewText, outline_views
from ivm_core.model.names import check_relation_name
from ivm_core.model.schema import Schema, parse_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ivm_core import IncrementalFlow

DECLARATION = "pipeline.yaml"
_PIPELINE_KEYS = {"name", "description", "sources"}
_SOURCE_KEYS = {"description", "schema", "primary_key"}


@dataclass(frozen=True)
class Source:
    """A source as the pipeline declares it."""

    name: str
    schema: Schema
    primary_key: tuple[str, ...]
    description: str = ""


@dataclass(frozen=True)
class Pipeline:
    """Sources and views that belong together; views are in an order in which each can be made."""

    name: str
    description: str
    sources: tuple[Source, ...]
    views: tuple[ViewOutline, ...]

    def sources_of(self, view: str) -> frozenset[str]:
        """The sources that a view reads, itself or through other views."""
        names = {source.name for source in self.sources}
        reads = {outline.name: outline.reads for outline in self.views}

        def below(name: str) -> Iterator[str]:
            for read in reads[name]:
                if read in names:
                    yield read
                else:
                    yield from below(read)

        return frozenset(below(view))

    def register_fed(self, flow: IncrementalFlow) -> None:
        """Declare everything in a flow whose sources are fed by `flow.tick(source, changes)`."""
        for source in self.sources:
            flow.register_source(
                source.name, source.schema.ddl, primary_key=list(source.primary_key)
            )
        self.register_views(flow)

    def register_views(self, flow: IncrementalFlow) -> None:
        """Declare the views in a flow that has the sources; the same again is a no-op."""
        flow.register_views({view.name: view.sql for view in self.views})


def load_pipeline(folder: str | Path) -> Pipeline:
    """Read a pipeline's folder; whatever is wrong with it is an `IvmError` that names the file."""
    root = Path(folder)
    declared = _Declaration(root / DECLARATION)
    name, description = declared.name(), declared.text("description", "")
    sources = tuple(declared.sources())
    texts = {view.name: view for view in _view_texts(root)}
    outlines = outline_views({source.name: source.schema for source in sources}, texts)
    return Pipeline(name, description, sources, outlines)


def leading_comment(sql: str) -> str:
    """The `--` lines at the top of a view's file: what the view is, in words."""
    words = []
    for line in sql.strip().splitlines():
        if not line.startswith("--"):
            break
        words.append(line.lstrip("-").strip())
    return " ".join(words)


def _view_texts(root: Path) -> Iterator[ViewText]:
    files = sorted((root / "views").glob("*.sql"))
    if not files:
        raise UserError(
            "the pipeline has no views", where=str(root / "views"), fix="put one SELECT a file"
        )
    for file in files:
        sql = file.read_text(encoding="utf-8").strip()
        if not sql:
            raise UserError("the file is empty", where=str(file), fix="write one SELECT")
        yield ViewText(file.stem, sql, str(file))


class _Declaration:
    """`pipeline.yaml`, with every complaint naming the file and the key."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            content = yaml.safe_load(file.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise UserError(
                "there is no such file", where=str(file), fix="a pipeline's folder has one"
            ) from error
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            line = "" if mark is None else f", line {mark.line + 1}"
            raise UserError(
                f"the file is not YAML: {error.problem}", where=f"{file}{line}"
            ) from error
        self._content = self._mapping(content, "", _PIPELINE_KEYS)

    def name(self) -> str:
        try:
            return check_relation_name(self.text("name"), "pipeline")
        except InvalidName as error:
            raise InvalidName(error.what, self._where("name"), error.fix) from error

    def text(self, key: str, default: str | None = None) -> str:
        return self._text(self._content, key, key, default)

    def sources(self) -> Iterator[Source]:
        declared = self._content.get("sources")
        for name, body in self._mapping(declared, "sources", None).items():
            key = f"sources.{name}"
            fields = self._mapping(body, key, _SOURCE_KEYS)
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
            yield Source(name, schema, columns, description)

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
