"""The one place that maps a plan node to its operator, and checks what comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ivm_core.compile.totality import column_type, is_total
from ivm_core.model.errors import InternalError
from ivm_core.model.names import WEIGHT
from ivm_core.operators.aggregate import AggregateOperator
from ivm_core.operators.consolidation import consolidated
from ivm_core.operators.constant import ConstantOperator
from ivm_core.operators.distinct import DistinctOperator
from ivm_core.operators.filter import FilterOperator
from ivm_core.operators.generate import GenerateOperator
from ivm_core.operators.grouped import GroupedOperator
from ivm_core.operators.join import JoinOperator, is_dirty
from ivm_core.operators.listed import ListedOperator
from ivm_core.operators.match import MatchOperator
from ivm_core.operators.negated import NegatedOperator, RepeatedOperator
from ivm_core.operators.operator import Form
from ivm_core.operators.project import ProjectOperator
from ivm_core.operators.scan import ScanOperator
from ivm_core.operators.set_operation import SetOperationOperator
from ivm_core.operators.sql import negated, union_all
from ivm_core.operators.top import TopOperator
from ivm_core.operators.union_all import UnionAllOperator
from ivm_core.operators.windowed import WindowedOperator
from ivm_core.plan.nodes import (
    Aggregate,
    Constant,
    Distinct,
    Filter,
    Generate,
    Join,
    Listed,
    Match,
    Negated,
    Node,
    Project,
    Repeated,
    Scan,
    SetOperation,
    UnionAll,
)
from ivm_core.plan.partitioned import Grouped, Top, Windowed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from ivm_core.model.schema import Schema
    from ivm_core.model.types import DataType
    from ivm_core.plan.scalar import Scalar

OPERATORS: dict[type[Node], Any] = {
    Scan: ScanOperator(),
    Constant: ConstantOperator(),
    Listed: ListedOperator(),
    Filter: FilterOperator(),
    Project: ProjectOperator(),
    UnionAll: UnionAllOperator(),
    Join: JoinOperator(),
    Aggregate: AggregateOperator(),
    Distinct: DistinctOperator(),
    Match: MatchOperator(),
    SetOperation: SetOperationOperator(),
    Negated: NegatedOperator(),
    Repeated: RepeatedOperator(),
    Generate: GenerateOperator(),
    Windowed: WindowedOperator(),
    Grouped: GroupedOperator(),
    Top: TopOperator(),
}


class Lowering:
    """Renders stateless trees, given which relations changed and which were empty."""

    def __init__(
        self,
        catalog: Mapping[str, Schema],
        types: Mapping[str, Mapping[str, DataType]],
        dirty: frozenset[str] = frozenset(),
        empty: frozenset[str] = frozenset(),
        *,
        unsettled: frozenset[str] = frozenset(),
        exact: bool = False,
        whole: Node | None = None,
    ) -> None:
        """`catalog` has the schema of every scanned relation, `types` those of joins by text.

        `unsettled` are relations whose rows before the tick come with rows that are gone and the
        deletions that cancel them. `exact` spells out sums whose value in Spark depends on the
        order of rows. The delta of the `whole` node is all its rows after the tick without all
        those before it.
        """
        self.dirty = dirty
        self.empty = empty
        self.unsettled = unsettled
        self.exact = exact
        self._catalog = catalog
        self._types = types
        self._whole = whole

    def render(self, node: Node, form: Form) -> exp.Query | None:
        """The query of a node in a form; None where it is known to be empty."""
        if form is Form.DELTA and node is self._whole:
            return self._difference(node)
        operator = next((OPERATORS[kind] for kind in type(node).__mro__ if kind in OPERATORS), None)
        if operator is None:
            raise InternalError(f"no stateless operator renders {type(node).__name__}")
        query: exp.Query | None = operator.render(node, form, self)
        if query is not None:
            _check(node, form, query)
        return query

    def _difference(self, node: Node) -> exp.Query | None:
        after, before = (self.render(node, form) for form in (Form.NEW, Form.OLD))
        parts = [] if after is None else [after]
        parts += [] if before is None else [negated(before)]
        return consolidated(union_all(parts), self.types(node)) if parts else None

    def types(self, node: Node) -> Mapping[str, DataType]:
        """Column types of a node: traced to a relation, or as Spark's analyzer said."""
        known = self.known_types(node)
        if known is None:
            raise InternalError(f"the types of {node.text} were not analysed")
        return known

    def known_types(self, node: Node) -> Mapping[str, DataType] | None:
        """The same; None where some are of a kind that no row can have."""
        traced = {column: column_type(node, column, self._catalog) for column in node.columns}
        known = {column: found for column, found in traced.items() if found is not None}
        return known if len(known) == len(traced) else self._types.get(node.text)

    def is_total(self, scalar: Scalar, node: Node) -> bool:
        """Whether the scalar can't raise on any row of the node."""
        return is_total(scalar, node, self._catalog)

    def has_phantoms(self, node: Node, form: Form) -> bool:
        """Whether rows that were never there, or are gone, stand beside what cancels them.

        A join of two changed inputs has such rows, an unsettled relation, and what passes on
        theirs. A relation's own change has none.
        """
        if form is Form.PLAIN or (form is Form.DELTA and node is self._whole):
            return False
        if isinstance(node, Scan):
            return form is not Form.DELTA and node.relation in self.unsettled
        if isinstance(node, Negated):
            # what it takes away stands beside it
            return True
        if isinstance(node, Join):
            return self._join_has_phantoms(node, form)
        if isinstance(node, Generate):
            return False
        if isinstance(node, Filter):
            if not self.is_total(node.predicate, node.input):
                return False
            return self.has_phantoms(node.input, form)
        if isinstance(node, Project):
            if not all(self.is_total(scalar, node.input) for _, scalar in node.outputs):
                return False
            return self.has_phantoms(node.input, form)
        return any(self.has_phantoms(child, form) for child in node.inputs)

    def _join_has_phantoms(self, node: Join, form: Form) -> bool:
        changed = [part for part in node.parts if is_dirty(part.relations, self)]
        if form is Form.DELTA and not changed:
            return False
        if form is not Form.OLD and len(changed) > 1:
            return True
        # in a delta, the parts that did not change are read as they were before
        forms = [form if part in changed else Form.OLD for part in node.parts]
        pairs = zip(node.parts, forms, strict=True)
        return any(self.has_phantoms(part, theirs) for part, theirs in pairs)


def _check(node: Node, form: Form, query: exp.Query) -> None:
    """What an operator renders has the node's columns, and a weight unless it is plain."""
    wanted = list(node.columns)
    if form is not Form.PLAIN:
        wanted.append(WEIGHT)
    given = query.named_selects
    if list(given) != wanted:
        raise InternalError(f"{type(node).__name__} rendered columns {given}, not {wanted}")
