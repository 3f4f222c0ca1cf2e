"""Bar 1: what a tick costs whatever it carries, against one Spark append to a Delta table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.machine import jobs_run
from bench.measure import Plan, Samples, Section, progress
from ivm_core import DeltaBatch, IncrementalFlow
from ivm_core.operators.arrow_types import to_spark
from tideview import pipelines
from tideview.pipelines.shop.trade import Shop
from tideview.resources.pipeline_folder import Pipeline, load_pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

LIMIT = 6.0
CUSTOMERS, ORDERS = 200, 2_000
FIVE = ("revenue_per_customer", "big_spenders", "product_sales", "best_sellers", "late_customers")
"""The demo's views that the bar is about; two of them are over other views."""


class ShopFlow:
    """The demo's shop with some of its views, and changes of one row to it."""

    def __init__(
        self, spark: SparkSession, folder: Path, pipeline: Pipeline, views: Sequence[str]
    ) -> None:
        """Hydrated at once."""
        self._shop = Shop()
        self._shop.open(customers=CUSTOMERS, orders=ORDERS)
        self._step = 0
        self.flow = IncrementalFlow.open(folder, spark)
        for source in pipeline.sources:
            keys = list(source.primary_key)
            self.flow.register_source(source.name, source.schema.ddl, primary_key=keys)
        for view in pipeline.views:
            if view.name in views:
                self.flow.register_view(view.name, view.sql)
        self.flow.tick({source.name: self._shop.rows(source.name) for source in pipeline.sources})

    def change_order(self) -> dict[str, DeltaBatch]:
        """An order goes to another customer."""
        self._step += 1
        rows = self._shop.rows("orders")
        order, customer, *rest = rows[self._step * 37 % len(rows)]
        return {"orders": DeltaBatch.upserts([(order, customer % CUSTOMERS + 1, *rest)])}

    def change_item(self) -> dict[str, DeltaBatch]:
        """More of a product is ordered."""
        self._step += 1
        rows = self._shop.rows("order_items")
        order, line, product, quantity, *rest = rows[self._step * 37 % len(rows)]
        changed = (order, line, product, quantity + self._step, *rest)
        return {"order_items": DeltaBatch.upserts([changed])}


def run(spark: SparkSession, folder: Path, plan: Plan) -> Section:
    """Ticks of one changed row, each beside one append, in turn."""
    section = Section("fixed", "Fixed cost: one changed row, against one Spark append to Delta")
    pipeline = load_pipeline(Path(pipelines.__file__).parent / "shop")
    every = tuple(view.name for view in pipeline.views)
    cases: list[tuple[str, ShopFlow, Samples, str]] = []
    for label, views in (("five views", FIVE), (f"all {len(every)} demo views", every)):
        progress(f"fixed: hydrating {label}")
        shop = ShopFlow(spark, folder / label.replace(" ", "-"), pipeline, views)
        cases += [
            (label, shop, section.sample(f"one {change}, {label}"), change)
            for change in ("order", "item")
        ]
    append = section.sample("Spark: append of one row")
    orders = next(source for source in pipeline.sources if source.name == "orders")
    row, target = Shop(), str(folder / "appended")
    row.open(customers=1, orders=1)

    def append_one() -> None:
        frame = spark.createDataFrame(row.rows("orders"), to_spark(orders.schema))
        frame.write.format("delta").mode("append").save(target)

    for number, keep in enumerate(plan.rounds):
        progress(f"fixed: round {number + 1} of {len(plan.rounds)}")
        for _, shop, samples, change in cases:
            delta = shop.change_order() if change == "order" else shop.change_item()
            before = jobs_run(spark)
            summary = samples.time(shop.flow.tick, delta, keep=keep)
            if keep:
                samples.note(
                    statements=summary.statements,
                    jobs=jobs_run(spark) - before,
                    commits=summary.commits,
                    evaluated=sum(not view.skipped for view in summary.views.values()),
                )
        before = jobs_run(spark)
        append.time(append_one, keep=keep)
        if keep:
            append.note(jobs=jobs_run(spark) - before, commits=1)

    for label, shop in {label: shop for label, shop, *_ in cases}.items():
        for view in shop.flow.views:
            section.check(f"{view} ({label}) equals its query", shop.flow.check(view).equal)
        shop.flow.close()
    for label, _, samples, _change in cases:
        ratio = samples.median / append.median
        if label == "five views":
            section.bar(f"{samples.name} / append", ratio, "<=", LIMIT)
        else:
            section.notes.append(f"{samples.name} / append: {ratio:.2f}×, no bar")
    return section
