"""`tideview tick`: changes from files, or from followed tables, into every view."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ivm_core.api.batch import DeltaBatch
from ivm_core.cli.change_files import ChangeFile
from ivm_core.cli.console import ExitCode, table
from ivm_core.cli.flows import add_flow, open_flow
from ivm_core.model.errors import BatchError, LogicalTimeError, UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from ivm_core.api.flow import IncrementalFlow
    from ivm_core.cli.console import Console
    from ivm_core.engine.summary import StepSummary

HELP = "take changes into sources and bring views up to date"
EXAMPLES = """\
  tideview tick shop/flow                                # pull what is new in followed tables
  tideview tick shop/flow orders=new.jsonl               # rows, each with its _weight or +1
  tideview tick shop/flow --upsert orders=changed.csv --delete-keys orders=gone.csv
  producer | tideview tick shop/flow orders=- --batch-id 2024-01-31

Files are JSON lines (.jsonl, or - for stdin), CSV with a header (.csv) or Parquet (.parquet).
In CSV an empty field is NULL, "" is empty text. The whole tick is taken, or nothing of it.
"""
MAKERS: dict[str, Callable[[Any], DeltaBatch]] = {
    "changes": DeltaBatch.of,
    "upsert": DeltaBatch.upserts,
    "delete": DeltaBatch.deletes,
    "delete_keys": DeltaBatch.delete_keys,
}

PAIR = "SOURCE=FILE"
ROLES = {
    "--upsert": "rows that replace those of their primary key",
    "--delete": "rows that go, given in full",
    "--delete-keys": "primary keys whose rows go",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the subcommand takes."""
    add_flow(parser)
    parser.add_argument(
        "changes",
        nargs="*",
        metavar=PAIR,
        default=[],
        help="rows for a source, with _weight or +1 each",
    )
    for option, help_text in ROLES.items():
        parser.add_argument(option, action="append", metavar=PAIR, default=[], help=help_text)
    parser.add_argument(
        "--view",
        action="append",
        dest="views",
        metavar="VIEW",
        help="only this view and those it reads; may be repeated",
    )
    parser.add_argument("--logical-time", help="what current_timestamp() means, ISO 8601 with zone")
    parser.add_argument("--batch-id", help="taken once: the same again is nothing")


def run(options: argparse.Namespace, console: Console) -> ExitCode:
    """Make one tick."""
    moment = None if options.logical_time is None else _moment(options.logical_time)
    named = [(maker, *_split(each)) for maker in MAKERS for each in getattr(options, maker)]
    files = [(maker, source, ChangeFile(path)) for maker, source, path in named]
    with (
        console.progress("opening the flow") as progress,
        open_flow(options.flow, to_write=True) as flow,
    ):
        progress.step("reading files")
        batches: dict[str, DeltaBatch] = {}
        for maker, given, file in files:
            source, batch = _batch(flow, maker, given, file)
            batches[source] = batches[source] + batch if source in batches else batch
        progress.step("ticking (a first tick starts Spark)")
        summary = flow.tick(
            batches or None,
            views=options.views,
            logical_time=moment,
            batch_id=options.batch_id,
        )
    for note in summary.notes:
        console.note(note)
    console.answer(_text(summary), _content(summary))
    return ExitCode.OK


def _batch(
    flow: IncrementalFlow, maker: str, given: str, file: ChangeFile
) -> tuple[str, DeltaBatch]:
    """The source and the file's rows, bound once here so that a misfit is told with its line."""
    source, schema, keys = flow.source_columns(given)
    wanted = schema.select(keys) if maker == "delete_keys" and keys else schema
    batch = MAKERS[maker](file.rows(wanted))
    try:
        batch.bind(source, schema, keys)
    except BatchError as error:
        raise file.located(error) from error
    return source, batch


def _split(given: str) -> tuple[str, str]:
    source, equals, path = given.partition("=")
    if not (source and equals and path):
        raise UserError(
            f"{given!r} is not SOURCE=FILE", where="tick", fix="write it as orders=new.jsonl"
        )
    return source, path


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise LogicalTimeError(f"{text!r} is no time: {error}", where="--logical-time") from error


def _content(summary: StepSummary) -> dict[str, Any]:
    content = asdict(summary)
    content["logical_time"] = summary.logical_time.isoformat()
    return {"format": 1, **content}


def _text(summary: StepSummary) -> str:
    lines = [
        f"tick {summary.tick}: {summary.rows_in} rows in, {summary.rows_out} rows out, "
        f"{summary.duration_ms:,.0f} ms"
    ]
    if summary.views:
        rows = [
            (
                name,
                str(view.rows_out),
                str(view.deletions),
                str(view.rows),
                f"{view.duration_ms:,.0f} ms",
                view.ways.get(name, ""),
            )
            for name, view in summary.views.items()
        ]
        lines += ["", table(("view", "out", "deletions", "rows", "took", "way"), rows)]
    return "\n".join(lines)
