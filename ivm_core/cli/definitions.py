"""`tideview alter`, `drop` and `rename`: changes of what a flow is made of."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ivm_core.cli.console import ExitCode
from ivm_core.cli.flows import add_flow, open_flow
from ivm_core.cli.json_values import to_json
from ivm_core.model.errors import UserError

if TYPE_CHECKING:
    import argparse

    from ivm_core.api.flow import IncrementalFlow
    from ivm_core.cli.console import Console
    from ivm_core.engine.alter_report import AlterReport

ALTER_HELP = "give a view other SQL, or a fed source more columns; says which rows come and go"
ALTER_EXAMPLES = """\
  tideview alter shop/flow totals --file totals.sql
  tideview alter shop/flow totals --file totals.sql --also cities=cities.sql
  tideview alter shop/flow totals --sql 'SELECT …' --prepare    # ticks beside it, unseen
  tideview alter shop/flow orders --columns 'id BIGINT, amount INT, note STRING'
  tideview alter shop/flow orders --dedup content --dedup-entries 100000
"""
DROP_HELP = "drop views"
DROP_EXAMPLES = """\
  tideview drop shop/flow totals
  tideview drop shop/flow totals --cascade      # and all views that read it
"""
RENAME_HELP = "give a view another name; rows, history and what reads it stay"
RENAME_EXAMPLES = """\
  tideview rename shop/flow totals sums
"""
_DEDUP: dict[str, bool | str] = {"off": False, "content": True, "consecutive": "consecutive"}


def add_alter_arguments(parser: argparse.ArgumentParser) -> None:
    """What `alter` takes."""
    add_flow(parser)
    parser.add_argument("name", metavar="NAME", help="a view, or a fed source")
    text = parser.add_mutually_exclusive_group()
    text.add_argument("--sql", metavar="TEXT", help="a view: its new SQL")
    text.add_argument("--file", metavar="FILE", help="a view: a file with its new SQL")
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="VIEW=FILE",
        help="another view that changes in the same tick; may be given again",
    )
    parser.add_argument(
        "--prepare", action="store_true", help="a view: let the new SQL tick beside it, unseen"
    )
    parser.add_argument("--columns", metavar="DDL", help="a source: all its columns, old and new")
    parser.add_argument(
        "--dedup", choices=sorted(_DEDUP), help="a source: whether repeated batches are dropped"
    )
    parser.add_argument("--dedup-entries", type=int, metavar="N", help="how many are remembered")


def alter(options: argparse.Namespace, console: Console) -> ExitCode:
    """Alter a view or a source."""
    of_view = options.sql is not None or options.file or options.also or options.prepare
    of_source = options.columns is not None or options.dedup or options.dedup_entries is not None
    if bool(of_view) == bool(of_source):
        raise UserError(
            "alter changes a view or a source, one at a time",
            where=options.name,
            fix="give --sql or --file for a view; --columns or --dedup for a source",
        )
    with (
        console.progress("altering (starts Spark)"),
        open_flow(options.flow, to_write=True) as flow,
    ):
        if of_source:
            text, content = _altered_source(flow, options)
        else:
            also = {view: _read(file) for view, file in map(_pair, options.also)}
            sql = _read(options.file) if options.file else options.sql
            report = flow.alter_view(options.name, sql, also=also, swap=not options.prepare)
            text, content = str(report), _content(report)
    console.answer(text, {"format": 1, **content})
    return ExitCode.OK


def add_drop_arguments(parser: argparse.ArgumentParser) -> None:
    """What `drop` takes."""
    add_flow(parser)
    parser.add_argument("views", metavar="VIEW", nargs="+")
    parser.add_argument("--cascade", action="store_true", help="views that read them go too")


def drop(options: argparse.Namespace, console: Console) -> ExitCode:
    """Drop views."""
    with (
        console.progress("dropping"),
        open_flow(options.flow, to_write=True) as flow,
    ):
        gone = flow.drop_view(*options.views, cascade=options.cascade)
    console.answer(f"dropped: {', '.join(gone)}", {"format": 1, "dropped": list(gone)})
    return ExitCode.OK


def add_rename_arguments(parser: argparse.ArgumentParser) -> None:
    """What `rename` takes."""
    add_flow(parser)
    parser.add_argument("view", metavar="VIEW")
    parser.add_argument("to", metavar="NAME", help="its new name")


def rename(options: argparse.Namespace, console: Console) -> ExitCode:
    """Rename a view."""
    with (
        console.progress("renaming (starts Spark where other views read it)"),
        open_flow(options.flow, to_write=True) as flow,
    ):
        flow.rename_view(options.view, options.to)
    content = {"format": 1, "view": options.view, "name": options.to}
    console.answer(f"{options.view} is called {options.to} now", content)
    return ExitCode.OK


def _altered_source(
    flow: IncrementalFlow, options: argparse.Namespace
) -> tuple[str, dict[str, Any]]:
    dedup = None if options.dedup is None else _DEDUP[options.dedup]
    added = flow.alter_source(
        options.name, options.columns, dedup=dedup, dedup_entries=options.dedup_entries
    )
    said = f"added: {', '.join(added)}" if added else "no column is new"
    return f"source {options.name}: {said}", {"source": options.name, "added": list(added)}


def _content(report: AlterReport) -> dict[str, Any]:
    """A report in types that JSON has."""
    also = {view: _content(each) for view, each in report.also.items()}
    plain = asdict(replace(report, also={}, sample=()))
    sample = [{name: to_json(value) for name, value in row.items()} for row in report.sample]
    return {**plain, "swapped": report.swapped, "sample": sample, "also": also}


def _pair(text: str) -> tuple[str, str]:
    view, equals, file = text.partition("=")
    if not (view and equals and file):
        raise UserError(f"--also {text!r} is not VIEW=FILE", where="--also")
    return view, file


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the file can't be read: {error}", where=file) from error
