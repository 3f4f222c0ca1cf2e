"""`tideview explain`: how a view is maintained, or why SQL is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.api.view_file import read_view_file
from ivm_core.cli.console import ExitCode
from ivm_core.cli.flows import add_flow, open_flow
from ivm_core.engine.explanation import WhyNot
from ivm_core.model.errors import Refusal

if TYPE_CHECKING:
    import argparse

    from ivm_core.cli.console import Console

HELP = "how a view is maintained: plan, verdicts, state, costs, statements"
EXAMPLES = """\
  tideview explain shop/flow totals                      # starts no Spark
  tideview explain shop/flow totals --why-not            # what costs more than its change
  tideview explain shop/flow --sql 'SELECT …' --why-not  # why it is refused, and what to write
  tideview explain shop/flow --file views/totals.sql --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the subcommand takes."""
    from pathlib import Path

    add_flow(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("view", metavar="VIEW", nargs="?", help="a view of the flow")
    what.add_argument("--sql", help="a SELECT that is not registered (asks Spark)")
    what.add_argument("--file", type=Path, help="the same from a file")
    parser.add_argument(
        "--why-not",
        action="store_true",
        help="only what is refused, recomputed or read in full: construct, place, reason, rewrite; "
        "ends with 4 for refused, 1 for costly, 0 for incremental",
    )


def run(options: argparse.Namespace, console: Console) -> ExitCode:
    """Explain, or say why not."""
    sql = options.sql
    if options.file is not None:
        sql = read_view_file(options.file).sql
    waits = "reading the flow" if sql is None else "asking Spark about the query"
    try:
        with console.progress(waits), open_flow(options.flow) as flow:
            explanation = flow.explain(options.view, sql=sql)
    except Refusal as refusal:
        if not options.why_not:
            raise
        return _say_why_not((WhyNot.of("refused", refusal),), console, ExitCode.REFUSED)
    if not options.why_not:
        console.answer(str(explanation), explanation.to_dict())
        return ExitCode.OK
    code = ExitCode.NO if explanation.why_not else ExitCode.OK
    return _say_why_not(explanation.why_not, console, code)


def _say_why_not(found: tuple[WhyNot, ...], console: Console, code: ExitCode) -> ExitCode:
    text = "\n".join(str(each) for each in found) or "nothing: it costs no more than its change"
    console.answer(text, {"why_not": [each.to_dict() for each in found]})
    return code
