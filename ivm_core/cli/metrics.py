"""`tideview metrics`: counters and durations from the tick log, for people and for Prometheus."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ivm_core.api.metrics import read_metrics
from ivm_core.cli.console import ExitCode, table
from ivm_core.cli.flows import add_flow, require_flow
from ivm_core.cli.metrics_server import MetricsServer
from ivm_core.model.errors import UserError

if TYPE_CHECKING:
    import argparse

    from ivm_core.api.metrics import FlowMetrics
    from ivm_core.cli.console import Console

HELP = "counters and durations per tick, source and view; starts no Spark"
EXAMPLES = """\
  tideview metrics shop/flow --since 100
  tideview metrics shop/flow --openmetrics /var/lib/node_exporter/shop.prom
  tideview metrics shop/flow --openmetrics -
  tideview metrics shop/flow --serve 9464        # http://127.0.0.1:9464/metrics, until Ctrl-C
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the subcommand takes."""
    add_flow(parser)
    parser.add_argument(
        "--since", type=int, default=0, metavar="TICK", help="only ticks after this one"
    )
    parser.add_argument(
        "--openmetrics",
        metavar="FILE",
        help="write an OpenMetrics text of all counters to the file, whole or not at all "
        "(-: to stdout)",
    )
    parser.add_argument(
        "--serve",
        type=int,
        metavar="PORT",
        help="answer GET /metrics with that text on a port of this machine (0: any), until Ctrl-C",
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to answer on (default %(default)s)"
    )


def run(options: argparse.Namespace, console: Console) -> ExitCode:
    """Show, write or serve metrics."""
    if options.serve is not None:
        return _serve(options, console)
    with console.progress("reading the tick log"):
        metrics = read_metrics(require_flow(options.flow))
    if options.openmetrics == "-":
        console.line(metrics.open_metrics().rstrip("\n"))
        return ExitCode.OK
    if options.openmetrics:
        _write(Path(options.openmetrics), metrics.open_metrics())
        console.note(f"written to {options.openmetrics}")
        return ExitCode.OK
    rows = metrics.rows(options.since)
    content = {
        "format": 1,
        "flow": metrics.flow,
        "tick": metrics.tick,
        "rows": [{key: _plain(value) for key, value in row.items()} for row in rows],
    }
    console.answer(_text(metrics, rows), content)
    return ExitCode.OK


def _serve(options: argparse.Namespace, console: Console) -> ExitCode:
    read_metrics(require_flow(options.flow))
    with MetricsServer(options.flow, options.serve, options.host) as server:
        console.record(f"serving {server.url}", {"format": 1, "url": server.url})
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    return ExitCode.OK


def _write(file: Path, text: str) -> None:
    """In one step, so that whoever collects it never reads a part."""
    draft = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, file)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise UserError(f"the file can't be written: {error}", str(file)) from error


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _text(metrics: FlowMetrics, rows: list[dict[str, Any]]) -> str:
    """A line for each source and view, over all ticks that are asked for."""
    ticks = [row for row in rows if row["kind"] == "tick"]
    took = sum(row["duration_ms"] for row in ticks)
    lines = [f"{metrics.flow}: {len(ticks)} ticks, {took:,.0f} ms"]
    shown = []
    for kind, moved in (("source", "rows_in"), ("view", "rows_out")):
        for name in dict.fromkeys(row["name"] for row in rows if row["kind"] == kind):
            own = [row for row in rows if row["kind"] == kind and row["name"] == name]
            times = [row["duration_ms"] for row in own if "skipped" in row and not row["skipped"]]
            shown.append(
                (
                    kind,
                    name,
                    str(len(own)),
                    str(sum(row.get("skipped") or 0 for row in own)),
                    str(sum(row[moved] or 0 for row in own)),
                    str(sum(row["deletions"] or 0 for row in own)),
                    f"{sum(times) / len(times):,.0f} ms" if times else "",
                    str(sum(row.get("dedup_dropped") or 0 for row in own) or ""),
                )
            )
    names = ("kind", "name", "ticks", "skipped", "rows", "deletions", "mean time", "dropped")
    return "\n".join([*lines, *(["", table(names, shown)] if shown else [])])
