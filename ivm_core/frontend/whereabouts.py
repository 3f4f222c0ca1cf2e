"""Where in a view's text the construct stands that a node of its plan came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.positions import Positions
from ivm_core.frontend.refusals import called
from ivm_core.frontend.spelling import folded
from ivm_core.frontend.sql import parse_statement
from ivm_core.operators.calls import core

if TYPE_CHECKING:
    from collections.abc import Iterator


def place_of(sql: str, kind: str, name: str = "") -> str:
    """Line and column of the first construct of a kind; empty where it can't be told.

    `window`: without PARTITION BY. `limit`. `call`: of the function `name`. `table`: of that name.
    """
    tree = parse_statement(sql, "")
    positions = Positions(sql)
    for node, phrase in _candidates(tree, kind, name):
        found = positions.find(node, phrase)
        if found:
            return found
    return ""


def _candidates(tree: exp.Expr, kind: str, name: str) -> Iterator[tuple[exp.Expr, str]]:
    if kind == "window":
        windows = [each for each in tree.find_all(exp.Window) if not each.args.get("partition_by")]
        calls = [(each, core(each.this)) for each in windows if each.this]
        # what a WINDOW clause names is no call
        yield from ((each, called(call)) for each, call in calls if isinstance(call, exp.Func))
    elif kind == "limit":
        yield exp.Null(), "LIMIT"
    elif kind == "call":
        yield exp.Null(), name
    elif kind == "table":
        tables = tree.find_all(exp.Table)
        yield from ((each, "") for each in tables if folded(each.name) == folded(name))
