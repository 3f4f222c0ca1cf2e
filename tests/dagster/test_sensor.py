"""The sensors beside real tables and a real flow."""

from __future__ import annotations

import json
import shutil
import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from dagster import AssetKey, DagsterRunStatus, Definitions, asset, define_asset_job
from dagster._core.test_utils import create_run_for_test
from deltalake import DeltaTable

from ivm_core import HistoryLost
from tests.dagster.conftest import definitions_of
from tests.dagster.sensing import RETENTION, evaluate, reason, request
from tideview.assets import tries
from tideview.assets.names import NEWS_TAG, PIPELINE_TAG
from tideview.assets.outlook import Lookout, look
from tideview.assets.patience import Patience
from tideview.assets.retention_sensor import endangered_sources
from tideview.assets.tries import RUN_KEY_TAG
from tideview.resources.pipeline_spec import PipelineSpec, SourceSpec, ViewSpec

if TYPE_CHECKING:
    from dagster import DagsterInstance
    from pyspark.sql import SparkSession

    from tideview.resources.flow_store import FlowStore
    from tideview.resources.inbox import Inbox
    from tideview.resources.pipeline_spec import Pipeline


def test_missing_tables_are_named_and_survived(
    defs: Definitions, instance: DagsterInstance, flows: FlowStore, pipeline: Pipeline
) -> None:
    told = reason(defs, instance)
    assert "sales: unreadable (there is no Delta table" in told
    assert "views that can't go on: totals, big, places" in told
    assert "made by whoever feeds them, or by the first run: materialize the views" in told
    flows.inboxes(pipeline)["sales"].make()
    asked = request(defs, instance)  # what reads no missing table goes on
    assert asked.asset_selection == [AssetKey(["till", name]) for name in ("totals", "big")]
    assert "cities: unreadable (there is no Delta table" in asked.tags[NEWS_TAG]


def test_a_new_version_asks_for_one_run(
    defs: Definitions, instance: DagsterInstance, inboxes: dict[str, Inbox]
) -> None:
    first, again = request(defs, instance), request(defs, instance)
    assert first.run_key == again.run_key
    inboxes["sales"].append([(3, "ada", Decimal("1.00"))])
    later = request(defs, instance)
    assert later.run_key != first.run_key
    assert later.tags[PIPELINE_TAG] == "till"


def test_what_is_new_waits_for_the_run_that_is_under_way(
    defs: Definitions, instance: DagsterInstance, inboxes: dict[str, Inbox]
) -> None:
    tags = {PIPELINE_TAG: "till"}
    run = create_run_for_test(instance, tags=tags, status=DagsterRunStatus.STARTED)
    assert f"run {run.run_id} is under way" in reason(defs, instance)
    create_run_for_test(instance, tags={PIPELINE_TAG: "other"}, status=DagsterRunStatus.STARTED)
    instance.report_run_failed(run)
    assert request(defs, instance).run_key


def test_runs_that_someone_else_asked_for_are_waited_for_too(
    defs: Definitions, instance: DagsterInstance, inboxes: dict[str, Inbox]
) -> None:
    @asset
    def mine() -> None: ...

    own = define_asset_job("own", [AssetKey(["till", "big"])])
    every = Definitions.merge(defs, Definitions(assets=[mine], jobs=[own]))

    def is_waited_for(job: str, selection: set[AssetKey] | None) -> bool:
        run = instance.create_run_for_job(
            every.resolve_job_def(job), asset_selection=selection, status=DagsterRunStatus.STARTED
        )
        asked = evaluate(defs, instance)
        instance.report_run_failed(run)
        return f"run {run.run_id} is under way" in (asked.skip_message or "")

    everything = every.resolve_implicit_global_asset_job_def().name
    assert is_waited_for(everything, {AssetKey(["till", "totals"])})  # the button, a condition
    assert is_waited_for("own", None)
    assert not is_waited_for(everything, {AssetKey("mine")})
    assert not is_waited_for(everything, {AssetKey(["till", "sales"])})
    assert not is_waited_for("till_complete_check", None)  # it only reads


