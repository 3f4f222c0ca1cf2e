"""A pipeline as a folder: `pipeline.yaml` with its sources, and `views/*.sql`, one view a file.

A view's file may say in its leading comment what the view must be: `-- require: incremental`.

Reading it needs neither Spark nor Dagster, so that a code location loads fast and a program may
use the same folder without either.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ivm_core import UserError
from ivm_core.api.declaration import Declaration
from ivm_core.api.view_file import read_header, read_view_file, view_files
from tideview.resources.pipeline_spec import Pipeline, PipelineSpec, SourceSpec, ViewSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ivm_core.api.outline import ViewText

__all__ = ["Pipeline", "load_pipeline"]

DECLARATION = "pipeline.yaml"


def load_pipeline(folder: str | Path) -> PipelineSpec:
    """Read a pipeline's folder; whatever is wrong with it is an `IvmError` that names the file."""
    root = Path(folder)
    declared = Declaration(root / DECLARATION)
    name, description = declared.name(), declared.text("description", "")
    sources = [
        SourceSpec(each.name, each.schema, each.primary_key, each.description)
        for each in declared.sources()
    ]
    views = [
        ViewSpec(
            text.name,
            text.sql,
            read_header(text.sql).description,
            require=text.require,
            where=text.where,
        )
        for text in _view_texts(root)
    ]
    return PipelineSpec(name, tuple(sources), tuple(views), description, folder=root)


def _view_texts(root: Path) -> Iterator[ViewText]:
    files = list(view_files(root / "views"))
    if not files:
        raise UserError(
            "the pipeline has no views", where=str(root / "views"), fix="put one SELECT a file"
        )
    yield from (read_view_file(file) for file in files)
