"""`tideview replay`: the recorded ticks once more, digest by digest."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ivm_core.cli.console import ExitCode
from ivm_core.cli.flows import add_flow, open_flow
from ivm_core.cli.json_values import to_json

if TYPE_CHECKING:
    import argparse

    from ivm_core.cli.console import Console
    from ivm_core.engine.replaying import Replay, ReplayedDelta

HELP = "run the recorded ticks again elsewhere and compare; 1 where one differs"
EXAMPLES = """\
  tideview replay shop/flow
  tideview replay shop/flow --from 3 --to 7 --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the subcommand takes."""
    add_flow(parser)
    parser.add_argument(
        "--from", type=int, dest="first", default=1, metavar="TICK", help="compare from here"
    )
    parser.add_argument(
        "--to", type=int, dest="last", metavar="TICK", help="up to here (default: the newest)"
    )

    parser.add_argument(
        "--into", metavar="FOLDER", help="replay there and keep it; one that was stopped goes on"
    )


def run(options: argparse.Namespace, console: Console) -> ExitCode:
    """Replay."""
    with (
        console.progress("replaying (starts Spark)") as progress,
        open_flow(options.flow) as flow,
    ):
        replay = flow.replay(
            options.first,
            options.last,
            into=options.into,
            progress=lambda tick, last: progress.step(f"replaying tick {tick} of {last}"),
        )
    content = {
        "format": 1,
        "equal": replay.equal,
        "hydrated_at": replay.hydrated_at,
        "deltas": [_content(each) for each in replay.deltas],
        "shared": [_content(each) for each in replay.shared],
    }
    console.answer(_text(replay), content)
    return ExitCode.OK if replay.equal else ExitCode.NO


def _content(each: ReplayedDelta) -> dict[str, Any]:
    sample = [{name: to_json(value) for name, value in row.items()} for row in each.sample]
    return {**asdict(each), "sample": sample, "equal": each.equal}


def _text(replay: Replay) -> str:
    ticks = len({each.tick for each in replay.deltas})
    lines = [
        f"tick {each.tick}, {kind} {each.view}: "
        + (each.problem or f"recorded {each.recorded}, replayed {each.replayed}")
        for kind, deltas in (("shared node", replay.shared), ("view", replay.deltas))
        for each in deltas
        if not each.equal
    ]
    word = "DIFFERENT" if lines else "equal"
    return "\n".join([*lines, f"{ticks} ticks, {len(replay.deltas)} deltas replayed: {word}"])
