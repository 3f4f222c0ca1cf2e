"""Views that read each other in a circle, and Datalog programs, in a pipeline's folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dagster import AssetKey, Definitions

from ivm_core import DatalogError, IvmError, run
from ivm_core.cli.main import main
from tests.dagster.conftest import write_pipeline
from tests.pipelines.walks import (
    COUNTED,
    DECLARATION,
    EVEN,
    ODD,
    PROGRAM,
    REACH,
    RELATIONS,
    VIEWS,
    closure,
)
from tideview.assets import tideview_definitions
from tideview.resources.flow_store import FlowStore
from tideview.resources.pipeline_folder import load_pipeline, survey_pipeline
from tideview.resources.pipeline_settings import datalog_views
from tideview.resources.pipeline_spec import Pipeline, PipelineSpec, Recursion, Source, View

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

RECURSIVE = """
    WITH RECURSIVE r(x, y) AS (
        SELECT DISTINCT x, y FROM edge UNION ALL
        SELECT r.x, e.y FROM r JOIN (SELECT DISTINCT x, y FROM edge) e ON r.y = e.x)
    SELECT DISTINCT x, y FROM r
"""
EDGES = Source("edge", "id BIGINT, x BIGINT, y BIGINT", ["id"])


@pytest.fixture
def walks(tmp_path: Path) -> PipelineSpec:
    return load_pipeline(write_pipeline(tmp_path / "till", DECLARATION, VIEWS))


def prints(*views: View) -> dict[str, str]:
    pipeline = Pipeline("p", [EDGES, Source("node", "n BIGINT")], views)
    return {view.name: view.fingerprint for view in pipeline.views}


def test_a_circle_is_read_as_one(walks: PipelineSpec) -> None:
    found = {view.name: (view.columns, view.circle, view.inputs) for view in walks.views}
    assert found == {
        "even": (("n",), ("even", "odd"), ("edge",)),
        "odd": (("n",), ("even", "odd"), ("edge",)),
        "reach": (("x", "y"), ("reach",), ("edge",)),
        "counted": (("x", "n"), (), ("reach",)),
        "path": (("x", "y"), ("path",), ("edge",)),
        "ways": (("x", "n"), (), ("edge",)),
        "last": (("x",), (), ("edge", "path")),
    }
    assert walks.sources_of("odd") == walks.sources_of("last") == {"edge"}


def test_a_circle_changes_together() -> None:
    before = prints(View("even", EVEN), View("odd", ODD), View("counted", "SELECT n FROM odd"))
    form = f"-- the others\n{ODD.replace('v.', 'w.').replace('even v', 'even w')}"
    same = prints(View("even", EVEN), View("odd", form), View("counted", "SELECT n FROM odd"))
    assert same == before
    other = prints(
        View("even", EVEN.replace("x = 1", "x = 2")),
        View("odd", ODD),
        View("counted", "SELECT n FROM odd"),
    )
    assert {name for name in before if before[name] != other[name]} == {"even", "odd"}
    typed = prints(
        View("even", EVEN, schema="n INT"), View("odd", ODD), View("counted", "SELECT n FROM odd")
    )
    assert {name for name in before if before[name] != typed[name]} == {"even", "odd"}
    inside = View("hops", RECURSIVE)
    assert Pipeline("p", [EDGES], [inside]).views[0].inputs == ("edge",)
    narrow = View("hops", RECURSIVE.replace("FROM edge UNION", "FROM edge WHERE x = 1 UNION"))
    assert prints(inside) != prints(narrow)


def test_dagsters_graph_has_no_circle(walks: PipelineSpec) -> None:
    defs = tideview_definitions(walks)
    Definitions.validate_loadable(defs)
    specs = {spec.key.path[-1]: spec for spec in defs.resolve_all_asset_specs()}
    deps = {name: {dep.asset_key.path[-1] for dep in spec.deps} for name, spec in specs.items()}
    assert deps["even"] == deps["odd"] == deps["reach"] == {"edge"}
    assert deps["last"] == {"edge", "path"}
    assert deps["replay"] == {"even", "odd", "counted", "ways", "last"}
    described = str(specs["path"].description)
    assert "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z)." in described
    assert "datalog" in specs["path"].kinds
    assert "ways(x" not in described
    assert AssetKey(["till", "walks"]) not in {spec.key for spec in specs.values()}


@pytest.mark.parametrize(
    ("views", "told"),
    [
        (
            {
                "win": "/*---\ncolumns: n BIGINT\n---*/\nSELECT DISTINCT e.x AS n\nFROM edge e\n"
                "WHERE NOT EXISTS (SELECT 1 FROM win w WHERE w.n = e.y)"
            },
            {"win": ["win.sql, line 6", "anti join", "win is in the same recursion"]},
        ),
        (
            {
                "even": EVEN,
                "odd": "SELECT v.n\nFROM even v GROUP BY v.n HAVING COUNT(*) > 1",
            },
            {"odd": ["odd.sql, line 2", "recursion of even, odd"], "even": ["put odd right"]},
        ),
        (
            {"even": EVEN, "odd": ODD.replace("DISTINCT ", "")},
            {"odd": ["odd.sql, line 1", "UNION ALL, or a plain SELECT"], "even": ["put odd right"]},
        ),
        (
            {"a": "SELECT * FROM b", "b": "SELECT * FROM a"},
            {"a": ["a.sql", "every branch is recursive", "columns: id"], "b": ["b.sql", "put a"]},
        ),
        (
            {"a": "/*---\ncolumns: x INT, y INT\n---*/\nSELECT DISTINCT x FROM a"},
            {"a": ["a.sql", "2 columns are declared (x, y), and the query has 1 (x)"]},
        ),
        (
            {"even": EVEN, "odd": ODD.replace("JOIN edge", "JOIN gone")},
            {"odd": ["odd.sql, line 1", "gone"], "even": ["even.sql", "put odd right"]},
        ),
        (
            {"even": EVEN.replace("SELECT x AS", "SELECT z AS"), "odd": ODD},
            {"even": ["even.sql", "'z'"], "odd": ["odd.sql", "put even right"]},
        ),
        (
            {
                "deep": "WITH RECURSIVE r AS (SELECT x FROM edge UNION\n"
                "SELECT e.y FROM edge e WHERE e.x NOT IN (SELECT x FROM r)) SELECT x FROM r"
            },
            {"deep": ["deep.sql, line 2", "deep.r is in the same recursion"]},
        ),
        ({"walks.dl": "path(x) :- edge(x)."}, {"walks.dl": ["walks.dl"]}),
        (
            {"walks.dl": f"{PROGRAM}\nlast(x) :- path(x).", "over": "SELECT * FROM last"},
            {
                "walks.dl": ["walks.dl, line 11", "rule: last(x) :- path(x)."],
                "over": ["it reads last, which can't be used"],
            },
        ),
        (
            {"walks.dl": f"/*---\nowner: me\n---*/\n{PROGRAM}"},
            {"walks.dl": ["walks.dl, line 2", "'owner' is not a key"]},
        ),
        (
            {"walks.dl": PROGRAM, "Path": "SELECT x FROM edge"},
            {"walks.dl": ["walks.dl, line 3", "the relation path", "Path.sql"]},
        ),
        (
            {"walks.dl": PROGRAM, "again.dl": PROGRAM.replace("walks", "others")},
            {"walks.dl": ["walks.dl, line 3", "again.dl, line 3"]},
        ),
        (
            {"walks.dl": f"{PROGRAM}edge(1, 2).\n"},
            {"walks.dl": ["walks.dl, line 1", "the source of", "pipeline.yaml, line 4"]},
        ),
        (
            {"walks.dl": f"\n{PROGRAM.replace('edge(x: number', 'edge(x: int32')}"},
            {
                "path": [
                    "walks.dl, line 2",
                    "x is BIGINT there, and INT (int32) here",
                    ".decl edge(x: int32, y: number)",
                    "declare x as number",
                ],
                "ways": ["walks.dl, line 2"],
                "last": ["walks.dl", "it reads path, which can't be used"],
            },
        ),
        (
            {"walks.dl": PROGRAM.replace("edge(x: number", "edge(z: number")},
            {
                **{name: ["walks.dl, line 1", "no column z", "id, x, y"] for name in RELATIONS},
                "last": ["put path right"],
            },
        ),
        (
            {"walks.dl": PROGRAM.replace("edge", "road")},
            {
                **{name: ["walks.dl, line 1", "input road is neither"] for name in RELATIONS},
                "last": ["put path right"],
            },
        ),
    ],
    ids=lambda given: ", ".join(given),
)
def test_what_has_no_meaning_is_told_in_its_place(
    tmp_path: Path, views: dict[str, str], told: dict[str, list[str]]
) -> None:
    sound = {"reach": REACH, "counted": COUNTED}
    folder = write_pipeline(tmp_path / "till", DECLARATION, {**sound, **views})
    with pytest.raises(IvmError):
        load_pipeline(folder)
    found = survey_pipeline(folder)
    assert isinstance(found, PipelineSpec)
    assert set(sound) <= {view.name for view in found.views}
    problems = {each.name: f"{each.where}: {each}" for each in found.problems}
    assert set(problems) == set(told)
    for name, words in told.items():
        for word in words:
            assert word in problems[name]


def test_a_program_says_more_at_its_top_and_in_python(tmp_path: Path) -> None:
    top = "/*---\ndescription: Walks.\nowners: [team:maps]\ngroup: walks\n---*/\n"
    views = {"walks.dl": top + PROGRAM}
    path, *_ = load_pipeline(write_pipeline(tmp_path / "till", DECLARATION, views)).views
    assert (path.description, path.owners, path.group) == ("Walks.", ("team:maps",), "walks")
    same = Pipeline("till", [EDGES], datalog_views(PROGRAM))
    assert same.views[0].fingerprint == path.fingerprint
    with pytest.raises(DatalogError, match="walks, line 1"):
        datalog_views(".dcl", "walks")


def test_ticks_give_what_spark_and_batch_mode_give(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    views = {**VIEWS, "hops": RECURSIVE.replace("\n    ", "\n").strip()}
    folder = write_pipeline(tmp_path / "till", DECLARATION, views)
    pipeline = load_pipeline(folder)
    store = FlowStore(path=str(tmp_path / "store"))
    edges = store.inboxes(pipeline)["edge"]
    edges.make()
    edges.append([(1, 1, 2), (2, 2, 3), (3, 2, 3), (4, 3, 4), (5, None, 4)])
    assert main(["check", str(folder)]) == 0
    assert "8 of 8 views can be registered" in capsys.readouterr().out
    with store.open(pipeline, spark) as flow:
        flow.tick()
        for step in (
            lambda: edges.append([(6, 4, 5), (7, 5, 6), (8, 4, None)]),
            lambda: edges.merge(updates=[(4, 3, 6)], deletes=[(3, 2, 3)]),
            lambda: edges.merge(updates=[], deletes=[(2, 2, 3)]),
        ):
            step()
            flow.tick()
            facts = sorted({(x, y) for _, x, y in edges.rows() if None not in (x, y)})
            spark.createDataFrame(facts, "x BIGINT, y BIGINT").createOrReplaceTempView("edge")
            theirs = sorted(tuple(row) for row in spark.sql(RECURSIVE).collect())
            spark.catalog.dropTempView("edge")
            batch = run(PROGRAM, {"edge": facts}, spark=spark)
            for name in RELATIONS:
                assert sorted(map(tuple, flow.snapshot(name).collect())) == sorted(batch[name])
            assert sorted(batch["path"]) == theirs == closure(facts)
            for name in ("reach", "hops"):
                found = [tuple(row) for row in flow.snapshot(name).collect()]
                assert sorted(row for row in found if None not in row) == theirs
        assert flow.replay().equal
    more = Pipeline("till", pipeline.sources, pipeline.views, recursion=Recursion(77, 88))
    with store.open(more, spark) as flow:
        assert flow._engine.catalog.limits("odd") == flow._engine.catalog.limits("path")
        assert flow._engine.catalog.limits("odd").iterations == 77
    with store.open(more, spark) as flow:
        assert flow._engine.catalog.limits("odd").rows == 88
        assert flow._engine.catalog.limits("hops.r").rows == 88


def test_a_view_that_a_program_reads_has_the_types_that_it_says(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    program = (
        ".decl busy(x: number, n: number)\n.decl most(x: number)\nmost(x) :- busy(x, n), n > 1."
    )
    views = {"busy": "SELECT x, COUNT(*) AS n FROM edge GROUP BY x", "most.dl": program}
    folder = write_pipeline(tmp_path / "till", DECLARATION, views)
    store = FlowStore(path=str(tmp_path / "store"))
    pipeline = load_pipeline(folder)
    edges = store.inboxes(pipeline)["edge"]
    edges.make()
    edges.append([(1, 1, 2), (2, 1, 3), (3, 2, 3)])
    with store.open(pipeline, spark) as flow:
        flow.tick()
        assert [tuple(row) for row in flow.snapshot("most").collect()] == [(1,)]
    write_pipeline(folder, DECLARATION, {"most.dl": program.replace("n: number", "n: int32")})
    told = "n is BIGINT there, and INT (int32) here"
    assert main(["check", str(folder)]) == 1
    assert told in capsys.readouterr().out
    other = FlowStore(path=str(tmp_path / "other"))
    with pytest.raises(DatalogError) as refused, other.open(load_pipeline(folder), spark):
        pass
    assert told in str(refused.value)
    assert f"{folder / 'views' / 'most.dl'}, line 1" in str(refused.value)
