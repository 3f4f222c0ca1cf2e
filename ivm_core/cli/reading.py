"""`tideview snapshot`, `changes` and `watch`: rows of views, from stored files, without Spark."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ivm_core.api.stored_rows import StoredRows
from ivm_core.cli.console import ExitCode, table
from ivm_core.cli.flows import add_flow, open_flow, require_flow
from ivm_core.cli.json_values import to_json, to_text
from ivm_core.model.names import TICK, WEIGHT
from ivm_core.operators.shown_rows import shown_rows, shown_values

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import pyarrow as pa

    from ivm_core.cli.console import Console

SNAPSHOT_HELP = "a view's rows as of a tick; starts no Spark"
SNAPSHOT_EXAMPLES = """\
  tideview snapshot shop/flow totals
  tideview snapshot shop/flow totals --at 3 --limit 10 --json
"""
CHANGES_HELP = "what changed in a view, tick by tick; starts no Spark"
CHANGES_EXAMPLES = """\
  tideview changes shop/flow totals --since 3
"""
WATCH_HELP = "a view's changes as they come; starts no Spark"
WATCH_EXAMPLES = """\
  tideview watch shop/flow totals                 # from now on, until Ctrl-C
  tideview watch shop/flow totals --since 3       # those after tick 3 first
  tideview watch shop/flow totals --json --for 60 # one line of JSON a tick, for a minute
"""


def add_snapshot_arguments(parser: argparse.ArgumentParser) -> None:
    """What `snapshot` takes."""
    _add_view(parser)
    parser.add_argument("--at", type=int, metavar="TICK", help="default: the newest tick")
    parser.add_argument("--limit", type=int, metavar="N", help="show the first N rows only")


def add_changes_arguments(parser: argparse.ArgumentParser) -> None:
    """What `changes` takes."""
    _add_view(parser)
    parser.add_argument(
        "--since", type=int, metavar="TICK", default=0, help="after this tick (default 0: all)"
    )


def add_watch_arguments(parser: argparse.ArgumentParser) -> None:
    """What `watch` takes."""
    _add_view(parser)
    parser.add_argument(
        "--since", type=int, metavar="TICK", help="after this tick (default: the newest)"
    )
    parser.add_argument(
        "--for",
        type=float,
        dest="seconds",
        metavar="SECONDS",
        help="end when nothing has come for so long (default: never)",
    )


def snapshot(options: argparse.Namespace, console: Console) -> ExitCode:
    """Show a view's rows."""
    with console.progress(f"reading {options.view}"):
        stored = StoredRows(require_flow(options.flow))
        tick, rows = stored.snapshot(options.view, options.at)
        types = stored.types(options.view)
    total = rows.num_rows
    shown = rows if options.limit is None else rows.slice(0, max(options.limit, 0))
    content = {
        "format": 1,
        "view": options.view,
        "tick": tick,
        "columns": [{"name": name, "type": of} for name, of in types.items()],
        "total_rows": total,
        "rows": _dicts(shown),
    }
    text = f"{_table(shown)}\n{total} rows as of tick {tick}"
    if shown.num_rows < total:
        text += f", {shown.num_rows} of them shown"
    console.answer(text, content)
    return ExitCode.OK


def changes(options: argparse.Namespace, console: Console) -> ExitCode:
    """Show what changed after a tick."""
    found: list[dict[str, Any]] = []
    text: list[str] = []
    with console.progress(f"reading {options.view}"), open_flow(options.flow) as flow:
        watch = flow.watch_output(options.view, since=options.since)
        for tick, batch in watch:
            rows = batch.to_arrow()
            found += [{TICK: tick, **each} for each in _dicts(rows)]
            text += [f"tick {tick}", _table(rows), ""]
    content = {
        "format": 1,
        "view": watch.view,
        "since": options.since,
        "tick": watch.since,
        "changes": found,
    }
    last = f"{len(found)} changes after tick {options.since}, up to tick {watch.since}"
    console.answer("\n".join([*text, last]), content)
    return ExitCode.OK


def watch(options: argparse.Namespace, console: Console) -> ExitCode:
    """Show changes as they come, until interrupted or nothing comes any more."""
    with open_flow(options.flow) as flow:
        watch = flow.watch_output(options.view, since=options.since, wait=options.seconds)
        try:
            with _interruptible():
                for tick, batch in watch:
                    rows = batch.to_arrow()
                    content = {"tick": tick, "view": watch.view, "changes": _dicts(rows)}
                    console.record(f"tick {tick}\n{_table(rows)}\n", content)
        except KeyboardInterrupt:
            pass
        console.note(f"watched up to tick {watch.since}; go on with --since {watch.since}")
    return ExitCode.OK


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM ends a watch as Ctrl-C does, also where Ctrl-C was turned off for the background."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    for each in before:
        signal.signal(each, interrupt)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _add_view(parser: argparse.ArgumentParser) -> None:
    add_flow(parser)
    parser.add_argument("view", metavar="VIEW", help="a view, or a source that is fed")


def _dicts(rows: pa.Table) -> list[dict[str, Any]]:
    return [{name: to_json(each) for name, each in row.items()} for row in shown_rows(rows)]


def _table(rows: pa.Table) -> str:
    names = rows.column_names
    if WEIGHT in names:
        names = [WEIGHT, *(name for name in names if name != WEIGHT)]
    columns = [shown_values(rows.column(name)) for name in names]
    return table(names, [[to_text(each) for each in row] for row in zip(*columns, strict=True)])
