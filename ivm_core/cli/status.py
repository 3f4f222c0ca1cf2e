"""`tideview status`: what there is in a flow and how far it has come, from logs alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.api.status import FlowStatus, read_status
from ivm_core.cli.console import ExitCode, table
from ivm_core.cli.flows import add_flow, require_flow

if TYPE_CHECKING:
    import argparse

    from ivm_core.api.status import SourceStatus
    from ivm_core.cli.console import Console

HELP = "sources, views and how far they have come; starts no Spark"
EXAMPLES = """\
  tideview status shop/flow
  tideview status shop/flow --up-to-date || tideview tick shop/flow
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the subcommand takes."""
    add_flow(parser)
    parser.add_argument(
        "--up-to-date",
        action="store_true",
        help="end with 1 if a tick would have something to do: news in a followed table, a view "
        "that is behind, a killed tick",
    )


def run(options: argparse.Namespace, console: Console) -> ExitCode:
    """Show the status."""
    with console.progress("reading the tick log"):
        status = read_status(require_flow(options.flow))
    console.answer(_text(status), status.to_dict())
    return ExitCode.NO if options.up_to_date and not status.is_up_to_date else ExitCode.OK


def _text(status: FlowStatus) -> str:
    when = f", logical time {status.logical_time}" if status.logical_time else ""
    lines = [f"{status.flow}: tick {status.tick}{when}"]
    if status.pending is not None:
        lines.append(f"tick {status.pending} is begun and not committed: it runs, or was killed")
    if status.last_abort:
        lines.append(f"the last tick was aborted: {status.last_abort}")
    if status.sources:
        sources = [(each.name, each.kind, str(each.rows), _news(each)) for each in status.sources]
        lines += ["", table(("source", "kind", "rows", "news"), sources)]
        warned = [each for each in status.sources if each.warning]
        lines += [f"warning: {each.name}: {each.warning}" for each in warned]
    if status.views:
        views = [
            (
                each.name,
                str(each.tick) if each.tick else "not yet",
                str(each.rows),
                "" if each.duration_ms is None else f"{each.duration_ms:,.0f} ms",
                each.way,
            )
            for each in status.views
        ]
        lines += ["", table(("view", "tick", "rows", "took", "last"), views)]
    return "\n".join(lines)


def _news(source: SourceStatus) -> str:
    if source.problem:
        return source.problem
    if source.newest_version is None:
        return ""
    read = "nothing" if source.read_version is None else f"version {source.read_version}"
    return f"read {read} of {source.newest_version}" if source.has_news else "none"
