"""pipeline.yaml and front matter: what they become, and what wrong ones are told."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import jsonschema
import pyarrow as pa
import pytest
import yaml
from dagster import AssetKey
from dagster._utils.schedules import is_valid_cron_string
from deltalake import DeltaTable, write_deltalake

from ivm_core import IvmError, UserError
from ivm_core.api.declaration import pipeline_rules, rules_of
from ivm_core.api.document_rules import complaints
from ivm_core.api.documents import from_yaml
from tests.dagster.conftest import DECLARATION, VIEWS, write_pipeline
from tideview.assets import tideview_definitions
from tideview.resources.cron import is_cron
from tideview.resources.flow_store import FlowStore
from tideview.resources.pipeline_folder import load_pipeline, survey_pipeline
from tideview.resources.pipeline_spec import (
    Automation,
    CheckPolicy,
    Freshness,
    Pipeline,
    PipelineSpec,
    Problem,
    Recursion,
    Retention,
    Schedules,
    Source,
    View,
)

if TYPE_CHECKING:
    from pathlib import Path

FULL = """\
# yaml-language-server: $schema=pipeline.schema.json
name: till
description: All that there is.
store: ../kept
sources:
  sales:
    description: What was sold.
    schema: id BIGINT, customer STRING, amount DECIMAL(12,2)
    primary_key: [id]
    dedup: true
    dedup_entries: 100
    owners: [team:sales]
    tags: {tier: gold}
  cities: customer STRING, city STRING
  prices:
    schema: id BIGINT, price INT
    delta_table: ${store}/theirs/prices
  rates:
    schema: code STRING, rate DOUBLE
    inbox: boxes/rates
    group: money
schedules:
  tick: "*/15 * * * *"
  replay: 0 2 * * *
  maintenance: "@weekly"
  timezone: Europe/Lisbon
sensor: {every: 30s, running: false}
retention: {ticks: 1000, days: 30}
recursion: {max_iterations: 500}
spark:
  cores: 4
  memory: 2g
  settings: {spark.sql.shuffle.partitions: "4"}
checks:
  run: [replay_equality, expectations]
  blocking: true
  complete_below: 10
  shards: 4
