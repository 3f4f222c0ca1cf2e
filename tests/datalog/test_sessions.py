"""What a session promises: exact deltas, sets of facts, refusals that change nothing."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import (
    BatchError,
    ClosedFlow,
    DatalogError,
    DefinitionConflict,
    IncrementalFlow,
    IvmError,
    RecursionLimit,
    Session,
    TickConflict,
    TickFailed,
    UnknownName,
    UserError,
    WrongThread,
    run,
)
from ivm_core.api import session as sessions

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

JOINED = """
.decl a(x: number, y: number) .decl b(y: number, z: number)
.decl edge(x: number, y: number)
.input a, b, edge
.decl r(x: number, y: number, z: number) .output r
.decl tc(x: number, y: number) .output tc
r(x, y, z) :- a(x, y), b(y, z).
tc(x, y) :- edge(x, y).
tc(x, z) :- tc(x, y), edge(y, z).
.decl seen(x: number) .input seen .output seen   // given, and derived too
seen(y) :- seen(x), edge(x, y).
"""
SMALL = """
.decl item(name: symbol, price: int32, weight: float) .input item
.decl count_of(n: unsigned) .input count_of
.decl share(n: number, part: number) .output share
.decl light(name: symbol) .output light
.decl all_light(name: symbol)
share(to_number(n), 100 / to_number(n - 1)) :- count_of(n).
light(s), all_light(s) :- item(s, _, w), w < 1.0.
light("air").
"""


def in_another_thread(call: Any) -> Any:
    found: list[Any] = []

    def catch() -> None:
        try:
            found.append(call())
        except IvmError as error:
            found.append(error)

    thread = threading.Thread(target=catch)
    thread.start()
    thread.join()
    return found[0]


def test_a_step_emits_exactly_what_changed(spark: SparkSession) -> None:
    with Session.create(JOINED, spark=spark) as session:
        session.insert("a", [(1, 2)])
        session.insert("b", [(2, 3)])
        session.insert("edge", [(1, 2), (2, 3)])
        session.insert("seen", [(2,)])
        assert session.step() == {
            "r": [((1, 2, 3), 1)],
            "tc": [((1, 2), 1), ((1, 3), 1), ((2, 3), 1)],
            "seen": [((2,), 1), ((3,), 1)],
        }
        session.insert("a", [(1, 4)])
        session.insert("b", [(4, 5)])
        session.insert("edge", [(3, 4)])
        assert session.step() == {
            "r": [((1, 4, 5), 1)],
            "tc": [((1, 4), 1), ((2, 4), 1), ((3, 4), 1)],
            "seen": [((4,), 1)],
        }
        session.remove("a", [(1, 2)])
        session.remove("edge", [(2, 3)])
        session.insert("seen", [(4,)])  # derived until now, and given from now on
        delta = session.step()
        assert delta == {
            "r": [((1, 2, 3), -1)],
            "tc": [((1, 3), -1), ((1, 4), -1), ((2, 3), -1), ((2, 4), -1)],
            "seen": [((3,), -1)],
        }
        assert delta.epoch == session.epoch == 3
        rows = delta["tc"].df.orderBy("x", "y").collect()
        assert [tuple(row) for row in rows] == [(1, 3, -1), (1, 4, -1), (2, 3, -1), (2, 4, -1)]
        assert session.snapshot("tc") == [(1, 2), (3, 4)]
        assert sorted(map(tuple, session.snapshot("edge").df.collect())) == [(1, 2), (3, 4)]
        assert delta.ignored == {"a": 0, "edge": 0, "seen": 0}
        assert "stratum 2, recursive: tc" in session.explain()
        assert "incremental" in session.explain("r")
        assert session.flow.check("tc").equal


def test_facts_are_a_set_and_operations_fold_in_order(spark: SparkSession) -> None:
    with Session.create(SMALL, spark=spark, initial="load") as session:
        called: list[Any] = []
        stop = session.on_delta("light", lambda rows: called.append(list(rows)))
        session.insert("item", [("ant", 1, 0.5), {"name": "ox", "price": 9, "weight": 500}])
        first = session.step()
        assert first == {"share": [], "light": []}
        assert called == []
        assert session.snapshot("light") == [("air",), ("ant",)]
        assert session.snapshot("item") == [("ant", 1, 0.5), ("ox", 9, 500.0)]

        session.insert("item", [("ant", 1, 0.5)])  # there already
        session.insert("item", [("bee", 2, 0.1), ("bee", 2, 0.1)])  # once is enough
        session.remove("item", [("cow", 3, -0.0)])  # isn't there
        session.insert("item", [("cow", 3, 0.0)])
        session.insert("item", [("dog", 1, 0.2)])
        session.remove("item", [("dog", 1, 0.2)])
        session.remove("item", [("ox", 9, 500.0)])
        session.insert("item", [("ox", 9, 500.0)])
        delta = session.step()
        assert delta["light"] == [(("bee",), 1), (("cow",), 1)]
        assert delta.ignored == {"item": 3}
        assert called == [[(("bee",), 1), (("cow",), 1)]]
        assert session.snapshot("all_light") == [("ant",), ("bee",), ("cow",)]
        with pytest.raises(KeyError):
            delta["all_light"]

        stop()
        before = session.epoch
        handle = session.step_async()
        session.insert("item", [("elf", 1, 0.3)])  # for the step after
        assert handle.result() == {"share": [], "light": []}
        assert handle.done()
        assert session.step_async().result()["light"] == [(("elf",), 1)]
        assert session.epoch == before + 2
        assert len(called) == 1


@pytest.mark.parametrize("operation", ["insert", "remove"])
def test_what_does_not_fit_is_refused_whole_and_a_failed_step_changes_nothing(
    operation: str, spark: SparkSession
) -> None:
    session = Session.create(SMALL, spark=spark)
    take = getattr(session, operation)
    good = ("fly", 1, 0.1)
    refused: list[tuple[type[IvmError], str, Any, str]] = [
        (UnknownName, "itm", [good], "did you mean item?"),
        (UserError, "light", [("fly",)], "light is derived"),
        (BatchError, "item", [good, ("fly", 1)], "a tuple of 3, not of 2"),
        (BatchError, "item", [good, ("fly", "1", 0.1)], "a whole number"),
        (BatchError, "item", [good, ("fly", True, 0.1)], "a whole number"),
        (BatchError, "item", [good, ("fly", 1.0, 0.1)], "a whole number"),
        (BatchError, "item", [good, (None, 1, 0.1)], "a text"),
        (BatchError, "item", [good, ("\ud800", 1, 0.1)], "a text"),
        (BatchError, "item", [good, ("fly", 2**31, 0.1)], "from -2147483648 to 2147483647"),
        (BatchError, "item", [good, ("fly", 1, float("nan"))], "NaN is no fact"),
        (BatchError, "count_of", [(1,), (-1,)], "a number from 0 to 9223372036854775807"),
        (BatchError, "count_of", [(2**63,)], "a number from 0 to 9223372036854775807"),
        (BatchError, "count_of", [1], "a tuple of 1"),
        (BatchError, "count_of", 1, "a list of tuples"),
        (BatchError, "count_of", {"n": 1}, "a list of tuples"),
        (BatchError, "item", [{"name": "fly"}], "a fact of (name, price, weight)"),
    ]
    for kind, relation, facts, text in refused:
        with pytest.raises(kind) as told:
            take(relation, facts)
        assert text in str(told.value), relation
    for call in (
        lambda: session.snapshot("itm"),
        lambda: session.on_delta("all_light", print),
        lambda: session.explain("item"),
    ):
        with pytest.raises(UnknownName):
            call()
    for call in (
        lambda: take("item", [good]),
        session.step,
        session.destroy,
        lambda: session.epoch,
    ):
        assert isinstance(in_another_thread(call), WrongThread)
    if operation == "insert":
        assert session.step()["light"] == [(("air",), 1)]  # nothing of all that was taken
        session.insert("count_of", [(3,), (1,)])
        with pytest.raises(TickFailed) as failed:
            session.step()
        assert "share(to_number(n), 100 / to_number(n - 1)) :- count_of(n)." in str(failed.value)
        assert "DIVIDE_BY_ZERO" in str(failed.value)
        assert session.epoch == 1
        assert session.snapshot("count_of") == []
        session.remove("count_of", [(1,)])  # what waited still waits
        assert session.step()["share"] == [((3, 50), 1)]
        session.insert("count_of", [(0,)])
        with pytest.raises(TickFailed) as failed:
            session.step_async().result()
        assert "a difference below zero is no unsigned number" in str(failed.value)
        session.discard()
        assert session.step() == {"share": [], "light": []}
    session.destroy()
    session.destroy()
    for call in (session.step, lambda: take("item", [good]), lambda: session.snapshot("light")):
        with pytest.raises(ClosedFlow):
            call()


def test_a_stored_session_goes_on_and_takes_other_rules(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = tmp_path / "stored"
    with pytest.raises(DatalogError):
        Session.create(SMALL + "light(x) :- nothing(x).", place, spark)
    assert not place.exists()
    program = tmp_path / "small.dl"
    program.write_text(SMALL)
    with Session.create(program, place, spark) as session:
        session.insert("item", [("ant", 1, 0.5), ("ox", 9, 500.0)])
        session.step()
    with pytest.raises(DefinitionConflict):
        Session.create(SMALL + ".decl more(x: number) more(1).", place, spark)
    with Session.create(SMALL, place, spark) as session:
        assert session.epoch == 1
        session.insert("item", [("ant", 1, 0.5), ("bee", 2, 0.1)])
        delta = session.step()
        assert delta["light"] == [(("bee",), 1)]
        assert delta.ignored == {"item": 1}

        other = (
            SMALL.replace("w < 1.0", "w > 1.0").replace('light("air").', "")
            + """
        .decl dear(name: symbol) .output dear
        dear(s) :- item(s, p, _), p > 5.
        """
        )
        changed = session.alter(other)
        assert changed["light"] == [
            (("air",), -1),
            (("ant",), -1),
            (("bee",), -1),
            (("ox",), 1),
        ]
        assert changed["dear"] == [(("ox",), 1)]
        assert session.snapshot("light") == [("ox",)]
        for wrong, what in [
            (other.replace("count_of", "counts"), "the input count_of is no input"),
            (other.replace("price: int32", "price: number"), "item has other columns"),
            (other + "item(s, 1, 1.0) :- light(s).", "the input item is also derived"),
        ]:
            with pytest.raises(DatalogError) as told:
                session.alter(wrong)
            assert what in str(told.value)
        session.remove("item", [("ox", 9, 500.0)])
        assert session.step() == {"share": [], "light": [(("ox",), -1)], "dear": [(("ox",), -1)]}
        assert session.flow.replay().equal
    with IncrementalFlow.open(place, spark) as flow:  # a session is a flow
        assert set(flow.views) == {"share", "light", "all_light", "dear"}
        assert flow.check("light").equal


def test_other_rules_for_relations_that_need_themselves(spark: SparkSession) -> None:
    facts = {"edge": [(1, 2), (2, 3), (3, 1), (3, 4), (5, 6)]}
    inputs = ".decl edge(x: number, y: number) .input edge\n"
    programs = [
        """
        .decl tc(x: number, y: number) .output tc
        tc(x, y) :- edge(x, y).
        tc(x, z) :- tc(x, y), edge(y, z).
        """,
        # by another rule, bounded by a relation that is new and needs it too
        """
        .decl tc(x: number, y: number) .output tc
        .decl even(x: number, y: number) .output even
        tc(x, y) :- edge(x, y), x < 3.
        tc(x, z) :- even(x, y), edge(y, z).
        even(x, z) :- tc(x, y), edge(y, z).
        """,
        # one of them no longer does, the other has other columns
        """
        .decl tc(x: number, y: number, n: number) .output tc
        .decl even(x: number, y: number) .output even
        tc(x, y, 1) :- edge(x, y).
        tc(x, z, n + 1) :- tc(x, y, n), edge(y, z), n < 3.
        even(x, y) :- tc(x, y, 2).
        """,
        """
        .decl dist(y: number, n: number) .output dist
        dist(1, 0).
        dist(y, min(n + 1)) :- dist(x, n), edge(x, y).
        """,
    ]
    with Session.create(inputs + programs[0], spark=spark, max_iterations=60) as session:
        session.insert("edge", facts["edge"])
        session.step()
        before = run(inputs + programs[0], facts, spark)
        for text in programs[1:]:
            changed = session.alter(inputs + text)
            wanted = run(inputs + text, facts, spark)
            for name, rows in wanted.items():
                assert session.snapshot(name) == rows
                if {len(row) for row in before.get(name, [])} - {len(row) for row in rows}:
                    continue  # rows of other columns don't add up
                gone = set(before.get(name, [])) - set(rows)
                came = set(rows) - set(before.get(name, []))
                assert set(changed[name]) == {(r, -1) for r in gone} | {(r, 1) for r in came}
            assert set(session.flow.views) == set(wanted)
            before = wanted
        facts["edge"] = [(1, 2), (2, 3), (2, 5), (5, 6)]
        session.remove("edge", [(3, 1), (3, 4)])
        session.insert("edge", [(2, 5)])
        session.step()
        assert session.snapshot("dist") == run(inputs + programs[-1], facts, spark)["dist"]
        assert session.flow.replay().equal


def test_one_step_at_a_time(spark: SparkSession) -> None:
    with Session.create(SMALL, spark=spark) as session:
        entered, leave = threading.Event(), threading.Event()

        def hold(rows: object) -> None:
            entered.set()
            leave.wait(60)

        session.on_delta("light", hold)
        handle = session.step_async()
        assert entered.wait(60)
        with pytest.raises(TickConflict):
            session.step()
        leave.set()
        assert handle.result()["light"] == [(("air",), 1)]
        session.on_delta("light", lambda rows: 1 // 0)
        session.insert("item", [("ant", 1, 0.5)])
        with pytest.raises(ZeroDivisionError):
            session.step()
        assert session.snapshot("light") == [("air",), ("ant",)]  # the step stands


def test_a_recursion_without_end_fails_whole(spark: SparkSession) -> None:
    endless = ".decl n(x: number) .input n  n(x + 1) :- n(x)."
    with Session.create(endless, spark=spark, max_iterations=5) as session:
        assert session.step() == {"n": []}
        session.insert("n", [(1,)])
        with pytest.raises(RecursionLimit) as told:
            session.step()
        assert "n(x + 1) :- n(x)." in str(told.value)
        assert "max_iterations=" in str(told.value)
        assert session.epoch == 1
        assert session.snapshot("n") == []
        session.discard()
        assert session.step() == {"n": []}


def test_names_and_patterns_mean_what_they_say(spark: SparkSession) -> None:
    counted = ".decl a(x: number) .decl b(x: number) .input a, b .decl p(x: number, n: number) .output p p(?1, n) :- a(?1), n = count : { b(_) }."
    facts = {"a": [(1,), (5,)], "b": [(7,), (8,)]}
    assert list(run(counted, facts, spark=spark)["p"]) == [(1, 2), (5, 2)]
    pattern = (
        '.decl t(x: symbol) .input t .decl p(x: symbol) .output p p(x) :- t(x), match("a", x).'
    )
    texts = [("a",), ("a\n",), ("a\r",), ("b\na",)]
    assert list(run(pattern, {"t": texts}, spark=spark)["p"]) == [("a",)]


def test_facts_that_come_while_a_step_fails_are_kept(spark: SparkSession) -> None:
    text = ".decl a(x: number) .input a .decl p(x: number) .output p p(10 / x) :- a(x)."
    with Session.create(text, spark=spark) as session:
        session.insert("a", [(n,) for n in range(20_000)])
        handle = session.step_async()
        more = 20_000
        while not handle.done():
            session.insert("a", [(more,)])
            more += 1
        with pytest.raises(TickFailed):
            handle.result()
        session.remove("a", [(0,)])
        session.step()
        assert len(session.snapshot("a")) == more - 1


def test_a_refused_session_takes_nothing_of_another_ones_with_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = ".decl a(x: number) .input a .decl p(x: number) .output p p(x) :- a(x)."
    place = tmp_path / "session"
    looked = sessions._is_missing

    def made_meanwhile(root: object) -> bool:
        found = looked(root)
        monkeypatch.setattr(sessions, "_is_missing", looked)
        with Session.create(text, path=place, spark=spark) as other:
            other.insert("a", [(1,)])
            other.step()
        return found

    monkeypatch.setattr(sessions, "_is_missing", made_meanwhile)
    with pytest.raises(DefinitionConflict):
        Session.create(
            text.replace("p(x) :- a(x).", "p(x) :- a(x). .decl q(x: number) q(x) :- a(x)."),
            path=place,
            spark=spark,
        )
    with Session.create(text, path=place, spark=spark) as session:
        assert list(session.snapshot("p")) == [(1,)]
