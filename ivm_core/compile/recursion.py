"""From the plan of a view that reads itself to its rules, or the reason why it can't be.

A rule is a tree that grows when what it reads of the component grows: joins, filters, projections,
semi joins, and anti joins with what is below the component. What is below and keeps something
(aggregates, DISTINCT, window functions, LIMIT, outer joins) becomes a step of its own, which is
maintained as in any view; the rule reads its rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.compile.expansion import expand
from ivm_core.compile.rules import optimise
from ivm_core.compile.rules.merge_projects import merge_projects
from ivm_core.compile.stages import Stage, StageCutting
from ivm_core.compile.verdicts import label_of
from ivm_core.model.errors import Unsupported
from ivm_core.operators.sql import column_scalar, scalar_of, tree_of, unchanged
from ivm_core.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Generate,
    Join,
    Kept,
    Match,
    Negated,
    Node,
    Project,
    Repeated,
    Scan,
    SetOperation,
    UnionAll,
)
from ivm_core.plan.partitioned import STATEFUL
from ivm_core.plan.recursion import BAG, MAX, MIN, SET, Rules
from ivm_core.plan.rewriting import rewrite, with_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ivm_core.compile.type_book import TypeBook
    from ivm_core.model.schema import Field, Schema
    from ivm_core.model.types import DataType
    from ivm_core.plan.scalar import Scalar

STRATIFY = "read a view that is complete before the recursion begins: one outside of the component"

NOT_COUNTED = (
    "with UNION ALL every row counts as often as it is derived; beside rows of the recursion that "
    "is known for a few matches by equal columns, and for no others"
)
ASK_BELOW = (
    "ask it of what the recursion is joined with, in a subquery of its own: "
    "JOIN (SELECT … FROM e WHERE e.b NOT IN (…)) e; or use UNION"
)


@dataclass(frozen=True)
class Recursive:
    """The rules of a view, and the steps below that they read."""

    rules: Rules
    stages: tuple[Stage, ...]


def with_declared_columns(
    plan: Node, declared: Schema, catalog: Mapping[str, Schema], types: TypeBook
) -> Node:
    """The plan with the names and types that the view is declared with."""
    if isinstance(plan, Distinct):
        # below it: rows that differ only in what a cast drops are one row
        return Distinct(with_declared_columns(plan.input, declared, catalog, types))
    found = types.types(plan, catalog)
    wanted = dict(zip(plan.columns, declared, strict=True))
    if isinstance(plan, Project) and isinstance(plan.input, Aggregate):
        casts = {plan.source_of(name): each for name, each in wanted.items()}
        plan = replace(plan, input=_with_cast_input(plan.input, casts, catalog, types))
        found = {name: each.type for name, each in wanted.items()}
    outputs = []
    for column, each in wanted.items():
        scalar = column_scalar(column)
        outputs.append((each.name, scalar if found[column] == each.type else _cast(scalar, each)))
    is_same = all(name == column for (name, _), column in zip(outputs, plan.columns, strict=True))
    if is_same and all(scalar.is_column for _, scalar in outputs):
        return plan
    return merge_projects(Project(plan, tuple(outputs)), catalog)


def _with_cast_input(
    node: Aggregate,
    wanted: Mapping[str | None, Field],
    catalog: Mapping[str, Schema],
    types: TypeBook,
) -> Aggregate:
    """An extreme of what is cast already: it can be folded, a cast of an extreme can't."""
    found = types.types(node.input, catalog)
    given = dict(node.keys) | {call.name: call.argument or "" for call in node.calls}
    casts = {given[name]: each for name, each in wanted.items() if name in given}
    outputs = [
        (
            column,
            _cast(column_scalar(column), casts[column])
            if column in casts and found[column] != casts[column].type
            else column_scalar(column),
        )
        for column in node.input.columns
    ]
    return replace(node, input=merge_projects(Project(node.input, tuple(outputs)), catalog))


def _cast(scalar: Scalar, wanted: Field) -> Scalar:
    return scalar_of(exp.cast(tree_of(scalar), wanted.type.ddl, dialect="spark"))