changed_views: refuse
owners: [ann@example.org]
tags: {team: sales}
"""
TOTALS = """\
/*---
description: What each has spent.
owners: [team:sales, ben@example.org]
tags: {tier: gold}
group: money
require: incremental
expectations:
  - type: expect_column_values_to_not_be_null
    kwargs: {column: customer}
  - type: expect_column_values_to_be_between
    kwargs: {column: total, min_value: 0, mostly: 0.99}
    severity: warning
    name: not_negative
freshness: {fail_after: 24h, warn_after: 90m}
checks: {run: [certificate_chain], blocking: [certificate_chain]}
automation: {on_cron: 0 * * * *}
---*/
-- a comment of the query's own
SELECT customer, SUM(amount) AS total FROM sales GROUP BY customer
"""


@pytest.fixture
def full(tmp_path: Path) -> PipelineSpec:
    views = {"totals": TOTALS, "places": "SELECT city FROM cities"}
    return load_pipeline(write_pipeline(tmp_path / "till", FULL, views))


def test_every_key_becomes_a_field(full: PipelineSpec, tmp_path: Path) -> None:
    assert full.schedules == Schedules("*/15 * * * *", "0 2 * * *", "@weekly", "Europe/Lisbon")
    assert (full.sensor.every, full.sensor.running) == (timedelta(seconds=30), False)
    assert full.retention == Retention(1000, 30)
    assert full.recursion == Recursion(500, 50_000_000)
    assert (full.spark.cores, full.spark.memory) == (4, "2g")
    assert full.spark.settings == {"spark.sql.shuffle.partitions": "4"}
    assert full.checks.run == ("replay_equality", "expectations")
    assert len(full.checks.blocking) == 4
    assert (full.changed_views, full.owners) == ("refuse", ("ann@example.org",))
    sales, cities, prices, rates = full.sources
    assert (sales.dedup, sales.dedup_entries, sales.tags) == (True, 100, {"tier": "gold"})
    assert sales.where.endswith("pipeline.yaml, line 6, key sources.sales")
    assert cities.schema.names == ("customer", "city")
    assert (prices.is_inbox, rates.group) == (False, "money")
    flows = FlowStore(path=str(tmp_path / "store"))
    assert flows.flow_path(full) == tmp_path / "kept" / "flow"
    assert flows.tables(full) == {
        "sales": str(tmp_path / "kept" / "inbox" / "sales"),
        "cities": str(tmp_path / "kept" / "inbox" / "cities"),
        "prices": str(tmp_path / "store" / "theirs" / "prices"),
        "rates": str(tmp_path / "till" / "boxes" / "rates"),
    }


def test_front_matter_becomes_fields_and_no_sql(full: PipelineSpec) -> None:
    [totals] = [view for view in full.views if view.name == "totals"]
    assert totals.description == "What each has spent."
    assert (totals.owners, totals.group) == (("team:sales", "ben@example.org"), "money")
    assert totals.require == "incremental"
    assert totals.sql.startswith("-- a comment")
    first, second = totals.expectations
    assert (first.type, first.severity) == ("expect_column_values_to_not_be_null", "critical")
    assert (second.kwargs["mostly"], second.severity, second.name) == (
        0.99,
        "warning",
        "not_negative",
    )
    assert "totals.sql, line 10" in second.where
    assert totals.freshness == Freshness(timedelta(hours=24), timedelta(minutes=90))
    assert full.checks_of(totals) == CheckPolicy(("certificate_chain",), ("certificate_chain",))
    assert totals.automation == Automation("on_cron", "0 * * * *")


def test_the_same_is_said_in_python(full: PipelineSpec, tmp_path: Path) -> None:
    same = Pipeline(
        name="till",
        sources=[
            Source("sales", "id BIGINT, customer STRING, amount DECIMAL(12,2)", ["id"]),
            Source("cities", "customer STRING, city STRING"),
        ],
        views=[View("big", "SELECT * FROM totals"), View("totals", TOTALS)],
    )
    assert [view.name for view in same.views] == ["totals", "big"]
    assert same.views[0].fingerprint == next(
        view.fingerprint for view in full.views if view.name == "totals"
    )
    assert same.sources[0].primary_key == ("id",)
    for wrong in (
        lambda: Source("sales"),
        lambda: Source("sales", "id INT", ["no"]),
        lambda: Source("sales", delta_table=str(tmp_path / "none")),
        lambda: Source("sales", "id INT", delta_table="x", dedup=True),
        lambda: View("a", "SELECT 1", require="speed"),
        lambda: Pipeline("a b", [], []),
        lambda: Recursion(max_rows=0),
        lambda: Pipeline("p", [], [View("a", "SELECT x FROM nowhere")]),
    ):
        with pytest.raises(IvmError):
            wrong()


@pytest.mark.parametrize(
    ("added", "line", "told"),
    [
        ("schedules: {tick: soon}", 9, ["schedules.tick", "cron", "'soon'"]),
        ("schedules: {tick: 0 25 * * *}", 9, ["'0 25 * * *' is no time table"]),
        ("schedules: {timezone: Mars/Olympus}", 9, ["no time zone 'Mars/Olympus'"]),
        ("sensor:\n  every: 5", 10, ["sensor.every", "a duration such as 30s", "5 found"]),
        ("sensor: {evry: 5s}", 9, ["'evry' is not a key", "did you mean every?"]),
        ("retention: {ticks: 0}", 9, ["a number of ticks from 1 on", "0 found"]),
        ("recursion: {max_rows: 0}", 9, ["a number of rows from 1 on", "0 found"]),
        ("spark: {connect: auto, master: local}", 9, ["keep one of them"]),
        ("spark: {settings: {a: 1}}", 9, ["spark.settings.a", "put it in quotes"]),
        ("spark: {remote: http://host}", 9, ["sc://host:15002"]),
        ("checks: {run: [determinism, luck]}", 9, ["checks.run[1]", "'luck' is none of"]),
        ("changed_views: keep", 9, ["'keep' is none of: alter, refuse"]),
        ("owners: [me]", 9, ["owners[0]", "team:name"]),
        ("tags: {year: 2024}", 9, ["tags.year", "put it in quotes"]),
        ("store: ${NO_SUCH_VARIABLE}/x", 9, ["key store", "NO_SUCH_VARIABLE is not set"]),
        ("store: s3://bucket/x", 9, ["key store", "is no folder"]),
        ("name: again", 9, ["'name' is given twice"]),
        ("owners: [*nobody]", 9, ["not YAML"]),
        ("tags: &self {a: *self}", 9, ["an anchor contains itself"]),
        ("description: !!python/object/apply:os.system [ls]", 9, ["not YAML", "os.system"]),
    ],
)
def test_a_wrong_key_is_told_with_its_line(
    tmp_path: Path, added: str, line: int, told: list[str]
) -> None:
    folder = write_pipeline(tmp_path / "till", f"{DECLARATION.strip()}\n{added}\n", VIEWS)
    with pytest.raises(UserError) as refused:
        load_pipeline(folder)
    for each in (f"{folder / 'pipeline.yaml'}, line {line}", *told):
        assert each in str(refused.value)


def test_anchors_that_unfold_are_counted() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(UserError, match="counting what anchors stand for"):
        from_yaml("\n".join(lines), "bomb.yaml")
    with pytest.raises(UserError, match="nested too deeply"):
        from_yaml("[" * 5000 + "]" * 5000, "deep.yaml")


@pytest.mark.parametrize(
    ("front", "told"),
    [
        ("require: speed", ["line 2", "'speed' is none of: incremental"]),
        ("freshness: 5 minutes", ["line 2", "freshness"]),
        ("columns: customer TEXT", ["line 2", "key columns", "TEXT"]),
        ("columns: customer STRING, total INT", ["reads neither itself nor others"]),
        ("freshness: {fail_after: 1h, warn_after: 2h}", ["line 2", "warn earlier"]),
        ("automation: {on_cron: '* * *'}", ["line 2", "automation.on_cron"]),
        ("expectations: [{type: expect_miracles}]", ["line 2", "there is no expectation"]),
        (
            "expectations:\n - type: expect_column_to_exists",
            ["line 3", "expectations[0].type", "did you mean expect_column_to_exist"],
        ),
        (
            "expectations:\n - type: expect_column_values_to_not_be_null\n"
            "   kwargs:\n    column: total\n    mostly: 7",
            ["line 6", "kwargs.mostly", "7 found"],
        ),
        (
            "expectations:\n - type: expect_column_values_to_not_be_null\n   kwargs: {colum: total}",
            ["line 4", "'colum' is not a key", "did you mean column?"],
        ),
        (
            "expectations:\n - type: expect_column_values_to_not_be_null\n   kwargs: {column: sum}",
            ["line 4", "the view has no column 'sum'", "customer, total"],
        ),
        (
            "expectations:\n - type: expect_column_values_to_not_be_null",
            ["column", "nothing found"],
        ),
        (
            "expectations:\n - type: expect_column_values_to_be_between\n"
            "   kwargs: {column: total, min_value: abc}",
            ["line 4, key expectations[0].kwargs.min_value", "a number or", "'abc' found"],
        ),
        (
            "expectations:\n - type: expect_column_values_to_be_between\n"
            "   kwargs: {column: total}",
            ["line 4, key expectations[0].kwargs", "has neither min_value nor max_value"],
        ),
    ],
)
def test_wrong_front_matter_is_told_with_its_line(
    tmp_path: Path, front: str, told: list[str]
) -> None:
    views = VIEWS | {"totals": f"/*---\n{front}\n---*/\nSELECT customer, 1 AS total FROM sales"}
    folder = write_pipeline(tmp_path / "till", DECLARATION, views)
    with pytest.raises(UserError) as refused:
        load_pipeline(folder)
    for each in (str(folder / "views" / "totals.sql"), *told):
        assert each in str(refused.value)
    found = survey_pipeline(folder)
    assert isinstance(found, PipelineSpec)
    assert [view.name for view in found.views] == ["places"]
    assert {each.name for each in found.problems} == {"totals", "big"}


def test_what_is_right_is_used_and_the_rest_is_told(tmp_path: Path) -> None:
    declaration = DECLARATION + "  gone: {delta_table: /no/such/table}\n"
    views = {
        **VIEWS,
        "no_sql": "SELECT customer\nFROM",
        "round": "SELECT * FROM trip",
        "trip": "SELECT * FROM round",
        "over_gone": "SELECT * FROM gone",
        "over_no_sql": "SELECT * FROM no_sql",
        "open_ended": "/*---\nrequire: incremental\nSELECT 1",
        "Sales": "SELECT 1 AS x",
    }
    folder = write_pipeline(tmp_path / "till", declaration, views)
    found = survey_pipeline(folder)
    assert isinstance(found, PipelineSpec)
    assert [view.name for view in found.views] == ["totals", "big", "places"]
    told = {each.name: f"{each.where}: {each}" for each in found.problems}
    assert "pipeline.yaml, line 10, key sources.gone.delta_table" in told["gone"]
    for name, words in {
        "no_sql": "line 2",
        "round": "the columns of round, trip can't be told: every branch is recursive",
        "trip": "it and round read each other in a circle, and round can't be used",
        "over_gone": "it reads gone, which can't be used",
        "over_no_sql": "it reads no_sql, which can't be used",
        "open_ended": "---*/ is missing",
        "Sales": "has the name of source sales",
    }.items():
        assert words in told[name]
        assert f"{name}.sql" in told[name]
    (folder / "pipeline.yaml").write_text("name: [")
    wrong = survey_pipeline(folder)
    assert isinstance(wrong, Problem)
    assert (wrong.kind, wrong.name) == ("pipeline", "till")
    assert "pipeline.yaml, line 1" in wrong.where


def test_the_published_schema_is_one_and_means_what_we_check() -> None:
    rules = pipeline_rules()
    jsonschema.Draft202012Validator.check_schema(rules)
    judge = jsonschema.Draft202012Validator(rules)
    good = yaml.safe_load(FULL)
    changed: list[dict[str, Any]] = [
        {},
        {"sensor": {"every": 5}},
        {"sources": {"a": {"schema": 7}}},
        {"sources": {"a": {"schema": "x INT", "dedup": 1}}},
        {"sources": {"a": {"schema": "x INT", "dedup": "consecutive"}}},
        {"sources": {"a": {"schema": "x INT", "primary_key": ["x", "x"]}}},
        {"sources": []},
        {"name": ""},
        {"nme": "x"},
        {"checks": {"blocking": "yes"}},
        {"checks": {"blocking": ["determinism"]}},
        {"checks": {"shards": True}},
        {"retention": {"days": 0}},
        {"retention": {"days": 0.5}},
        {"recursion": {"max_iterations": 1.5}},
        {"recursion": {"max_levels": 5}},
        {"tags": {"a b": "x"}},
        {"tags": {"a": "x y"}},
        {"owners": ["team:"]},
        {"spark": {"cores": 1.5}},
        {"spark": {"remote": "sc://h:1"}},
    ]
    verdicts = []
    for change in changed:
        content = good | change
        verdicts.append(judge.is_valid(content))
        assert verdicts[-1] == (not list(complaints(content, rules))), change
    assert any(verdicts)
    # Python's `$` would let this pass, that of other languages doesn't
    assert list(complaints(good | {"sensor": {"every": "5s\n"}}, rules))
    view = jsonschema.Draft202012Validator(rules_of("view"))
    front = yaml.safe_load(TOTALS.split("---")[1])
    fronts: list[dict[str, Any]] = [{}, {"freshness": "1h"}, {"freshness": "1"}, {"freshness": {}}]
    fronts += [{"automation": "eager"}, {"automation": "lazy"}, {"expectations": [{}]}]
    fronts += [{"freshness": {"cron": "0 9 * * *", "lookback": "1h"}}, {"group": "a b"}]
    for change in fronts:
        assert view.is_valid(front | change) == (
            not list(complaints(front | change, rules_of("view")))
        ), change
    assert json.loads(json.dumps(rules)) == rules


def test_time_tables_are_those_of_dagster() -> None:
    for text in ("0 2 * * *", "*/15 * * * *", "0 0 1 1 0", "5,10-20/2 * * jan mon-fri", "@daily"):
        assert is_cron(text), text
        assert is_valid_cron_string(text), text
    for text in (
        "",
        "* * * *",
        "60 * * * *",
        "0 24 * * *",
        "0 0 0 * *",
        "a b c d e",
        "5-1 * * * *",
        "*/90 * * * *",
        "0 */24 * * *",
    ):
        assert not is_cron(text), text


def test_a_followed_tables_own_columns_are_read_from_its_log(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "theirs"), pa.table({"id": [1], "price": [2.5]}))
    declaration = f"name: p\nsources:\n  prices: {{delta_table: {tmp_path / 'theirs'}}}\n"
    views = {"dear": "SELECT id FROM prices WHERE price > 2"}
    folder = write_pipeline(tmp_path / "p", declaration, views)
    [prices] = load_pipeline(folder).sources
    assert prices.schema.names == ("id", "price")


@pytest.mark.parametrize("bound", ["2024-01-01", "2024-01-01 09:30:00", "2024-1-1T09:30Z", "5"])
def test_bounds_that_are_texts(tmp_path: Path, bound: str) -> None:
    between = (
        f"type: expect_column_values_to_be_between, kwargs: {{column: n, min_value: '{bound}'}}"
    )
    views = {"all": f"/*---\nexpectations:\n  - {{{between}}}\n---*/\nSELECT 1 AS n FROM sales"}
    folder = write_pipeline(tmp_path / "till", DECLARATION, views)
    [view] = load_pipeline(folder).views
    assert view.expectations[0].kwargs["min_value"] == bound


def test_a_date_without_quotes_is_told_as_one(tmp_path: Path) -> None:
    between = (
        "{type: expect_column_values_to_be_between, kwargs: {column: n, min_value: 2024-01-01}}"
    )
    views = {"all": f"/*---\nexpectations:\n  - {between}\n---*/\nSELECT 1 AS n FROM sales"}
    folder = write_pipeline(tmp_path / "till", DECLARATION, views)
    with pytest.raises(UserError, match="the date 2024-01-01 found") as told:
        load_pipeline(folder)
    assert "Min Value" not in told.value.what
    assert told.value.fix == "put it in quotes"
    assert "line 3, key expectations[0].kwargs.min_value" in told.value.where


def test_the_store_that_is_given_has_the_tables_of_the_store(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "given" / "lake"), pa.table({"n": [1]}))
    folder = write_pipeline(
        tmp_path / "found",
        "name: found\nsources: {lake: {delta_table: '${store}/lake'}}\n",
        {"all": "SELECT n FROM lake"},
    )
    found = survey_pipeline(folder, tmp_path / "given")
    assert isinstance(found, PipelineSpec)
    assert found.sources[0].schema.names == ("n",)
    defs = tideview_definitions(folder, store=tmp_path / "given")
    shown = defs.resolve_asset_graph().get(AssetKey(["found", "all"])).description
    assert "can't be used" not in (shown or "")
    with pytest.raises(UserError, match="is known to a run, not here"):
        Source("lake", delta_table="${store}/lake")


def test_an_inbox_drops_batches_that_come_again(tmp_path: Path) -> None:
    sources = [
        Source("every", "id INT, name STRING", dedup=True, dedup_entries=2),
        Source("last", "id INT, name STRING", dedup="consecutive"),
        Source("all", "id INT, name STRING"),
    ]
    pipeline = Pipeline("p", sources, [View("v", "SELECT * FROM every")])
    boxes = FlowStore(path=str(tmp_path)).inboxes(pipeline)
    first, second, third = [(1, "a"), (2, None)], [(3, "c")], [(4, "d")]
    taken: dict[str, list[bool]] = {name: [] for name in boxes}
    for name, box in boxes.items():
        box.make()
        for batch in (first, first[::-1], second, first, third, first):
            taken[name].append(box.append(batch))
    assert taken["every"] == [True, False, True, False, True, True]
    assert taken["last"] == [True, False, True, True, True, True]
    assert all(taken["all"])
    assert len(boxes["every"].rows()) == 2 + 1 + 1 + 2
    assert DeltaTable(str(boxes["every"].path)).version() == 4
