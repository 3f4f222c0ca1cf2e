"""Bound rows without those that have no partners: what a join can't use, Spark need not be given.

Semi-joins by key columns on the driver, from input to input, until nothing more goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.engine.gears import LocalRows
from ivm_core.model.names import PLACE
from ivm_core.operators.operator import Form
from ivm_core.operators.scan import bound_name
from ivm_core.operators.sieve import passing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ivm_core.compile.partners import Partners
    from ivm_core.engine.gears import Rows

    Bound = dict[str, LocalRows]

MANY_ROWS = 16_000
"""Fewer rows are bound as they are: they may be on hand for the next statement."""
FEW_ROWS = 20_000
"""A relation of so few rows is read whole, if that spares looking for the partners of many."""
ROUNDS = 3


def with_partners(
    partners: Partners, reads: Mapping[str, Rows], unknown: Collection[str]
) -> dict[str, Rows]:
    """What a statement reads, without rows that it can't use; nothing changes where it is little.

    Of `unknown` relations not all that the statement reads is bound.
    """
    bound = {use.relation: _bound(use.relation, reads) for use in partners.uses}
    rows = {name: each for name, each in bound.items() if each and name not in unknown}
    losing = partners.relations & set(rows)
    if max((_largest(rows[name]) for name in losing), default=0) < MANY_ROWS:
        return dict(reads)
    uses = {
        at: _candidates(partners, at, rows[use.relation])
        for at, use in enumerate(partners.uses)
        if use.relation in rows
    }
    for _ in range(ROUNDS):
        if not _reduce(partners, uses):
            break
    found = dict(reads)
    for relation in losing:
        places = [
            uses[at].column(PLACE).to_numpy()
            for at, use in enumerate(partners.uses)
            if use.relation == relation
        ]
        found |= _kept(rows[relation], np.unique(np.concatenate(places)))
    return found


def with_few_partners(
    partners: Partners,
    relation: str,
    change: pa.Table,
    few: Callable[[str, str], pa.ChunkedArray | None],
) -> pa.Table:
    """A large change without rows that have no partner in relations of few rows.

    `few` gives a field of such a relation.
    """
    use = partners.only_use(relation)
    if use is None or change.num_rows < MANY_ROWS:
        return change
    for ours, other, theirs in partners.links_of(use):
        values = few(other, theirs) if other != relation else None
        if values is not None:
            change = change.filter(
                pc.is_in(_wide(change.column(ours)), value_set=_wide(values).unique())
            )
    return change


def are_void(partners: Partners, reads: Mapping[str, Rows], unknown: Collection[str]) -> bool:
    """Whether all rows of the body pair with those of a relation that has none, now or before."""
    names = {partners.uses[at].relation for at in partners.through} - set(unknown)
    found = [_bound(name, reads) for name in names]
    return any(bound and not _largest(bound) for bound in found)


def _bound(relation: str, reads: Mapping[str, Rows]) -> Bound:
    """The rows of a relation; nothing where some are not on the driver."""
    names = [bound_name(relation, form) for form in (Form.OLD, Form.DELTA)]
    found = {name: reads[name] for name in names if name in reads}
    local = {name: rows for name, rows in found.items() if isinstance(rows, LocalRows)}
    return local if len(local) == len(found) else {}


def _largest(bound: Bound) -> int:
    return max(int(rows.table.num_rows) for rows in bound.values())


def _candidates(partners: Partners, at: int, bound: Bound) -> pa.Table:
    """Places and keys of the rows that a use lets through."""
    keys = {link.field for link in partners.links if link.use == at}
    keys |= {link.other_field for link in partners.links if link.other_use == at}
    found, first = [], 0
    for rows in bound.values():
        behind = first + rows.table.num_rows
        table = rows.table.append_column(PLACE, pa.array(np.arange(first, behind)))
        table = passing(table, partners.uses[at].sieves).select([*sorted(keys), PLACE])
        columns = {name: _wide(table.column(name)) for name in table.column_names}
        found.append(pa.table(columns))
        first = behind
    return pa.concat_tables(found)


def _wide(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Integers of any length in one type."""
    return values.cast(pa.int64()) if pa.types.is_integer(values.type) else values


def _reduce(partners: Partners, uses: dict[int, pa.Table]) -> bool:
    """One round over all links, in both directions; whether a row went."""
    before = {at: rows.num_rows for at, rows in uses.items()}
    for link in partners.links:
        ends = [(link.use, link.field), (link.other_use, link.other_field)]
        if not all(at in uses for at, _ in ends):
            continue
        ends.sort(key=lambda end: uses[end[0]].num_rows)
        for (here, ours), (there, theirs) in (ends[::-1], ends):
            values = uses[there].column(theirs).unique()
            keeps = pc.is_in(uses[here].column(ours), value_set=values)
            uses[here] = uses[here].filter(keeps)
    return any(rows.num_rows < before[at] for at, rows in uses.items())


def _kept(bound: Bound, places: np.ndarray) -> dict[str, Rows]:
    """The rows at some places, by bound name; those of which none goes stay as they are."""
    found: dict[str, Rows] = {}
    first = 0
    for name, rows in bound.items():
        behind = first + rows.table.num_rows
        own = places[(first <= places) & (places < behind)] - first
        whole = len(own) == rows.table.num_rows
        found[name] = rows if whole else LocalRows(rows.table.take(pa.array(own)), rows.schema)
        first = behind
    return found
