"""Where pipelines keep their flows and inboxes, and how a run opens them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dagster import ConfigurableResource
from pydantic import Field
from pyspark.sql import SparkSession

from ivm_core import IncrementalFlow
from ivm_core.api.places import STORE_VARIABLE, default_store
from tideview.resources.inbox import Inbox
from tideview.resources.pipeline_spec import Pipeline

__all__ = ["STORE_VARIABLE", "FlowStore", "default_store"]


class FlowStore(ConfigurableResource):  # type: ignore[type-arg]
    """A folder with one folder a pipeline: its `flow`, and the `inbox` of each source."""

    path: str = Field(
        default="", description=f"A local folder; empty: {STORE_VARIABLE}, else .tideview/store."
    )

    def flow_path(self, pipeline: Pipeline) -> Path:
        """Where the pipeline's flow is, or will be."""
        return self._folder(pipeline) / "flow"

    def inboxes(self, pipeline: Pipeline) -> dict[str, Inbox]:
        """The inbox of every source, made or not."""
        folder = self._folder(pipeline) / "inbox"
        return {source.name: Inbox(source, folder / source.name) for source in pipeline.sources}

    @contextmanager
    def open(self, pipeline: Pipeline, spark: SparkSession) -> Iterator[IncrementalFlow]:
        """The pipeline's flow with everything declared; inboxes are made on first use.

        What the flow refuses is an `IvmError`: a definition that differs from the stored one,
        another writer, a folder that holds something else, an inbox that is gone.
        """
        with IncrementalFlow.open(self.flow_path(pipeline), spark) as flow:
            for name, inbox in self.inboxes(pipeline).items():
                if name not in flow.sources:
                    inbox.make()
                keys = list(inbox.source.primary_key)
                flow.register_source(name, delta_table=inbox.path, primary_key=keys)
            pipeline.register_views(flow)
            yield flow

    @contextmanager
    def read(self, pipeline: Pipeline, spark: SparkSession) -> Iterator[IncrementalFlow]:
        """The pipeline's flow for reading only: it keeps no writer out, and finishes nothing."""
        with IncrementalFlow.open(self.flow_path(pipeline), spark, read_only=True) as flow:
            yield flow

    def _folder(self, pipeline: Pipeline) -> Path:
        root = Path(self.path).expanduser().absolute() if self.path else default_store()
        return root / pipeline.name
