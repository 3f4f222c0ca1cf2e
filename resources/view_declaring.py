"""Declaring a pipeline's views in its flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ivm_core import IncrementalFlow
    from tideview.resources.pipeline_spec import PipelineSpec, ViewSpec


def declare_views(pipeline: PipelineSpec, flow: IncrementalFlow, views: Sequence[ViewSpec]) -> None:
    """Declare some views of a pipeline in a flow that has what they read; again it is a no-op.

    `DatalogError` where a view has other columns than a program that reads it says.
    """
    read = {each.relation.casefold() for view in views for each in view.expects}
    inputs = [view.name for view in views if view.name.casefold() in read]
    if inputs:
        # only of what is declared the types are known
        first = needed_views(pipeline, inputs)
        _register(pipeline, flow, [view for view in views if view.name in first])
        types = {name: flow.view_columns(name) for name in inputs}
        for expected in (each for view in views for each in view.expects):
            if expected.relation.casefold() in {name.casefold() for name in inputs}:
                expected.check(types, {})
    _register(pipeline, flow, views)


def needed_views(pipeline: PipelineSpec, views: Iterable[str]) -> set[str]:
    """The views, and those that they read."""
    reads = {view.name: view.reads for view in pipeline.views}
    needed: set[str] = set()
    waiting = list(views)
    while waiting:
        name = waiting.pop()
        if name in reads and name not in needed:
            needed.add(name)
            waiting += reads[name]
    return needed


def declared_columns(views: Iterable[ViewSpec]) -> dict[str, str]:
    """The columns that are said of views which read each other, or themselves."""
    return {view.name: view.schema for view in views if view.circle and view.schema}


def _register(pipeline: PipelineSpec, flow: IncrementalFlow, views: Sequence[ViewSpec]) -> None:
    flow.register_views(
        {view.name: view.sql for view in views},
        require={view.name: view.require for view in views},
        schemas=declared_columns(views),
        max_iterations=pipeline.recursion.max_iterations,
        max_rows=pipeline.recursion.max_rows,
    )
