"""Metrics: what the certificates in the tick log say, as a table and as an OpenMetrics text.

Nothing is counted on the side: whoever reads the log gets the same figures, after a restart and
after a killed tick that was finished too.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivm_core.model.open_metrics import Family, Sample, open_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ivm_core.engine.history import History
    from ivm_core.store.ticklog import Entry

_UTC = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("tick", pa.int64()),
        ("kind", pa.string()),
        ("name", pa.string()),
        ("committed_at", _UTC),
        ("logical_time", _UTC),
        ("duration_ms", pa.float64()),
        ("rows_in", pa.int64()),
        ("rows_out", pa.int64()),
        ("deletions", pa.int64()),
        ("rows", pa.int64()),
        ("skipped", pa.bool_()),
        ("hydrated", pa.bool_()),
        ("recovered", pa.bool_()),
        ("way", pa.string()),
        ("statements", pa.int64()),
        ("commits", pa.int64()),
        ("dedup_dropped", pa.int64()),
        ("dedup_evicted", pa.int64()),
    ]
)
DDL = (
    "tick BIGINT, kind STRING, name STRING, committed_at TIMESTAMP, logical_time TIMESTAMP, "
    "duration_ms DOUBLE, rows_in BIGINT, rows_out BIGINT, deletions BIGINT, rows BIGINT, "
    "skipped BOOLEAN, hydrated BOOLEAN, recovered BOOLEAN, way STRING, statements BIGINT, "
    "commits BIGINT, dedup_dropped BIGINT, dedup_evicted BIGINT"
)


def metric_rows(history: History, entries: Iterable[Entry], since: int = 0) -> list[dict[str, Any]]:
    """A row for each tick after `since`, and in it for each source, shared node and view."""
    found: list[dict[str, Any]] = []
    for entry in entries:
        if entry.tick <= since or entry.kind not in ("commit", "abort"):
            continue
        about = {"tick": entry.tick, "committed_at": entry.at}
        if entry.kind == "abort":
            found.append({**about, "kind": "abort", "way": entry.body["error"]})
        else:
            found += _of_tick(history.commits[entry.tick], about)
    return found


def metric_table(rows: list[dict[str, Any]]) -> pa.Table:
    """The rows with all columns, NULL where one says nothing."""
    return pa.Table.from_pylist(rows, SCHEMA)


def _of_tick(body: Mapping[str, Any], about: dict[str, Any]) -> list[dict[str, Any]]:
    about = {**about, "logical_time": datetime.fromisoformat(body["logical_time"])}
    dedup = body.get("dedup", {})
    sources, views = body["sources"], body["views"]
    found = [
        {
            **about,
            "kind": "tick",
            "duration_ms": sum(body["phases_ms"].values()),
            "rows_in": sum(each["rows_in"] for each in sources.values()),
            "rows_out": sum(each["rows_out"] for each in views.values()),
            "recovered": body["recovered"],
            "statements": body["statements"],
            "commits": body["commits"],
            "dedup_dropped": sum(each["dropped"] for each in dedup.values()),
            "dedup_evicted": sum(each["evicted"] for each in dedup.values()),
        }
    ]
    for name in dict.fromkeys([*sources, *dedup]):
        each = sources.get(name, {"rows_in": 0, "deletions": 0})
        record = dedup.get(name, {"dropped": 0, "evicted": 0})
        found.append(
            {
                **about,
                "kind": "source",
                "name": name,
                **{key: each.get(key) for key in ("rows_in", "deletions", "rows", "way")},
                "dedup_dropped": int(record["dropped"]),
                "dedup_evicted": record["evicted"],
            }
        )
    for kind, nodes in (("shared", body.get("shared", {})), ("view", views)):
        for name, each in nodes.items():
            keys = ("duration_ms", "rows_out", "deletions", "rows", "skipped", "hydrated")
            row = {**about, "kind": kind, "name": name, **{key: each[key] for key in keys}}
            found.append({**row, "way": each["ways"].get(name)})
    return found


def open_metrics_text(history: History, entries: list[Entry]) -> str:
    """All counters since the flow was made, and how it stands, as OpenMetrics."""
    rows = metric_rows(history, entries)
    ticks = [row for row in rows if row["kind"] == "tick"]
    families = [
        Family("tideview_tick", "gauge", "The newest committed tick.", [Sample(history.tick)]),
        _count("tideview_ticks", "Ticks that were committed.", len(ticks)),
        _count(
            "tideview_ticks_aborted",
            "Ticks that evaluated to an error.",
            sum(row["kind"] == "abort" for row in rows),
        ),
        _count(
            "tideview_ticks_recovered",
            "Killed ticks that were finished by a later start.",
            sum(row["recovered"] for row in ticks),
        ),
        _summary(
            "tideview_tick_duration_seconds", "Time of ticks up to their commit.", {"": ticks}
        ),
        _count("tideview_statements", "Spark statements.", sum(r["statements"] for r in ticks)),
        _count("tideview_commits", "Delta commits.", sum(row["commits"] for row in ticks)),
    ]
    if ticks:
        last = ticks[-1]
        families += [
            Family(
                "tideview_last_tick_timestamp_seconds",
                "gauge",
                "When the newest tick was committed.",
                [Sample(last["committed_at"].timestamp())],
                "seconds",
            ),
            Family(
                "tideview_logical_time_seconds",
                "gauge",
                "The logical time of the newest tick.",
                [Sample(last["logical_time"].timestamp())],
                "seconds",
            ),
        ]
    of_sources = _by_name(rows, "source", history.sources)
    of_views = _by_name(rows, "view", history.live_views)
    dedup = {name: each for name, each in of_sources.items() if name in history.dedup}
    families += [
        _gauge(
            "tideview_source_rows",
            "Rows of a source.",
            "source",
            {name: history.source_rows.get(name, 0) for name in of_sources},
        ),
        _total("tideview_source_rows_in", "Changed rows of a source.", "source", of_sources),
        _total("tideview_source_deletions", "Deletions among them.", "source", of_sources),
        _total(
            "tideview_dedup_dropped",
            "Batches that were dropped because their content was taken before.",
            "source",
            dedup,
        ),
        _total("tideview_dedup_evicted", "Contents that were forgotten.", "source", dedup),
        _gauge(
            "tideview_view_rows",
            "Rows of a view.",
            "view",
            {name: history.states[name].rows for name in of_views},
        ),
        _gauge(
            "tideview_view_tick",
            "The newest tick that a view has seen.",
            "view",
            {name: history.states[name].upto for name in of_views},
        ),
        _total("tideview_view_rows_out", "Rows of the deltas of a view.", "view", of_views),
        _total("tideview_view_deletions", "Deletions among them.", "view", of_views),
        _total("tideview_view_skipped", "Ticks without a change for it.", "view", of_views),
        _summary(
            "tideview_view_duration_seconds",
            "Time of evaluating a view.",
            {name: [row for row in each if not row["skipped"]] for name, each in of_views.items()},
            "view",
        ),
    ]
    return open_metrics(family for family in families if family.samples)


def _by_name(
    rows: list[dict[str, Any]], kind: str, names: Iterable[str]
) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for row in rows:
        if row["kind"] == kind and row["name"] in found:
            found[row["name"]].append(row)
    return found


def _count(name: str, about: str, value: float) -> Family:
    return Family(name, "counter", about, [Sample(value, "_total")])


def _gauge(name: str, about: str, label: str, values: Mapping[str, float]) -> Family:
    samples = [Sample(value, labels={label: each}) for each, value in values.items()]
    return Family(name, "gauge", about, samples)


def _total(name: str, about: str, label: str, rows: Mapping[str, list[dict[str, Any]]]) -> Family:
    """The sum over ticks of the column that the metric is called after."""
    column = name.removeprefix("tideview_").removeprefix(f"{label}_")
    samples = [
        Sample(sum(row[column] or 0 for row in each), "_total", {label: of})
        for of, each in rows.items()
    ]
    return Family(name, "counter", about, samples)


def _summary(
    name: str, about: str, rows: Mapping[str, list[dict[str, Any]]], label: str = ""
) -> Family:
    samples = []
    for of, each in rows.items():
        labels = {label: of} if label else {}
        seconds = sum(row["duration_ms"] for row in each) / 1000
        samples += [Sample(len(each), "_count", labels), Sample(seconds, "_sum", labels)]
    return Family(name, "summary", about, samples, "seconds")
