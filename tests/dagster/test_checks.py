"""The checks of views: each of them passes where all is well, and names what isn't."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dagster import AssetCheckKey, AssetCheckSeverity, AssetKey

from tests.dagster.conftest import DECLARATION, VIEWS, definitions_of, write_pipeline
from tests.dagster.running import Run, checks
from tideview.assets.expectations import validated
from tideview.assets.names import CHECKS_TAG, COMPLETE
from tideview.assets.replay_equality import next_shard
from tideview.resources.pipeline_folder import load_pipeline
from tideview.resources.pipeline_spec import Expectation

if TYPE_CHECKING:
    from pathlib import Path

    from dagster import AssetCheckEvaluation, DagsterInstance
    from pyspark.sql import SparkSession

    from tideview.resources.flow_store import FlowStore
    from tideview.resources.inbox import Inbox
    from tideview.resources.pipeline_spec import Pipeline

FRONT = """/*---
description: What each has spent.
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: total, min_value: 5}
    severity: warning
  - type: expect_column_values_to_not_be_null
    kwargs: {column: customer}
  - type: expect_table_row_count_to_be_between
    kwargs: {min_value: 3}
    name: enough_rows
---*/
"""
SHARDED = f"""{DECLARATION}
checks:
  complete_below: 1
  shards: 4
  blocking: [replay_equality]
"""


def test_checks_of_views_that_are_not_as_recorded(
    run: Run, flows: FlowStore, pipeline: Pipeline, inboxes: dict[str, Inbox]
) -> None:
    for check in run.only_checks().values():  # before the first tick
        assert not check.passed
        assert check.severity == AssetCheckSeverity.WARN
        assert "materialize it first" in (check.description or "")
    assert run.only_ticks().success
    flow = flows.flow_path(pipeline)

    [file] = sorted((flow / "views" / "totals" / "rows").glob("*.parquet"))
    rows = pq.read_table(file)
    pairs = zip(rows["customer"].to_pylist(), rows["total"].to_pylist(), strict=True)
    forged = [Decimal("99.99") if name == "ben" else total for name, total in pairs]
    column = pa.array(forged, rows.schema.field("total").type)
    pq.write_table(rows.set_column(rows.schema.get_field_index("total"), "total", column), file)

    found = run.only_checks()
    assert {key for key, check in found.items() if not check.passed} == {
        ("totals", "replay_equality"),
        ("totals", "certificate_chain"),
    }
    equality = found["totals", "replay_equality"]
    assert (number(equality, "missing"), number(equality, "extra")) == (1, 1)
    assert number(equality, "coverage") == 1.0
    shown = str(equality.metadata["differing_rows"].value)
    assert "| ben | 99.99 | 1 | -1 |" in shown
    assert "| ben | 3.00 | 1 | 1 |" in shown
    chain = found["totals", "certificate_chain"]
    assert "tick 1 doesn't fit" in (chain.description or "")
    assert "| ben | 99.99 | 1 | 1 |" in str(chain.metadata["rows_of_the_change"].value)
    same = found["totals", "determinism"]
    assert same.metadata["recorded_digest"].value == same.metadata["repeated_digest"].value

    forge_certificate(flow, "places")
    places = run.only_checks(("places", "determinism"), ("places", "certificate_chain"))
    assert not places["places", "determinism"].passed
    assert "other digests" in (places["places", "determinism"].description or "")
    assert not places["places", "certificate_chain"].passed


def number(check: AssetCheckEvaluation, key: str) -> object:
    return check.metadata[key].value


def forge_certificate(flow: Path, view: str) -> None:
    """Let the newest certificate say another digest of a view's change."""
    newest = max((flow / "ticks").glob("n*.parquet"), default=None)
    assert newest is not None, list(flow.iterdir())
    entries = pq.read_table(newest)
    bodies = [json.loads(body) for body in entries["body"].to_pylist()]
    assert "views" in bodies[-1]
    bodies[-1]["views"][view]["digest"] = "0" * 32
    texts = pa.array([json.dumps(body) for body in bodies])
    place = entries.schema.get_field_index("body")
    pq.write_table(entries.set_column(place, "body", texts), newest)


