"""The notation, what it refuses and where, and the order of strata. No Spark."""

from __future__ import annotations

import pytest

from ivm_core import DatalogError, Unsupported
from ivm_core.frontend.datalog.parsing import parse_program
from ivm_core.frontend.datalog.program import checked_program
from ivm_core.frontend.datalog.queries import relation_query, source_names
from ivm_core.frontend.datalog.strata import Stratum
from ivm_core.operators.sql import text_of

DECLARED = """
.decl edge(x: number, y: number)   // line 2
.decl w(x: number, y: number, d: unsigned)
.decl s(a: symbol, f: float)
/* inputs,
   then what is derived */
.input edge, w, s
.decl tc(x: number, y: number)
.decl odd(x: int32) .decl even(x: int64)
.decl r(x: number)
.decl n(x: number, c: number)
.decl dist(x: number, d: unsigned)
.output tc, r
"""
FIRST = len(DECLARED.splitlines())


def query(text: str, name: str) -> str:
    program = checked_program(DECLARED + text)
    recursive = any(name in each.relations and each.is_recursive for each in program.strata)
    return text_of(relation_query(program, name, source_names(program), recursive))


@pytest.mark.parametrize(
    ("text", "what", "line", "column", "expected"),
    [
        ("a(x :- b(x).", "unexpected ':-'", 1, 5, 'an operator, ")" or ","'),
        ("a(x) :- b(x)", "the program ends too early", 1, 13, '".", "," or ";"'),
        ("a(x) :- b(x), .", "unexpected '.'", 1, 15, "a name, a number, a text"),
        ("\n  .foo a", ".foo is not taken", 2, 3, ".decl, .type, .input, .output"),
        (".decl a(x)", "unexpected ')'", 1, 10, '":"'),
        (".input a(IO=file)", "options of .input are not taken", 1, 9, "relation alone"),
        ("a(x) :- b(x) & c(x).", "unexpected '&'", 1, 14, "a comparison"),
        ("a(min) :- b(min).", "unexpected ')'", 1, 6, "min is a word of the language"),
        ('a("x).', "a text without its end", 1, 3, "on the same line"),
        ("a(1). /* b", "a comment without its end", 1, 7, "*/"),
        ("a(x) :- b(x), x.", "a value where something", 1, 15, "compare it"),
        ("a(x) :- b(x), (x, y) = 2.", "a condition where a value", 1, 16, "give a value"),
        ("a(x) :- b(count(x)).", "count(…) of one value", 1, 11, "count x : { … }"),
        ("a(count(x)) :- b(x).", "takes no value", 1, 3, "count()"),
        ("a(sum(x, y)) :- b(x, y).", "sum of 2 values", 1, 3, "give it one"),
        ("a(x) :- x = min : { b(x) }.", "min of nothing", 1, 13, "of which value"),
        ("a(" + "9" * 200 + ").", "a number of 200 digits", 1, 3, "64 bits"),
        ("a(x) :- " + "(" * 3000 + "b(x)" + ")" * 3000 + ".", "nested too deeply", None, None, ""),
    ],
)
def test_what_does_not_parse_is_told_with_its_place(
    text: str, what: str, line: int | None, column: int | None, expected: str
) -> None:
    with pytest.raises(DatalogError) as told:
        parse_program(text)
    assert what in told.value.what
    assert (told.value.line, told.value.column) == (line, column)
    for part in expected.split(" or "):
        assert all(word in told.value.fix for word in part.split(", "))


def test_everything_of_the_notation_is_read() -> None:
    source = parse_program(
        r"""
        .type Name <: symbol
        p(x, "a\"b\n", -1.5e3, 0x1f, 0b11, 3u), q(?y) :-
            a(x, _), ?y = -x ^ 2 % 3, (b(x); !c(x), x != 1), // a comment
            m = min x + 1 : { a(x, _) }, k = sum (x + y) : { a(x, y) }, n = count : a(_, _).
        """
    )
    (rule,) = source.rules
    assert [str(head) for head in rule.heads] == [r'p(x, "a\"b\n", -1500.0, 31, 3, 3u)', "q(?y)"]
    assert str(rule.body) == (
        "a(x, _), ?y = (-(x ^ 2) % 3), (b(x); !c(x), x != 1), m = min (x + 1) : { a(x, _) }, "
        "k = sum (x + y) : { a(x, y) }, n = count : { a(_, _) }"
    )
    assert rule.text.startswith("p(x,")
    assert (rule.place.line, rule.place.column) == (3, 9)


