"""What earlier ticks took decides between delta and recompute, for work of a like size only."""

from __future__ import annotations

import pytest

from ivm_core.engine.costs import FORGOTTEN_AFTER, HIGH, LOW, WHOLE, Costs


def seen(*entries: tuple[int, str, int, float]) -> Costs:
    costs = Costs()
    for tick, way, rows, ms in entries:
        costs.add(tick, {"v": {"way": way, "rows": rows, "ms": ms}})
    return costs


def test_nothing_is_known_before_a_way_was_taken() -> None:
    assert seen().why_whole("v", LOW, 10, 1_000) is None
    assert seen((1, WHOLE, 1_000, 50.0)).why_whole("v", LOW, 10, 1_000) is None


def test_all_rows_are_read_where_the_delta_was_much_dearer() -> None:
    costs = seen((1, WHOLE, 1_000, 50.0), (2, LOW, 10, 900.0))
    assert costs.why_whole("v", LOW, 10, 1_000) == ("the delta took 900 ms lately, all rows 50 ms")
    assert costs.why_whole("another", LOW, 10, 1_000) is None


@pytest.mark.parametrize("ms", [40.0, 70.0])
def test_a_little_dearer_is_no_reason(ms: float) -> None:
    costs = seen((1, WHOLE, 1_000, 50.0), (2, LOW, 10, ms))
    assert costs.why_whole("v", LOW, 10, 1_000) == ""


def test_the_best_of_the_last_runs_counts() -> None:
    costs = seen((1, WHOLE, 1_000, 50.0), (2, LOW, 10, 900.0), (3, LOW, 10, 30.0))
    assert costs.why_whole("v", LOW, 10, 1_000) == ""


def test_an_observation_speaks_for_work_of_its_size_only() -> None:
    costs = seen((1, WHOLE, 1_000, 50.0), (2, LOW, 10, 900.0))
    assert costs.why_whole("v", LOW, 1_000, 1_000) is None
    assert costs.why_whole("v", LOW, 10, 1_000_000) is None
    # more rows of that order take longer in proportion, fewer no less
    assert costs.expected_ms("v", LOW, 30) == 2_700
    assert costs.expected_ms("v", LOW, 5) == 900


def test_a_way_that_was_not_taken_for_long_is_tried_again() -> None:
    costs = seen((1, WHOLE, 1_000, 50.0), (2, LOW, 10, 900.0))
    costs.add(3 + FORGOTTEN_AFTER, {"v": {"way": WHOLE, "rows": 1_000, "ms": 50.0}})
    assert costs.why_whole("v", LOW, 10, 1_000) is None


def test_what_was_too_much_for_the_driver_is_not_tried_there_again() -> None:
    costs = Costs()
    entry = {"way": HIGH, "rows": 9_000, "ms": 5.0, "beyond_low": [1_000, "400000 rows of t"]}
    costs.add(7, {"v": entry})
    assert costs.why_not_low("v", 900) == "as in tick 7: 400000 rows of t"
    assert costs.why_not_low("v", 100) == ""
    assert costs.why_not_low("w", 900) == ""


def test_another_definition_inherits_nothing() -> None:
    costs = seen((1, WHOLE, 1_000, 50.0), (2, LOW, 10, 900.0))
    entry = {"way": HIGH, "rows": 9_000, "ms": 5.0, "beyond_low": [1_000, "400000 rows of t"]}
    costs.add(3, {"v#1": entry, "vw": entry})
    costs.rename("v", "w")
    assert costs.last("v") is None
    assert costs.expected_ms("w", LOW, 10) == 900
    for view in ("v", "w"):
        costs.forget(view)
    assert costs.last("w") is None
    assert costs.last("v#1") is None
    assert costs.why_not_low("v#1", 900) == ""
    assert costs.last("vw") is not None
