"""Arguments of a flow's methods in the one form that the rest of the code knows."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from ivm_core.engine.deduplicating import CONSECUTIVE, CONTENT, ENTRIES
from ivm_core.model.errors import UnknownName, UserError
from ivm_core.store.location import Location

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.model.schema import Schema

Changes = Any  # a DeltaBatch, rows, an Arrow table, a pandas or Spark DataFrame


def given_changes(
    changes: str | Mapping[str, Changes] | None, delta: Changes | None
) -> Mapping[str, Changes]:
    """The changes by source, however `tick` was given them; `UserError` for anything else."""
    if changes is None:
        if delta is not None:
            raise UserError("tick got changes but no source", fix='call tick("source", changes)')
        return {}
    if isinstance(changes, str):
        if delta is None:
            raise UserError(
                f"tick got the source {changes!r} but no changes",
                fix='call tick("source", changes), or tick() to pull followed tables',
            )
        return {changes: delta}
    if not hasattr(changes, "items"):
        raise UserError(
            f"tick takes a source's name or a mapping, not {type(changes).__name__}",
            fix='call tick("source", changes) or tick({"source": changes})',
        )
    return changes


def dedup_options(dedup: object, entries: object, where: str) -> dict[str, Any]:
    """How a source treats batches that come again, as its definition stores it."""
    if dedup not in (False, None, True, CONTENT, CONSECUTIVE):
        raise UserError(
            f"dedup={dedup!r} is not known", where, f'give True, or "{CONSECUTIVE}", or nothing'
        )
    is_count = isinstance(entries, int) and not isinstance(entries, bool) and entries > 0
    if entries is not None and (not is_count or dedup not in (True, CONTENT)):
        raise UserError(
            f"dedup_entries={entries!r} doesn't fit dedup={dedup!r}",
            where,
            "give a number of batches from 1 on, beside dedup=True",
        )
    if not dedup:
        return {}
    if dedup == CONSECUTIVE:
        return {"dedup": CONSECUTIVE}
    return {"dedup": CONTENT, "dedup_entries": ENTRIES if entries is None else entries}


def checked_shard(given: object) -> tuple[int, int] | None:
    """Part k of n, as (k, n) with k from 0 on; `UserError` for anything else."""
    if given is None:
        return None
    if isinstance(given, tuple) and len(given) == 2:
        part, parts = given
        if type(part) is int and type(parts) is int and 0 <= part < parts:
            return part, parts
    raise UserError(
        f"shard={given!r} is not a part of so many",
        where="shard=",
        fix="give (k, n) with k from 0 to n - 1",
    )


def checkpoint_place(path: object) -> Location:
    """The folder of checkpoints; `UserError` for what is no path or URI."""
    if not isinstance(path, str | PathLike):
        raise UserError(f"{path!r} is not a path or URI", fix="give a folder for checkpoints")
    return Location(path)


def key_columns(given: object, columns: Schema, where: str) -> tuple[str, ...]:
    """The names of a primary key as the schema spells them."""
    names = [given] if isinstance(given, str) else [] if given is None else given
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise UserError(
            f"the primary key {given!r} is not a list of columns",
            where=where,
            fix='give names such as ["id"]',
        )
    known = {name.casefold(): name for name in columns.names}
    for name in names:
        if name.casefold() not in known:
            raise UnknownName(
                f"the primary key names {name}, which is no column",
                where=where,
                fix=f"the columns are: {', '.join(columns.names)}",
            )
    return tuple(known[name.casefold()] for name in names)
