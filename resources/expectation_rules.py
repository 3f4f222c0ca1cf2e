"""Expectations looked at before any of them runs: that there is such a type, and it takes this.

Great Expectations ships a JSON Schema for every expectation. They are read as files: importing it
takes many seconds, which nobody should wait for who only loads a code location.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ivm_core import UserError
from ivm_core.api.document_rules import complaints
from ivm_core.model.names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ivm_core.api.documents import Document, Key

SCHEMAS = Path("expectations", "core", "schemas")
NAMES_A_COLUMN = ("column", "column_A", "column_B")
NAMES_COLUMNS = ("column_list",)
BOUNDS = ("min_value", "max_value")
NEED_A_BOUND = (
    "expect_column_values_to_be_between",
    "expect_column_value_lengths_to_be_between",
)
"""What Great Expectations refuses without a bound, which their schemas don't say."""


def check_expectations(front: Document, columns: Sequence[str]) -> None:
    """`UserError` with file, line and key for the first expectation that can't be."""
    for number, given in enumerate(front.content.get("expectations", ())):
        key: Key = ("expectations", number)
        kind, kwargs = given["type"], given.get("kwargs", {})
        known = _known()
        if not known:
            return  # another Great Expectations than ours; it will say itself what it misses
        if kind not in known:
            raise UserError(
                f"there is no expectation {kind!r}",
                where=front.where((*key, "type")),
                fix=f"{did_you_mean(kind, known)}see greatexpectations.io/expectations",
            )
        if "Spark" not in known[kind].get("supported_data_sources", ["Spark"]):
            raise UserError(
                f"{kind} doesn't work on Spark", where=front.where((*key, "type")), fix="leave out"
            )
        inside = (*key, "kwargs")
        for found in complaints(kwargs, _rules(known[kind]["schema_file"])):
            raise UserError(found.what, where=front.where((*inside, *found.key)), fix=found.fix)
        if kind in NEED_A_BOUND and all(kwargs.get(bound) is None for bound in BOUNDS):
            what = f"{kind} has neither {' nor '.join(BOUNDS)}"
            raise UserError(what, where=front.where(inside), fix="give one of them, or both")
        for argument, column in _columns_in(kwargs):
            if column not in columns:
                raise UserError(
                    f"the view has no column {column!r}",
                    where=front.where((*inside, argument)),
                    fix=f"{did_you_mean(column, columns)}the columns are: {', '.join(columns)}",
                )


def _columns_in(kwargs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for argument in NAMES_A_COLUMN:
        if isinstance(kwargs.get(argument), str):
            yield argument, kwargs[argument]
    for argument in NAMES_COLUMNS:
        for column in kwargs.get(argument) or ():
            if isinstance(column, str):
                yield argument, column


@cache
def _folder() -> Path | None:
    found = find_spec("great_expectations")
    places = found.submodule_search_locations if found is not None else None
    return Path(next(iter(places))) / SCHEMAS if places else None


@cache
def _known() -> Mapping[str, Any]:
    folder = _folder()
    if folder is None or not (folder / "index.json").is_file():
        return {}
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    known: Mapping[str, Any] = index["expectations"]
    return known


@cache
def _rules(file: str) -> Mapping[str, Any]:
    folder = _folder()
    rules: Mapping[str, Any] = json.loads(((folder or Path()) / file).read_text(encoding="utf-8"))
    return rules
