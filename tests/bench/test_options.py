"""What the command line of the bench asks for is what is measured."""

from __future__ import annotations

import pytest

from bench.__main__ import FULL, QUICK, _name, _options, _plan
from bench.other_sparks import of_a_cluster
from bench.programs import ELSEWHERE, PROGRAMS


def test_without_options_everything_is_measured_in_full() -> None:
    options = _options([])
    assert _plan(options) == FULL
    assert _name(options, list(PROGRAMS)) == "full"


def test_options_replace_their_part_of_the_plan() -> None:
    words = "--quick --scale 0.5 --scales 1,0.1 --shares 0.1,0.001 --query q03 --tick-events 5_000"
    options = _options(f"{words} --events 7000 --state-ticks 9 --rows 9000,5000".split())
    plan = _plan(options)
    assert plan.is_quick
    assert (plan.scale, plan.scales, plan.shares) == (0.5, (0.1, 1.0), (0.001, 0.1))
    assert (plan.queries, plan.tick_events, plan.events) == (("q03",), (5_000,), 7_000)
    assert (plan.state_ticks, plan.rows) == (9, (5_000, 9_000))
    assert plan.repeats == QUICK.repeats


def test_another_spark_is_in_the_name_of_its_results() -> None:
    options = _options(["--spark", "cluster", "--only", "fixed"])
    assert _name(options, ["fixed"]) == "full-cluster-fixed"
    options = _options(["--spark", "sc://host:15002"])
    assert _name(options, []) == "full-sc"


def test_settings_of_spark_are_given_as_they_are() -> None:
    words = "--conf spark.executor.memory=8g --conf spark.executor.extraJavaOptions=-Da=b"
    given = dict(_options(words.split()).conf)
    assert given == {
        "spark.executor.memory": "8g",
        "spark.executor.extraJavaOptions": "-Da=b",
    }


def test_a_cluster_of_someone_else_keeps_its_executors() -> None:
    settings = of_a_cluster("spark://host:7077")
    assert settings["spark.master"] == "spark://host:7077"
    assert "delta-spark" in settings["spark.jars"]
    own = ("spark.executor", "spark.default.parallelism")
    assert not any(name.startswith(own) for name in settings)


def test_programs_that_start_a_spark_of_their_own_are_programs() -> None:
    assert set(ELSEWHERE) <= set(PROGRAMS)


@pytest.mark.parametrize(
    "words",
    [
        "--only nothing",
        "--scales 0",
        "--rows 100",
        "--ticks 2",
        "--conf executor.memory=8g",
        "--conf spark.x",
        "--keep --conf spark.x=1",
        "--keep --quick",
    ],
)
def test_what_makes_no_sense_is_refused(words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        _options(words.split())
    assert ended.value.code == 2
