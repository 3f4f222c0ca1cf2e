"""Which of the rows that an iteration found are new, on the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.engine.stage_run import Statement
from ivm_core.model.errors import InternalError
from ivm_core.operators.fixpoint import FOUND, KNOWN
from ivm_core.operators.netting import are_flat, net, stacked
from ivm_core.operators.row_sets import better, latest, near, without
from ivm_core.plan.recursion import BAG, MIN, SET

if TYPE_CHECKING:
    import pyarrow as pa

    from ivm_core.engine.recursion.work import Work


def settled(work: Work, view: str, found: pa.Table, known: pa.Table) -> pa.Table:
    """Found rows that `known` has not; of extremes those that are better than it has.

    Rows that count are netted: whoever comes often counts often.
    """
    rules, schema = work.rules[view], work.schemas[view]
    if rules.fold == BAG:
        return net(found, schema)
    if rules.fold == SET:
        return without(found, known, schema)
    if are_flat(schema):
        keys = list(rules.keys)
        known = near(known, found, schema.select(rules.keys))
        return better(found, known, keys, rules.value, is_min=rules.fold == MIN)
    if not found.num_rows or not known.num_rows:
        return found
    statement = work.rendered(view, "better", lambda made: made.better())
    if not isinstance(statement, Statement):
        raise InternalError("no statement compares extremes")
    return work.run(view, statement, {FOUND: found, KNOWN: known})


def added(work: Work, view: str, total: pa.Table, new: pa.Table) -> pa.Table:
    """The rows with new ones; a better extreme takes the place of the one before."""
    rules, schema = work.rules[view], work.schemas[view]
    if rules.fold == BAG:
        return net(stacked(total, new), schema)
    if rules.fold == SET:
        return stacked(total, new).combine_chunks()
    return latest(total, new, list(rules.keys))
