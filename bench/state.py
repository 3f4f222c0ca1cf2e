"""What a view takes on disk after many ticks, beside a plain Delta table of the same rows.

Counted apart: the base (ticks folded together), the ticks that retention keeps apart, accumulators,
the published table, and files that nothing refers to any more and that are kept for an hour.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from bench.measure import Plan, Section, progress, size_text
from bench.orders import VIEWS, Trade
from bench.ticking import timed_tick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bench.dataset import Datasets
    from ivm_core import IncrementalFlow

LIMIT = 1.5
KEPT = 20
"""Ticks that stay apart; fewer in a short run, so that there is a base."""
CHANGED = 100
TEXTS = {
    "grouped_sum": VIEWS["grouped sum"],
    "large_orders": (
        "SELECT id, customer_id, product_id, amount, ordered_at FROM orders WHERE quantity > 4"
    ),
}


def run(spark: SparkSession, datasets: Datasets, plan: Plan) -> Section:
    """So many ticks over the second largest number of orders, then count."""
    rows = plan.rows[-2] if len(plan.rows) > 1 else plan.largest
    count = plan.state_ticks
    section = Section("state", f"bytes on disk after {count} ticks over {size_text(rows)} orders")
    dataset, trade = datasets.of(rows), Trade(rows)
    trade.rows = min(trade.rows, CHANGED)
    flow = dataset.open_copy("state")
    kept = min(KEPT, count // 4)
    flow.set_retention(ticks=kept)
    flow.register_views(TEXTS)
    flow.tick(views=list(TEXTS))
    ticks = section.sample(f"tick of {trade.rows} scattered")
    for number in range(1, count + 1):
        timed_tick(ticks, flow, "orders", trade.next("scattered").batch())
        if number % 100 == 0:
            progress(f"state: tick {number}, {ticks.median:.3f} s a tick")
    for told in flow.compact():
        progress(f"state: {told}")
    flow.publish()
    for view in TEXTS:
        _measure(section, flow, dataset.folder / "state", view)
    section.plot(
        "ticks",
        f"{count} ticks in a row, {kept} kept apart",
        "tick",
        "seconds",
        {ticks.name: list(enumerate(ticks.seconds, 1))},
    )
    flow.close()
    dataset.remove("state")
    return section


def _measure(section: Section, flow: IncrementalFlow, place: Path, view: str) -> None:
    plain = place.parent / "plain" / view
    flow.snapshot(view).write.format("delta").mode("overwrite").save(str(plain))
    section.check(f"{view} equals its query", flow.check(view).equal)
    found = sizes(place, view)
    found["plain table"] = sum(active_files(plain).values())
    section.raw[view] = found
    section.check(f"{view} has a base", found["base"] > 0)
    section.bar(
        f"{view}: base / plain Delta table", found["base"] / found["plain table"], "<=", LIMIT
    )
    told = ", ".join(f"{name} {value / 1024:,.0f} KiB" for name, value in found.items())
    section.notes.append(f"{view}: {told}")


def sizes(flow: Path, view: str) -> dict[str, int]:
    """Bytes of a view's files by what they are for."""
    folder = flow / "views" / view
    rows = active_files(folder / "rows")
    states = [path.parent for path in folder.glob("**/state/_delta_log")]
    inner = [path.parent for path in folder.glob("node_*/rows/_delta_log")]
    active = sum(rows.values())
    base = sum(size for name, size in rows.items() if name.startswith("b"))
    accumulators = sum(sum(active_files(each).values()) for each in states)
    nodes = sum(sum(active_files(each).values()) for each in inner)
    stored = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    published = flow / "published" / view
    return {
        "base": base,
        "ticks kept apart": active - base,
        "accumulators": accumulators,
        "inner nodes": nodes,
        "published table": sum(active_files(published).values()),
        "let go, kept for an hour, and logs": stored - active - accumulators - nodes,
    }


def active_files(table: Path) -> dict[str, int]:
    """The files of a Delta table's newest version, with their bytes."""
    if not (table / "_delta_log").is_dir():
        return {}
    paths = [Path(uri.removeprefix("file://")) for uri in DeltaTable(str(table)).file_uris()]
    return {path.name: path.stat().st_size for path in paths}
