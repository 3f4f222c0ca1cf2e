"""`tideview compact`: fold old ticks together, as far as the flow's retention lets them go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.cli.console import ExitCode
from ivm_core.cli.flows import add_flow, open_flow

if TYPE_CHECKING:
    import argparse

    from ivm_core.cli.console import Console

HELP = "fold ticks that need not stay apart; --keep-ticks and --keep-days set how many do"
EXAMPLES = """\
  tideview compact shop/flow
  tideview compact shop/flow --keep-ticks 1000 --keep-days 30   # what either asks for stays
  tideview compact shop/flow --keep-all                         # from now on
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the subcommand takes."""
    add_flow(parser)
    parser.add_argument("--keep-ticks", type=int, metavar="N", help="the newest ticks stay apart")
    parser.add_argument("--keep-days", type=float, metavar="DAYS", help="those of so many days do")
    parser.add_argument("--keep-all", action="store_true", help="nothing is folded any more")


def run(options: argparse.Namespace, console: Console) -> ExitCode:
    """Set the retention if one is given, and fold."""
    with (
        console.progress("folding old ticks"),
        open_flow(options.flow, to_write=True) as flow,
    ):
        if options.keep_all or options.keep_ticks is not None or options.keep_days is not None:
            ticks, days = options.keep_ticks, options.keep_days
            flow.set_retention(**({} if options.keep_all else {"ticks": ticks, "days": days}))
        said = flow.compact()
        ticks, days = flow.retention
    content = {"format": 1, "done": list(said), "keep_ticks": ticks, "keep_days": days}
    nothing = "nothing to fold" + ("" if ticks or days else ": the flow keeps all its ticks apart")
    console.answer("\n".join(said) or nothing, content)
    return ExitCode.OK
