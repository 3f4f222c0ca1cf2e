"""Columns that can't be kept are computed where they are used.

    SELECT v:a FROM (SELECT PARSE_JSON(x) AS v FROM t)
    SELECT PARSE_JSON(x):a FROM (SELECT x FROM t)

A column of a derived table may be a VARIANT, an INTERVAL or an untyped NULL, which no row of a node
can have. Such an expression is lifted through filters, joins, generators, window functions
and LIMIT to the expressions that read it; what it reads goes with it. Where it would be compared
with other rows (DISTINCT, GROUP BY, a set operation) it stays, and is refused by its type; but for
INTERVALs, which an aggregate keeps as numbers (`compile.intervals`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.compile.intervals import distinct_numbers, over_numbers
from ivm_core.operators.sql import column, column_scalar, scalar_of, tree_of, unchanged
from ivm_core.plan.nodes import Aggregate, Distinct, Filter, Generate, Join, Match, Node, Project
from ivm_core.plan.partitioned import Top, Windowed
from ivm_core.plan.rewriting import with_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ivm_core.plan.scalar import Scalar

    Lifted = tuple[Node, dict[str, exp.Expr]]

SUSPECTS = (
    "map",
    "variant",
    "json",
    "interval",
    "time",
    "collat",
    "transform_",
    "parse",
    "entries",
)
"""Parts of the names of functions that may give what can't be kept."""
SUSPECT_TREES = (exp.Sub, exp.Interval, exp.Collate)


def lift_unstorable(
    plan: Node, is_storable: Callable[[Node], bool], interval: Callable[[Node], str]
) -> Node:
    """The plan with such columns lifted.

    `is_storable` says whether a node can be kept, `interval` which INTERVAL its one column is.
    """
    return _Lifting(is_storable, interval).whole(plan)


