"""Views that are evaluated side by side: order, failures, threads."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from functools import partial
from typing import TYPE_CHECKING

import pytest

from ivm_core.engine.side_by_side import SideBySide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def both() -> Iterator[SideBySide]:
    made = SideBySide(workers=2)
    yield made
    made.close()


def test_a_task_begins_when_those_before_it_are_done(both: SideBySide) -> None:
    seen: list[str] = []

    def task(name: str, pause: float) -> Callable[[], str]:
        def run() -> str:
            time.sleep(pause)
            seen.append(name)
            return name.upper()

        return run

    tasks = {"d": task("d", 0), "a": task("a", 0.05), "c": task("c", 0), "b": task("b", 0)}
    after = {"b": ("a",), "c": ("b", "a source"), "d": ("c",)}
    assert both.run(tasks, after) == {"d": "D", "a": "A", "c": "C", "b": "B"}
    assert seen == ["a", "b", "c", "d"]


def test_two_run_at_once(both: SideBySide) -> None:
    meeting = threading.Barrier(2, timeout=20)
    tasks = {"a": meeting.wait, "b": meeting.wait}
    assert sorted(both.run(tasks, {}).values()) == [0, 1]


def test_the_first_failure_is_told_when_nothing_runs_any_more(both: SideBySide) -> None:
    ended: list[str] = []
    meeting = threading.Barrier(2, timeout=20)

    def late() -> None:
        meeting.wait()
        time.sleep(0.05)
        ended.append("late")
        raise ValueError("late")

    def early() -> None:
        meeting.wait()
        raise KeyError("early")

    with pytest.raises(ValueError, match="late"):
        both.run({"a": late, "b": early, "c": lambda: ended.append("c")}, {"c": ("b",)})
    assert ended == ["late"]


def test_a_failure_keeps_nothing_alive(both: SideBySide) -> None:
    class Held:
        pass

    def failing(held: Held) -> None:
        raise ValueError(str(held))

    def run() -> weakref.ref[Held]:
        held = Held()
        with pytest.raises(ValueError, match="Held"):
            both.run({"a": partial(failing, held), "b": lambda: None}, {})
        return weakref.ref(held)

    gc.disable()
    try:
        assert run()() is None
    finally:
        gc.enable()


def test_one_task_needs_no_thread(both: SideBySide) -> None:
    assert both.run({"a": threading.get_ident}, {}) == {"a": threading.get_ident()}
    many = both.run({"a": threading.get_ident, "b": threading.get_ident}, {})
    assert threading.get_ident() not in many.values()


def test_what_most_is_left_behind_begins_first(both: SideBySide) -> None:
    """`long` stands last; `first` is short, but `behind` waits for it."""
    began: list[str] = []
    held = threading.Event()

    def task(name: str) -> Callable[[], None]:
        def run() -> None:
            began.append(name)
            if len(began) == 2:
                held.set()
            held.wait(20)

        return run

    names = ["short", "first", "behind", "long"]
    expected = {"short": 1.0, "first": 1.0, "behind": 5.0, "long": 9.0}
    both.run({name: task(name) for name in names}, {"behind": ("first",)}, expected)
    assert set(began[:2]) == {"long", "first"}
    assert set(began[2:]) == {"behind", "short"}


def test_a_task_that_waits_in_vain_ends_the_run(both: SideBySide) -> None:
    """What a failure leaves behind is not begun, however many threads wait for it."""
    began: list[str] = []

    def failing() -> None:
        raise ValueError("below")

    tasks = {"a": failing, **{name: partial(began.append, name) for name in "bcd"}}
    with pytest.raises(ValueError, match="below"):
        both.run(tasks, {"b": ("a",), "c": ("b",), "d": ("a", "c")})
    assert began == []