@pytest.mark.parametrize(
    ("rule", "what", "column"),
    [
        ("tc(x, y) :- edge(x, _).", "y in the head has no value", 7),
        ("tc(x, y) :- edge(x, y), !edge(x, z).", "z in a negated atom has no value", 34),
        ("tc(x, y) :- edge(x, y), z > 3.", "z in a comparison has no value", 25),
        ("r(x) :- edge(x, z + 1).", "z in an atom has no value", 17),
        ("r(x) :- x = y, y = x.", "x in a comparison has no value", 9),
        ("r(_) :- edge(_, _).", "_ in the head stands for no value", 3),
        ("r(x) :- edge(x, _), x < _.", "_ in a comparison stands for no value", 25),
        ("tc(x) :- edge(x, _).", "tc has 2 columns, not 1", 1),
        ("foo(x) :- edge(x, _).", "the relation foo is not declared", 1),
        ("tc(x, y) :- edg(x, y).", "the relation edg is not declared", 13),
        ("r(a) :- s(a, _).", "a is of type symbol where number is expected", 3),
        ('r(x) :- edge(x, _), x = "a".', '"a" is of type symbol where number', 25),
        ("r(x) :- edge(x, _), w(x, _, x).", "x is of type number where unsigned", 29),
        ("r(x) :- edge(x, _), s(_, f), f < x.", "x is of type number where float", 34),
        ("r(strlen(x)) :- edge(x, _).", "x is of type number where symbol", 10),
        ("r(x % 2) :- edge(x, _), s(_, f), f = f % 2.", "% of f, which is of type float", 38),
        ("r(sum(a)) :- s(a, _).", "sum of a, which is of type symbol", 7),
        ("r(x) :- x = foo(1).", "there is no functor foo", 13),
        ("r(x) :- x = edge(1, 2).", "edge is a relation, which has no value", 13),
        ("r(x) :- edge(x, _), x = cat(1).", "cat takes 2 or more values, not 1", 25),
        ("r(9223372036854775808).", "9223372036854775808 is out of range", 3),
        ("odd(2147483648).", "2147483648 is out of range", 5),
        ("dist(1, -1).", "-1 is out of range", 9),
        (
            "r(x) :- edge(x, _), !odd(x). odd(x) :- r(x).",
            "odd, which needs r: r needs odd needs r",
            22,
        ),
        ("dist(x, min(d)) :- w(x, _, d). dist(x, max(d)) :- w(x, _, d).", "has min", 40),
        ("n(x, sum(y)) :- edge(x, y). n(1, 2).", "n is a sum in other rules", 34),
        ("n(x, c) :- c = count : { edge(x, _) }.", "x has no value outside of the count", 31),
        ("edge(x, min(y)) :- edge(x, y).", "edge is an input and aggregated", 1),
    ],
)
def test_what_has_no_meaning_is_refused_with_its_rule(rule: str, what: str, column: int) -> None:
    with pytest.raises(DatalogError) as told:
        checked_program(DECLARED + rule)
    assert what in told.value.what
    assert (told.value.line, told.value.column) == (FIRST + 1, column)
    assert told.value.rule in rule
    assert told.value.rule
    assert told.value.fix
    assert f"line {FIRST + 1}, column {column}" in str(told.value)