def test_large_views_are_compared_shard_by_shard(
    tmp_path: Path, instance: DagsterInstance, flows: FlowStore, inboxes: dict[str, Inbox]
) -> None:
    views = {**VIEWS, "totals": FRONT + VIEWS["totals"]}
    pipeline = load_pipeline(write_pipeline(tmp_path / "till", SHARDED, views))
    defs = definitions_of(pipeline, flows)
    run = Run(defs, instance)
    key = AssetCheckKey(AssetKey(["till", "totals"]), "replay_equality")
    assert defs.resolve_asset_graph().get_check_spec(key).blocking

    result = run()
    assert result.success
    found = checks(result)
    compared = []
    for turn in range(4):
        check = found["totals", "replay_equality"]
        assert check.passed
        assert (number(check, "shards"), number(check, "coverage")) == (4, 0.25)
        assert number(check, "shards_compared_lately") == min(turn + 1, 4)
        compared.append(number(check, "shard"))
        found = {**found, **run.only_checks(("totals", "replay_equality"))}
    assert sorted(compared) == [0, 1, 2, 3]  # though the tick was the same
    left = found["totals", "determinism"]
    assert left.metadata["recomputed"].value is False
    assert "left for the complete check" in (left.description or "")
    night = run.only_checks(
        ("totals", "replay_equality"), ("totals", "determinism"), tags={CHECKS_TAG: COMPLETE}
    )
    assert number(night["totals", "replay_equality"], "coverage") == 1.0
    assert night["totals", "determinism"].metadata["recomputed"].value is True
    assert all(check.passed for check in night.values())

    # the expectations of the same run, by Great Expectations itself
    between = found["totals", "expect_column_values_to_be_between_total"]
    assert not between.passed
    assert between.severity == AssetCheckSeverity.WARN
    assert number(between, "unexpected_count") == 1
    assert "| ben |" in str(between.metadata["unexpected_rows"].value)
    assert found["totals", "expect_column_values_to_not_be_null_customer"].passed
    enough = found["totals", "enough_rows"]
    assert not enough.passed
    assert enough.severity == AssetCheckSeverity.ERROR
    assert enough.metadata["observed"].value == "2"


def test_expectations_of_rows_whose_key_has_a_dot(
    tmp_path: Path, instance: DagsterInstance, flows: FlowStore, inboxes: dict[str, Inbox]
) -> None:
    dotted = VIEWS["totals"].replace("customer, SUM", "customer AS `c.name`, SUM")
    views = {"dotted": FRONT.replace("column: customer", "column: c.name") + dotted}
    folder = write_pipeline(tmp_path / "dots", DECLARATION, views)
    run = Run(definitions_of(load_pipeline(folder), flows), instance)
    assert run.only_ticks("dotted").success
    names = (
        "expect_column_values_to_not_be_null_c_name",
        "expect_column_values_to_be_between_total",
    )
    found = run.only_checks(*(("dotted", name) for name in names))
    null, between = (found["dotted", name] for name in names)
    assert null.passed, null.description
    assert number(between, "unexpected_count") == 1
    assert "3.0" in str(between.metadata["unexpected_rows"].value)


def test_two_expectations_of_one_kind_for_one_column(spark: SparkSession) -> None:
    between = "expect_column_values_to_be_between"
    low = Expectation(between, {"column": "id", "min_value": 0})
    high = Expectation(between, {"column": "id", "min_value": 5})
    found = validated(spark.range(3), "ids", {"low": low, "again": low, "high": high}, None)
    assert {name: each["success"] for name, each in found.items()} == {
        "low": True,
        "again": True,
        "high": False,
    }


def test_a_wrong_expectation_is_told_and_in_the_way_of_no_other(
    tmp_path: Path, instance: DagsterInstance, flows: FlowStore, inboxes: dict[str, Inbox]
) -> None:
    front = """/*---
expectations:
  - type: expect_column_values_to_match_regex
    kwargs: {column: customer, regex: "(["}
    name: regex
  - type: expect_column_values_to_match_strftime_format
    kwargs: {column: customer, strftime_format: "%Q"}
    name: format
  - type: expect_column_values_to_be_in_set
    kwargs: {column: total, value_set: [much]}
    name: set
  - type: expect_column_values_to_not_be_null
    kwargs: {column: customer}
    name: right
---*/
"""
    views = {name: front + sql for name, sql in VIEWS.items() if name == "totals"}
    other = "/*---\nexpectations:\n  - {type: expect_column_to_exist, kwargs: {column: customer}}\n"
    views["other"] = f"{other}---*/\nSELECT customer FROM sales"
    folder = write_pipeline(tmp_path / "till", DECLARATION, views)
    run = Run(definitions_of(load_pipeline(folder), flows), instance)
    assert run.only_ticks("totals", "other").success
    names = ("regex", "format", "set", "right")
    exists = ("other", "expect_column_to_exist_customer")
    found = run.only_checks(*(("totals", name) for name in names), exists)
    assert found["totals", "right"].passed
    assert found[exists].passed
    told = {name: str(found["totals", name].description) for name in names}
    for name, line, words in (
        # compiled and interpreted, Spark says it in other words
        ("regex", 3, ["regex='(['"]),
        ("format", 6, ["strftime_format is '%Q'", "'Q' is a bad directive"]),
        ("set", 9, ["value_set=['much']", "CAST_INVALID_INPUT"]),
    ):
        assert not found["totals", name].passed
        assert f"totals.sql, line {line}, key expectations" in told[name]
        for each in ("can't be evaluated", *words):
            assert each in told[name]
        for each in ("o.apache", "collectToPython", "site-packages", "ExpectColumn"):
            assert each not in told[name]


