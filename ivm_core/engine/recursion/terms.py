"""Rules and terms of a component on the driver, over the rows that they reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.compile.reach import Reach, ReachFinder
from ivm_core.compile.recursive_steps import as_joins
from ivm_core.engine.fetching import FETCHED_ROWS, LIMIT_VALUES, Fetcher, TooLarge
from ivm_core.engine.recursion.held import Regions
from ivm_core.model.names import WEIGHT
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.netting import net
from ivm_core.operators.row_sets import no_rows, present
from ivm_core.plan.recursion import SET
from ivm_core.store.limit import ColumnLimit, Limit, limits

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    import pyarrow as pa

    from ivm_core.engine.recursion.held import State
    from ivm_core.engine.recursion.work import Work
    from ivm_core.plan.recursion import Term


class TermEvaluation:
    """Runs terms and rules, one statement each time."""

    def __init__(self, work: Work) -> None:
        """Nothing is fetched yet."""
        self._work = work
        self.regions = Regions(work)

    def change(self, name: str) -> pa.Table:
        """The change of a relation below, in the columns that the rules read."""
        change = self._work.reader[name].change(name)
        columns = self._work.fields[name]
        schema = self._work.schema(name).select(columns)
        if change is None:
            return no_rows(schema)
        if change.table is None:
            raise TooLarge(f"{change.count} changes of {name}")
        wanted = arrow_schema(schema, weight=True)
        return net(change.table.select([*columns, WEIGHT]).cast(wanted), schema)

    def derived(
        self,
        name: str,
        terms: list[Term],
        given: Mapping[str, pa.Table],
        state: State,
        *,
        lost: bool = False,
    ) -> pa.Table:
        """What the terms of a view derive from the given rows, everything else being as it is.

        What is `lost` has every row, also those that an extreme leaves out.
        """
        work = self._work
        plans = [term.plan for term in terms]
        changed = frozenset(term.changed for term in terms)

        def find(finder: ReachFinder) -> None:
            for plan in plans:
                finder.of_delta(as_joins(plan))

        key = ("terms", tuple(plan.text for plan in plans))
        reach = self._reach(name, key, find, changed)
        fetcher = Fetcher(reach, state, 0, given.get, self._columns(changed))
        names = frozenset().union(*(plan.relations for plan in plans)) - changed
        tables = {**self._fetched(fetcher, names), **given}
        return work.derived(name, plans, tables, folded=not lost)

    def derivable(self, name: str, wanted: pa.Table, state: State) -> pa.Table:
        """What the rules of a view derive of the wanted rows; of extremes for their keys."""
        work, rules = self._work, self._work.rules[name]

        def find(finder: ReachFinder) -> None:
            for branch in rules.branches:
                finder.of_keys(as_joins(branch), rules.columns if rules.fold == SET else rules.keys)

        reach = self._reach(name, "derivable", find)
        fetcher = Fetcher(reach, state, 0, lambda _: None, work.fields, wanted)
        return work.derivable(name, wanted, self._fetched(fetcher, rules.relations))

    def own(self, name: str, found: pa.Table, state: State) -> pa.Table:
        """At least the rows that a view has of those found, or of their groups."""
        rules, schema = self._work.rules[name], self._work.schemas[name]
        if not found.num_rows:
            return no_rows(schema)
        columns = rules.columns if rules.fold == SET else rules.keys
        values = {name: found.column(name) for name in columns}
        limited = [
            ColumnLimit(name, each, each.null_count > 0)
            for name, each in values.items()
            if limits(each.type)
        ]
        few = [each for each in limited if len(each.distinct) <= LIMIT_VALUES]
        if limited and not few:
            raise TooLarge(f"{found.num_rows} rows of {name} to look up")
        limit = Limit.all_of(few) if few else None
        if limit is None and state.row_count(name, 0) > FETCHED_ROWS:
            raise TooLarge(f"no column limits {name}")
        return present(state.old(name, 0, schema.names, limit), schema)

    def _fetched(self, fetcher: Fetcher, names: Iterable[str]) -> dict[str, pa.Table]:
        tables = {}
        for name in sorted(names):
            schema = self._work.schema(name).select(self._work.fields[name])
            rows = fetcher.rows(name)
            tables[name] = net(rows, schema) if self._work.is_bag else present(rows, schema)
        return tables

    def _columns(self, changed: Iterable[str]) -> dict[str, tuple[str, ...]]:
        known = dict(self._work.fields)
        return known | {name: known[name.partition("?")[0]] for name in changed}

    def _reach(
        self,
        name: str,
        key: Hashable,
        find: Callable[[ReachFinder], None],
        changed: frozenset[str] = frozenset(),
    ) -> Reach:
        cache = self._work.views[name].program.rendered
        if ("reach", key) not in cache:
            finder = ReachFinder(self._work.catalog, changed)
            find(finder)
            cache["reach", key] = finder.reach
        found: Reach = cache["reach", key]
        return found


def refuse_many(rows: pa.Table, name: str) -> pa.Table:
    """The rows; `TooLarge` for more than the driver should hold."""
    if rows.num_rows > FETCHED_ROWS:
        raise TooLarge(f"the change reaches {rows.num_rows} rows of {name}")
    return rows
