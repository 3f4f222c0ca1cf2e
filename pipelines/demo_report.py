"""How the demo shows ticks: tables that read the same in a terminal and in a log file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core import IncrementalFlow, StepSummary
    from ivm_core.engine.checking import Comparison
    from ivm_core.engine.replaying import Replay

WIDTH_OF_A_FILE = 118
SHOWN_OF_A_DIGEST = 16
WAYS = ("hydrated", "affected keys", "recomputed", "delta")


class Report:
    """Prints what the demo does, as it does it."""

    def __init__(self, console: Console | None = None) -> None:
        """Print to the given console, else to standard output."""
        width = None if sys.stdout.isatty() else WIDTH_OF_A_FILE
        self._console = console or Console(width=width, highlight=False)

    def line(self, text: str = "") -> None:
        """One line of text."""
        self._console.print(text, soft_wrap=True)

    def heading(self, text: str) -> None:
        """What comes next."""
        self._console.print(f"\n[bold]{text}[/bold]")

    def step(self, summary: StepSummary, checks: Mapping[str, Comparison], seconds: float) -> None:
        """A tick: what went in, what each view did with it, and whether it equals its query."""
        rows_in = ", ".join(
            f"{name} {source.rows_in}" for name, source in summary.sources.items() if source.rows_in
        )
        self.line(
            f"tick {summary.tick}: {summary.rows_in} rows in ({rows_in}), {summary.rows_out} rows "
            f"out, {summary.duration_ms:,.0f} ms, {summary.statements} Spark statements"
        )
        table = _table("view", "rows out>", "deletions>", "rows>", "ms>", "way", "digest", "check")
        for name, check in checks.items():
            view = summary.views[name]
            table.add_row(
                name,
                "" if view.skipped else f"{view.rows_out}",
                "" if view.skipped else f"{view.deletions}",
                f"{view.rows}",
                "" if view.skipped else f"{view.duration_ms:,.0f}",
                way(view.skipped, view.ways),
                view.state_digest[:SHOWN_OF_A_DIGEST],
                "equal" if check.equal else "DIFFERS",
            )
        self._console.print(table)
        for note in summary.notes:
            self.line(f"  note: {note}")
        for name, check in checks.items():
            if not check.equal:
                self.difference(name, check)
        wrong = sum(not check.equal for check in checks.values())
        verdict = f"{wrong} DIFFER" if wrong else "all equal"
        self.line(f"check against recompute: {len(checks)} views, {verdict} ({seconds:.1f} s)")

    def difference(self, view: str, check: Comparison) -> None:
        """The rows by which a view differs from its query."""
        self.line(f"  {view} lacks {check.missing} rows and has {check.extra} too many:")
        for row in check.sample:
            self.line(f"    {row}")

    def rows(self, flow: IncrementalFlow, view: str, order_by: str, count: int) -> None:
        """The first rows of a view."""
        frame = flow.snapshot(view)
        rows = frame.orderBy(frame[order_by].desc()).limit(count).collect()
        self.heading(f"{view}, the first {len(rows)} by {order_by}")
        table = _table(*frame.columns)
        for row in rows:
            table.add_row(*(str(value) for value in row))
        self._console.print(table)

    def certificate(self, summary: StepSummary) -> None:
        """What the newest tick recorded about itself."""
        self.heading(f"certificate of tick {summary.tick}")
        self.line(f"logical time {summary.logical_time.isoformat()}")
        table = _table("relation", "digest of its change", "digest of its rows")
        for name, source in summary.sources.items():
            table.add_row(name, source.digest, "")
        for name, view in summary.views.items():
            table.add_row(name, "skipped" if view.skipped else view.digest, view.state_digest)
        self._console.print(table)

    def replay(self, replay: Replay, seconds: float) -> None:
        """Whether every tick did the same again."""
        ticks = len({delta.tick for delta in replay.deltas})
        same = f"{ticks} ticks, {len(replay.deltas)} deltas"
        first = replay.first_difference
        if first is None:
            self.line(f"replay: {same}, all digests equal ({seconds:.1f} s)")
        else:
            self.line(
                f"replay: DIFFERS at tick {first.tick}, view {first.view}: recorded "
                f"{first.recorded}, replayed {first.replayed} ({seconds:.1f} s)"
            )


def way(skipped: bool, ways: Mapping[str, str]) -> str:
    """How a view was brought up to date, in a word or two; the certificate has every node."""
    if skipped:
        return "skipped"
    told = " ".join(ways.values())
    return next((word for word in WAYS if word in told), "delta")


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        right = column.endswith(">")
        table.add_column(column.rstrip(">"), justify="right" if right else "left")
    return table