def recursive(
    view: str,
    plan: Node,
    component: tuple[str, ...],
    catalog: Mapping[str, Schema],
    types_of: Callable[[Node], Mapping[str, DataType]],
    inner_name: str = "",
) -> Recursive:
    """The rules of a view's plan; `Unsupported` for what has no least fixpoint."""
    finding = _Finding(view, frozenset(component), catalog, types_of, inner_name or view)
    rules = finding.rules(plan, component)
    return Recursive(rules, tuple(finding.cutting.stages))


class _Finding:
    """The rules of one view."""

    def __init__(
        self,
        view: str,
        members: frozenset[str],
        catalog: Mapping[str, Schema],
        types_of: Callable[[Node], Mapping[str, DataType]],
        inner_name: str,
    ) -> None:
        self._view = view
        self._members = members
        self._catalog = catalog
        self._types_of = types_of
        self.cutting = StageCutting(inner_name)
        self._fold = SET

    def rules(self, plan: Node, component: tuple[str, ...]) -> Rules:
        """What stands on top says how rows are put together."""
        columns = plan.columns
        value = ""
        if isinstance(plan, Distinct):
            body = plan.input
        else:
            body, self._fold, value = self._folded(plan)
        branches = [self._rule(each) for each in self._branches(body, columns)]
        return Rules(self._view, component, self._fold, tuple(branches), value)

    def _folded(self, plan: Node) -> tuple[Node, str, str]:
        """The input of a MIN or MAX on top, which, and of which column; a bag for other plans."""
        inner, names = plan, {name: name for name in plan.columns}
        if isinstance(plan, Project) and isinstance(plan.input, Aggregate):
            sources = {name: plan.source_of(name) for name in plan.columns}
            if any(source is None for source in sources.values()):
                self._refuse(
                    plan,
                    "what it computes from the extreme would be another value in every iteration",
                    "compute it in the branches below, or in a view over this one",
                )
            inner, names = plan.input, {name: source or "" for name, source in sources.items()}
        if not isinstance(inner, Aggregate):
            return plan, BAG, ""
        functions = [call.function for call in inner.calls]
        given = {call.name: call for call in inner.calls}
        if len(functions) != 1 or functions[0] not in (MIN, MAX):
            self._refuse(
                inner,
                f"{', '.join(functions) or 'a grouping'} within recursion has no least fixpoint: a "
                "row that comes later changes what was counted or summed before, and that changes "
                "which rows come; MIN and MAX, one to a view, only ever improve",
                "keep the recursion's rows apart, and aggregate in a view over it",
            )
        keys = dict(inner.keys)
        value = next((name for name, source in names.items() if source in given), "")
        if sorted(names.values()) != sorted(inner.columns):
            self._refuse(
                inner,
                "every key of GROUP BY and the extreme have to be columns of the view, once each",
                "select the keys and the extreme, and nothing else",
            )
        argument = inner.calls[0].argument or ""
        outputs = tuple(
            (name, column_scalar(argument if source in given else keys[source]))
            for name, source in names.items()
        )
        return Project(inner.input, outputs), functions[0], value

    def _branches(self, node: Node, columns: tuple[str, ...]) -> list[Node]:
        """The rules of a union, each with the view's columns."""
        if isinstance(node, Distinct) and self._fold != BAG:
            return self._branches(node.input, columns)
        if isinstance(node, UnionAll):
            return [each for branch in node.branches for each in self._branches(branch, columns)]
        if isinstance(node, Project | Filter) and self._is_union(node.input):
            below = self._branches(node.input, node.input.columns)
            above = [with_inputs(node, (each,)) for each in below]
            return [_named(each, columns, self._catalog) for each in above]
        return [_named(node, columns, self._catalog)]

    def _is_union(self, node: Node) -> bool:
        if isinstance(node, Project | Filter):
            return self._is_union(node.input)
        if isinstance(node, Distinct):
            return self._fold != BAG and self._is_union(node.input)
        return isinstance(node, UnionAll)

    def _rule(self, branch: Node) -> Node:
        found = self._linear(branch) if self._fold == BAG else self._growing(branch)
        return rewrite(found, self._with_names)

    def _with_names(self, node: Node) -> Node:
        """A union whose branches have its names: each of them can stand for it."""
        if not isinstance(node, UnionAll):
            return node
        return UnionAll(tuple(_named(each, node.columns, self._catalog) for each in node.branches))

    def _growing(self, node: Node) -> Node:
        """A tree whose rows grow with those of the component, over steps below it."""
        if not node.relations & self._members:
            return self._below(node)
        if isinstance(node, Scan):
            return node
        if isinstance(node, Distinct):
            return self._growing(node.input)
        if isinstance(node, Match):
            return self._match(node)
        if isinstance(node, Filter | Project | Join | UnionAll | Generate):
            return with_inputs(node, tuple(self._growing(each) for each in node.inputs))
        return self._refuse(node, _why_not(node), STRATIFY)

    def _match(self, node: Match) -> Node:
        left = self._growing(node.left)
        if node.kind == "SEMI":
            return Match(left, self._growing(node.right), node.kind, node.conditions)
        if node.right.relations & self._members:
            inside = ", ".join(sorted(node.right.relations & self._members))
            self._refuse(
                node,
                f"{inside} is in the same recursion: which of its rows are missing is known only "
                "when it is complete, and it is complete only when this is known",
                STRATIFY,
            )
        right = self._below(node.right)
        unmatched = Match(left, right, "ANTI", node.conditions)
        if node.kind == "ANTI":
            return unmatched
        nulls = self._types_of(node.right)
        padding = tuple(
            (name, scalar_of(exp.cast(exp.null(), nulls[name].ddl, dialect="spark")))
            for name in node.right.columns
        )
        pairs: Node = Join((left, right), node.conditions)
        return UnionAll((pairs, Project(unmatched, (*unchanged(left.columns), *padding))))

    def _below(self, node: Node) -> Node:
        """What the component doesn't reach, with all that keeps something as steps."""
        keeping = (*STATEFUL, Match, SetOperation)
        if not any(isinstance(each, keeping) for each in node.walk()):
            return node
        expanded = optimise(expand(node, self._types_of), self._catalog)
        found = self.cutting.descend(expanded, needs_old=True)
        if any(isinstance(each, Negated | Repeated) for each in found.walk()):
            # only sums of it are rows, so the sums are kept
            return self.cutting.descend(Kept(expanded), needs_old=True)
        return found

    def _linear(self, branch: Node) -> Node:
        """A rule of UNION ALL: rows of the component are read in one place, and counted."""
        expanded = optimise(expand(branch, self._types_of), self._catalog)
        places = _places(expanded, self._members)
        for node in expanded.walk():
            if isinstance(node, STATEFUL) and node.relations & self._members:
                match = next((each for each in branch.walk() if isinstance(each, Match)), None)
                if match is not None and not isinstance(node, Aggregate):
                    self._refuse(match, NOT_COUNTED, ASK_BELOW)
                self._refuse(node, _why_not(node), STRATIFY)
        if places > 1:
            self._refuse(
                branch,
                f"with UNION ALL every row counts as often as it is derived, and {places} reads of "
                "the recursion in one branch multiply these numbers",
                "use UNION, or read the recursion once in every branch",
            )
        return self.cutting.descend(expanded, needs_old=True)

    def _refuse(self, node: Node, reason: str, rewrite: str) -> Node:
        names = ", ".join(sorted(self._members))
        raise Unsupported(
            f"{label_of(node)} in the recursion of {names}",
            position=f"view {self._view}",
            reason=reason,
            rewrite=rewrite,
        )


def _named(node: Node, columns: tuple[str, ...], catalog: Mapping[str, Schema]) -> Node:
    """A branch under the names of the union."""
    if node.columns == columns:
        return node
    pairs = zip(columns, node.columns, strict=True)
    outputs = tuple((name, column_scalar(column)) for name, column in pairs)
    return merge_projects(Project(node, outputs), catalog)


def _places(node: Node, members: frozenset[str]) -> int:
    """How often a tree reads views of the component."""
    if isinstance(node, Scan):
        return int(node.relation in members)
    if isinstance(node, UnionAll):
        return max(_places(each, members) for each in node.inputs)
    return sum(_places(each, members) for each in node.inputs)


def _why_not(node: Node) -> str:
    if isinstance(node, Aggregate):
        return (
            "an aggregate of rows that are still being derived is not known before all of them "
            "are; only MIN or MAX on top of a view, over a UNION ALL of its branches, can be folded"
        )
    return (
        "its rows are known only when all rows that it reads are, and it is read by these in turn"
    )
