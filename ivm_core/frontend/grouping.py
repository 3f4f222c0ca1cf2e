"""GROUP BY and aggregates: what is projected below the aggregate, and what stands above it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.aggregates import FOLDED, text, with_placed
from ivm_core.frontend.spelling import folded
from ivm_core.operators.calls import WRAPPERS, core
from ivm_core.operators.sql import column as column_tree
from ivm_core.operators.sql import column_scalar, scalar_of, unchanged
from ivm_core.plan.nodes import (
    PRESENT,
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    Join,
    Node,
    Project,
    UnionAll,
)
from ivm_core.plan.partitioned import Grouped

if TYPE_CHECKING:
    from collections.abc import Callable

    from ivm_core.plan.scalar import Scalar

ALL_ROWS = "?all"
"""The key of the grouping by nothing, which has no row where there are no rows."""


@dataclass(frozen=True)
class GroupBy:
    """The keys of a GROUP BY, and which of them each grouping set has."""

    keys: list[exp.Expr]
    sets: list[list[int]] | None = None
    """Positions of keys; None for one grouping by all of them."""

    def sets_with(self, count: int) -> list[list[int]] | None:
        """The sets with as many more keys behind these, which all sets have."""
        more = list(range(len(self.keys), len(self.keys) + count))
        return None if self.sets is None else [[*each, *more] for each in self.sets]


def group_by(group: exp.Group | None) -> GroupBy:
    """The keys and grouping sets of a GROUP BY clause, keys in the order in which they appear."""
    if group is None:
        return GroupBy([])
    keys: dict[str, exp.Expr] = {}

    def place(tree: exp.Expr) -> int:
        keys.setdefault(text(tree), tree)
        return list(keys).index(text(tree))

    def places(tree: exp.Expr) -> list[int]:
        parts = tree.expressions if isinstance(tree, exp.Tuple) else [tree.unnest()]
        return [place(part) for part in parts]

    choices: list[list[list[int]]] = []
    for each in group.expressions:
        if _makes_sets(each):
            choices.append(_sets_of(each, places))
        elif not _is_empty(each):
            choices.append([[place(each)]])
    for key, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        if group.args.get(key):
            # GROUP BY a, b WITH ROLLUP
            listed = [part[0] for part in choices] or [
                places(part) for each in group.args[key] for part in each.expressions
            ]
            return GroupBy(list(keys.values()), _subsets(kind, listed))
    given = group.args.get("grouping_sets")
    if given:
        # GROUP BY a, b GROUPING SETS (…): the sets alone say which keys each has
        sets = [found for each in given for found in _sets_of(each, places)]
        return GroupBy(list(keys.values()), sets)
    if all(len(choice) == 1 for choice in choices) and not any(map(_makes_sets, group.expressions)):
        return GroupBy(list(keys.values()))
    sets = [
        list(dict.fromkeys(number for part in chosen for number in part))
        for chosen in product(*choices)
    ]
    return GroupBy(list(keys.values()), sets)


def _is_empty(key: exp.Expr) -> bool:
    """`GROUP BY ()` is one group of all rows."""
    return isinstance(key, exp.Tuple) and not key.expressions


def _makes_sets(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Rollup | exp.Cube | exp.GroupingSets)


def _sets_of(tree: exp.Expr, places: Callable[[exp.Expr], list[int]]) -> list[list[int]]:
    if not isinstance(tree, exp.GroupingSets):
        return _subsets(type(tree), [places(each) for each in tree.expressions])
    found: list[list[int]] = []
    for each in tree.expressions:
        found += _sets_of(each, places) if _makes_sets(each) else [places(each)]
    return found


def _subsets(kind: type[exp.Expr], parts: list[list[int]]) -> list[list[int]]:
    """What ROLLUP and CUBE stand for."""
    if kind is exp.Rollup:
        chosen = [parts[:count] for count in range(len(parts), -1, -1)]
    else:
        masks = product([True, False], repeat=len(parts))
        chosen = [[p for p, kept in zip(parts, mask, strict=True) if kept] for mask in masks]
    return [list(dict.fromkeys(place for part in each for place in part)) for each in chosen]


@dataclass
class _Calls:
    """The aggregates of one SELECT, by how they are maintained."""

    folded: dict[str | None, list[AggregateCall]] = field(default_factory=dict)
    """By the column of which each value counts once; None for those over all rows."""
    others: list[tuple[str, Scalar]] = field(default_factory=list)


def aggregated(
    node: Node,
    keys: list[exp.Expr],
    calls: list[exp.Expr],
    sets: list[list[int]] | None = None,
) -> tuple[Node, Callable[[exp.Expr], exp.Expr]]:
    """Aggregate over projected keys and arguments, and how expressions above refer to it."""
    outputs: dict[str, Scalar] = {}
    placed: dict[str, str] = {}

    def place(tree: exp.Expr, name: str) -> str:
        scalar = scalar_of(tree)
        name = scalar.column if scalar.is_column else placed.setdefault(scalar.sql, name)
        outputs.setdefault(name, scalar)
        return name

    replacements: dict[str, str] = {}
    key_names: list[str] = []
    for number, key in enumerate(keys, 1):
        name = place(key.unnest(), f"key_{number}")
        key_names.append(name)
        if not isinstance(key.unnest(), exp.Literal | exp.Null | exp.Boolean):
            replacements.setdefault(_in_any_order(key.unnest()), name)
    made = _Calls()
    for number, call in enumerate(calls, 1):
        name = f"aggregate_{number}"
        replacements[_in_any_order(call)] = name
        if not isinstance(core(call), tuple(FOLDED)):
            tree = with_placed(call, _numbered(place, f"argument_{number}"))
            for each in tree.find_all(exp.Column):
                outputs.setdefault(each.name, column_scalar(each.name))
            made.others.append((name, scalar_of(tree)))
            continue
        function, argument, is_distinct = _call_parts(call)
        column = None if argument is None else place(argument, f"argument_{number}")
        once = column if is_distinct else None
        made.folded.setdefault(once, []).append(AggregateCall(name, function, column))
    if not outputs:
        outputs[PRESENT] = scalar_of(exp.true())
    if sets is None:
        projected = Project(node, tuple(outputs.items()))
        aggregate = _joined_sets(projected, list(dict.fromkeys(key_names)), made)
    else:
        outputs[ALL_ROWS] = scalar_of(exp.true())
        projected = Project(node, tuple(outputs.items()))
        aggregate = _union_of_sets(projected, key_names, sets, made)

    def replace(tree: exp.Expr) -> exp.Expr:
        def one(part: exp.Expr) -> exp.Expr:
            name = None if _is_of_window(part) else replacements.get(_in_any_order(part))
            return part if name is None else column_tree(name)

        if sets is not None:
            tree = tree.transform(lambda part: _grouping(part, keys, key_names))
        return tree.transform(one)

    return aggregate, replace


def _in_any_order(tree: exp.Expr) -> str:
    """The text of an expression, the same for `a + b` and `b + a`."""
    if tree.find(exp.Add, exp.Mul) is None:
        return text(tree)
    tree = tree.copy()
    for node in reversed(list(tree.find_all(exp.Add, exp.Mul))):
        sides = sorted((node.left.unnest(), node.right.unnest()), key=text)
        for key, side in zip(("this", "expression"), sides, strict=True):
            # in parentheses, for a text without them may be that of another expression
            node.set(key, exp.paren(side.copy()))
    return text(tree)


def _is_of_window(part: exp.Expr) -> bool:
    """Whether an expression is the function of a window, and no aggregate over groups."""
    parent = part.parent
    while isinstance(parent, WRAPPERS):
        part, parent = parent, parent.parent
    return isinstance(parent, exp.Window) and parent.this is part


def _numbered(place: Callable[[exp.Expr, str], str], prefix: str) -> Callable[[exp.Expr], str]:
    count = 0

    def one(tree: exp.Expr) -> str:
        nonlocal count
        count += 1
        return place(tree, f"{prefix}_{count}")

    return one


# --- grouping sets ---


def _union_of_sets(node: Node, keys: list[str], sets: list[list[int]], made: _Calls) -> Node:
    """One grouping a set, with NULL for the keys that it lacks and a mark for each."""
    branches: list[Node] = []
    values = [name for calls in made.folded.values() for name in (call.name for call in calls)]
    values += [name for name, _ in made.others]
    for each in sets:
        present = list(dict.fromkeys(keys[place] for place in each))
        # GROUPING SETS (()) alone is the grouping by nothing that has a row for no rows
        is_global = not keys and len(sets) == 1
        part = _joined_sets(node, present if is_global else present or [ALL_ROWS], made)
        outputs: list[tuple[str, Scalar]] = []
        for key in dict.fromkeys(keys):
            there = key in present
            outputs.append((key, column_scalar(key) if there else scalar_of(exp.null())))
            mark = exp.cast(exp.Literal.number(0 if there else 1), "TINYINT", dialect="spark")
            outputs.append((_mark(key), scalar_of(mark)))
        branches.append(Project(part, (*outputs, *unchanged(values))))
    return branches[0] if len(branches) == 1 else UnionAll(tuple(branches))


def _mark(key: str) -> str:
    return f"?grouping.{key}"


def _grouping(part: exp.Expr, keys: list[exp.Expr], names: list[str]) -> exp.Expr:
    """GROUPING(a) and GROUPING_ID(a, b) over the marks of their keys."""
    name = folded(part.name) if isinstance(part, exp.Anonymous) else ""
    if name not in ("grouping", "grouping_id"):
        return part
    known = {text(key.unnest()): column for key, column in zip(keys, names, strict=True)}
    asked = [known.get(text(each.unnest())) for each in part.expressions]
    if name == "grouping":
        return part if not asked or asked[0] is None else column_tree(_mark(asked[0]))
    marks = [each for each in asked or dict.fromkeys(names) if each is not None]
    bits: exp.Expr = exp.Literal.number(0)
    for each in marks:
        doubled = exp.Mul(this=exp.paren(bits), expression=exp.Literal.number(2))
        bits = exp.Add(this=doubled, expression=column_tree(_mark(each)))
    return exp.paren(exp.cast(exp.paren(bits), "BIGINT", dialect="spark"))


# --- one grouping ---


def _joined_sets(node: Node, keys: list[str], made: _Calls) -> Node:
    """One aggregate over all rows, one for each argument that counts once, joined by the keys."""
    parts: list[Node] = []
    names = tuple((name, name) for name in keys)
    for column, calls in made.folded.items():
        source: Node = node
        if column is not None:
            wanted = dict.fromkeys([*keys, column])
            source = Distinct(Project(node, unchanged(wanted)))
        parts.append(Aggregate(source, names, tuple(calls)))
    if made.others:
        parts.append(Grouped(node, tuple(keys), tuple(made.others)))
    if not parts:
        return Aggregate(node, names, ())
    if len(parts) == 1:
        return parts[0]
    columns = [column for part in parts for column in part.columns if column not in keys]
    renamed: list[Node] = [parts[0]]
    conditions = []
    for number, part in enumerate(parts[1:], 2):
        others = {key: f"?{number}.{key}" for key in keys}
        outputs = [(others.get(name, name), column_scalar(name)) for name in part.columns]
        renamed.append(Project(part, tuple(outputs)))
        conditions += [
            exp.NullSafeEQ(this=column_tree(key), expression=column_tree(others[key]))
            for key in keys
        ]
    joined: Node = Join(tuple(renamed), ())
    for condition in conditions:
        joined = Filter(joined, scalar_of(condition))
    return Project(joined, unchanged([*keys, *columns]))


def _call_parts(call: exp.Expr) -> tuple[str, exp.Expr | None, bool]:
    """Function, argument, DISTINCT; a FILTER clause becomes a CASE around the argument."""
    where = None
    if isinstance(call, exp.Filter):
        where = call.expression.this
        call = call.this
    function = FOLDED[type(call)]
    argument: exp.Expr | None = call.this
    is_distinct = isinstance(call.this, exp.Distinct)
    if isinstance(call.this, exp.Distinct):
        argument = _once(call.this.expressions)
        is_distinct = function not in ("MIN", "MAX")
    elif function == "COUNT":
        argument = _counted(call)
    if where is not None:
        argument = exp.case().when(where, exp.Literal.number(1) if argument is None else argument)
    if argument is None:
        return "COUNT_STAR", None, False
    return function, argument, is_distinct


def _once(parts: list[exp.Expr]) -> exp.Expr:
    """What COUNT(DISTINCT a, b) counts: pairs without a NULL."""
    if len(parts) == 1:
        return parts[0]
    fields = [exp.alias_(part.copy(), f"c{i}") for i, part in enumerate(parts)]
    present = exp.and_(*[part.copy().is_(exp.null()).not_() for part in parts])
    return exp.case().when(present, exp.Anonymous(this="STRUCT", expressions=fields))


def _counted(call: exp.Expr) -> exp.Expr | None:
    """What COUNT counts unless it is NULL; None for every row."""
    parts: list[exp.Expr] = [call.this, *(call.args.get("expressions") or ())]
    if isinstance(call.this, exp.Star) or all(isinstance(p, exp.Literal) for p in parts):
        return None
    if len(parts) == 1 and not isinstance(call.this, exp.Null):
        return parts[0]
    present = exp.and_(*[part.is_(exp.null()).not_() for part in parts])
    return exp.case().when(present, exp.Literal.number(1))
