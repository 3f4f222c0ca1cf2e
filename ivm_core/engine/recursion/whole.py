"""All rows of a component from nothing, by semi-naive iterations on the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.engine.fetching import FETCHED_ROWS, TooLarge
from ivm_core.engine.layout import weighted
from ivm_core.engine.recursion.inputs import table_now
from ivm_core.engine.recursion.settling import added, settled
from ivm_core.operators.row_sets import no_rows
from ivm_core.plan.recursion import changed_name

if TYPE_CHECKING:
    import pyarrow as pa

    from ivm_core.engine.recursion.work import Work
    from ivm_core.plan.nodes import Node


def on_driver(work: Work) -> dict[str, pa.Table]:
    """All rows of every view, with weights where these count; `TooLarge` where that is a lot."""
    tables = {name: table_now(work, name) for name in work.below}
    total = {name: _nothing(work, name) for name in work.names}
    new: dict[str, pa.Table] = {}
    for name in work.names:
        bases = work.rules[name].bases
        if bases:
            new[name] = settled(work, name, work.derived(name, bases, tables), total[name])
    while any(rows.num_rows for rows in new.values()):
        for name, rows in new.items():
            work.ledger.derive(name, rows.num_rows)
            total[name] = added(work, name, total[name], rows)
            if total[name].num_rows > FETCHED_ROWS:
                raise TooLarge(f"more than {FETCHED_ROWS} rows of {name}")
        work.ledger.iterate("fixpoint", next(name for name in new if new[name].num_rows))
        reads = {**tables, **total}
        reads |= {changed_name(name): rows for name, rows in new.items()}
        after = {}
        for name in work.names:
            plans = stepped(work, name, [each for each in new if new[each].num_rows])
            if plans:
                after[name] = settled(work, name, work.derived(name, plans, reads), total[name])
        new = after
    return total


def _nothing(work: Work, name: str) -> pa.Table:
    schema = work.schemas[name]
    return no_rows(weighted(schema) if work.is_bag else schema)


def stepped(work: Work, name: str, changed: list[str]) -> list[Node]:
    """How a view derives rows from new ones of these views."""
    return [term.plan for term in work.rules[name].terms if term.relation in changed]