def test_a_damaged_view_keeps_no_expectation_of_another_from_being_checked(
    tmp_path: Path, instance: DagsterInstance, flows: FlowStore, inboxes: dict[str, Inbox]
) -> None:
    front = "/*---\nexpectations:\n  - {type: expect_column_to_exist, kwargs: {column: customer}}\n"
    views = {
        "totals": f"{front}---*/\n{VIEWS['totals']}",
        "whole": f"{front}---*/\nSELECT customer FROM sales",
    }
    pipeline = load_pipeline(write_pipeline(tmp_path / "till", DECLARATION, views))
    run = Run(definitions_of(pipeline, flows), instance)
    assert run.only_ticks("totals", "whole").success
    [file] = (flows.flow_path(pipeline) / "views" / "totals" / "rows").glob("*.parquet")
    file.unlink()
    check = "expect_column_to_exist_customer"
    found = run.only_checks(("totals", check), ("whole", check))
    assert found["whole", check].passed
    damaged = found["totals", check]
    assert not damaged.passed
    assert damaged.severity == AssetCheckSeverity.ERROR
    assert file.name in (damaged.description or "")


def test_arguments_that_great_expectations_refuses(spark: SparkSession) -> None:
    between = "expect_column_values_to_be_between"
    wrong = Expectation(between, {"column": "id", "min_value": "abc"})
    bare = Expectation(between, {"column": "id"})
    right = Expectation(between, {"column": "id", "min_value": 0})
    found = validated(spark.range(3), "ids", {"wrong": wrong, "bare": bare, "right": right}, None)
    assert found["right"]["success"]
    told = {name: each["exception_info"].get("exception_message") for name, each in found.items()}
    assert told["wrong"].startswith("min_value is 'abc': value is not a valid float")
    assert told["bare"] == "min_value and max_value cannot both be None"


@pytest.mark.parametrize("step", [1, 2, 3])
def test_all_shards_have_their_turn_whatever_ticks_there_are(step: int) -> None:
    lately: list[int] = []
    for tick in range(1, 1 + 6 * step, step):
        lately.append(next_shard(tick, 6, set(lately[-5:])))
    assert sorted(lately) == list(range(6))


def test_a_damaged_view_keeps_no_other_from_being_checked(
    run: Run, flows: FlowStore, pipeline: Pipeline, inboxes: dict[str, Inbox]
) -> None:
    assert run.only_ticks().success
    [file] = (flows.flow_path(pipeline) / "views" / "totals" / "rows").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-40])
    found = run.only_checks()
    assert {key for key, check in found.items() if check.passed} >= {
        ("places", "replay_equality"),
        ("places", "certificate_chain"),
        ("places", "determinism"),
    }
    equality = found["totals", "replay_equality"]
    assert not equality.passed
    assert equality.severity == AssetCheckSeverity.ERROR
    assert file.name in (equality.description or "")


def test_a_source_that_was_replaced_is_in_the_way_of_nobody_else(
    tmp_path: Path, instance: DagsterInstance, flows: FlowStore, inboxes: dict[str, Inbox]
) -> None:
    def run(declaration: str = DECLARATION, **views: str) -> Run:
        folder = write_pipeline(tmp_path / "till", declaration, {**VIEWS, **views})
        return Run(definitions_of(load_pipeline(folder), flows), instance)

    def determinism(of: Run, *views: str) -> dict[str, AssetCheckEvaluation]:
        found = of.only_checks(*((view, "determinism") for view in views))
        return {view: check for (view, _), check in found.items()}

    assert run().only_ticks().success
    shutil.rmtree(inboxes["cities"].path)
    inboxes["cities"].make()
    inboxes["sales"].append([(3, "cy", Decimal("12.00"))])
    assert run().only_ticks("totals", "big").success
    found = determinism(run(), "totals", "big", "places")
    assert {view for view, check in found.items() if check.passed} == {"totals", "big"}
    assert "cities was replaced" in (found["places"].description or "")

    # given up for another source, it is nobody's any more
    towns = DECLARATION + "  towns: customer STRING, city STRING\n"
    moved = run(towns, places=VIEWS["places"].replace("FROM cities", "FROM towns"))
    assert moved.only_ticks().success
    assert moved.only_ticks().success
    assert all(each.passed for each in determinism(moved, "totals", "big", "places").values())