class _Lifting:
    def __init__(
        self, is_storable: Callable[[Node], bool], interval: Callable[[Node], str]
    ) -> None:
        self._is_storable = is_storable
        self._interval = interval
        self._done: dict[int, tuple[Node, Lifted]] = {}
        self._restored: dict[int, Node] = {}

    def whole(self, node: Node) -> Node:
        """The node with all of its columns."""
        new, lifted = self.of(node)
        if not lifted:
            return new
        if id(node) not in self._restored:
            outputs = [
                (name, scalar_of(lifted[name].copy()) if name in lifted else column_scalar(name))
                for name in node.columns
            ]
            self._restored[id(node)] = Project(new, tuple(outputs))
        return self._restored[id(node)]

    def of(self, node: Node) -> Lifted:
        """The node without columns that can't be kept, and these over the columns that it has."""
        if id(node) not in self._done:
            self._done[id(node)] = (node, self._of(node))
        return self._done[id(node)][1]

    def _of(self, node: Node) -> Lifted:
        if isinstance(node, Project):
            return self._project(node)
        if isinstance(node, Match):
            return self._match(node)
        if isinstance(node, Aggregate):
            return self._aggregate(node)
        if isinstance(node, Distinct):
            return self._distinct(node)
        if not isinstance(node, Filter | Join | Generate | Windowed | Top) or self._divides(node):
            return self._same(node, tuple(self.whole(child) for child in node.inputs)), {}
        inputs: list[Node] = []
        lifted: dict[str, exp.Expr] = {}
        for child in node.inputs:
            new, found = self.of(child)
            inputs.append(new)
            lifted |= found
        if not lifted:
            return self._same(node, tuple(inputs)), {}
        if isinstance(node, Filter):
            return Filter(inputs[0], _over(node.predicate, lifted)), lifted
        if isinstance(node, Join):
            conditions = tuple(_over(each, lifted) for each in node.conditions)
            return Join(tuple(inputs), conditions), lifted
        if isinstance(node, Generate):
            over = replace(node, input=inputs[0], generator=_over(node.generator, lifted))
            return over, lifted
        if isinstance(node, Top):
            order = tuple(_over(each, lifted) for each in node.order)
            return replace(node, input=inputs[0], order=order), lifted
        calls = tuple((name, _over(each, lifted)) for name, each in node.calls)
        return replace(node, input=inputs[0], calls=calls), lifted

    def _divides(self, node: Node) -> bool:
        """Whether rows go to parts by such a column."""
        if not isinstance(node, Windowed | Top):
            return False
        return not set(node.partition).isdisjoint(self.of(node.input)[1])

    @staticmethod
    def _same(node: Node, inputs: tuple[Node, ...]) -> Node:
        is_same = all(new is old for new, old in zip(inputs, node.inputs, strict=True))
        return node if is_same else with_inputs(node, inputs)

    def _project(self, node: Project) -> Lifted:
        below, found = self.of(node.input)
        outputs = [(name, _over(scalar, found)) for name, scalar in node.outputs]
        if not any(_is_suspect(scalar) for _, scalar in outputs):
            return self._same(node, (below,)) if not found else Project(below, tuple(outputs)), {}
        lifted: dict[str, exp.Expr] = {}
        kept: list[tuple[str, Scalar]] = []
        for name, scalar in outputs:
            alone = Project(below, ((name, scalar),))
            if not _is_suspect(scalar) or self._is_storable(alone):
                kept.append((name, scalar))
                continue
            names = {read: f"{name}?{place}" for place, read in enumerate(sorted(scalar.columns))}
            kept += [(hidden, column_scalar(read)) for read, hidden in names.items()]
            lifted[name] = _renamed(tree_of(scalar), names)
        if not lifted:
            return self._same(node, (below,)) if not found else Project(below, tuple(outputs)), {}
        return Project(below, tuple(kept or unchanged(below.columns[:1]))), lifted

    def _aggregate(self, node: Aggregate) -> Lifted:
        """COUNT asks only whether a value is there; INTERVALs are numbers."""
        below, found = self.of(node.input)
        wanted = {column for _, column in node.keys}
        wanted |= {call.argument or "" for call in node.calls if call.function != "COUNT"}
        if not found:
            return self._same(node, (below,)), {}
        if not wanted.isdisjoint(found):
            kinds = self._intervals(below, found, wanted)
            if kinds is None:
                return self._same(node, (self.whole(node.input),)), {}
            numbered = over_numbers(node, below, found, kinds)
            inner, others = self._aggregate(numbered.node)
            return inner, others | numbered.lifted
        outputs = list(unchanged(name for name in node.input.columns if name not in found))
        for name, tree in found.items():
            is_there = exp.paren(tree.copy()).is_(exp.null()).not_()
            outputs.append((name, scalar_of(exp.case().when(is_there, exp.true()))))
        return replace(node, input=Project(below, tuple(outputs))), {}

    def _distinct(self, node: Distinct) -> Lifted:
        below, found = self.of(node.input)
        kinds = self._intervals(below, found, found.keys()) if found else None
        if kinds is None:
            return self._same(node, (self.whole(node.input),)), {}
        return distinct_numbers(node, below, found, kinds)

    def _intervals(
        self, below: Node, found: Mapping[str, exp.Expr], wanted: Collection[str]
    ) -> dict[str, str] | None:
        """The INTERVALs that the wanted columns are; None if one of them is something else."""
        kinds = {
            name: self._interval(Project(below, ((name, scalar_of(found[name].copy())),)))
            for name in found
            if name in wanted
        }
        return kinds if all(kinds.values()) else None

    def _match(self, node: Match) -> Lifted:
        left, found = self.of(node.left)
        right, theirs = self.of(node.right)
        if not found and not theirs:
            return self._same(node, (left, right)), {}
        conditions = tuple(_over(each, found | theirs) for each in node.conditions)
        lifted = dict(found)
        if theirs and node.kind == "LEFT":
            there = f"{next(iter(theirs))}?there"
            right = Project(right, (*unchanged(right.columns), (there, scalar_of(exp.true()))))
            for name, tree in theirs.items():
                is_there = column(there).is_(exp.null()).not_()
                lifted[name] = exp.paren(exp.case().when(is_there, tree.copy()))
        return Match(left, right, node.kind, conditions), lifted


def _is_suspect(scalar: Scalar) -> bool:
    """Whether an expression may be what can't be kept."""
    if scalar.is_column:
        return False
    tree = tree_of(scalar)
    if isinstance(tree.unnest(), exp.Null):
        return True
    for part in tree.walk():
        if isinstance(part, SUSPECT_TREES):
            return True
        name = part.name.lower() if isinstance(part, exp.Anonymous) else ""
        if isinstance(part, exp.Cast):
            name = part.to.sql(dialect="spark").lower()
        if any(each in name for each in SUSPECTS):
            return True
    return False


def _over(scalar: Scalar, lifted: Mapping[str, exp.Expr]) -> Scalar:
    """The expression with lifted columns as what they are."""
    if scalar.columns.isdisjoint(lifted):
        return scalar

    def one(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and part.name in lifted:
            return exp.paren(lifted[part.name].copy())
        return part

    tree = tree_of(scalar)
    if isinstance(tree.unnest(), exp.Column):
        return scalar_of(lifted[tree.unnest().name].copy())
    return scalar_of(tree.transform(one))


def _renamed(tree: exp.Expr, names: Mapping[str, str]) -> exp.Expr:
    return tree.transform(
        lambda part: column(names[part.name]) if isinstance(part, exp.Column) else part
    )