def test_every_view_has_its_own_frontier(
    spark: SparkSession,
    defs: Definitions,
    instance: DagsterInstance,
    flows: FlowStore,
    pipeline: Pipeline,
    inboxes: dict[str, Inbox],
) -> None:
    sales, cities = inboxes["sales"], inboxes["cities"]
    lookout = Lookout(pipeline, flows)

    def kinds() -> dict[str, str]:
        return {name: news.kind for name, news in lookout.look().news.items()}

    assert kinds() == {"sales": "new", "cities": "new"}
    with flows.open(pipeline, spark) as flow:
        flow.tick()
        assert "as of tick 1" in reason(defs, instance)
        assert kinds() == {"sales": "nothing", "cities": "nothing"}
        sales.append([(3, "ada", Decimal("1.00"))])
        assert kinds()["sales"] == "insert-only"
        assert lookout.look().behind == ["totals", "big"]
        flow.tick(views=["totals"])
    assert lookout.look().behind == ["big"]
    asked = request(defs, instance)
    assert asked.asset_selection == [AssetKey(["till", "big"])]
    assert asked.tags[NEWS_TAG] == "sales: insert-only (1 → 2)"
    sales.merge([(1, "ada", Decimal("2.00"))], [])
    assert kinds()["sales"] == "changed"

    # commits that change no row are no news, until they are about to be gone
    DeltaTable(str(cities.path)).optimize.compact()
    cities.append([("dan", "Lund")])
    DeltaTable(str(cities.path)).optimize.compact()
    assert kinds()["cities"] == "insert-only"
    with flows.open(pipeline, spark) as flow:
        flow.tick()
    rewrite(cities)
    assert str(lookout.look().news["cities"]).startswith("nothing (")
    assert lookout.look().behind == []
    age_commits(cities, timedelta(days=1))
    assert Lookout(pipeline, flows).look().behind == ["places"]
    assert endangered_sources(Lookout(pipeline, flows).look(), datetime.now(UTC)) == []
    age_commits(cities, timedelta(days=5))
    with pytest.raises(HistoryLost, match=r"cities: versions .* are not read") as told:
        evaluate(defs, instance, RETENTION)
    assert "delta.deletedFileRetentionDuration" in str(told.value)

    # a source that is gone or another one keeps its own views from going on, and no others
    shutil.rmtree(cities.path)
    asked = request(defs, instance) if lookout.look().behind else None
    assert asked is None
    sales.append([(9, "eve", Decimal("1.00"))])
    asked = request(defs, instance)
    assert asked.asset_selection == [AssetKey(["till", name]) for name in ("totals", "big")]
    assert "cities: unreadable (there is no Delta table" in asked.tags[NEWS_TAG]
    cities.make()
    outlook = lookout.look()
    assert outlook.news["cities"].kind == "replaced"
    assert outlook.stuck == {"places": "cities"}
    with flows.open(pipeline, spark) as flow:
        flow.tick(views=["big"])
    told_reason = reason(defs, instance)
    assert "cities: replaced" in told_reason
    assert "views that can't go on: places" in told_reason


def rewrite(inbox: Inbox) -> None:
    """A commit that changes no row."""
    table = DeltaTable(str(inbox.path))
    table.optimize.z_order(["city"])


def age_commits(inbox: Inbox, by: timedelta) -> None:
    """Make the newest commit of a table older than it is."""
    newest = max((inbox.path / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in newest.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] -= int(by.total_seconds() * 1000)
    newest.write_text("\n".join(json.dumps(action) for action in actions) + "\n")


def test_sources_are_observed_where_a_version_is_new(
    defs: Definitions, instance: DagsterInstance, inboxes: dict[str, Inbox]
) -> None:
    first = evaluate(defs, instance)
    assert {event.asset_key.path[-1] for event in first.asset_events} == {"sales", "cities"}
    assert evaluate(defs, instance, cursor=first.cursor).asset_events == []
    inboxes["sales"].append([(3, "ada", Decimal("1.00"))])
    [event] = evaluate(defs, instance, cursor=first.cursor).asset_events
    assert event.asset_key == AssetKey(["till", "sales"])
    version = inboxes["sales"].version
    assert event.tags["dagster/data_version"] == f"{version.table_id}@{version.version}"


def test_who_does_not_answer_holds_up_nobody() -> None:
    released = threading.Event()
    asked = []

    def slow() -> str:
        asked.append("slow")
        released.wait(30)
        return "late"

    patience: Patience[str] = Patience(0.05)
    answers = patience.ask({"slow": slow, "quick": lambda: "here", "wrong": lambda: str(1 // 0)})
    assert isinstance(answers["slow"], TimeoutError)
    assert answers["quick"] == "here"
    assert isinstance(answers["wrong"], ZeroDivisionError)
    assert isinstance(patience.ask({"slow": slow})["slow"], TimeoutError)
    assert asked == ["slow"]  # it still owes the first answer
    released.set()


def test_a_sensor_has_twenty_sources(flows: FlowStore, instance: DagsterInstance) -> None:
    names = [f"s{number:02d}" for number in range(20)]
    pipeline = PipelineSpec(
        name="till",
        sources=tuple(SourceSpec(name, "id BIGINT", primary_key=("id",)) for name in names),
        views=tuple(ViewSpec(f"v_{name}", f"SELECT id FROM {name}") for name in names),
    )
    for inbox in flows.inboxes(pipeline).values():
        inbox.make()
        inbox.append([(1,)])
    asked = request(definitions_of(pipeline, flows), instance)
    assert asked.asset_selection is not None
    assert len(asked.asset_selection) == 20
    assert len(look(pipeline, flows).news) == 20


def test_a_run_that_failed_is_tried_again_and_the_sensor_says_so(
    defs: Definitions,
    instance: DagsterInstance,
    inboxes: dict[str, Inbox],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = []
    for _ in range(1 + len(tries.WAITS)):
        with monkeypatch.context() as later:
            later.setattr(tries, "WAITS", (0.0,) * len(tries.WAITS))
            asked = request(defs, instance)
        keys.append(asked.run_key)
        tags = {RUN_KEY_TAG: str(asked.run_key)}
        run = create_run_for_test(
            instance, job_name="till_job", tags=tags, status=DagsterRunStatus.STARTED
        )
        instance.report_run_failed(run)
        told = reason(defs, instance)
        assert run.run_id in told
        assert ("tried again in" in told) == (len(keys) <= len(tries.WAITS))
    assert len(set(keys)) == len(keys)
    assert "nothing is asked for until something changes" in reason(defs, instance)
    inboxes["sales"].append([(3, "ada", Decimal("1.00"))])
    asked = request(defs, instance)
    tags = {RUN_KEY_TAG: str(asked.run_key)}
    create_run_for_test(instance, job_name="till_job", tags=tags, status=DagsterRunStatus.CANCELED)
    assert "was cancelled; materialize" in reason(defs, instance)
