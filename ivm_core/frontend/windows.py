"""Window functions: what is computed below them, which node they belong to, what stands above.

Functions over the same partition are one node. An aggregate over the whole partition, without an
order, is a join with that aggregate: so its sums are folded, and as exact as all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.aggregates import FOLDED, text, with_placed
from ivm_core.frontend.grouping import aggregated
from ivm_core.frontend.spelling import folded
from ivm_core.model.errors import SqlError
from ivm_core.operators.sql import column as column_tree
from ivm_core.operators.sql import column_scalar, scalar_of, unchanged
from ivm_core.plan.nodes import Filter, Join, Node, Project
from ivm_core.plan.partitioned import Windowed

if TYPE_CHECKING:
    from collections.abc import Callable

    from ivm_core.plan.scalar import Scalar


def with_named_windows(tree: exp.Expr, where: str) -> exp.Expr:
    """The tree with `OVER w` spelled out; WINDOW clauses are gone."""
    for select in list(tree.find_all(exp.Select)):
        named = {folded(each.this.name): each for each in select.args.get("windows") or ()}
        select.set("windows", None)
        for window in list(select.find_all(exp.Window)):
            alias = window.args.get("alias")
            if alias is None or window.find_ancestor(exp.Select) is not select:
                continue
            given = named.get(folded(alias.name))
            if given is None:
                raise SqlError(
                    f"no window is called {alias.name}",
                    where=where,
                    fix=f"add WINDOW {alias.name} AS (…), or write OVER (…)",
                )
            _take_over(window, _resolved(given, named))
            window.set("alias", None)
    return tree


def _resolved(window: exp.Window, named: dict[str, exp.Window]) -> exp.Window:
    """A named window that may begin with the name of another."""
    alias = window.args.get("alias")
    base = None if alias is None else named.get(folded(alias.name))
    if base is None or base is window:
        return window
    window = window.copy()
    _take_over(window, _resolved(base, named))
    return window


def _take_over(window: exp.Window, given: exp.Window) -> None:
    for key in ("partition_by", "order", "spec"):
        part = given.args.get(key)
        if part and not window.args.get(key):
            window.set(key, [e.copy() for e in part] if isinstance(part, list) else part.copy())


def window_calls(trees: list[exp.Expr]) -> list[exp.Window]:
    """The window functions in expressions, equal ones once."""
    found: dict[str, exp.Window] = {}
    for tree in trees:
        for window in tree.find_all(exp.Window):
            found.setdefault(text(window), window)
    return list(found.values())


def windowed(
    node: Node, calls: list[exp.Window], within: tuple[str, ...] = ()
) -> tuple[Node, Callable[[exp.Expr], exp.Expr]]:
    """The node with a column for each window function, and how expressions above refer to them.

    `within` are columns that every partition has one value of.
    """
    outputs: dict[str, Scalar] = dict(unchanged(node.columns))
    placed: dict[str, str] = {}

    def place(tree: exp.Expr) -> str:
        name = placed.setdefault(text(tree), f"?window_input_{len(placed) + 1}")
        outputs.setdefault(name, scalar_of(tree))
        return name

    def key_of(tree: exp.Expr) -> str:
        bare = tree.unnest()
        return bare.name if isinstance(bare, exp.Column) else place(bare)

    names: dict[str, str] = {}
    nodes: dict[tuple[str, ...], list[tuple[str, exp.Window]]] = {}
    whole: dict[tuple[str, ...], list[tuple[str, exp.Expr]]] = {}
    for number, window in enumerate(calls, 1):
        name = f"?window_{number}"
        names[text(window)] = name
        parts = window.args.get("partition_by") or ()
        keys = tuple(sorted({*within, *(key_of(each) for each in parts)}))
        if _is_of_whole_partition(window):
            whole.setdefault(keys, []).append((name, window.this))
        else:
            nodes.setdefault(keys, []).append((name, _over_columns(window, keys, place)))
    node = Project(node, tuple(outputs.items()))
    below = node
    for keys, functions in whole.items():
        node = _with_totals(node, below, keys, functions)
    for keys, windows in nodes.items():
        trees = [(name, scalar_of(window)) for name, window in windows]
        node = Windowed(node, keys, tuple(trees))

    def replace(tree: exp.Expr) -> exp.Expr:
        def one(part: exp.Expr) -> exp.Expr:
            name = names.get(text(part)) if isinstance(part, exp.Window) else None
            return part if name is None else column_tree(name)

        return tree.transform(one)

    return node, replace


def _is_of_whole_partition(window: exp.Window) -> bool:
    is_folded = isinstance(window.this, tuple(FOLDED))
    return is_folded and not window.args.get("order") and not window.args.get("spec")


def _over_columns(
    window: exp.Window, keys: tuple[str, ...], place: Callable[[exp.Expr], str]
) -> exp.Window:
    """The call over columns of the node below."""
    window = window.copy()
    window.set("this", with_placed(window.this, place))
    window.set("partition_by", [column_tree(key) for key in keys])
    order = window.args.get("order")
    for each in order.expressions if order is not None else ():
        bare = each.this.unnest()
        if bare.find(exp.Column) and not isinstance(bare, exp.Column):
            each.set("this", column_tree(place(bare)))
    return window


def _with_totals(
    node: Node, below: Node, keys: tuple[str, ...], functions: list[tuple[str, exp.Expr]]
) -> Node:
    """Each row beside the aggregates of its partition."""
    calls = list({text(call): call for _, call in functions}.values())
    totals, replace = aggregated(below, [column_tree(key) for key in keys], calls)
    renamed = {key: f"{functions[0][0]}.{key}" for key in keys}
    outputs = [(renamed[key], column_scalar(key)) for key in keys]
    outputs += [(name, scalar_of(replace(call))) for name, call in functions]
    joined: Node = Join((node, Project(totals, tuple(outputs))), ())
    for key in keys:
        same = exp.NullSafeEQ(this=column_tree(key), expression=column_tree(renamed[key]))
        joined = Filter(joined, scalar_of(same))
    return Project(joined, unchanged([*node.columns, *(name for name, _ in functions)]))
