"""`tideview publish`: views as plain Delta tables that any Delta reader opens."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from ivm_core.cli.console import ExitCode
from ivm_core.cli.flows import add_flow, open_flow

if TYPE_CHECKING:
    import argparse

    from ivm_core.cli.console import Console

HELP = "bring views as plain Delta tables to the newest tick; ticks keep them there"
EXAMPLES = """\
  tideview publish shop/flow                    # all views: shop/flow/published/<view>
  tideview publish shop/flow totals --lag 10    # from now on at most 10 ticks behind
  tideview publish shop/flow totals --stop      # deletes the table
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the subcommand takes."""
    add_flow(parser)
    parser.add_argument("views", metavar="VIEW", nargs="*", help="default: all that have rows")
    parser.add_argument(
        "--lag",
        type=_lag,
        metavar="N",
        help="ticks that the tables may be behind; 'auto', as at first: as it pays",
    )
    parser.add_argument("--stop", action="store_true", help="delete the tables of these views")


def run(options: argparse.Namespace, console: Console) -> ExitCode:
    """Publish, or stop it."""
    with (
        console.progress("publishing"),
        open_flow(options.flow, to_write=True) as flow,
    ):
        if options.stop:
            gone = flow.unpublish(*(options.views or flow.views))
            said = "\n".join(f"{view} is no longer published" for view in gone)
            console.answer(said or "nothing was published", {"format": 1, "stopped": list(gone)})
            return ExitCode.OK
        done = flow.publish(*options.views, lag=options.lag)
    content = {"format": 1, "published": [asdict(each) for each in done]}
    console.answer("\n".join(map(str, done)) or "no view has rows yet", content)
    return ExitCode.OK


def _lag(text: str) -> int | str:
    return int(text) if text.isdigit() else text
