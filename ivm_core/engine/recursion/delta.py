"""A component's change at the cost of the change, on the driver: delete and rederive.

The equations are those of `operators.fixpoint`. What a change can't reach is not read: an iteration
binds the new rows, and of everything else the rows that they join with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from ivm_core.compile.improving import can_improve
from ivm_core.engine.recursion.held import State
from ivm_core.engine.recursion.settling import added, settled
from ivm_core.engine.recursion.terms import TermEvaluation, refuse_many
from ivm_core.model.names import WEIGHT
from ivm_core.operators.netting import net, stacked
from ivm_core.operators.row_sets import either, no_rows, of_keys, with_weight, within, without
from ivm_core.plan.recursion import SET, changed_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from ivm_core.engine.recursion.work import Work
    from ivm_core.plan.recursion import Term

OVERDELETE, REDERIVE, INSERT = "overdelete", "rederive", "insert"


class Deltas:
    """The change of every view of a component; `TooLarge` where the driver is no place for it."""

    def __init__(self, work: Work, dirty: Iterable[str]) -> None:
        """`dirty` are the relations below that changed."""
        self._work = work
        self._terms = TermEvaluation(work)
        self._below = {name: self._terms.change(name) for name in dirty}
        self._changes: dict[str, pa.Table] = dict(self._below)
        """What is on top of the rows before: below at once, of the views as it is found."""
        self._before = State(self._terms.regions)
        self._now = State(self._terms.regions, self._changes)
        self._by_key = can_improve(work.rules)

    def run(self) -> dict[str, pa.Table]:
        """The netted change of every view that has one."""
        work = self._work
        gone = self._overdeleted()
        for name, rows in gone.items():
            self._put(name, with_weight(rows, -1))
        new = self._first(gone)
        while any(rows.num_rows for rows in new.values()):
            for name, rows in new.items():
                work.ledger.derive(name, rows.num_rows)
                self._take_in(name, rows)
            work.ledger.iterate(INSERT, _some(new))
            found = self._derived(new, self._now)
            new = {name: self._settled(name, rows) for name, rows in found.items()}
        return {
            name: net(self._changes[name], work.schemas[name])
            for name in work.names
            if name in self._changes
        }

    # --- the three steps ---

    def _overdeleted(self) -> dict[str, pa.Table]:
        """Every row that may stand on a derivation that is gone."""
        work = self._work
        found: dict[str, pa.Table] = {}
        for name, rules in work.rules.items():
            terms, given = self._fed(rules.terms, gains=False)
            if terms:
                found[name] = self._terms.derived(name, terms, given, self._before, lost=True)
        gone = {name: no_rows(schema) for name, schema in work.schemas.items()}
        while True:
            new = {name: self._standing(name, rows, gone[name]) for name, rows in found.items()}
            if not any(rows.num_rows for rows in new.values()):
                return {name: rows for name, rows in gone.items() if rows.num_rows}
            for name, rows in new.items():
                work.ledger.derive(name, rows.num_rows)
                gone[name] = refuse_many(stacked(gone[name], rows).combine_chunks(), name)
            work.ledger.iterate(OVERDELETE, _some(new))
            found = self._derived(new, self._before, lost=True)

    def _standing(self, name: str, found: pa.Table, gone: pa.Table) -> pa.Table:
        """Rows that were there, and of which derivations were found that are gone."""
        rules, schema = self._work.rules[name], self._work.schemas[name]
        if rules.fold == SET:
            # what the rules derive from rows that there were was there
            return without(found, gone, schema)
        own = self._terms.own(name, found, self._before)
        if self._by_key:
            own = of_keys(own, found, schema.select(rules.keys))
        else:
            own = within(own, found, schema)
        return without(own, gone, schema)

    def _first(self, gone: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Rows that are there after all, and those that the change below gives."""
        work = self._work
        new: dict[str, pa.Table] = {}
        for name, rules in work.rules.items():
            parts = []
            if name in gone:
                work.ledger.iterate(REDERIVE, name)
                parts.append(self._terms.derivable(name, gone[name], self._now))
            terms, given = self._fed(rules.terms, gains=True)
            if terms:
                parts.append(self._terms.derived(name, terms, given, self._now))
            if parts:
                new[name] = self._settled(name, self._together(name, parts))
        return new

    def _together(self, name: str, parts: list[pa.Table]) -> pa.Table:
        """Rows of both, each once; of extremes the better one of every group."""
        whole, *more = parts
        for part in more:
            if self._work.rules[name].fold == SET:
                whole = either(whole, part, self._work.schemas[name])
            else:
                whole = added(self._work, name, whole, settled(self._work, name, part, whole))
        return whole

    def _derived(
        self, new: Mapping[str, pa.Table], state: State, *, lost: bool = False
    ) -> dict[str, pa.Table]:
        """What new rows of the views derive."""
        given = {changed_name(name): rows for name, rows in new.items() if rows.num_rows}
        found = {}
        for name, rules in self._work.rules.items():
            terms = [term for term in rules.terms if term.relation in new and term.changed in given]
            if terms:
                found[name] = self._terms.derived(name, terms, given, state, lost=lost)
        return found

    def _fed(self, terms: Iterable[Term], *, gains: bool) -> tuple[list[Term], dict[str, pa.Table]]:
        """The terms that the change below gives rows to, or takes rows from, with these rows."""
        given: dict[str, pa.Table] = {}
        chosen = []
        for term in terms:
            change = self._below.get(term.relation)
            if change is None:
                continue
            comes = gains != term.is_negative
            sign = pc.greater if comes else pc.less
            rows = change.filter(sign(change.column(WEIGHT), 0)).drop_columns([WEIGHT])
            if rows.num_rows:
                given[term.changed] = rows
                chosen.append(term)
        return chosen, given

    # --- what the views have ---

    def _settled(self, name: str, found: pa.Table) -> pa.Table:
        """The rows that are new, or better than what there is."""
        return settled(self._work, name, found, self._terms.own(name, found, self._now))

    def _take_in(self, name: str, new: pa.Table) -> None:
        """Put new rows among those of a view; a better extreme in the place of the one before."""
        rules = self._work.rules[name]
        if rules.fold != SET:
            own = self._terms.own(name, new, self._now)
            keys = self._work.schemas[name].select(rules.keys)
            self._put(name, with_weight(of_keys(own, new, keys), -1))
        self._put(name, with_weight(new, 1))

    def _put(self, name: str, rows: pa.Table) -> None:
        known = self._changes.get(name)
        whole = rows if known is None else stacked(known, rows)
        self._changes[name] = refuse_many(net(whole, self._work.schemas[name]), name)


def _some(new: Mapping[str, pa.Table]) -> str:
    return next(name for name, rows in new.items() if rows.num_rows)
