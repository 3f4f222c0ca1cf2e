"""What only Spark writes or reads: deletion vectors, column mapping, traces as Spark sees them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ivm_core.store.compaction import compact
from ivm_core.store.followed import Change, FollowedTable, SourceVersion
from ivm_core.store.limit import Limit
from ivm_core.store.location import Location
from ivm_core.store.trace import Trace
from ivm_core.store.trace_files import Committed
from ivm_core.store.trace_writing import SPARK_WRITE_OPTIONS
from tests.store.bags import bag, difference

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def _delta_through_spark(spark: SparkSession, table: FollowedTable, change: Change) -> None:
    """Spark's rows are the difference of the ends, which `deltalake` gives."""
    frame = table.change_frame(spark, change)
    assert frame.columns == [*table.schema().names, "_weight"]
    ends = bag(table.read(change.until)), bag(table.read(change.since))
    assert bag(frame.toArrow()) == difference(*ends)


def test_deletion_vectors_go_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    name = f"delta.`{tmp_path}/dv`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, v STRING) USING delta TBLPROPERTIES ("
        "delta.enableDeletionVectors=true, delta.enableChangeDataFeed=true)"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, 'a' FROM range(10)")
    spark.sql(f"DELETE FROM {name} WHERE id = 4")
    table = FollowedTable(Location(tmp_path / "dv"))
    assert bag(table.read(2)) == bag(table.spark_frame(spark, 2).toArrow())
    change = table.whole_change(1, 2)
    assert (change.kind, change.deletion_vectors) == ("changed", True)
    for feed, way in ((True, "change data feed"), (False, "snapshot difference")):
        change = replace(change, change_feed=feed)
        found = table.change_rows(change)
        assert (found.rows, found.way) == (None, way)
        assert found.reason == "the table uses deletionVectors"
        _delta_through_spark(spark, table, change)
    found = table.read(2, where=Limit.of("id", pa.array([4, 5])))
    assert bag(found) == bag(pa.table({"id": [5], "v": ["a"]}))


def test_column_mapping_goes_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    name = f"delta.`{tmp_path}/mapped`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, v STRING) USING delta TBLPROPERTIES ("
        "delta.columnMapping.mode='name', delta.enableDeletionVectors=false)"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, 'a' FROM range(4)")
    spark.sql(f"INSERT INTO {name} SELECT id, 'b' FROM range(2)")
    table = FollowedTable(Location(tmp_path / "mapped"))
    assert bag(table.read(2)) == bag(table.spark_frame(spark, 2).toArrow())
    change = table.whole_change(1, 2)
    found = table.change_rows(change)
    assert (found.rows, found.way) == (None, "added files")
    assert found.reason == "the table has column mapping"
    _delta_through_spark(spark, table, change)
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN v TO w")
    head = table.head()
    change = table.classify(SourceVersion(head.table_id, 2), head)
    assert (change.kind, change.stopped_by) == (
        "schema_changed",
        "the schema changed at version 3",
    )
    assert table.schema().names == ("id", "w")


def test_feeds_that_spark_wrote_are_read_without_it(spark: SparkSession, tmp_path: Path) -> None:
    name = f"delta.`{tmp_path}/cdf`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, "
        "x DECIMAL(12,2), a ARRAY<INT>, p STRING) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES (delta.enableChangeDataFeed=true, delta.enableDeletionVectors=false)"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT id, DATE'2024-02-29', TIMESTAMP'1900-01-01 00:00:00.000001',"
        " TIMESTAMP_NTZ'2024-01-01 00:00:00.000001', 1.5, array(1, NULL),"
        " CASE WHEN id % 2 = 0 THEN 'a b/c' END FROM range(6)"
    )
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT * FROM {name} WHERE id < 3) s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET x = 7"
    )
    spark.sql(f"OPTIMIZE {name}")
    table = FollowedTable(Location(tmp_path / "cdf"))
    assert bag(table.read(3)) == bag(table.spark_frame(spark, 3).toArrow())
    for since in range(3):
        for until in range(since + 1, 4):
            delta = table.delta(since, until)
            assert delta is not None
            expected = difference(bag(table.read(until)), bag(table.read(since)))
            assert bag(delta) == expected


def test_spark_and_a_trace_read_each_other(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("t", pa.timestamp("us", "UTC")), ("x", pa.decimal128(30, 2))]
    ).append(pa.field("_weight", pa.int64()))
    trace, committed = Trace.open(Location(tmp_path / "t"), schema, ["id"]), Committed()
    frame = spark.sql(
        "SELECT id, TIMESTAMP'1900-01-01 00:00:00.000001' AS t, CAST(id AS DECIMAL(30,2)) AS x,"
        " 1L AS _weight, 1L AS _tick FROM range(1000)"
    )
    writer = frame.write.mode("overwrite").options(**SPARK_WRITE_OPTIONS)
    writer.parquet(trace.spark_target(1, 1))
    assert trace.adopt(1, 1) == 1000
    committed.add(1, 1)
    trace.append(trace.read(committed).drop_columns("_tick").slice(0, 3), 2, 1)
    committed.add(2, 1)
    limited = trace.read(committed, where=Limit.of("id", pa.array([0, 999, 5000])))
    assert set(limited["id"].to_pylist()) == {0, 999}
    expected = bag(trace.read(committed).drop_columns("_tick"))
    uris = [file.uri for file in trace.files(committed)]
    direct = spark.read.parquet(*uris).drop("_tick")
    assert bag(direct.toArrow()) == expected
    compact(trace, committed, 1, epoch=1)
    assert bag(trace.read(committed).drop_columns("_tick")) == expected
    seen = spark.read.format("delta").load(str(tmp_path / "t")).drop("_tick")
    assert bag(seen.toArrow()) == expected
