"""A pipeline as a folder: `pipeline.yaml` with its sources, and `views/*.sql`, one view a file.

A view's file may say in its leading comment what the view must be: `-- require: incremental`.

Reading it needs neither Spark nor Dagster, so that a code location loads fast and a program may
use the same folder without either.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ivm_core import UserError
from ivm_core.api.declaration import Declaration, DeclaredSource
from ivm_core.api.outline import ViewOutline, ViewText, outline_views
from ivm_core.api.view_file import read_view_file, view_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ivm_core import IncrementalFlow

DECLARATION = "pipeline.yaml"


@dataclass(frozen=True)
class Pipeline:
    """Sources and views that belong together; views are in an order in which each can be made."""

    name: str
    description: str
    sources: tuple[DeclaredSource, ...]
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
        flow.register_views(
            {view.name: view.sql for view in self.views},
            require={view.name: view.require for view in self.views},
        )


def load_pipeline(folder: str | Path) -> Pipeline:
    """Read a pipeline's folder; whatever is wrong with it is an `IvmError` that names the file."""
    root = Path(folder)
    declared = Declaration(root / DECLARATION)
    name, description = declared.name(), declared.text("description", "")
    sources = tuple(declared.sources())
    texts = {view.name: view for view in _view_texts(root)}
    outlines = outline_views({source.name: source.schema for source in sources}, texts)
    return Pipeline(name, description, sources, outlines)


def _view_texts(root: Path) -> Iterator[ViewText]:
    files = list(view_files(root / "views"))
    if not files:
        raise UserError(
            "the pipeline has no views", where=str(root / "views"), fix="put one SELECT a file"
        )
    yield from (read_view_file(file) for file in files)
