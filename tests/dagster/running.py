"""Runs a pipeline's job in this process, and finds what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagster import AssetCheckKey, AssetKey, DagsterEventType

if TYPE_CHECKING:
    from dagster import (
        AssetCheckEvaluation,
        AssetMaterialization,
        AssetObservation,
        DagsterInstance,
        Definitions,
        ExecuteInProcessResult,
    )


class Run:
    """Executes the pipeline's job, all of it or a selection."""

    def __init__(self, defs: Definitions, instance: DagsterInstance) -> None:
        self._defs = defs
        self._instance = instance

    def __call__(
        self, *views: str, raises: bool = True, tags: dict[str, str] | None = None
    ) -> ExecuteInProcessResult:
        selection = [AssetKey(["till", view]) for view in views] or None
        return self._defs.resolve_job_def("till_job").execute_in_process(
            instance=self._instance, asset_selection=selection, raise_on_error=raises, tags=tags
        )

    def only_ticks(self, *views: str) -> ExecuteInProcessResult:
        """A tick without its checks."""
        keys = {AssetKey(["till", view]) for view in views or ("totals", "big", "places")}
        job = self._defs.resolve_implicit_global_asset_job_def()
        subset = job.get_subset(asset_selection=keys, asset_check_selection=set())
        return subset.execute_in_process(instance=self._instance)

    def only_checks(
        self, *wanted: tuple[str, str], tags: dict[str, str] | None = None
    ) -> dict[tuple[str, str], AssetCheckEvaluation]:
        """Checks by view and name; all without any."""
        keys = {AssetCheckKey(AssetKey(["till", view]), name) for view, name in wanted}
        graph = self._defs.resolve_asset_graph()
        every = {key for key in graph.asset_check_keys if len(key.asset_key.path) == 2}
        job = self._defs.resolve_implicit_global_asset_job_def()
        subset = job.get_subset(asset_selection=set(), asset_check_selection=keys or every)
        result = subset.execute_in_process(instance=self._instance, tags=tags)
        assert result.success
        return checks(result)


def materialized(result: ExecuteInProcessResult) -> dict[str, AssetMaterialization]:
    found = {}
    for event in result.all_events:
        if event.event_type == DagsterEventType.ASSET_MATERIALIZATION:
            materialization = event.step_materialization_data.materialization
            found[materialization.asset_key.path[-1]] = materialization
    return found


def observed(result: ExecuteInProcessResult) -> dict[str, AssetObservation]:
    return {
        event.asset_key.path[-1]: event.asset_observation_data.asset_observation
        for event in result.all_events
        if event.event_type == DagsterEventType.ASSET_OBSERVATION and event.asset_key
    }


def value(materialization: AssetMaterialization, key: str) -> object:
    return materialization.metadata[key].value


def checks(result: ExecuteInProcessResult) -> dict[tuple[str, str], AssetCheckEvaluation]:
    """The evaluations by view and name of the check."""
    found = result.get_asset_check_evaluations()
    return {(each.asset_key.path[-1], each.check_name): each for each in found}
