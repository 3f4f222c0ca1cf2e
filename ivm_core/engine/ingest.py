"""Taking a batch into a fed source: upserts resolved, constraints checked, changes netted.

With a primary key a row may be there once and a key once; without one no row may go that isn't
there. What breaks that is refused as a whole, with the offending keys; nothing is written then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.engine.relations import LOCAL_ROWS
from ivm_core.model.errors import ConstraintViolation
from ivm_core.model.names import PLACE, WEIGHT
from ivm_core.operators.netting import net, repeated, stacked
from ivm_core.operators.shown_rows import shown_rows
from ivm_core.store.limit import ColumnLimit, Limit, limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ivm_core.engine.definitions import SourceDefinition
    from ivm_core.operators.bound_batch import BoundBatch
    from ivm_core.store.trace import Trace
    from ivm_core.store.trace_files import Committed

SHOWN = 1000


@dataclass(frozen=True)
class Held:
    """What a source has stored before a tick, as far as it was read."""

    rows: pa.Table
    limit: Limit | None
    """They are all rows within it; None where views can't make use of that."""


def netted_changes(
    source: SourceDefinition, batch: BoundBatch, trace: Trace, committed: Committed
) -> tuple[pa.Table, Held | None]:
    """The netted changes of a batch on the driver, checked against what the source holds.

    What had to be read of the source for that comes with them: the tick's views may ask for it.
    """
    if batch.upserts is None and batch.delete_keys is None:
        changes = net(batch.table, source.schema)
        if changes.num_rows and source.primary_key:
            keys = changes.select(list(source.primary_key))
            held = _held(source, keys, trace, committed)
            _check_keys(source, changes, held.rows)
            return changes, held
        return changes, _check_deletions(source, changes, trace, committed)
    keyed = [t for t in (batch.upserts, batch.delete_keys, batch.table) if t is not None]
    keys = stacked(*[each.select(list(source.primary_key)) for each in keyed])
    held = _held(source, keys, trace, committed)
    changes = _resolved(source, batch, held.rows)
    if changes.num_rows:
        _check_keys(source, changes, held.rows)
    return changes, held


def _resolved(source: SourceDefinition, batch: BoundBatch, held: pa.Table) -> pa.Table:
    """Upserts and key deletions as changes of whole rows; `held` has what their keys hold."""
    keys = list(source.primary_key)
    parts = [batch.table]
    asked = [t.select(keys) for t in (batch.upserts, batch.delete_keys) if t is not None]
    wanted = stacked(*asked)
    found = _matching(net(held, source.schema), wanted, keys)
    if batch.delete_keys is not None:
        absent = _matching(batch.delete_keys, found, keys, absent=True)
        if absent.num_rows:
            raise ConstraintViolation(
                f"delete_keys names {absent.num_rows} keys that {source.name} doesn't hold",
                where=f"source {source.name}",
                fix="leave them out; nothing of this batch was applied",
                keys=_keys(absent, keys),
            )
    parts.append(found.set_column(found.num_columns - 1, WEIGHT, pc.negate(found.column(WEIGHT))))
    if batch.upserts is not None:
        ones = pa.repeat(pa.scalar(1, pa.int64()), batch.upserts.num_rows)
        parts.append(batch.upserts.append_column(WEIGHT, ones))
    schema = batch.table.schema
    return net(stacked(*[part.cast(schema) for part in parts]), source.schema)


