"""The change of a component whose rows are counted (UNION ALL), on the driver.

    ΔR = Σᵢ Sⁱ(F(R, L + ΔL) − F(R, L))

The first summand is the delta of the views' queries over rows that stay; each of the next ones is
what the recursive branches make of the one before. Rows that come and rows that go are carried
together, with their weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.compile.lowering import Lowering
from ivm_core.compile.reach import ReachFinder
from ivm_core.engine.fetching import Fetcher
from ivm_core.engine.gears import LocalRows
from ivm_core.engine.layout import weighted
from ivm_core.engine.offending import rows_or_culprit
from ivm_core.engine.recursion.held import State
from ivm_core.engine.recursion.terms import TermEvaluation, refuse_many
from ivm_core.operators.netting import net, stacked
from ivm_core.operators.operator import Form
from ivm_core.operators.scan import bound_name
from ivm_core.operators.sql import text_of
from ivm_core.plan.recursion import changed_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from ivm_core.engine.recursion.work import Work


class BagDeltas:
    """The change of every view of a component; `TooLarge` where the driver is no place for it."""

    def __init__(self, work: Work, dirty: Iterable[str]) -> None:
        """`dirty` are the relations below that changed."""
        self._work = work
        self._terms = TermEvaluation(work)
        self._below = {name: self._terms.change(name) for name in dirty}
        self._before = State(self._terms.regions)
        self._now = State(self._terms.regions, self._below)

    def run(self) -> dict[str, pa.Table]:
        """The netted change of every view that has one."""
        work = self._work
        total: dict[str, pa.Table] = {}
        new = {name: rows for name in work.names if (rows := self._first(name)) is not None}
        while any(rows.num_rows for rows in new.values()):
            for name, rows in new.items():
                work.ledger.derive(name, rows.num_rows)
                whole = stacked(total[name], rows) if name in total else rows
                total[name] = refuse_many(net(whole, work.schemas[name]), name)
            work.ledger.iterate("delta", next(n for n, rows in new.items() if rows.num_rows))
            given = {changed_name(name): rows for name, rows in new.items() if rows.num_rows}
            new = {}
            for name, rules in work.rules.items():
                terms = [term for term in rules.terms if term.relation in work.rules]
                terms = [term for term in terms if term.changed in given]
                if terms:
                    found = self._terms.derived(name, terms, given, self._now)
                    new[name] = net(found, work.schemas[name])
        return total

    def _first(self, name: str) -> pa.Table | None:
        """What the change below makes of a view's query over the views as they were."""
        work, view = self._work, self._work.views[name]
        body = view.program.stages[-1].stage.body
        dirty = frozenset(self._below) & body.relations
        lowering = Lowering(work.catalog, view.types, dirty)
        query = lowering.render(body, Form.DELTA)
        if query is None:
            return None
        reach = ReachFinder(work.catalog, dirty).of_delta(body)
        fetcher = Fetcher(reach, self._before, 0, self._below.get, work.fields)
        reads = {}
        for each in sorted(body.relations):
            schema = work.schema(each).select(work.fields[each])
            rows = net(fetcher.rows(each), schema)
            reads[bound_name(each, Form.OLD)] = LocalRows(rows, weighted(schema))
            if each in dirty:
                reads[bound_name(each, Form.DELTA)] = LocalRows(self._below[each], weighted(schema))
        text = text_of(query)
        schema = work.schemas[name]
        found = rows_or_culprit(work.relations.gears, text, reads, weighted(schema))
        return net(found, schema)
