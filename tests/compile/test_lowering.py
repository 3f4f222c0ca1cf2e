"""Which terms of a delta are rendered, and where expressions wait for netting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.compile.lowering import Lowering
from ivm_core.compile.totality import column_type
from ivm_core.model.names import WEIGHT
from ivm_core.operators.operator import Form
from tests.compile.plans import CATALOG, optimised

if TYPE_CHECKING:
    from ivm_core.plan.nodes import Node

THREE = "SELECT a.s, b.y, c.z FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y"


def rendered(
    plan: Node, form: Form, dirty: tuple[str, ...] = (), empty: tuple[str, ...] = ()
) -> exp.Query | None:
    types = {
        node.text: {c: column_type(node, c, CATALOG) for c in node.columns} for node in plan.walk()
    }
    lowering = Lowering(CATALOG, types, frozenset(dirty), frozenset(empty))  # type: ignore[arg-type]
    return lowering.render(plan, form)


def tables(query: exp.Query | None) -> list[str]:
    return sorted(table.name for table in query.find_all(exp.Table)) if query else []


def test_a_delta_has_one_term_for_each_changed_input() -> None:
    plan = optimised(THREE)
    assert tables(rendered(plan, Form.DELTA, ("b",))) == ["a@old", "b@delta", "c@old"]
    assert tables(rendered(plan, Form.DELTA, ("a", "c"))) == [
        "a@delta",
        "a@delta",
        "a@old",
        "b@old",
        "b@old",
        "c@delta",
        "c@old",
    ]


def test_without_changed_inputs_there_is_no_delta() -> None:
    assert rendered(optimised(THREE), Form.DELTA) is None


def test_terms_with_an_empty_side_are_left_out() -> None:
    plan = optimised(THREE)
    assert tables(rendered(plan, Form.DELTA, ("a", "b"), ("a", "b"))) == [
        "a@delta",
        "b@delta",
        "c@old",
    ]


def test_a_union_renders_only_the_branches_that_changed() -> None:
    plan = optimised("SELECT x FROM a UNION ALL SELECT y FROM b")
    assert tables(rendered(plan, Form.DELTA, ("b",))) == ["b@delta"]


def test_the_plain_form_has_no_weights() -> None:
    query = rendered(optimised(THREE), Form.PLAIN)
    assert query is not None
    assert WEIGHT not in query.sql(dialect="spark")
    assert tables(query) == ["a", "b", "c"]


def test_a_constant_has_no_delta_and_one_row() -> None:
    plan = optimised("SELECT 1 AS one")
    assert rendered(plan, Form.DELTA) is None
    query = rendered(plan, Form.NEW)
    assert query is not None
    assert query.named_selects == ["one", WEIGHT]


def test_an_expression_that_may_raise_waits_until_phantom_pairs_have_cancelled() -> None:
    plan = optimised("SELECT a.y / b.y AS q FROM a JOIN b ON a.x = b.x")
    one, both = (rendered(plan, Form.DELTA, dirty) for dirty in (("a",), ("a", "b")))
    assert one is not None
    assert both is not None
    assert not list(one.find_all(exp.Group))
    assert list(both.find_all(exp.Group))
    assert f"CASE WHEN `{WEIGHT}` <> 0 THEN" in both.sql(dialect="spark")


def test_an_expression_that_cannot_raise_does_not_wait() -> None:
    plan = optimised("SELECT a.s, b.y FROM a JOIN b ON a.x = b.x AND a.y < b.y")
    both = rendered(plan, Form.DELTA, ("a", "b"))
    assert both is not None
    assert not list(both.find_all(exp.Group))
