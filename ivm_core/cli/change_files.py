"""Changes from files: JSON lines, CSV or Parquet, with or without a `_weight`.

Whatever is wrong with a file is a `UserError` that names it, the line and the column.
"""

from __future__ import annotations

import decimal
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
from pyarrow import csv, parquet

from ivm_core.cli.json_values import from_json, from_text
from ivm_core.model.errors import BatchError, UserError
from ivm_core.model.names import WEIGHT
from ivm_core.model.types import BIGINT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ivm_core.model.schema import Schema
    from ivm_core.model.types import DataType

STDIN = "-"
FORMS = {
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".csv": "csv",
    ".parquet": "parquet",
}


class ChangeFile:
    """One file of rows for one source."""

    def __init__(self, path: str) -> None:
        """`-` is JSON lines from stdin; no file, or one of no known kind, is a `UserError`."""
        self.path = path
        self._lines: list[int] = []
        if path == STDIN:
            self._form = "json"
            return
        file = Path(path)
        if not file.is_file():
            what = "this is a folder, not a file" if file.is_dir() else "there is no such file"
            raise UserError(what, where=path, fix="give a .jsonl, .csv or .parquet file")
        form = FORMS.get(file.suffix.lower())
        if form is None:
            raise UserError(
                f"{file.suffix or 'no ending'} says nothing about the file's form",
                where=path,
                fix="name it .jsonl, .csv or .parquet",
            )
        self._form = form

    def rows(self, schema: Schema) -> Any:
        """The rows, as a batch takes them: an Arrow table, or a list of dicts."""
        if self._form == "parquet":
            try:
                return parquet.read_table(self.path)
            except (pa.ArrowException, OSError) as error:
                raise UserError(f"the file is not Parquet: {error}", where=self.path) from error
        types = {each.name.lower(): each.type for each in schema} | {WEIGHT: BIGINT}
        return self._from_json(types) if self._form == "json" else self._from_csv(types)

    def located(self, error: BatchError) -> UserError:
        """What is wrong with a batch of this file, with the file and the line."""
        if error.row is None or error.row >= len(self._lines):
            where = f"{self.path}, {error.where}"
        else:
            where = f"{self.path}, line {self._lines[error.row]}, {error.where}"
        return BatchError(
            error.what,
            where,
            error.fix,
            column=error.column,
            expected=error.expected,
            got=error.got,
            row=error.row,
        )

    def _from_json(self, types: dict[str, DataType]) -> list[dict[str, Any]]:
        rows = []
        for number, line in enumerate(self._text_lines(), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line, parse_float=decimal.Decimal)
            except json.JSONDecodeError as error:
                self._refuse(f"the line is not JSON: {error.msg}", number, f"column {error.colno}")
            if not isinstance(row, dict):
                self._refuse("a line is one object of column names and values", number)
            rows.append(self._typed(row, types, from_json, number))
            self._lines.append(number)
        if any(WEIGHT in row for row in rows):
            rows = [{WEIGHT: 1, **row} for row in rows]
        return rows

    def _text_lines(self) -> Iterable[str]:
        try:
            if self.path == STDIN:
                return sys.stdin.read().split("\n")
            return Path(self.path).read_text(encoding="utf-8-sig").split("\n")
        except UnicodeDecodeError as error:
            raise UserError(
                f"the file is not UTF-8 text: byte {error.start} is none", where=self.path
            ) from error

    def _from_csv(self, types: dict[str, DataType]) -> list[dict[str, Any]]:
        parse = csv.ParseOptions(newlines_in_values=True)
        try:
            with csv.open_csv(self.path, parse_options=parse) as reader:
                names = reader.schema.names
            # an empty field is NULL, an empty one in quotes is an empty text
            convert = csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            )
            table = csv.read_csv(self.path, parse_options=parse, convert_options=convert)
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"the file is not CSV: {error}", where=self.path) from error
        rows = []
        for number, row in enumerate(table.to_pylist(), 2):
            rows.append(self._typed(row, types, from_text, number))
            self._lines.append(number)
        return rows

    def _typed(
        self,
        row: dict[str, Any],
        types: dict[str, DataType],
        convert: Callable[[Any, DataType], Any],
        line: int,
    ) -> dict[str, Any]:
        typed = {}
        for name, value in row.items():
            of = types.get(name.lower())
            try:
                typed[name] = value if of is None else convert(value, of)
            except ValueError as error:
                ddl = "" if of is None else of.ddl
                what = f"column {name} has {value!r}, which is no {ddl}: {error}"
                self._refuse(what, line, f"column {name}")
        return typed

    def _refuse(self, what: str, line: int, column: str = "") -> NoReturn:
        name = "stdin" if self.path == STDIN else self.path
        where = ", ".join(part for part in (name, f"line {line}", column) if part)
        raise UserError(what, where=where, fix="correct the line; nothing of the file was taken")
