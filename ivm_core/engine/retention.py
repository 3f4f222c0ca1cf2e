"""How many ticks stay apart, and folding those that need not.

Rows of sources, views and shared nodes keep their ticks apart, so that `at=`, `changes`, watches
and `replay` reach back. With a retention, ticks below a line become one base. The line is never
above what a view has seen, a watch or pin needs, or a replay could begin with.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ivm_core.model.errors import UserError
from ivm_core.store.compaction import compact, sweep
from ivm_core.store.leases import Claim, claims

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ivm_core.compile.program import ViewProgram
    from ivm_core.engine.history import History
    from ivm_core.engine.layout import Layout
    from ivm_core.store.trace import Trace

PAYS_FROM = 8
"""Ticks by which the line has to be above a base at least, before it is folded by itself."""
FOLDED_ON_DRIVER = 2_000_000
"""Stored rows of a trace that are folded; larger ones keep their ticks apart, and that is told."""

LONGEST_DAYS = 365_000


@dataclass(frozen=True)
class Retention:
    """What stays replayable: so many ticks, and those of so many days; None: all."""

    ticks: int | None = None
    days: float | None = None

    @classmethod
    def of(cls, ticks: object, days: object) -> Retention:
        """Check what someone asks for; anything but positive numbers is a `UserError`."""
        is_count = ticks is None or (isinstance(ticks, int) and not isinstance(ticks, bool))
        if not is_count or (isinstance(ticks, int) and ticks < 1):
            raise UserError(f"ticks={ticks!r} is not a number of ticks", fix="give 1 or more")
        is_time = days is None or (isinstance(days, int | float) and not isinstance(days, bool))
        if not is_time or (isinstance(days, int | float) and not 0 < days <= LONGEST_DAYS):
            raise UserError(
                f"days={days!r} is not a time",
                fix=f"give days, such as 30 or 0.5, at most {LONGEST_DAYS:,}; none for all of them",
            )
        return cls(
            ticks if isinstance(ticks, int) else None,
            float(days) if isinstance(days, int | float) else None,
        )

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Retention:
        """As the tick log has it."""
        return cls(body["ticks"], body["days"])

    @property
    def body(self) -> dict[str, Any]:
        """As the tick log has it."""
        return {"ticks": self.ticks, "days": self.days}

    @property
    def keeps_all(self) -> bool:
        """Whether nothing is ever folded."""
        return self.ticks is None and self.days is None


def fold_line(layout: Layout, history: History, now: datetime | None = None) -> int:
    """The newest tick that may be folded, with all before it; 0 for none."""
    wanted = _wanted_line(history, now)
    line = min([wanted, *(claim.tick for claim in claims(layout.root))]) if wanted else 0
    return max((tick for tick in history.whole_ticks if tick <= line), default=0)


def held_by(layout: Layout, history: History) -> Claim | None:
    """The claim that keeps the line where it is; None where the retention itself does."""
    wanted = _wanted_line(history, None)
    found = claims(layout.root) if wanted else []
    return found[0] if found and found[0].tick < wanted else None


def _wanted_line(history: History, now: datetime | None) -> int:
    """The line by the retention and by views that lag behind."""
    retention = history.retention
    if retention.keeps_all:
        return 0
    line = history.tick
    if retention.ticks is not None:
        line = min(line, history.tick - retention.ticks)
    if retention.days is not None:
        since = (now or datetime.now(UTC)) - timedelta(days=retention.days)
        younger = [tick for tick, at in history.committed_at.items() if at >= since]
        line = min(line, min(younger, default=history.tick + 1) - 1)
    # a view that lags behind reads what it has missed tick by tick
    return min([line, *(state.upto for state in history.states.values() if state.upto)])


def fold(
    layout: Layout,
    history: History,
    programs: Iterable[ViewProgram],
    epoch: int,
    *,
    only_if_it_pays: bool,
) -> tuple[list[str], list[str]]:
    """Fold what is below the line; what was folded, and what is too large for it."""
    line = fold_line(layout, history)
    kept = history.tick - line
    done, large = [], []
    for name, trace in _traces(layout, history, programs) if line else ():
        gained = line - trace.base_tick
        if gained < (max(PAYS_FROM, kept // 4) if only_if_it_pays else 1):
            continue
        if trace.rows_estimate(history.committed, line) > FOLDED_ON_DRIVER:
            large.append(f"{name} keeps its ticks apart: it has too many rows to be folded")
            continue
        compact(trace, history.committed, line, epoch)
        sweep(trace)
        done.append(f"{name} folded up to tick {line}")
    return done, large


def _traces(
    layout: Layout, history: History, programs: Iterable[ViewProgram]
) -> Iterable[tuple[str, Trace]]:
    """The traces whose ticks are kept apart: of sources, of views, of shared nodes."""
    for source in history.sources.values():
        if source.kind == "fed":
            trace = layout.source_rows(source.name, source.schema, source.primary_key)
            yield f"source {source.name}", trace
    for program in programs:
        last = program.stages[-1]
        if last.stage.keeps_rows:
            yield program.name, layout.stage_rows(last.stage.relation, last.output)
