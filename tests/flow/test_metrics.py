"""Metrics say what the summaries of ticks said, by SQL and to the reference reader of OpenMetrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from ivm_core import IncrementalFlow, OutOfRange, TickFailed
from ivm_core.api.metrics import read_metrics
from tests.flow.shop import rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def samples(text: str) -> dict[tuple[str, str], float]:
    """By name and label."""
    found = {}
    for family in text_string_to_metric_families(text):
        for each in family.samples:
            found[each.name, "".join(each.labels.values())] = each.value
    return found


def test_a_flow_in_figures(flow: IncrementalFlow, place: Path, spark: SparkSession) -> None:
    assert samples(flow.openmetrics())["tideview_ticks_total", ""] == 0
    assert flow.metrics().count() == 0
    flow.register_source("t", "id INT, x INT", dedup=True, dedup_entries=2)
    flow.register_source("other", "id INT")
    flow.register_view("sums", "SELECT SUM(x) AS s FROM t")
    flow.register_view("inverse", "SELECT id, 10 DIV x AS y FROM t")
    flow.register_view("quiet", "SELECT id FROM other")
    summaries = [
        flow.tick("t", [(1, 1), (2, 2)]),
        flow.tick("t", [(2, 2), (1, 1)]),
        flow.tick("t", [(3, 5)]),
        flow.tick("t", [(4, 5)]),
    ]
    with pytest.raises(TickFailed):
        flow.tick("t", [(5, 0)])
    flow.rename_view("inverse", "upside")
    flow.metrics().createOrReplaceTempView("metrics")
    told = spark.sql(
        "SELECT kind, name, COUNT(*), SUM(rows_in), SUM(rows_out), SUM(deletions), "
        "SUM(INT(skipped)), SUM(dedup_dropped), SUM(dedup_evicted), MAX(rows) "
        "FROM metrics WHERE kind <> 'shared' GROUP BY ALL"
    )
    found: dict[Any, Any] = {(row[0], row[1]): tuple(row[2:]) for row in told.collect()}
    assert found["tick", None] == (4, 4, sum(s.rows_out for s in summaries), None, None, 1, 1, None)
    assert found["source", "t"] == (4, 4, None, 0, None, 1, 1, 4)
    assert found["view", "sums"] == (4, None, 5, 2, 1, None, None, 1)
    assert found["view", "upside"] == (4, None, 4, 0, 1, None, None, 4)
    assert found["view", "quiet"][4] == 3
    assert found["abort", None][0] == 1
    assert rows(spark.sql("SELECT DISTINCT tick FROM metrics WHERE tick > 2")) == [(3,), (4,), (5,)]
    assert flow.metrics(since=3).where("kind = 'tick'").count() == 1
    with pytest.raises(OutOfRange):
        flow.metrics(since=9)
    took = spark.sql("SELECT SUM(duration_ms) FROM metrics WHERE kind = 'tick'").first()
    body = spark.sql(
        "SELECT SUM(DOUBLE(get_json_object(body, '$.phases_ms.prepare')) + "
        "DOUBLE(get_json_object(body, '$.phases_ms.evaluate'))) "
        f"FROM delta.`{place}/ticks` WHERE kind = 'commit'"
    ).first()
    assert took is not None
    assert body is not None
    assert took[0] == pytest.approx(body[0])

    figures = samples(flow.openmetrics())
    assert figures["tideview_ticks_total", ""] == 4
    assert figures["tideview_ticks_aborted_total", ""] == 1
    assert figures["tideview_dedup_dropped_total", "t"] == 1
    assert figures["tideview_dedup_evicted_total", "t"] == 1
    assert ("tideview_dedup_dropped_total", "other") not in figures
    assert figures["tideview_source_rows", "t"] == 4
    assert figures["tideview_source_rows_in_total", "t"] == 4
    assert figures["tideview_view_rows_out_total", "sums"] == 5
    assert figures["tideview_view_deletions_total", "sums"] == 2
    assert figures["tideview_view_skipped_total", "quiet"] == 3
    assert figures["tideview_view_duration_seconds_count", "upside"] == 3
    assert figures["tideview_tick_duration_seconds_sum", ""] == pytest.approx(took[0] / 1000)
    # the same from the log alone, whoever reads it
    assert read_metrics(place).open_metrics() == flow.openmetrics()
    flow.drop_view("quiet")
    assert ("tideview_view_rows", "quiet") not in samples(flow.openmetrics())


def test_names_of_all_kinds_are_written_so_that_they_are_read_back() -> None:
    from ivm_core.model.open_metrics import Family, Sample, open_metrics

    names = ['a"b', "back\\slash", "two\nlines", "größe", "{x=1}", "\\n"]
    values = [Sample(at, "_total", {"view": name}) for at, name in enumerate(names)]
    text = open_metrics([Family("f", "counter", 'quoted "so"\\', values)])
    assert [samples(text)["f_total", name] for name in names] == [0, 1, 2, 3, 4, 5]
