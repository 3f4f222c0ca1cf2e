"""Pipelines as a Dagster component, for projects that are put together by `dg`.

    dg scaffold defs tideview.assets.TideviewPipelines sales

makes a folder of definitions with a pipeline of that name in it, and

    type: tideview.assets.TideviewPipelines
    attributes:
      folder: .

is all that says so: `folder` is a pipeline, or a folder of pipelines. A project that has a resource
`spark`, or `flows`, of its own adds

      resource_keys:
        spark: tideview_spark
"""

import re
from pathlib import Path

from dagster import (
    Component,
    ComponentLoadContext,
    Definitions,
    Model,
    Resolvable,
    Scaffolder,
    ScaffoldRequest,
    in_process_executor,
    scaffold_component,
    scaffold_with,
)
from pydantic import Field

from ivm_core.cli.new import make_pipeline
from tideview.assets.folder_definitions import tideview_definitions
from tideview.assets.resource_keys import USUAL, ResourceKeys


class PipelineScaffolder(Scaffolder):
    """Makes a pipeline to begin with, beside the component's own file."""

    def scaffold(self, request: ScaffoldRequest) -> None:
        """As `tideview new`, named after the folder."""
        name = re.sub(r"[^A-Za-z0-9_]", "_", request.target_path.name)
        make_pipeline(request.target_path / name, name)
        scaffold_component(request, {"folder": name})


@scaffold_with(PipelineScaffolder)
class TideviewPipelines(Component, Model, Resolvable):
    """SQL views on Spark and Delta Lake, kept equal to their query at the cost of the change."""

    folder: str = Field(
        default=".", description="A pipeline, or a folder of pipelines, seen from this file."
    )
    store: str = Field(
        default="", description="Where flows and inboxes are; empty: TIDEVIEW_STORE."
    )
    in_process: bool = Field(
        default=True,
        description="Run all steps of a run in one process, with one Spark. False: the project "
        "says itself how.",
    )
    resource_keys: ResourceKeys = Field(
        default=USUAL,
        description="The names of our resources, flows and spark, where the project has others of "
        "those names.",
    )

    def build_defs(self, context: ComponentLoadContext) -> Definitions:
        """The definitions of the folder's pipelines."""
        return tideview_definitions(
            Path(context.path) / self.folder,
            store=self.store,
            executor=in_process_executor if self.in_process else None,
            resource_keys=self.resource_keys,
        )
