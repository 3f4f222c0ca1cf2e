"""Bringing a flow's definitions to what the files say, before a tick.

What is new is registered. A view whose SQL means something else than what is stored is altered, in
a tick of its own that all views downstream see too; or it is refused, where the pipeline says so.
Views that the run doesn't need keep the definition that they have.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ivm_core import DefinitionConflict, IncrementalFlow, IvmError
from ivm_core.model.schema import parse_schema
from tideview.resources.view_declaring import declare_views, declared_columns, needed_views

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pyspark.sql import SparkSession

    from ivm_core.engine.alter_report import AlterReport
    from tideview.resources.flow_store import FlowStore
    from tideview.resources.pipeline_spec import Pipeline, ViewSpec


@dataclass
class Rollout:
    """What became of a pipeline's definitions in its flow."""

    altered: dict[str, AlterReport] = field(default_factory=dict)
    """Views that mean something else now."""
    notes: list[str] = field(default_factory=list)
    """What was left as it is, and why."""


@contextmanager
def opened_for_a_tick(
    flows: FlowStore, pipeline: Pipeline, spark: SparkSession, selected: Collection[str]
) -> Iterator[tuple[IncrementalFlow, Rollout]]:
    """The flow with all that the selected views need declared as the files have it.

    What the flow refuses is an `IvmError`: a definition that differs and isn't to be altered,
    another writer, a folder that holds something else, a source that is gone.
    """
    needed = needed_views(pipeline, selected)
    sources = {name for view in needed for name in pipeline.sources_of(view)}
    with IncrementalFlow.open(flows.flow_path(pipeline), spark) as flow:
        rollout = Rollout()
        for source in pipeline.sources:
            try:
                flows.register_sources(pipeline, flow, [source.name])
            except IvmError as error:
                if source.name in sources:
                    raise
                rollout.notes.append(f"source {source.name} is left out: {error}")
        roll_out(pipeline, flow, needed, rollout)
        yield flow, rollout


def roll_out(
    pipeline: Pipeline, flow: IncrementalFlow, needed: Collection[str], rollout: Rollout
) -> None:
    """Register what is new and alter what has changed of what is needed."""
    there = set(flow.views)
    changed = {
        view.name: view for view in pipeline.views if view.name in there and _is_changed(flow, view)
    }
    others = [name for name in changed if name not in needed]
    rollout.notes += [
        f"view {name} keeps its stored definition until it is run"
        for name in _of_another_meaning(pipeline, flow, others)
    ]
    wanted = set(changed) & set(needed)
    # those of a circle change together, and one that was none is named as one of it
    altered = [
        view
        for view in pipeline.views
        if view.name in there and not wanted.isdisjoint((view.name, *view.circle))
    ]
    if altered and pipeline.changed_views == "alter":
        # what the altered views read has to be there before, what reads them is registered after
        _register(pipeline, flow, without=changed)
        reports = _altered(pipeline, flow, altered)
        rollout.altered |= {n: each for n, each in reports.items() if not each.same_meaning}
    _register(pipeline, flow, without=others)


def _of_another_meaning(
    pipeline: Pipeline, flow: IncrementalFlow, changed: Collection[str]
) -> list[str]:
    """Those of changed views whose files mean something else than the flow has.

    One that is only laid out otherwise may keep its stored text for ever: its steps are made from
    that text, and have their state under its names.
    """
    stored = {name: flow.view_sql(name).strip() for name in changed}
    views = {view.name: view for view in pipeline.views}
    as_stored = (replace(v, sql=stored.get(v.name, v.sql)) for v in pipeline.views)
    try:
        before = {v.name: v.fingerprint for v in replace(pipeline, views=tuple(as_stored)).views}
    except IvmError:
        before = {}  # what is stored doesn't fit the sources any more
    return [
        name
        for name in changed
        if views[name].sql.strip() == stored[name] or before.get(name) != views[name].fingerprint
    ]


