"""Where pipelines keep their flows and inboxes, and how a run opens them."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from dagster import ConfigurableResource
from pydantic import Field
from pyspark.sql import SparkSession

from ivm_core import IncrementalFlow
from ivm_core.api.places import STORE_VARIABLE, default_store, expanded
from tideview.resources.declared_columns import check_columns, check_there
from tideview.resources.inbox import Inbox
from tideview.resources.pipeline_spec import Pipeline

__all__ = ["STORE_VARIABLE", "FlowStore", "default_store"]


class FlowStore(ConfigurableResource):  # type: ignore[type-arg]
    """A folder with one folder a pipeline: its `flow`, and the `inbox` of each source.

    A pipeline that names a `store` of its own has them there.
    """

    path: str = Field(
        default="", description=f"A local folder; empty: {STORE_VARIABLE}, else .tideview/store."
    )

    @property
    def root(self) -> Path:
        """The folder, and what `${store}` stands for."""
        return Path(self.path).expanduser().absolute() if self.path else default_store()

    def flow_path(self, pipeline: Pipeline) -> Path:
        """Where the pipeline's flow is, or will be."""
        return self._folder(pipeline) / "flow"

    def inboxes(self, pipeline: Pipeline) -> dict[str, Inbox]:
        """The inbox of every source that has one, made or not."""
        return {
            source.name: Inbox(source, self._inbox(pipeline, source.name, source.inbox))
            for source in pipeline.sources
            if source.is_inbox
        }

    def tables(self, pipeline: Pipeline) -> dict[str, str]:
        """Where the Delta table of every source is, made or not."""
        inboxes = self.inboxes(pipeline)
        return {
            source.name: str(inboxes[source.name].path)
            if source.is_inbox
            else expanded(source.delta_table, self.root, source.where)
            for source in pipeline.sources
        }

    def register_sources(
        self, pipeline: Pipeline, flow: IncrementalFlow, names: Collection[str] | None = None
    ) -> None:
        """Declare sources in a flow, some or all; inboxes are made on first use.

        `UserError` where a table is gone, or doesn't have the columns that are declared.
        """
        inboxes, tables = self.inboxes(pipeline), self.tables(pipeline)
        for source in pipeline.sources:
            if names is not None and source.name not in names:
                continue
            if source.is_inbox and source.name not in flow.sources:
                inboxes[source.name].make()
            keys = list(source.primary_key)
            place = tables[source.name]
            check_there(source, place)
            flow.register_source(source.name, delta_table=place, primary_key=keys)
            _, known, _ = flow.source_columns(source.name)
            if not check_columns(source, place, known):
                flow.take_columns(source.name)

    @contextmanager
    def open(self, pipeline: Pipeline, spark: SparkSession) -> Iterator[IncrementalFlow]:
        """The pipeline's flow with everything declared; inboxes are made on first use.

        What the flow refuses is an `IvmError`: a definition that differs from the stored one,
        another writer, a folder that holds something else, an inbox or a table that is gone.
        """
        with IncrementalFlow.open(self.flow_path(pipeline), spark) as flow:
            self.register_sources(pipeline, flow)
            pipeline.register_views(flow)
            yield flow

    @contextmanager
    def read(self, pipeline: Pipeline, spark: SparkSession) -> Iterator[IncrementalFlow]:
        """The pipeline's flow for reading only: it keeps no writer out, and finishes nothing."""
        with IncrementalFlow.open(self.flow_path(pipeline), spark, read_only=True) as flow:
            yield flow

    def _folder(self, pipeline: Pipeline) -> Path:
        if pipeline.store:
            return Path(expanded(pipeline.store, self.root)).absolute()
        return self.root / pipeline.name

    def _inbox(self, pipeline: Pipeline, source: str, place: str) -> Path:
        if place:
            return Path(expanded(place, self.root)).absolute()
        return self._folder(pipeline) / "inbox" / source
