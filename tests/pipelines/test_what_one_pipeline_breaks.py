"""Whatever is wrong with one pipeline, the code location loads with the others and tells it."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from dagster import AssetCheckResult, AssetKey, Definitions, asset_check
from dagster._utils.schedules import get_smallest_cron_interval

from ivm_core import InternalError, UserError
from ivm_core.api.declaration import Declaration
from tests.dagster.conftest import DECLARATION, VIEWS, write_pipeline
from tideview.assets import folder_definitions, tideview_definitions
from tideview.resources.cron import shortest_gap
from tideview.resources.pipeline_folder import load_pipeline, survey_pipeline
from tideview.resources.pipeline_spec import Expectation, Freshness, Pipeline, Source, View

if TYPE_CHECKING:
    from pathlib import Path

    from tideview.assets.resource_keys import ResourceKeys
    from tideview.resources.flow_store import FlowStore

HOUR = timedelta(hours=1)
HEALTHY = DECLARATION.replace("till", "healthy")


def problems_beside_a_healthy_one(
    folder: Path, *others: Pipeline, store: str = ""
) -> dict[str, str]:
    """Loads what is in a folder with a healthy pipeline; what is told, by the assets' names."""
    write_pipeline(folder / "healthy", HEALTHY, VIEWS)
    defs = tideview_definitions(folder, *others, store=store)
    Definitions.validate_loadable(defs)
    specs = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    for name in (*VIEWS, "sales", "cities"):
        assert "tideview/problem" not in specs[AssetKey(["healthy", name])].tags
    return {
        "/".join(key.path): str(spec.description)
        for key, spec in specs.items()
        if "tideview/problem" in spec.tags
    }


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("id BIGNT", "BIGNT"),
        ("{schema: id BIGINT, primary_key: [key]}", "names key, which is no column"),
        ("{schema: id BIGINT, delta_table: '${NOT_SET_AT_ALL}/s'}", "NOT_SET_AT_ALL is not set"),
        ("{delta_table: /no/such/table}", "/no/such/table"),
    ],
)
def test_a_pipeline_whose_sources_are_all_wrong(tmp_path: Path, source: str, told: str) -> None:
    declaration = f"name: bare\nsources:\n  s: {source}\n"
    write_pipeline(tmp_path / "bare", declaration, {"v": "SELECT id FROM s"})
    shown = problems_beside_a_healthy_one(tmp_path)
    assert set(shown) == {"bare/s", "bare/v"}
    assert told in shown["bare/s"]
    assert "pipeline.yaml, line 3, key sources.s" in shown["bare/s"]


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT FROM sales", "line 1, column 1"),
        ("SELECT", "line 1, column 1"),
        ("SELECT DISTINCT FROM sales", "line 1, column 1"),
        ("SELECT `id`, 'x' AS x,\n (SELECT) AS y FROM sales", "line 2, column 3"),
        ("SELECT id FROM sales, LATERAL (SELECT) t", "line 1, column 32"),
        ("SELECT id FROM sales\nWHERE id IN (SELECT)", "line 2, column 14"),
        ("SELECT id FROM sales UNION ALL SELECT", "line 1, column 32"),
    ],
)
def test_a_view_that_is_half_typed(tmp_path: Path, sql: str, place: str) -> None:
    write_pipeline(tmp_path / "till", DECLARATION, VIEWS | {"half": sql})
    shown = problems_beside_a_healthy_one(tmp_path)
    assert set(shown) == {"till/half"}
    assert "a SELECT has no columns" in shown["till/half"]
    assert f"{place} of {tmp_path / 'till' / 'views' / 'half.sql'}" in shown["till/half"]


