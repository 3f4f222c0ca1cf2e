"""What a plan means, apart from how it was written: the same text for plans that differ in form.

Aliases of tables, names of inner columns and projections that only rename are left out; the inputs
of a join, its conditions and those of a WHERE are put in an order of their own. Two plans that
differ in nothing else give the same rows. Plans with different texts may still mean the same:
nothing is concluded from that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.model.errors import InternalError
from ivm_core.operators.sql import equality_sides, is_null_safe, renamed
from ivm_core.plan.nodes import (
    Aggregate,
    Constant,
    Distinct,
    Filter,
    Generate,
    Join,
    Listed,
    Match,
    Node,
    Project,
    Scan,
    SetOperation,
    UnionAll,
)
from ivm_core.plan.partitioned import Grouped, Top, Windowed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ivm_core.plan.scalar import Scalar

Form = tuple[str, dict[str, str]]
"""A node's text, and by what each of its columns is known in it."""


def meaning(plan: Node) -> str:
    """The plan's text without what is only form."""
    return _listed(_Meanings().of(plan), plan.columns)


class _Meanings:
    """Texts of nodes, each made once."""

    def __init__(self) -> None:
        self._known: dict[int, Form] = {}

    def of(self, node: Node) -> Form:
        if id(node) not in self._known:
            self._known[id(node)] = self._form(node)
        return self._known[id(node)]

    def _form(self, node: Node) -> Form:
        if isinstance(node, Scan):
            fields = dict(zip(node.columns, node.fields, strict=True))
            return f"scan({node.relation}: {', '.join(sorted(node.fields))})", fields
        if isinstance(node, Constant):
            return node.text, {node.columns[0]: "one"}
        if isinstance(node, Listed):
            return f"rows({node.values})", _numbered(node.columns)
        if isinstance(node, Join):
            return self._join(node)
        if isinstance(node, Match):
            return self._match(node)
        if isinstance(node, UnionAll | SetOperation):
            sides = [_listed(self.of(each), each.columns) for each in node.inputs]
            kind = node.kind.lower() if isinstance(node, SetOperation) else "union"
            return f"{kind}({'; '.join(sides)})", _numbered(node.columns)
        return self._over_one(node)

    def _over_one(self, node: Node) -> Form:
        """Nodes with one input."""
        if isinstance(node, Filter):
            return self._filter(node)
        below, names = self.of(node.inputs[0])
        if isinstance(node, Project) and all(scalar.is_column for _, scalar in node.outputs):
            return below, {name: names[scalar.column] for name, scalar in node.outputs}
        if isinstance(node, Project):
            outputs = ", ".join(_text(scalar, names) for _, scalar in node.outputs)
            return f"project({outputs}; {below})", _numbered(node.columns)
        if isinstance(node, Distinct):
            return f"distinct({', '.join(sorted(names.values()))}; {below})", names
        if isinstance(node, Aggregate):
            keys = ", ".join(names[column] for _, column in node.keys)
            calls = ", ".join(
                f"{call.function}({'' if call.argument is None else names[call.argument]})"
                for call in node.calls
            )
            return f"aggregate({keys}; {calls}; {below})", _numbered(node.columns)
        if isinstance(node, Generate):
            outer = "outer " if node.is_outer else ""
            text = f"generate({outer}{_text(node.generator, names)}; {below})"
            return text, _within("in", names) | _numbered(node.names)
        if isinstance(node, Windowed | Grouped | Top):
            return self._parts(node)
        raise InternalError(f"no text for the meaning of {type(node).__name__}")

    def _filter(self, node: Filter) -> Form:
        predicates = [node.predicate]
        inner = node.input
        while isinstance(inner, Filter):
            predicates.append(inner.predicate)
            inner = inner.input
        below, names = self.of(inner)
        conditions = " and ".join(sorted(_text(each, names) for each in predicates))
        return f"filter({conditions}; {below})", names

    def _parts(self, node: Windowed | Grouped | Top) -> Form:
        below, names = self.of(node.input)
        keys = ", ".join(sorted(names[key] for key in node.partition))
        if isinstance(node, Top):
            order = ", ".join(_text(scalar, names) for scalar in node.order)
            return f"top({keys}; {node.limit} from {node.offset} by {order}; {below})", names
        kept = _within("in", names)
        if isinstance(node, Grouped):
            kept = {key: kept[key] for key in node.partition}
        calls = []
        for number, (name, scalar) in enumerate(node.calls):
            calls.append(_text(scalar, _within("in", names) | kept))
            kept[name] = f"${number}"
        kind = "windowed" if isinstance(node, Windowed) else "grouped"
        return f"{kind}({keys}; {', '.join(calls)}; {below})", kept

    def _join(self, node: Join) -> Form:
        forms = sorted((self.of(part) for part in node.parts), key=lambda form: form[0])
        names: dict[str, str] = {}
        for number, (_, inner) in enumerate(forms):
            names |= _within(str(number), inner)
        conditions = " and ".join(sorted(_text(each, names) for each in node.conditions))
        return f"join({conditions}; {'; '.join(text for text, _ in forms)})", names

    def _match(self, node: Match) -> Form:
        left, ours = self.of(node.left)
        right, theirs = self.of(node.right)
        names = _within("left", ours) | _within("right", theirs)
        conditions = " and ".join(sorted(_text(each, names) for each in node.conditions))
        return f"{node.kind.lower()}({conditions}; {left}; {right})", names


def _numbered(columns: Iterable[str]) -> dict[str, str]:
    return {column: f"${number}" for number, column in enumerate(columns)}


def _within(place: str, names: dict[str, str]) -> dict[str, str]:
    return {column: f"{place}.{name}" for column, name in names.items()}


def _listed(form: Form, columns: Iterable[str]) -> str:
    """A text with the order of its columns, where that says which is which."""
    text, names = form
    return f"({', '.join(names[column] for column in columns)}) of {text}"


def _text(scalar: Scalar, names: dict[str, str]) -> str:
    sides = equality_sides(scalar)
    if sides is None:
        return renamed(scalar, names).sql
    sign = "<=>" if is_null_safe(scalar) else "="
    return f" {sign} ".join(sorted(renamed(side, names).sql for side in sides))