def _check_keys(source: SourceDefinition, changes: pa.Table, held: pa.Table) -> None:
    """`held` has the stored rows of these keys, and maybe of more."""
    keys = list(source.primary_key)
    after = net(stacked(held, changes.select(held.column_names)), source.schema)
    absent = after.filter(pc.less(after.column(WEIGHT), 0))
    if absent.num_rows:
        raise ConstraintViolation(
            f"{absent.num_rows} rows are deleted or edited that {source.name} doesn't hold so",
            where=f"source {source.name}",
            fix="delete rows exactly as they are stored, or use DeltaBatch.delete_keys or .upserts",
            keys=_keys(absent, keys),
        )
    twice = repeated(after, keys)
    if twice.num_rows:
        raise ConstraintViolation(
            f"{twice.num_rows} keys would be in {source.name} twice",
            where=f"source {source.name}, primary key ({', '.join(keys)})",
            fix="use DeltaBatch.upserts to replace rows, or DeltaBatch.edits with the old rows",
            keys=_keys(twice, keys),
        )
    nulls = changes.filter(_any_null(changes, keys))
    if nulls.num_rows:
        raise ConstraintViolation(
            f"{nulls.num_rows} rows have NULL in the primary key of {source.name}",
            where=f"source {source.name}, primary key ({', '.join(keys)})",
            fix="give every row a key",
            keys=_keys(nulls, keys),
        )


def _check_deletions(
    source: SourceDefinition, changes: pa.Table, trace: Trace, committed: Committed
) -> Held | None:
    deletions = changes.filter(pc.less(changes.column(WEIGHT), 0))
    if not deletions.num_rows:
        return None
    held = _held(source, deletions, trace, committed)
    after = net(stacked(held.rows, deletions.select(held.rows.column_names)), source.schema)
    absent = after.filter(pc.less(after.column(WEIGHT), 0))
    if absent.num_rows:
        names = list(source.schema.names)
        raise ConstraintViolation(
            f"{absent.num_rows} rows are deleted more often than {source.name} holds them",
            where=f"source {source.name}",
            fix="delete rows exactly as they are stored; nothing of this batch was applied",
            keys=_keys(absent, names),
        )
    return held


def _held(source: SourceDefinition, rows: pa.Table, trace: Trace, committed: Committed) -> Held:
    """Stored rows that can match the given ones in the columns that those have."""
    conjunction = []
    for name in rows.column_names:
        if name in source.schema.names and limits(rows.schema.field(name).type):
            values = rows.column(name)
            conjunction.append(ColumnLimit(name, values, values.null_count > 0))
    # one column that tells rows apart is enough, and the first is the likeliest
    limit = Limit.all_of(conjunction[:2]) if conjunction else None
    names = [*source.schema.names, WEIGHT]
    held = trace.read(committed, None, None, names, limit)
    held = held.cast(pa.schema([pa.field(f.name, f.type) for f in held.schema]))
    if rows.num_rows > LOCAL_ROWS:
        return Held(held, None)  # a limit of so many values costs more than it saves
    real = [each for each in conjunction[:2] if not trace.is_within(committed, each)]
    return Held(held, Limit.all_of(real) if real else None)


def _matching(
    rows: pa.Table, others: pa.Table, keys: Sequence[str], *, absent: bool = False
) -> pa.Table:
    """The rows whose key is among those of the others, in their order; or those whose is not.

    Types of keys are such that values are equal where their bits are.
    """
    numbered = _numbered(rows.select(list(keys)))
    among = others.select(list(keys)).cast(rows.select(list(keys)).schema)
    kind = "left anti" if absent else "left semi"
    found = numbered.join(among, list(keys), join_type=kind).column(PLACE)
    return rows.take(found.sort())


def _numbered(rows: pa.Table) -> pa.Table:
    return rows.append_column(PLACE, pa.array(np.arange(rows.num_rows)))


def _any_null(table: pa.Table, keys: Sequence[str]) -> pa.Array:
    mask = pc.is_null(table.column(keys[0]))
    for key in keys[1:]:
        mask = pc.or_(mask, pc.is_null(table.column(key)))
    return mask


def _keys(table: pa.Table, names: Sequence[str]) -> tuple[object, ...]:
    rows = shown_rows(table.select(list(names)).slice(0, SHOWN))
    if len(names) == 1:
        return tuple(row[names[0]] for row in rows)
    return tuple(tuple(row.values()) for row in rows)
