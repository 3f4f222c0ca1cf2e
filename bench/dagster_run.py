"""From a commit in a source to all views materialized, through sensor and run, Spark being warm.

Three things beside each other, round by round, on the shop that ships: the bare `flow.tick()` of a
change, an empty run that the sensor's job makes, and the change through sensor and run. Two flows
follow the same inboxes, so that each sees every change. Checks are no part of a run here: they come
after the views are materialized.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from bench.machine import python_memory
from bench.measure import Plan, Section, progress, size_text
from ivm_core import IncrementalFlow

if TYPE_CHECKING:
    from pathlib import Path

    from dagster import DagsterInstance, Definitions
    from pyspark.sql import SparkSession

LIMIT = 2.0
SOURCES = 20
SENSOR_LIMIT_S = 0.1
CUSTOMERS, ORDERS = 2_000, 10_000
MANY_LOOKS = 20


def run(spark: SparkSession, folder: Path, plan: Plan) -> Section:
    """Measure a run, and a sensor with many sources."""
    from dagster import DagsterInstance

    section = Section("dagster-run", f"the shop in Dagster, {size_text(ORDERS)} orders")
    folder.mkdir(parents=True, exist_ok=True)
    with DagsterInstance.local_temp(str(folder)) as instance:
        _measure_runs(section, spark, folder, plan, instance)
        _measure_sensor(section, folder, instance)
    return section


def _measure_runs(
    section: Section, spark: SparkSession, folder: Path, plan: Plan, instance: DagsterInstance
) -> None:
    from tideview.assets.names import asset_key
    from tideview.pipelines.feed import SHOP, Feeder
    from tideview.resources.flow_store import FlowStore
    from tideview.resources.pipeline_folder import load_pipeline

    shop = load_pipeline(SHOP)
    flows = FlowStore(path=str(folder / "store"))
    inboxes = flows.inboxes(shop)
    feeder = Feeder(inboxes, seed=11)
    progress("dagster-run: opening the shop")
    feeder.open(CUSTOMERS, ORDERS)
    driven = _Driven(_definitions(shop, flows), instance)
    views = {asset_key(shop, view.name) for view in shop.views}
    before = python_memory()
    with IncrementalFlow.open(folder / "bare", spark) as bare:
        flows.register_sources(shop, bare)
        shop.register_views(bare)
        bare.tick()
        driven.sensor_driven("shop")
        tick, empty, whole = (
            section.sample(name)
            for name in ("bare tick", "empty run", "commit to views, by sensor and run")
        )
        for keep in plan.rounds:
            feeder.trade()
            whole.time(driven.sensor_driven, "shop", keep=keep)
            tick.time(bare.tick, keep=keep)
            empty.time(driven.looked_and_ran, "shop", views, keep=keep)
        for view in shop.views:
            section.check(f"{view.name} equals its query", bare.check(view.name).equal)
    with flows.read(shop, spark) as flow:
        for view in shop.views:
            section.check(f"{view.name} in Dagster equals its query", flow.check(view.name).equal)
    after = python_memory()
    section.notes.append(
        f"memory of the process that runs: {after / 2**20:,.0f} MiB, "
        f"{(after - before) / 2**20:+,.0f} MiB after {len(plan.rounds)} rounds"
    )
    ratio = whole.median / (tick.median + empty.median)
    section.bar("commit to views / (bare tick + empty run)", ratio, "<=", LIMIT)


def _measure_sensor(section: Section, folder: Path, instance: DagsterInstance) -> None:
    from tideview.resources.flow_store import FlowStore
    from tideview.resources.pipeline_spec import PipelineSpec, SourceSpec, ViewSpec

    names = [f"s{number:02d}" for number in range(SOURCES)]
    wide = PipelineSpec(
        name="wide",
        sources=tuple(SourceSpec(name, "id BIGINT", primary_key=("id",)) for name in names),
        views=tuple(ViewSpec(f"v_{name}", f"SELECT id FROM {name}") for name in names),
    )
    flows = FlowStore(path=str(folder / "wide"))
    inboxes = flows.inboxes(wide)
    for inbox in inboxes.values():
        inbox.make()
    driven = _Driven(_definitions(wide, flows), instance)
    sample = section.sample(f"sensor, {SOURCES} sources, each changed")
    for number in range(MANY_LOOKS):
        for inbox in inboxes.values():
            inbox.append([(number,)])
        sample.time(driven.look, "wide", keep=number > 0)
    slowest = max(sample.seconds)
    section.notes.append(
        f"sensor: median {median(sample.seconds) * 1000:.0f} ms, slowest {slowest * 1000:.0f} ms"
    )
    section.bar("sensor's evaluation / 100 ms", sample.median / SENSOR_LIMIT_S, "<=", 1.0)


class _Driven:
    """A code location as daemon and run worker use it, in this process with its warm Spark."""

    def __init__(self, defs: Definitions, instance: DagsterInstance) -> None:
        self._defs = defs
        self._instance = instance

    def look(self, pipeline: str) -> list[object]:
        """Evaluate the sensor; the runs that it asks for."""
        from dagster import build_sensor_context

        sensor = self._defs.resolve_sensor_def(f"{pipeline}_sources")
        given = {key: (self._defs.resources or {})[key] for key in sensor.required_resource_keys}
        with build_sensor_context(
            self._instance, definitions=self._defs, resources=given
        ) as context:
            return list(sensor.evaluate_tick(context).run_requests or ())

    def sensor_driven(self, pipeline: str) -> None:
        """Evaluate the sensor and make the run that it asks for."""
        [asked] = self.look(pipeline)
        self._run(set(asked.asset_selection))  # type: ignore[attr-defined]

    def looked_and_ran(self, pipeline: str, views: set[object]) -> None:
        """The same where nothing is new: the sensor finds nothing, the run ticks nothing."""
        asked = self.look(pipeline)
        assert not asked, asked
        self._run(views)

    def _run(self, views: set[object]) -> None:
        job = self._defs.resolve_implicit_global_asset_job_def()
        subset = job.get_subset(asset_selection=views, asset_check_selection=set())  # type: ignore[arg-type]
        assert subset.execute_in_process(instance=self._instance).success


def _definitions(pipeline: object, flows: object) -> Definitions:
    from dagster import Definitions, in_process_executor

    from tideview.assets.pipeline_definitions import pipeline_definitions
    from tideview.resources.local_spark import LocalSpark

    resources = {"flows": flows, "spark": LocalSpark()}
    return Definitions.merge(
        pipeline_definitions(pipeline),  # type: ignore[arg-type]
        Definitions(resources=resources, executor=in_process_executor),
    )
