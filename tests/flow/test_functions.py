from __future__ import annotations

import os
import subprocess
import sys
import threading
from functools import partial
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
from ivm_core.engine import functions
from ivm_core.engine.functions import Function
from ivm_core.engine.own_code import own_code_fingerprint
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


SCORING = """
import dataclasses, enum, functools, logging, re, threading
from datetime import datetime, timezone

import numpy

RATE = {rate}
LOG, LOCK = logging.getLogger("scoring"), threading.Lock()
TABLE = {{"rates": {{("a", {rate}), ("b", None), ("c", 1.5)}}, "when": datetime(2024, 1, {rate})}}
WEIGHTS = numpy.array([1, {rate}])
PATTERN = re.compile("x{{%d}}" % {rate})

def scale(x): return x * {rate}
def helper(x): return scale(x)
def constant(x):
    with LOCK:
        LOG.debug("asked")
    return x * RATE
def keyword_default(x, *, rate={rate}): return x * rate
def closed(rate={rate}):
    def inner(x): return inner(x - 1) + rate if x > 0 else 0
    return inner
class Rates:
    rate = {rate}
class Color(enum.Enum):
    RED = {rate}
@dataclasses.dataclass(frozen=True)
class Model:
    rate: int = {rate}
MODEL = Model()
class Scale:
    def __call__(self, x): return x * {rate}
class Slotted:
    __slots__ = ("rate",)
    def __init__(self): self.rate = {rate}
    def scale(self, x): return x * self.rate
def class_attribute(x): return x * Rates.rate
def member(x): return x * Color.RED.value
def instance(x): return x * MODEL.rate
def table(x): return len(TABLE["rates"])
def weights(x): return int(WEIGHTS[1])
def pattern(x): return PATTERN.pattern
def even(x): return odd(x - 1) if x else {rate}
def odd(x): return even(x - 1) if x else 0
@functools.lru_cache
def cached(x): return scale(x)
def logged(function):
    @functools.wraps(function)
    def run(*given): return function(*given)
    return run
@logged
def decorated(x): return x * {rate}
def inside(x): return [(lambda y: scale(y))(x) for _ in range(2)]

FUNCTIONS = {{
    "a helper that it calls": helper,
    "a constant of its module": constant,
    "a keyword default": keyword_default,
    "a closure": closed(),
    "an attribute of a class": class_attribute,
    "a member of an enum": member,
    "a field of an object": instance,
    "a table": table,
    "an array": weights,
    "a pattern": pattern,
    "one of two that call each other": even,
    "a cached function": cached,
    "a decorated function": decorated,
    "a lambda inside": inside,
    "a partial": functools.partial(keyword_default, rate={rate}),
    "an object that can be called": Scale(),
    "a bound method": Slotted().scale,
}}
"""


def scoring(rate: int) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": __name__}
    exec(SCORING.format(rate=rate), names)
    functions: dict[str, Any] = names["FUNCTIONS"]
    return functions


def printed_fingerprints(folder: Path, seed: str) -> str:
    """What another process says of `scoring` and of a module that is imported when it is called."""
    code = (
        "import scoring\n"
        "from ivm_core.engine.functions import Function\n"
        "def through_module(x): return scoring.helper(x)\n"
        "def imports(x):\n"
        "    from rates import rate\n"
        "    return x * rate()\n"
        "def constants(x): return x in {'a', 'b', 'c', 'd', 'e'}\n"
        "for each in (through_module, imports, constants, *scoring.FUNCTIONS.values()):\n"
        "    print(Function('f', each, 'INT').fingerprint)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}
        | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        check=True,
    )
    return ran.stdout


def test_the_fingerprint_of_a_function_is_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "scoring.py").write_text(SCORING.format(rate=2))
    (tmp_path / "rates.py").write_text("def rate(): return 2")
    found = {printed_fingerprints(tmp_path, seed) for seed in ("1", "2", "3")}
    assert len(found) == 1
    before = next(iter(found)).split()
    assert before[3:] == [Function("f", each, "INT").fingerprint for each in scoring(2).values()]
    (tmp_path / "rates.py").write_text("def rate(): return 5")
    after = printed_fingerprints(tmp_path, "1").split()
    assert [one == other for one, other in zip(before, after, strict=True)].count(False) == 1
    assert before[1] != after[1]


@pytest.mark.parametrize("kind", scoring(2))
def test_a_fingerprint_follows_all_that_a_function_calls_and_reads(kind: str) -> None:
    before, same, changed = (
        Function("f", scoring(rate)[kind], "INT").fingerprint for rate in (2, 2, 5)
    )
    assert before == same
    assert before != changed


def test_what_nothing_can_be_said_of_counts_by_its_class() -> None:
    first, second = threading.Lock(), threading.Lock()
    fingerprints = {
        Function("f", partial(twice, each), "INT").fingerprint for each in (first, second)
    }
    assert len(fingerprints) == 1
    assert Function("f", partial(twice, object()), "INT").fingerprint not in fingerprints


@pytest.mark.parametrize(
    "kind", ["a helper that it calls", "a keyword default", "a closure", "a partial"]
)
def test_views_are_not_ticked_with_changed_code(
    place: Path, flow: IncrementalFlow, spark: SparkSession, kind: str
) -> None:
    flow.register_source("s", "x INT")
    flow.register_function("score", scoring(2)[kind], "INT", deterministic=True)
    flow.register_view("v", "SELECT x, score(x) AS y FROM s")
    flow.tick("s", [(1,)])
    flow.close()
    with IncrementalFlow.open(place, spark) as again:
        again.register_function("score", scoring(5)[kind], "INT", deterministic=True)
        with pytest.raises(DefinitionConflict, match="score"):
            again.tick("s", [(2,)])
        report = again.alter_view("v")
        assert (report.inserted, report.deleted) == (1, 1)
        again.tick("s", [(2,)])
        assert_exact(again, "v")


def test_flows_of_earlier_versions_know_a_function_by_its_own_code(
    place: Path, doubled: IncrementalFlow, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubled.close()
    with IncrementalFlow.open(place, spark) as flow, monkeypatch.context() as earlier:
        earlier.setattr(functions, "code_fingerprint", own_code_fingerprint)
        flow.register_function("double_it", twice, "INT", deterministic=True)
        flow.alter_view("v")
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_function("double_it", thrice, "INT", deterministic=True)
        with pytest.raises(DefinitionConflict, match="double_it"):
            flow.tick("s", [(3,)])
        flow.register_function("double_it", twice, "INT", deterministic=True)
        flow.tick("s", [(3,)])
        assert_exact(flow, "v")


def test_a_function_that_reads_what_nests_too_deeply_is_refused(flow: IncrementalFlow) -> None:
    nested: list[Any] = []
    for _ in range(10_000):
        nested = [nested]
    with pytest.raises(UserError, match="nested too deeply"):
        flow.register_function("f", partial(twice, nested), "INT", deterministic=True)
