from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import (
    DefinitionConflict,
    DuplicateName,
    IncrementalFlow,
    InvalidName,
    NotIncremental,
    TickFailed,
    UnknownName,
    UserError,
)
from tests.flow.shop import assert_exact, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def twice(value: Any) -> Any:
    return None if value is None else 2 * value


def thrice(value: Any) -> Any:
    return None if value is None else 3 * value


def picky(value: Any) -> Any:
    if value == 13:
        raise ValueError("not thirteen")
    return value


@pytest.fixture
def doubled(flow: IncrementalFlow) -> IncrementalFlow:
    flow.register_source("s", "x INT")
    flow.register_function("double_it", twice, "INT", deterministic=True)
    flow.register_view("v", "SELECT x, double_it(x) AS y FROM s WHERE DOUBLE_IT(x) > 2")
    flow.register_view("plain", "SELECT x FROM s")
    return flow


def test_views_call_registered_functions(doubled: IncrementalFlow) -> None:
    doubled.tick("s", [(1,), (2,), (None,)])
    assert rows(doubled.snapshot("v")) == [(2, 4)]
    assert_exact(doubled, "v")
    assert doubled.replay().equal


def test_a_function_is_needed_again_after_reopening(
    place: Path, doubled: IncrementalFlow, spark: SparkSession
) -> None:
    doubled.tick("s", [(2,)])
    doubled.close()
    with IncrementalFlow.open(place, spark) as flow:
        assert rows(flow.snapshot("v")) == [(2, 4)]
        with pytest.raises(UnknownName, match="double_it") as caught:
            flow.tick("s", [(3,)])
        assert "register_function" in caught.value.fix
        assert flow.current_tick == 1
        assert flow.tick("s", [(3,)], views=["plain"]).tick == 2
        flow.register_function("double_it", twice, "INT", deterministic=True)
        flow.tick()
        assert rows(flow.snapshot("v")) == [(2, 4), (3, 6)]


def test_another_function_of_that_name_is_refused(
    place: Path, doubled: IncrementalFlow, spark: SparkSession
) -> None:
    doubled.close()
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_function("double_it", thrice, "INT", deterministic=True)
        with pytest.raises(DefinitionConflict, match="double_it"):
            flow.tick("s", [(3,)])
        assert flow.current_tick == 0


def test_a_function_that_nobody_vouches_for_is_refused(flow: IncrementalFlow) -> None:
    with pytest.raises(NotIncremental, match="deterministic=True"):
        flow.register_function("double_it", twice, "INT")
    flow.register_source("s", "x INT")
    with pytest.raises(UserError):
        flow.register_view("v", "SELECT double_it(x) AS y FROM s")


def test_functions_that_cannot_be_are_refused(flow: IncrementalFlow) -> None:
    with pytest.raises(DuplicateName):
        flow.register_function("upper", twice, "INT", deterministic=True)
    with pytest.raises(UserError, match="return type"):
        flow.register_function("f", twice, "INTT", deterministic=True)
    with pytest.raises(UserError, match="called"):
        flow.register_function("f", 7, "INT", deterministic=True)  # type: ignore[arg-type]
    with pytest.raises(InvalidName):
        flow.register_function("a b", twice, "INT", deterministic=True)


def test_a_function_that_raises_fails_the_tick(flow: IncrementalFlow) -> None:
    flow.register_source("s", "x INT")
    flow.register_function("picky", picky, "INT", deterministic=True)
    flow.register_view("v", "SELECT picky(x) AS x FROM s")
    flow.tick("s", [(1,)])
    with pytest.raises(TickFailed, match="not thirteen") as caught:
        flow.tick("s", [(13,)])
    assert caught.value.view == "v"
    flow.tick("s", [(14,)])
    assert rows(flow.snapshot("v")) == [(1,), (14,)]


def test_the_fingerprint_of_a_function_is_the_same_in_every_process() -> None:
    code = (
        "from ivm_core.engine.functions import Function\n"
        "def f(x): return x in {'a', 'b', 'c', 'd', 'e'}\n"
        "print(Function('f', f, 'BOOLEAN').fingerprint)"
    )
    found = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        ran = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=environment,
            check=True,
        )
        found.add(ran.stdout)
    assert len(found) == 1