def test_a_bug_that_a_view_meets_is_a_problem_of_that_view(tmp_path: Path) -> None:
    met = {"met": "SELECT window(,) AS w FROM sales", "reader": "SELECT w FROM met"}
    folder = write_pipeline(tmp_path / "till", DECLARATION, VIEWS | met)
    shown = problems_beside_a_healthy_one(tmp_path)
    assert set(shown) == {"till/met", "till/reader"}
    for each in ("internal error: ValueError", str(folder / "views" / "met.sql"), "please report"):
        assert each in shown["till/met"]
    assert "it reads met, which can't be used" in shown["till/reader"]
    with pytest.raises(InternalError, match=r"met\.sql"):
        load_pipeline(folder)


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT id AS `x y` FROM sales", "{file}, column 'x y'"),
        ("SELECT id AS _weight FROM sales", "{file}, column '_weight'"),
        (
            "SELECT * EXCEPT (customer, city) FROM cities",
            "SELECT * EXCEPT (customer, city) leaves no columns",
        ),
        ("SELECT c.* EXCEPT (customer, city) FROM cities AS c", "leaves no columns"),
        ("SELECT * FROM (SELECT id, id FROM sales)", "two columns of one name"),
        ("SELECT id FROM sales WHERE", "does not parse: something is missing at WHERE"),
        ("SELECT id +\nFROM sales", "line 2, column 1 of {file}"),
        ("SELECT id FROM", "Expected table name but got the end of the text"),
    ],
)
def test_what_is_said_of_a_wrong_view(tmp_path: Path, sql: str, told: str) -> None:
    folder = write_pipeline(tmp_path / "till", DECLARATION, VIEWS | {"wrong": sql})
    shown = problems_beside_a_healthy_one(tmp_path)
    assert set(shown) == {"till/wrong"}
    assert told.format(file=folder / "views" / "wrong.sql") in shown["till/wrong"]
    for each in ("sqlglot", "Token", "keyword"):
        assert each not in shown["till/wrong"]


def test_sources_that_differ_only_in_case(tmp_path: Path) -> None:
    write_pipeline(tmp_path / "till", f"{DECLARATION}  Sales: id BIGINT\n", VIEWS)
    shown = problems_beside_a_healthy_one(tmp_path)
    assert set(shown) == {"till/Sales"}
    for each in ("source Sales has the name of source sales", "line 10, key sources.Sales"):
        assert each in shown["till/Sales"]


def test_a_sensor_without_a_pause(tmp_path: Path) -> None:
    write_pipeline(tmp_path / "till", f"{DECLARATION}sensor: {{every: 0s}}\n", VIEWS)
    shown = problems_beside_a_healthy_one(tmp_path)
    assert set(shown) == {"till/pipeline_yaml"}
    for each in ("line 10, key sensor.every", "0s is too short", "1s or more"):
        assert each in shown["till/pipeline_yaml"]


NOT_NULL = "  - type: expect_column_values_to_not_be_null\n    kwargs: {column: customer}\n"


@pytest.mark.parametrize(
    ("front", "told"),
    [
        (
            f"expectations:\n{NOT_NULL}    name: determinism\n",
            ["line 5, key expectations[0].name", "called determinism"],
        ),
        (
            f"expectations:\n{NOT_NULL}    name: mine\n{NOT_NULL}    name: mine\n",
            ["line 8, key expectations[1].name", "called mine"],
        ),
        ("freshness: 30s", ["line 2, key freshness", "30s is too short", "1m or more", "3650d"]),
        ("freshness: 9999999999d", ["line 2, key freshness", "too long", "3650d at most"]),
        (f"freshness: {'9' * 400}d", ["line 2, key freshness", "99999999999999999… is too long"]),
        ("freshness: {fail_after: 1s}", ["line 2, key freshness.fail_after", "1m or more"]),
        (
            "freshness:\n  fail_after: 1h\n  warn_after: 1s",
            ["line 4, key freshness.warn_after", "1m or more"],
        ),
        (
            "freshness: {cron: '0 9 * * *', lookback: 40h}",
            ["line 2, key freshness.lookback", "1d at most"],
        ),
        (
            "freshness: {cron: '0 9 * * *', lookback: 1s}",
            ["line 2, key freshness.lookback", "1m or more"],
        ),
        (
            "freshness: {cron: '0 9 31 2 *', lookback: 1h}",
            ["line 2, key freshness.cron", "these days never come"],
        ),
    ],
)
def test_front_matter_that_dagster_would_not_take(
    tmp_path: Path, front: str, told: list[str]
) -> None:
    wrong = {"totals": f"/*---\n{front}\n---*/\nSELECT customer, 1 AS total FROM sales"}
    write_pipeline(tmp_path / "till", DECLARATION, VIEWS | wrong)
    shown = problems_beside_a_healthy_one(tmp_path)
    assert set(shown) == {"till/totals", "till/big"}
    for each in ("totals.sql", *told):
        assert each in shown["till/totals"]


