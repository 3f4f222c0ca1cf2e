"""Whether followed tables still have what the flow has yet to read, and for how long."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ivm_core.engine.definitions import DELTA
from ivm_core.model.errors import IvmError
from ivm_core.store.followed_retention import deadline

if TYPE_CHECKING:
    from ivm_core.engine.catalog import Catalog
    from ivm_core.engine.history import History
    from ivm_core.engine.pinning import FollowedTables


def slowest_versions(history: History, catalog: Catalog) -> dict[str, int]:
    """By followed source the oldest version from which some view, or the flow, reads on."""
    found = {
        name: int(pin["version"])
        for name, pin in history.pins.items()
        if history.sources[name].kind == DELTA
    }
    for view, state in history.states.items():
        lags = 0 < state.upto < history.tick
        if not lags or view not in history.views or not found:
            continue
        pins = history.pins_at.get(state.upto, {})
        for name in catalog.sources_of([view]):
            if name in found and name in pins:
                found[name] = min(found[name], int(pins[name]["version"]))
    return found


def warnings(
    history: History,
    catalog: Catalog,
    tables: FollowedTables,
    now: datetime | None = None,
) -> dict[str, str]:
    """By source what is about to be gone, or may be by now; nothing where there is no hurry."""
    moment = now or datetime.now(UTC)
    told = {}
    read = catalog.sources_of(history.live_views)
    for name, version in slowest_versions(history, catalog).items():
        if name not in read:
            continue  # whatever becomes of it, nobody waits for it
        try:
            table = tables.pinned(name, history.pins[name])
            found = deadline(table, version)
            head = table.head().version
        except IvmError as error:
            told[name] = str(error).splitlines()[0]
            continue
        if found is None or moment < found.warn_from:
            continue
        since = found.at.isoformat(sep=" ", timespec="minutes")
        word = "has been able to" if moment >= found.at else "may"
        told[name] = (
            f"version {version} of {head} is read; {found.by} {word} let go of what comes next "
            f"from {since} on: tick {'now' if moment >= found.at else 'before that'}"
        )
    return told
