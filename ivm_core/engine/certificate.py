"""The certificate of a tick, as the tick log keeps it, and the summary that is made from it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from ivm_core.engine.summary import SourceSummary, StepSummary, ViewSummary
from ivm_core.model.digest import Digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ivm_core.compile.program import ViewProgram
    from ivm_core.engine.evaluation import ViewResult
    from ivm_core.engine.history import History
    from ivm_core.engine.relations import TickRelations
    from ivm_core.engine.staging import Staged


def certificate(
    history: History,
    tick: int,
    intent: Mapping[str, Any],
    *,
    staged: Mapping[str, Staged | None],
    relations: TickRelations,
    results: Mapping[str, ViewResult],
    ways: Mapping[str, str],
    statements: int,
    commits: int,
    phases: Mapping[str, float],
    recovered: bool,
    programs: Mapping[str, ViewProgram],
    traces: Sequence[str] = (),
) -> dict[str, Any]:
    """What a tick records about itself: frontier, time, fingerprints, rows, ways, digests."""
    sources: dict[str, Any] = {}
    for name, change in staged.items():
        digest = Digest.zero() if change is None else change.digest
        before = Digest.parse(history.source_digests.get(name) or Digest.zero().hex)
        sources[name] = {
            "rows_in": 0 if change is None else change.count,
            "deletions": 0 if change is None else change.change.deletions,
            "digest": digest.hex,
            "state_digest": (before + digest).hex,
            "rows": history.source_rows.get(name, 0) + (0 if change is None else change.change.net),
            "way": "pushed",
        }
    for name, pin in intent["pins"].items():
        change_of = relations.produced.get(name)
        sources[name] = {
            "rows_in": 0 if change_of is None else change_of.count,
            "deletions": 0 if change_of is None else change_of.deletions,
            "digest": "",
            "state_digest": "",
            "rows": history.source_rows.get(name, 0) + (0 if change_of is None else change_of.net),
            "version": pin["version"],
            "way": ways.get(name, ""),
        }
    views: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    for name, result in results.items():
        state = history.states[name]
        before = (
            Digest.zero() if result.replaces else Digest.parse(state.digest or Digest.zero().hex)
        )
        is_inner = name in history.shared or bool(history.views[name].inside)
        (shared if is_inner else views)[name] = {
            "skipped": result.skipped,
            "rows_out": result.rows_out,
            "deletions": result.deletions,
            "rows": state.rows + result.net,
            "digest": result.digest.hex,
            "state_digest": (before + result.digest).hex,
            "fingerprint": programs[name].fingerprint,
            "duration_ms": round(result.duration_ms, 3),
            "ways": result.ways,
            "costs": {relation: cost.body for relation, cost in result.costs.items()},
            "hydrated": state.upto == 0,
        }
    return {
        **{name: intent[name] for name in ("altered", "dropped", "dedup") if name in intent},
        "logical_time": intent["logical_time"],
        "pins": intent["pins"],
        "batch_id": intent.get("batch_id"),
        "notes": intent.get("notes", []),
        "sources": sources,
        "views": views,
        **({"shared": shared} if shared else {}),
        "traces": list(traces),
        "statements": statements,
        "commits": commits,
        "phases_ms": {name: round(value, 3) for name, value in phases.items()},
        "recovered": recovered,
    }


def summary_of(
    history: History, tick: int, *, duration_ms: float | None = None, notes: tuple[str, ...] = ()
) -> StepSummary:
    """The summary of a committed tick."""
    body = history.commits[tick]
    views = _summaries(body["views"])
    sources = {
        name: SourceSummary(
            source["rows_in"], source["digest"], source.get("version"), source["way"]
        )
        for name, source in body["sources"].items()
    }
    phases = body["phases_ms"]
    return StepSummary(
        tick=tick,
        logical_time=datetime.fromisoformat(body["logical_time"]),
        rows_in=sum(source.rows_in for source in sources.values()),
        rows_out=sum(view.rows_out for view in views.values()),
        duration_ms=sum(phases.values()) if duration_ms is None else duration_ms,
        views=views,
        shared=_summaries(body.get("shared", {})),
        sources=sources,
        statements=body["statements"],
        commits=body["commits"],
        phases_ms=phases,
        notes=(*body["notes"], *notes),
        recovered=body["recovered"],
        dropped=tuple(name for name, each in body.get("dedup", {}).items() if each["dropped"]),
    )


def _summaries(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, ViewSummary]:
    return {
        name: ViewSummary(
            rows_out=view["rows_out"],
            deletions=view["deletions"],
            rows=view["rows"],
            skipped=view["skipped"],
            digest=view["digest"],
            state_digest=view["state_digest"],
            duration_ms=view["duration_ms"],
            ways=view["ways"],
        )
        for name, view in entries.items()
    }