def test_a_schedule_that_never_comes(tmp_path: Path) -> None:
    write_pipeline(tmp_path / "till", f"{DECLARATION}schedules: {{tick: 0 9 30 2 *}}\n", VIEWS)
    shown = problems_beside_a_healthy_one(tmp_path)
    assert set(shown) == {"till/pipeline_yaml"}
    assert "line 10, key schedules.tick" in shown["till/pipeline_yaml"]


def test_a_sensor_that_never_looks(tmp_path: Path) -> None:
    write_pipeline(tmp_path / "till", f"{DECLARATION}sensor: {{every: 99999999999d}}\n", VIEWS)
    shown = problems_beside_a_healthy_one(tmp_path)
    assert set(shown) == {"till/pipeline_yaml"}
    for each in ("line 10, key sensor.every", "99999999999d is too long", "3650d at most"):
        assert each in shown["till/pipeline_yaml"]


def test_freshness_that_is_right_is_taken(tmp_path: Path) -> None:
    front = "freshness: {cron: '@daily', lookback: 24h}"
    right = {"totals": f"/*---\n{front}\n---*/\nSELECT customer, 1 AS total FROM sales"}
    write_pipeline(tmp_path / "till", DECLARATION, VIEWS | right)
    assert problems_beside_a_healthy_one(tmp_path) == {}


@pytest.mark.parametrize(
    "cron",
    [
        "0 9 * * *",
        "@hourly",
        "@daily",
        "@weekly",
        "@monthly",
        "*/7 * * * *",
        "5/20 8-18 * * mon-fri",
        "0 0 1,15 * *",
        "0 12 1 * sun",
        "0 0 * * 7",
        "30 4,22 * jan,jul 5-7",
        "0 0 29 2 *",
    ],
)
def test_the_shortest_time_between_deadlines_is_dagsters(cron: str) -> None:
    assert shortest_gap(cron) == get_smallest_cron_interval(cron)


def test_names_of_checks_are_taken_in_python_too() -> None:
    for names in (["replay_equality"], ["mine", "mine"]):
        wanted = [Expectation("expect_column_to_exist", {"column": "a"}, name=n) for n in names]
        with pytest.raises(UserError, match=rf"another check of the view is called {names[-1]}"):
            View("v", "SELECT a FROM s", expectations=wanted)
    unnamed = [Expectation("expect_column_to_exist", {"column": "a"})] * 2
    assert len(View("v", "SELECT a FROM s", expectations=unnamed).expectations) == 2


