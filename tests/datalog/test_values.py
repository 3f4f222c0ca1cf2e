"""Values at the edge: zeros, what is no number, sums past 64 bits, long programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import DatalogError, IvmError, RecursionLimit, Session, TickFailed, UserError, run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

FLOATS = """
.decl a(x: float, y: float) .input a
.decl bound(x: float) .output bound
.decl nested(s: symbol) .output nested
.decl least(x: float, m: float) .output least
.decl flipped(x: float) .output flipped
.decl total(x: float) .output total
bound(z) :- a(x, y), z = x * y.
nested(to_string(x * y)) :- a(x, y).
least(x, m) :- a(x, _), m = min z * x : { a(x, z) }.
flipped(x) :- a(x, _).
flipped(-x) :- flipped(x).
total(t) :- t = sum x : { a(x, _) }.
"""


def spelled(rows: Any) -> list[str]:
    """Facts with the signs of their zeros."""
    return sorted(map(repr, rows))


def test_there_is_one_zero(spark: SparkSession) -> None:
    facts = {"a": [(0.0, -1.0), (-0.0, 1.0), (2.0, -0.0)]}
    with Session.create(FLOATS, spark=spark) as session:
        session.insert("a", facts["a"])
        session.step()
        found = {name: session.snapshot(name) for name in session.program.outputs}
        wanted = run(FLOATS, facts, spark)
        for name, rows in found.items():
            assert spelled(rows) == spelled(wanted[name]), name
            assert "-0.0" not in str(spelled(rows)), name
        assert found["bound"] == [(0.0,)]
        assert found["nested"] == [("0.0",)]
        assert found["flipped"] == [(-2.0,), (0.0,), (2.0,)]


NO_NUMBERS = [
    "n(z) :- a(x, _), z = x - x.",
    "n(sum(x)) :- a(x, _).",
    "n(x - x) :- a(x, _).",
    'n(to_float("NaN")) :- a(_, _).',
    "n((y - 2.0) ^ 0.5) :- a(_, y).",
    "n(z) :- z = sum x : { a(x, _) }.",
    "n(z) :- z = min x - x : { a(x, _) }.",
]


def test_what_is_no_number_is_no_fact(spark: SparkSession) -> None:
    facts = {"a": [(float("inf"), 1.0), (float("-inf"), 1.0)]}
    for number, rule in enumerate(NO_NUMBERS):
        program = f".decl a(x: float, y: float) .input a .decl n(x: float) .output n {rule}"
        with pytest.raises(TickFailed, match="no number"):
            run(program, facts, spark)
        if number > 1:
            continue
        with Session.create(program, spark=spark) as session:
            session.insert("a", facts["a"])
            with pytest.raises(TickFailed, match="no number") as told:
                session.step()
            assert rule in str(told.value)
            assert session.epoch == 0


def test_a_sum_may_be_past_64_bits_on_its_way(spark: SparkSession) -> None:
    program = """
    .decl a(k: number, x: number) .input a
    .decl head(t: number) .output head
    .decl body(t: number) .output body
    head(sum(x)) :- a(_, x).
    body(t) :- t = sum x : { a(_, x) }.
    """
    most = 2**63 - 1
    facts = {"a": [(1, most), (2, most), (3, -most), (4, -most), (5, 7)]}
    with Session.create(program, spark=spark) as session:
        session.insert("a", facts["a"])
        session.step()
        assert session.snapshot("head") == session.snapshot("body") == [(7,)]
    assert run(program, facts, spark)["head"] == [(7,)]
    assert run(program, facts, spark)["body"] == [(7,)]
    with pytest.raises(TickFailed):
        run(program, {"a": facts["a"][:2]}, spark)


def test_a_condition_that_fails_is_asked_of_rows_that_are_left(spark: SparkSession) -> None:
    program = """
    .decl a(x: number, y: number) .decl b(x: number) .input a, b
    .decl even(x: number) .output even
    .decl late(x: number) .output late
    even(x) :- a(x, y), b(x), 100 / y > 2.
    late(x) :- a(x, y), z = 100 / y, z > 2, y != 0.
    """
    facts = {"a": [(1, 0), (2, 5), (3, 90)], "b": [(2,), (3,), (4,)]}
    with Session.create(program, spark=spark) as session:
        for name, rows in facts.items():
            session.insert(name, rows)
        session.step()
        assert session.snapshot("even") == session.snapshot("late") == [(2,)]
    assert run(program, facts, spark)["even"] == [(2,)]
    assert run(program, facts, spark)["late"] == [(2,)]


def test_substrings_may_ask_for_more_than_there_is(spark: SparkSession) -> None:
    program = """
    .decl a(s: symbol, from: number, n: number) .input a
    .decl t(s: symbol) .output t
    t(substr(s, from, n)) :- a(s, from, n).
    """
    most = 2**63 - 1
    facts = {"a": [("abc", 1, most), ("abc", most, most), ("abc", 0, 2), ("abc", -1, 2)]}
    with Session.create(program, spark=spark) as session:
        session.insert("a", facts["a"])
        session.step()
        assert session.snapshot("t") == run(program, facts, spark)["t"] == [("",), ("ab",), ("bc",)]


def test_many_facts_rules_conditions_and_terms(spark: SparkSession) -> None:
    facts = "\n".join(f"e({n}, {n + 1})." for n in range(-300, 300) if n % 10)
    rules = "\n".join(f"far(x + {n}) :- a(x), x > {n}." for n in range(70))
    terms = " + ".join(["x"] * 60)
    conditions = ", ".join(f"x != {n}" for n in range(200))
    program = f"""
    .decl a(x: number) .input a .decl e(x: number, y: number)
    .decl t(x: number, y: number) .output t
    .decl far(x: number) .output far
    .decl sums(x: number) .output sums
    .decl other(x: number) .output other
    {facts}
    t(x, y) :- e(x, y), !a(y).
    t(x, z) :- t(x, y), e(y, z), !a(z).
    {rules}
    sums({terms}) :- a(x).
    other(x) :- a(x), {conditions}.
    """
    given = {"a": [(5,), (100,), (1000,)]}
    wanted = run(program, given, spark)
    with Session.create(program, spark=spark) as session:
        session.insert("a", [(5,), (7,)])
        session.step()
        session.remove("a", [(7,)])
        session.insert("a", [(100,), (1000,)])
        session.step()
        for name, rows in wanted.items():
            assert session.snapshot(name) == rows, name
    assert wanted["sums"] == [(300,), (6000,), (60000,)]
    assert wanted["other"] == [(1000,)]
    for deep in ("(" * 2000 + "x" + ")" * 2000, " + ".join(["x"] * 2000)):
        with pytest.raises(DatalogError, match="nested too deeply"):
            run(f".decl a(x: number) .input a .decl t(x: number) .output t t({deep}) :- a(x).")


def test_a_change_that_fails_leaves_nothing_behind(spark: SparkSession, tmp_path: Path) -> None:
    """Neither the inputs that it would have had, nor half of its relations."""
    program = """
    .decl a(x: number) .input a
    .decl t(x: number) .output t
    .decl gone(x: number) .output gone
    t(x) :- a(x).
    gone(x) :- t(x).
    """
    place = tmp_path / "session"
    fails = """
    .decl a(x: number) .input a .decl more(x: number) .input more
    .decl t(x: number) .output t
    t(100 / x) :- a(x), !more(x).
    """
    with Session.create(program, place, spark) as session:
        session.insert("a", [(0,), (1,)])
        session.step()
        with pytest.raises(IvmError):
            session.alter(fails)
        assert session.flow.sources == ("a",)
        assert session.snapshot("gone") == [(0,), (1,)]
        # as if the process had ended in the middle
        session.flow.register_source("more", "x BIGINT")
    with Session.create(program, place, spark) as session:
        assert session.flow.sources == ("a",)
        changed = session.alter(fails.replace("100 / x", "x + 100"))
        assert changed["t"] == [((0,), -1), ((1,), -1), ((100,), 1), ((101,), 1)]
        assert session.flow.views == ("t",)
        session.insert("more", [(1,)])
        assert session.step()["t"] == [((101,), -1)]
        assert session.flow.replay().equal
    with Session.create(fails.replace("100 / x", "x + 100"), place, spark) as session:
        assert session.snapshot("t") == [(100,)]


def test_errors_speak_of_the_program(spark: SparkSession) -> None:
    program = """
    .decl a(x: number) .input a
    .decl t(x: number) .output t
    t(100 / x) :- a(x).
    .decl up(x: number) .output up
    up(x) :- a(x).
    up(x + 1) :- up(x).
    """
    with Session.create(program, spark=spark, max_iterations=20) as session:
        session.insert("a", [(0,)])
        with pytest.raises(TickFailed) as failed:
            session.step()
        assert "try_" not in str(failed.value)
        assert "ansi" not in str(failed.value)
        session.discard()
        session.insert("a", [(1,)])
        with pytest.raises(RecursionLimit) as endless:
            session.step()
        assert "stratum" in str(endless.value)
        assert "up(x + 1) :- up(x)." in str(endless.value)
        assert "UNION" not in str(endless.value)
        with pytest.raises(UserError, match="can't be called"):
            session.on_delta("t", None)
        wrong: Any = ["t"]
        with pytest.raises(IvmError, match="no relation"):
            session.snapshot(wrong)
        session.discard()
        with pytest.raises(IvmError, match="no output relation"):
            session.step()[wrong]
    five: Any = 5
    with pytest.raises(UserError, match="mapping of relations"):
        run(program, five, spark)
    with pytest.raises(UserError, match="no positive number"):
        Session.create(".decl a(x: number) .input a", max_iterations=-5)
    for text, told in (
        ('.pragma "legacy"', ".pragma is not taken"),
        (".decl a(x: number) .input a\n.printsize a", ".printsize is not taken"),
        (".decl a(x: number)\n.input a(IO=file)", "options of .input are not taken"),
    ):
        with pytest.raises(DatalogError, match="not taken") as refused:
            run(text, spark=spark)
        assert told in str(refused.value)


def test_a_relation_with_other_columns_is_a_new_one(spark: SparkSession) -> None:
    edges = ".decl e(x: number, y: number) .input e\n"
    program = edges + ".decl t(x: number, y: number) .output t\nt(x, y) :- e(x, y)."
    other = edges + ".decl t(x: number) .output t\nt(x) :- e(x, _)."
    told: list[Any] = []
    with Session.create(program, spark=spark) as session:
        session.on_delta("t", lambda rows: told.append(list(rows)))
        session.insert("e", [(1, 2)])
        session.step()
        delta = session.alter(other)
        assert delta["t"] == [((1,), 1)]
        assert [tuple(row) for row in delta["t"].df.collect()] == [(1, 1)]
        assert told == [[((1, 2), 1)], [((1,), 1)]]
        with pytest.raises(TickFailed) as failed:
            session.alter(other.replace("t(x)", "t(x / 0)"))
        assert "t(x / 0) :- e(x, _)." in str(failed.value)
        assert "ansi" not in str(failed.value)
        assert "== SQL" not in str(failed.value)
