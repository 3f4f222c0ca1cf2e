"""`tideview repair`: lost and damaged files, named, and made again from the recorded ticks."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from ivm_core.cli.console import ExitCode
from ivm_core.cli.flows import add_flow, open_flow

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ivm_core.cli.console import Console
    from ivm_core.store.verifying import Damage

HELP = "find lost and damaged files and make them again; with --check only find, 1 where there are"
EXAMPLES = """\
  tideview repair shop/flow --check
  tideview repair shop/flow
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the subcommand takes."""
    add_flow(parser)
    parser.add_argument("--check", action="store_true", help="only name what is wrong")


def run(options: argparse.Namespace, console: Console) -> ExitCode:
    """Verify, or repair."""
    with (
        console.progress("reading every file") as progress,
        open_flow(options.flow, to_write=not options.check) as flow,
    ):
        if options.check:
            found: Sequence[Damage] = flow.verify()
            traces: Sequence[str] = ()
        else:
            done = flow.repair(
                progress=lambda tick, last: progress.step(f"replaying tick {tick} of {last}")
            )
            found, traces = done.damages, done.traces
    content = {"format": 1, "damages": [asdict(each) for each in found], "repaired": list(traces)}
    lines = [f"{'/'.join(filter(None, (each.trace, each.file)))}: {each.problem}" for each in found]
    lines += [f"{name}: made again" for name in traces]
    console.answer("\n".join(lines or ["every file is as it was written"]), content)
    return ExitCode.NO if options.check and found else ExitCode.OK