def test_what_only_dagster_refuses_is_the_problem_of_its_pipeline(tmp_path: Path) -> None:
    source = Source("s", "a INT")
    owned = View("v", "SELECT a FROM s", owners=["somebody or other"])
    shown = problems_beside_a_healthy_one(tmp_path, Pipeline("other", [source], [owned]))
    assert set(shown) == {"other/pipeline_yaml"}
    assert "DagsterInvalidDefinitionError" in shown["other/pipeline_yaml"]
    assert "where: pipeline other" in shown["other/pipeline_yaml"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "says nothing"),
        ({"fail_after": timedelta(seconds=1)}, "fail_after=0:00:01 can't be"),
        ({"fail_after": timedelta(days=9999)}, "fail_after=9999 days"),
        ({"fail_after": HOUR, "warn_after": HOUR}, "warn_after is not before fail_after"),
        ({"cron": "0 9 * *", "lookback": HOUR}, "'0 9 * *' is no time table"),
        ({"cron": "0 9 31 2 *", "lookback": HOUR}, "is no time table"),
        ({"cron": "0 9 * * *"}, "needs a lookback"),
        ({"cron": "0 * * * *", "lookback": 2 * HOUR}, "beyond the deadline before"),
        ({"cron": "0 9 * * *", "lookback": HOUR, "timezone": "Mars"}, "no time zone 'Mars'"),
    ],
)
def test_freshness_in_python_is_held_to_the_same(given: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=re.escape(told)) as refused:
        Freshness(**given)
    assert refused.value.where == "freshness"
    assert refused.value.fix


def test_files_that_would_be_passed_over_are_told(tmp_path: Path) -> None:
    folder = write_pipeline(tmp_path / "till", DECLARATION, VIEWS)
    (folder / "views" / "sub").mkdir()
    (folder / "views" / "sub" / "totals.sql").write_text("SELECT id FROM sales")
    (folder / "views" / "LOUD.SQL").write_text("SELECT id FROM sales")
    (folder / "views" / ".kept").mkdir()
    (folder / "views" / ".kept" / "old.sql").write_text("SELECT id FROM sales")
    other = write_pipeline(tmp_path / "other", DECLARATION.replace("till", "other"), VIEWS)
    (other / "pipeline.yaml").rename(other / "pipeline.yml")
    shown = problems_beside_a_healthy_one(tmp_path)
    assert set(shown) == {"till/LOUD_SQL", "till/sub_totals_sql", "other/pipeline_yaml"}
    assert "views/sub/totals.sql" in shown["till/sub_totals_sql"]
    assert "move it into views/" in shown["till/LOUD_SQL"]
    assert "rename it to pipeline.yaml" in shown["other/pipeline_yaml"]


def test_one_store_is_told_of_pipelines_of_two_calls(tmp_path: Path) -> None:
    for name in ("one", "two"):
        declaration = f"{DECLARATION.replace('till', name)}store: ../kept\n"
        write_pipeline(tmp_path / name, declaration, VIEWS)
    tideview_definitions(tmp_path / "one")
    tideview_definitions(tmp_path / "one")
    later = tideview_definitions(tmp_path / "two").resolve_asset_graph()
    told = later.get(AssetKey(["two", "pipeline_yaml"])).description or ""
    assert "the pipelines one and two have one store" in told
    (tmp_path / "one" / "pipeline.yaml").unlink()
    healthy = tideview_definitions(tmp_path / "two").resolve_asset_graph()
    assert AssetKey(["two", "totals"]) in healthy.get_all_asset_keys()


def test_a_byte_order_mark_is_no_json(tmp_path: Path) -> None:
    file = tmp_path / "sources.json"
    file.write_text('\ufeff{"sources": {"link": "a BIGINT"}}', encoding="utf-8")
    [link] = Declaration(file, of_sources=True).sources()
    assert link.schema.names == ("a",)


def test_what_dagster_refuses_only_when_it_resolves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = folder_definitions.pipeline_definitions

    @asset_check(asset=AssetKey(["till", "totals"]), name="determinism")
    def again() -> AssetCheckResult:
        return AssetCheckResult(passed=True)

    def with_a_check_twice(pipeline: Pipeline, flows: FlowStore, keys: ResourceKeys) -> Definitions:
        made = ours(pipeline, flows, keys)
        twice = Definitions(asset_checks=[again])
        return Definitions.merge(made, twice) if pipeline.name == "till" else made

    monkeypatch.setattr(folder_definitions, "pipeline_definitions", with_a_check_twice)
    write_pipeline(tmp_path / "till", DECLARATION, VIEWS)
    shown = problems_beside_a_healthy_one(tmp_path)
    assert set(shown) == {"till/pipeline_yaml"}
    assert "Duplicate asset check key" in shown["till/pipeline_yaml"]


