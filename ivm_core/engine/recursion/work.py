"""What every way of bringing a component to its fixpoint has: rules, statements, a ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.compile.lowering import Lowering
from ivm_core.compile.stages import scans
from ivm_core.engine.fetching import TooLarge
from ivm_core.engine.gears import LocalRows
from ivm_core.engine.layout import weighted
from ivm_core.engine.offending import rows_or_culprit
from ivm_core.engine.stage_run import Statement
from ivm_core.model.errors import InternalError, RecursionLimit
from ivm_core.model.names import WEIGHT
from ivm_core.operators.accumulator import OnlySpark, TooMany, told_on_driver
from ivm_core.operators.fixpoint import WANTED, FixpointStatements
from ivm_core.operators.row_sets import no_rows
from ivm_core.operators.rules_on_driver import derivable_on_driver, derived_on_driver
from ivm_core.operators.scan import bound_name
from ivm_core.operators.sql import text_of
from ivm_core.plan.recursion import AGAINST, BAG, SET, changed_name

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import pyarrow as pa

    from ivm_core.engine.evaluation import ViewEvaluation
    from ivm_core.engine.relations import TickRelations
    from ivm_core.model.schema import Schema
    from ivm_core.plan.nodes import Node
    from ivm_core.plan.recursion import Limits, Rules


@dataclass
class Ledger:
    """How far a tick of a component has gone; it ends where it may go no further."""

    component: tuple[str, ...]
    limits: Limits
    iterations: int = 0
    rows: int = 0
    phases: dict[str, int] = field(default_factory=dict)
    """Iterations by what they were for."""

    def restart(self) -> None:
        """Another way begins from nothing."""
        self.iterations, self.rows = 0, 0
        self.phases.clear()

    def iterate(self, phase: str, view: str) -> None:
        """One more iteration."""
        self.iterations += 1
        self.phases[phase] = self.phases.get(phase, 0) + 1
        if self.phases[phase] > self.limits.iterations:
            raise self._beyond(
                view, f"{self.limits.iterations:,} iterations are not enough for the recursion"
            )

    def derive(self, view: str, rows: int) -> None:
        """So many more rows of a view."""
        self.rows += rows
        if self.rows > self.limits.rows:
            raise self._beyond(view, f"the recursion derives more than {self.limits.rows:,} rows")

    def _beyond(self, view: str, what: str) -> RecursionLimit:
        names = ", ".join(self.component)
        return RecursionLimit(
            f"{what}: stopped at iteration {self.iterations} of {names}, deriving rows of {view}; "
            f"{self.rows:,} rows were derived",
            where=f"view {view}",
            view=view,
            cause="RecursionLimit",
        )


class Work:
    """One component in one tick."""

    def __init__(self, views: Mapping[str, ViewEvaluation], limits: Limits) -> None:
        """`views` are the component's, with the steps below their rules done.

        They have the names by which rules read them; a next definition is stored under another.
        """
        self.views = views
        self.names = tuple(views)
        self.rules = {name: _rules(view) for name, view in views.items()}
        self.schemas = {name: view.program.schema for name, view in views.items()}
        self.ledger = Ledger(self.names, limits)
        self._only_spark: set[Hashable] = set()
        self.is_large = False
        """Whether rows on the driver are too many for statements over them."""

    @property
    def first(self) -> ViewEvaluation:
        """Any of the views, for what is the same for all of them."""
        return self.views[self.names[0]]

    @property
    def relations(self) -> TickRelations:
        """What the tick reads."""
        return self.first.relations

    @property
    def is_bag(self) -> bool:
        """Whether rows are counted."""
        return self.rules[self.names[0]].fold == BAG

    @cached_property
    def below(self) -> tuple[str, ...]:
        """What the rules read that is not of the component."""
        read = frozenset().union(*(rules.relations for rules in self.rules.values()))
        return tuple(sorted(read - set(self.names)))

    @cached_property
    def reader(self) -> dict[str, ViewEvaluation]:
        """For everything below one view that reads it: inner steps are known to their own only."""
        found = {}
        for name in self.below:
            found[name] = next(
                view
                for each, view in self.views.items()
                if name in view.inner or name in self.rules[each].relations
            )
        return found

    def schema(self, relation: str) -> Schema:
        """Columns of a relation."""
        if relation in self.schemas:
            return self.schemas[relation]
        return self.relations.schema(relation)

    @cached_property
    def fields(self) -> dict[str, tuple[str, ...]]:
        """The columns of each relation that the rules read; of the views themselves all."""
        found: dict[str, set[str]] = {}
        for rules in self.rules.values():
            for branch in rules.branches:
                for scan in scans(branch):
                    found.setdefault(scan.relation, set()).update(scan.fields)
        ordered = {
            name: tuple(each for each in self.schema(name).names if each in columns)
            for name, columns in found.items()
        }
        return ordered | {name: tuple(self.schemas[name].names) for name in self.names}

    @cached_property
    def catalog(self) -> dict[str, Schema]:
        """Schemas of all relations of rules and terms."""
        known: dict[str, Schema] = {}
        for view in self.views.values():
            known |= view.catalog
        known |= self.schemas
        for name in (*self.below, *self.names):
            for changed in (changed_name(name), f"{name}{AGAINST}"):
                known[changed] = self.schema(name)
        return known

    def statements(self, view: str) -> FixpointStatements:
        """Renders the rules of a view."""
        types = self.views[view].types
        rendering = Lowering(self.catalog, types)
        return FixpointStatements(self.rules[view], rendering, self.schemas[view])

    def rendered(
        self, view: str, key: Hashable, build: Callable[[FixpointStatements], exp.Query | None]
    ) -> Statement | None:
        """A statement of a view, rendered once."""
        cache = self.views[view].program.rendered
        if ("fixpoint", key) not in cache:
            query = build(self.statements(view))
            if query is None:
                cache["fixpoint", key] = None
            else:
                names = frozenset(table.name for table in query.find_all(exp.Table))
                cache["fixpoint", key] = Statement(text_of(query), names)
        found: Statement | None = cache["fixpoint", key]
        return found

    def statement(self, view: str, plans: Sequence[Node]) -> Statement | None:
        """What plans of a view derive, as a statement."""
        key = ("derived", tuple(plan.text for plan in plans), True)
        return self.rendered(view, key, lambda made: made.derived(plans))

    def local(self, relation: str, table: pa.Table) -> LocalRows:
        """Rows on the driver to be bound: plain, or with weights where these count."""
        names = [name for name in table.column_names if name != WEIGHT]
        schema = self.schema(relation).select(names)
        if WEIGHT in table.column_names:
            schema = weighted(schema)
        return LocalRows(table.select(list(schema.names)), schema)

    def derived(
        self,
        view: str,
        plans: Sequence[Node],
        tables: Mapping[str, pa.Table],
        *,
        folded: bool = True,
    ) -> pa.Table:
        """What plans of a view derive from rows on the driver, there or by a statement.

        Without `folded` every row is there once, also those that an extreme leaves out.
        """
        key = ("derived", tuple(plan.text for plan in plans), folded)
        rules, schema = self.rules[view], self.schemas[view]
        if key not in self._only_spark:
            try:
                with told_on_driver():
                    return derived_on_driver(rules, plans, tables, schema, folded=folded)
            except OnlySpark as error:
                self._leave_to_spark(key, error)
        if self.is_large:
            raise TooLarge("its rules are for Spark")
        statement = self.rendered(view, key, lambda made: made.derived(plans, folded=folded))
        if statement is None:
            return no_rows(weighted(schema) if self.is_bag else schema)
        return self.run(view, statement, tables)

    def derivable(self, view: str, wanted: pa.Table, tables: Mapping[str, pa.Table]) -> pa.Table:
        """What the rules of a view derive of wanted rows; of extremes for their keys."""
        rules, schema = self.rules[view], self.schemas[view]
        by_key = rules.fold != SET
        key = ("derivable", by_key)
        if key not in self._only_spark:
            try:
                with told_on_driver():
                    return derivable_on_driver(rules, tables, wanted, schema, by_key=by_key)
            except OnlySpark as error:
                self._leave_to_spark(key, error)
        statement = self.rendered(view, key, lambda made: made.derivable(by_key=by_key))
        if statement is None:
            return no_rows(schema)
        return self.run(view, statement, {**tables, WANTED: wanted})

    def _leave_to_spark(self, key: Hashable, error: OnlySpark) -> None:
        """For good, where it isn't that there are too many rows this time."""
        if not isinstance(error, TooMany):
            self._only_spark.add(key)

    def run(self, view: str, statement: Statement, tables: Mapping[str, pa.Table]) -> pa.Table:
        """A statement on the driver's rows; `tables` by relation, those of changes as named."""
        form = self.statements(view).form
        reads = {}
        for name, table in tables.items():
            relation = name.partition("?")[0] or view
            bound = bound_name(name, form)
            if bound in statement.names:
                reads[bound] = self.local(relation, table)
        wanted = self.schemas[view]
        schema = weighted(wanted) if self.is_bag else wanted
        return rows_or_culprit(self.relations.gears, statement.text, reads, schema)


def _rules(view: ViewEvaluation) -> Rules:
    if view.program.rules is None:
        raise InternalError(f"{view.program.name} has no rules")
    return view.program.rules