def _declared_otherwise(error: DefinitionConflict, pipeline: Pipeline) -> DefinitionConflict:
    """That a view's file says something else, and where it says so."""
    view = next((v for v in pipeline.views if error.where == f"view {v.name}"), None)
    if view is None:
        return error
    fix = "put back what the file said of require, or give the view another name"
    if pipeline.changed_views == "refuse":
        fix = (
            f"the pipeline {pipeline.name} says changed_views: refuse: put the stored definition "
            "back into the file, or say changed_views: alter in pipeline.yaml and run the view"
        )
    where = f"{error.where}, {view.where}" if view.where else error.where
    return DefinitionConflict(error.what, where, fix, stored=error.stored, given=error.given)


def _altered(
    pipeline: Pipeline, flow: IncrementalFlow, altered: list[ViewSpec]
) -> dict[str, AlterReport]:
    """Alter views, and with them those that can't go on with their new columns."""
    by_name = {view.name: view for view in pipeline.views}
    as_they_are: set[str] = set()
    while True:
        first, *more = altered
        added = _added(pipeline, flow, altered)
        try:
            report = flow.alter_view(
                first.name,
                first.sql,
                also={v.name: None if v.name in as_they_are else v.sql for v in more} or None,
                added={view.name: view.sql for view in added},
                schemas=declared_columns([*altered, *added]),
                require={view.name: view.require for view in added},
                max_iterations=pipeline.recursion.max_iterations,
                max_rows=pipeline.recursion.max_rows,
            )
        except DefinitionConflict as error:
            undeclared = [name for name in error.broken if name not in by_name]
            if undeclared:
                raise _undeclared(error, pipeline, undeclared) from error
            broken = [by_name[name] for name in error.broken if by_name[name] not in altered]
            if not broken:
                raise
            altered = [*altered, *broken]
            as_they_are |= {view.name for view in broken if not _is_changed(flow, view)}
        else:
            return {first.name: report, **report.also}


def _undeclared(
    error: DefinitionConflict, pipeline: Pipeline, views: list[str]
) -> DefinitionConflict:
    """That views which the flow has, and no file, are in the way."""
    return DefinitionConflict(
        error.what,
        error.where,
        f"no file of {pipeline.name} declares {', '.join(views)} any more: drop what is not wanted "
        f"(tideview drop FLOW {views[0]}; tideview status FLOW lists all), or put the file back",
        stored=error.stored,
        given=error.given,
        broken=error.broken,
    )


def _is_changed(flow: IncrementalFlow, view: ViewSpec) -> bool:
    """Whether a view's file says something else than the flow has, in form or in meaning."""
    if flow.view_sql(view.name).strip() != view.sql.strip():
        return True
    declared = declared_columns([view]).get(view.name)
    if declared is None:
        return False
    stored = flow.view_columns(view.name)
    columns = [(each.name, each.type) for each in parse_schema(declared)]
    return columns != [(each.name, each.type) for each in stored]


def _added(
    pipeline: Pipeline, flow: IncrementalFlow, altered: Collection[ViewSpec]
) -> list[ViewSpec]:
    """Views that aren't there yet and that altered ones read, themselves or through others."""
    needed = needed_views(pipeline, [view.name for view in altered])
    there = set(flow.views)
    return [view for view in pipeline.views if view.name in needed and view.name not in there]


def _register(pipeline: Pipeline, flow: IncrementalFlow, without: Collection[str]) -> None:
    """Declare all views but some, those that are new and read one of them, or what isn't there.

    Views that read each other in a circle are new together; one that joins others comes with them
    when they are altered.
    """
    there = set(flow.views)
    usable = {*flow.sources, *there} - set(without)
    declared: dict[str, ViewSpec] = {}
    for view in pipeline.views:
        is_known = view.name in there and view.name not in without
        is_new = there.isdisjoint((view.name, *view.circle))
        if is_known or (is_new and usable.issuperset(view.inputs)):
            declared[view.name] = view
            usable.add(view.name)
    try:
        declare_views(pipeline, flow, list(declared.values()))
    except DefinitionConflict as error:
        raise _declared_otherwise(error, pipeline) from None  # the same in other words