def test_a_reader_that_fails_is_the_problem_of_its_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails_for_till(folder: Path, store: Path) -> object:
        if folder.name == "till":
            raise OverflowError("too much")
        return survey_pipeline(folder, store)

    monkeypatch.setattr(folder_definitions, "survey_pipeline", fails_for_till)
    write_pipeline(tmp_path / "till", DECLARATION, VIEWS)
    shown = problems_beside_a_healthy_one(tmp_path)
    assert "OverflowError: too much" in shown["till/pipeline_yaml"]
    assert str(tmp_path / "till" / "pipeline.yaml") in shown["till/pipeline_yaml"]


def test_pipelines_with_one_store_are_told_of_each_other(tmp_path: Path) -> None:
    for name in ("one", "two"):
        declaration = f"{DECLARATION.replace('till', name)}store: ../kept\n"
        write_pipeline(tmp_path / name, declaration, VIEWS)
    shown = problems_beside_a_healthy_one(tmp_path)
    assert set(shown) == {"two/pipeline_yaml"}
    told = shown["two/pipeline_yaml"]
    assert f"the pipelines one and two have one store, {tmp_path / 'kept'}" in told
    assert f"{tmp_path / 'two' / 'pipeline.yaml'}, line 10, key store" in told


def test_a_store_that_is_the_usual_place_of_another_pipeline(tmp_path: Path) -> None:
    views = [View("v", "SELECT a FROM s")]
    other = Pipeline("other", [Source("s", "a INT")], views, store=str(tmp_path / "kept/healthy"))
    shown = problems_beside_a_healthy_one(tmp_path, other, store=str(tmp_path / "kept"))
    assert set(shown) == {"other/pipeline_yaml"}
    assert "the pipelines healthy and other have one store" in shown["other/pipeline_yaml"]


def test_a_source_and_a_view_of_one_name_are_both_told(tmp_path: Path) -> None:
    declaration = f"{DECLARATION}  both: id BIGNT\n"
    write_pipeline(tmp_path / "till", declaration, VIEWS | {"both": "SELECT id\nFROM"})
    shown = problems_beside_a_healthy_one(tmp_path)
    assert set(shown) == {"till/both", "till/both_problem_2"}
    assert "pipeline.yaml, line 10, key sources.both" in shown["till/both"]
    assert "line 2" in shown["till/both_problem_2"]


def test_a_byte_order_mark_is_no_sql(tmp_path: Path) -> None:
    program = ".decl sold(id: number)\n.input sold\n.decl seen(id: number)\nseen(x) :- sold(x).\n"
    views = {
        "plain": "\ufeffSELECT customer FROM cities",
        "fronted": "\ufeff/*---\ndescription: Said.\n---*/\nSELECT customer FROM cities",
        "program.dl": f"\ufeff{program}",
    }
    declaration = f"\ufeff{DECLARATION.lstrip()}  sold: id BIGINT\n"
    pipeline = load_pipeline(write_pipeline(tmp_path / "till", declaration, views))
    said = {view.name: view.description for view in pipeline.views}
    assert said == {"plain": "", "fronted": "Said.", "seen": ""}


def test_the_sources_of_a_view_are_found_in_layers_that_read_all_below() -> None:
    views = []
    below = ["s", "t"]
    for layer in range(20):
        here = [f"v{layer}_{number}" for number in range(3)]
        joined = " UNION ALL ".join(f"SELECT a FROM {name}" for name in below)
        views += [View(name, joined) for name in here]
        below = here
    sources = [Source(name, "a INT") for name in ("s", "t", "unread")]
    pipeline = Pipeline("layers", sources, views)
    began = time.monotonic()
    assert all(pipeline.sources_of(view.name) == {"s", "t"} for view in views)
    assert time.monotonic() - began < 1
