"""What Dagster takes for how old a view may be, looked at before it gets it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from ivm_core import UserError
from tideview.resources.cron import is_cron, shortest_gap

if TYPE_CHECKING:
    from tideview.resources.pipeline_spec import Freshness

SHORTEST = timedelta(minutes=1)
LONGEST = timedelta(days=3650)


def check_freshness(given: Freshness) -> None:
    """`UserError` for what can't be a freshness; files tell the same with line and key."""
    if given.cron:
        _check_deadline(given)
        return
    if given.fail_after is None:
        raise _wrong("it says nothing", "give fail_after, or cron with lookback")
    for name in ("fail_after", "warn_after"):
        _check_length(name, getattr(given, name))
    if given.warn_after is not None and given.warn_after >= given.fail_after:
        raise _wrong(f"warn_after is not before fail_after ({given.fail_after})", "warn earlier")


def _check_deadline(given: Freshness) -> None:
    gap = shortest_gap(given.cron) if is_cron(given.cron) else None
    if gap is None:
        raise _wrong(f"{given.cron!r} is no time table", "give one such as 0 9 * * *")
    if given.lookback is None:
        raise _wrong("a deadline needs a lookback", "give lookback=timedelta(hours=2)")
    _check_length("lookback", given.lookback)
    if given.lookback > gap:
        raise _wrong("lookback reaches beyond the deadline before", f"give {gap} at most")
    try:
        ZoneInfo(given.timezone)
    except (KeyError, OSError, ValueError) as error:
        fix = "give one such as Europe/Lisbon"
        raise _wrong(f"there is no time zone {given.timezone!r}", fix) from error


def _check_length(name: str, length: timedelta | None) -> None:
    if length is not None and not SHORTEST <= length <= LONGEST:
        raise _wrong(f"{name}={length} can't be", f"give {SHORTEST} to {LONGEST}")


def _wrong(what: str, fix: str) -> UserError:
    return UserError(what, where="freshness", fix=fix)
