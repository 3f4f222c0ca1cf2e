"""Arguments of a flow's methods in the one form that the rest of the code knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from ivm_core.engine.deduplicating import CONSECUTIVE, CONTENT, ENTRIES
from ivm_core.model.errors import UnknownName, UserError
from ivm_core.model.types import has_map
from ivm_core.plan.recursion import Limits
from ivm_core.store.location import Location

if TYPE_CHECKING:
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
    if delta is not None:
        raise UserError(
            "tick got changes by source, and others besides",
            fix='put them under the name of their source: tick({"source": changes, …})',
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


def checkpoint_place(path: object, flow: Location) -> Location:
    """The folder of checkpoints of a flow; `UserError` for what is no path or URI."""
    if not isinstance(path, str | PathLike):
        raise UserError(f"{path!r} is not a path or URI", fix="give a folder for checkpoints")
    return Location(path, flow.storage_options)


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
    keys = tuple(known[name.casefold()] for name in names)
    for name in keys:
        if has_map(columns.field(name).type):
            raise UserError(
                f"the primary key names {name}, which is a MAP",
                where=where,
                fix="a MAP has no equality: take columns of other types",
            )
    return keys


def column_lists(schemas: object, views: Mapping[str, object]) -> dict[str, str]:
    """Declared columns by view; `UserError` for those of something else."""
    if schemas is None:
        return {}
    if not isinstance(schemas, Mapping):
        raise UserError(
            f"schemas={schemas!r} is no mapping",
            where="schemas=",
            fix='give schemas={"view": "column TYPE, …"}',
        )
    for name, ddl in schemas.items():
        if name not in views:
            raise UserError(
                f"schemas= has {name!r}, which is no view of this call", where="schemas="
            )
        if not isinstance(ddl, str):
            raise UserError("columns are given as text", where=f"schema of {name}")
    return dict(schemas)


@dataclass(frozen=True)
class GivenLimits:
    """How far recursion may go, as far as anybody has said so."""

    iterations: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is no positive number."""
        recursion_limits(self.iterations, self.rows)

    @property
    def limits(self) -> Limits:
        """All of them, the usual ones where nothing is said."""
        return recursion_limits(self.iterations, self.rows)


def recursion_limits(iterations: object, rows: object) -> Limits:
    """How far recursion may go; `UserError` for what is no number of that kind."""
    given = {"max_iterations": iterations, "max_rows": rows}
    for name, value in given.items():
        is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
        if value is not None and not is_count:
            raise UserError(f"{name}={value!r} is no positive number", where=f"{name}=")
    usual = Limits()
    return Limits(
        iterations if isinstance(iterations, int) else usual.iterations,
        rows if isinstance(rows, int) else usual.rows,
    )
