"""What the command line of the bench asks for is what is measured."""

from __future__ import annotations

import pytest

from bench.__main__ import FULL, QUICK, _name, _options, _plan
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


def test_programs_that_start_a_spark_of_their_own_are_programs() -> None:
    assert set(ELSEWHERE) <= set(PROGRAMS)


@pytest.mark.parametrize("words", ["--only nothing", "--scales 0", "--rows 100", "--ticks 2"])
def test_what_makes_no_sense_is_refused(words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        _options(words.split())
    assert ended.value.code == 2