@pytest.mark.parametrize(
    ("rule", "construct"),
    [
        ("n(x, c) :- n(x, _), c = count : { n(x, y) }.", "count within recursion (n needs n)"),
        ("n(x, sum(c)) :- n(x, c).", "sum within recursion"),
        ("r(x) :- n(x, _). n(x, count()) :- r(x).", "count within recursion (n needs r needs n)"),
        ("n(x, m) :- edge(x, _), m = min c : { n(_, c) }.", "min within recursion"),
        ("dist(x, min(3 - d)) :- dist(x, d).", "this use of d, a min"),
        ("dist(x, min(d)) :- dist(x, d), d > 3.", "this use of d"),
        ("dist(x, min(d)) :- dist(x, d), 3 < d.", "this use of d"),
        ("dist(x, min(e)) :- dist(x, d), e = d + 1, e > 3.", "this use of e"),
        ("dist(x, min(d)) :- dist(x, 3), w(x, _, d).", "3 as a value of dist"),
        ("dist(x, min(d)) :- dist(x, d), w(x, _, d).", "d as a value of w"),
        ("dist(x, min(e)) :- dist(x, d), w(x, _, e), e = d + 1.", "this use of d"),
        ("dist(to_number(d), min(d)) :- dist(_, d).", "this use of d"),
        ("dist(x, min(d)) :- dist(x, d), !w(x, x, d).", "this use of d"),
        ("r(min(x)) :- edge(x, _), r(x).", "an aggregate without a key"),
        ('r(ord("a")) :- edge(_, _).', "the functor ord"),
        ("n(x, c) :- edge(x, _), c = count : { edge(y, _), y < x }.", "x from outside"),
        ("n(x, c) :- edge(x, _), c = count : { edge(x, _); w(x, _, _) }.", "a disjunction within"),
        ("r(c) :- c = count : { edge(x, y), y = sum z : { edge(z, _) } }.", "an aggregate within"),
        (".decl flag()", "the relation flag without columns"),
    ],
)
def test_what_is_not_maintained_is_refused_with_reason_and_rewrite(
    rule: str, construct: str
) -> None:
    with pytest.raises(Unsupported) as told:
        checked_program(DECLARED + rule)
    assert construct in told.value.construct
    assert f"line {FIRST + 1}, column" in told.value.position
    assert any(part.strip() in told.value.position for part in rule.split(". "))
    assert told.value.reason
    assert told.value.rewrite


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "declares no relation"),
        (".decl a(x: number) .decl A(x: number)", "A is declared already, at line 1"),
        (".decl a(x: number, X: number)", "two columns are called X"),
        (".decl a(x: int)", "int is no type"),
        (".decl a(_weight: number)", "reserved"),
        (".decl __a(x: number)", "reserved"),
        (".type N = foo .decl a(x: N)", "foo is no type"),
        (".type symbol = number .decl a(x: symbol)", "symbol is a type already"),
        (".decl a(x: number) .output b", "the relation b is not declared"),
    ],
)
def test_wrong_declarations_are_refused(text: str, what: str) -> None:
    with pytest.raises(DatalogError) as told:
        checked_program(text)
    assert what in told.value.what


def test_strata_come_in_the_order_in_which_they_are_needed() -> None:
    program = checked_program(
        DECLARED
        + """
        r(x) :- edge(x, _), !tc(x, x).
        tc(x, y) :- edge(x, y); tc(x, z), edge(z, y).
        odd(y + 1) :- even(y), y < 10. even(x) :- odd(x). even(0).
        dist(1, 0). dist(y, min(d + e)) :- dist(x, d), w(x, y, e), d < 100, 7 >= d.
        n(x, c) :- r(x), c = count : { tc(x, _) }.
        """
    )
    assert program.strata == (
        Stratum(("tc",), True),
        Stratum(("odd", "even"), True),
        Stratum(("r",), False),
        Stratum(("n",), False),
        Stratum(("dist",), True),
    )
    assert program.inputs == ("edge", "w", "s")
    assert program.outputs == ("tc", "r")
    assert "stratum 2, recursive: odd, even\n  odd(y + 1) :- even(y), y < 10." in program.explain()


def test_a_relation_without_rules_is_an_input_and_one_with_both_has_a_source_beside_it() -> None:
    program = checked_program(".decl a(x: number) .decl b(x: number) .input b\nb(x) :- a(x).")
    assert program.inputs == ("a", "b")
    assert program.outputs == ("b",)
    assert source_names(program) == {"a": "a", "b": "b_input"}


def test_clauses_become_branches_that_join_deny_and_group() -> None:
    rules = "tc(x, y) :- edge(x, y). tc(x, z) :- tc(x, y), edge(y, z)."
    assert query(rules, "tc") == (
        "SELECT `t0`.`x` AS `x`, `t0`.`y` AS `y` FROM `edge` AS t0 UNION "
        "SELECT `t0`.`x` AS `x`, `t1`.`y` AS `y` FROM `tc` AS t0 JOIN `edge` AS t1 "
        "ON `t0`.`y` = `t1`.`x`"
    )
    assert query("r(x) :- edge(x, _), !edge(_, x).", "r") == (
        "SELECT DISTINCT `t0`.`x` AS `x` FROM `edge` AS t0 WHERE NOT EXISTS("
        "SELECT 1 FROM `edge` AS n1 WHERE `n1`.`y` = `t0`.`x`)"
    )
    assert query("dist(x, min(d + 1)) :- w(x, _, d).", "dist") == (
        "SELECT `x`, MIN(`d`) AS `d` FROM (SELECT `t0`.`x` AS `x`, "
        "(`t0`.`d` + CAST(1 AS BIGINT)) AS `d` FROM `w` AS t0) AS ways GROUP BY `x`"
    )
    # every value of the body is in the row, so no row can come twice
    assert "DISTINCT" not in query("tc(y, x) :- edge(x, y), x < y.", "tc")
    # a value that is there already has to be the aggregate's
    assert "WHERE `t0`.`y` = `g2`.`value`" in query(
        "r(x) :- edge(x, y), y = max z : { edge(x, z) }.", "r"
    )
