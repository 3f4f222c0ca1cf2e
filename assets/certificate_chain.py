"""Whether what the ticks of a view recorded adds up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagster import MetadataValue

from tideview.assets.markdown import rows_table
from tideview.assets.verdicts import Asked, verdict

if TYPE_CHECKING:
    from dagster import AssetCheckResult

NAME = "certificate_chain"


def certificate_chain(asked: Asked, view: str) -> AssetCheckResult:
    """Add up the digests of a view, tick by tick."""
    found = asked.flow.check_chain(view)
    read = "" if found.rows_read else "; the newest change itself was not read"
    told = f"{found.ticks} ticks add up{read}"
    if not found.equal:
        told = f"tick {found.broken_at} doesn't fit: {found.problem}"
    return verdict(
        asked.pipeline,
        view,
        NAME,
        passed=found.equal,
        told=told,
        metadata={
            "tick": found.newest,
            "ticks": found.ticks,
            "rows_of_the_change": MetadataValue.md(rows_table(found.sample) or "none shown"),
        },
    )
