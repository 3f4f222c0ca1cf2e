"""Existing Delta tables that a flow follows: their own history is the trace."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from ivm_core import (
    DefinitionConflict,
    DeltaBatch,
    HistoryLost,
    IncrementalFlow,
    OutOfRange,
    SourceReplaced,
    Unsupported,
    UserError,
)
from ivm_core.api.status import read_status
from ivm_core.cli.main import main
from ivm_core.engine import core, relations
from ivm_core.store import followed_retention
from tests.flow.shop import assert_exact, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ivm_core import StepSummary

FEED = "delta.enableChangeDataFeed = true"


class Table:
    """A user's table, written by Spark SQL."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self._spark = spark
        self.path = str(path)
        self.name = f"delta.`{path}`"

    def run(self, *statements: str) -> Table:
        for statement in statements:
            self._spark.sql(statement.replace("$t", self.name))
        return self


@pytest.fixture
def table(tmp_path: Path, spark: SparkSession) -> Table:
    return Table(spark, tmp_path / "table")


def seen(summary: StepSummary) -> tuple[int, str]:
    source = summary.sources["events"]
    return source.rows_in, source.way.split(":")[0]


def follow(flow: IncrementalFlow, table: Table) -> None:
    flow.register_source("events", delta_table=table.path)
    flow.register_view("n", "SELECT k, COUNT(*) AS n, MAX(x) AS m FROM events GROUP BY k")


def test_a_change_data_feed_is_followed(
    place: Path, flow: IncrementalFlow, table: Table, spark: SparkSession
) -> None:
    table.run(f"CREATE TABLE $t (id INT, k STRING, x INT) USING delta TBLPROPERTIES ({FEED})")
    follow(flow, table)
    flow.register_source("names", "k STRING, name STRING", primary_key=["k"])
    flow.register_view("named", "SELECT e.id, n.name FROM events e JOIN names n ON e.k = n.k")
    assert seen(flow.tick()) == (0, "whole table")
    table.run("INSERT INTO $t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'a', 3)")
    assert flow.tick("names", [("a", "Ann"), ("b", "Bob")]).sources["events"].rows_in == 0
    assert flow.tick().rows_in == 3
    assert rows(flow.snapshot("named")) == [(1, "Ann"), (2, "Bob"), (3, "Ann")]
    table.run("UPDATE $t SET k = 'b', x = 10 WHERE id = 3", "DELETE FROM $t WHERE id = 2")
    assert seen(flow.tick()) == (3, "change data feed")
    assert rows(flow.snapshot("n")) == [("a", 1, 1), ("b", 1, 10)]
    table.run(
        "MERGE INTO $t t USING (SELECT 1 AS id, 'c' AS k, 9 AS x UNION ALL SELECT 7, NULL, 7) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    flow.close()
    with IncrementalFlow.open(place, spark) as again:
        assert seen(again.tick()) == (3, "change data feed")
        assert rows(again.snapshot("n")) == [("b", 1, 10), ("c", 1, 9), (None, 1, 7)]
        assert rows(again.snapshot("events")) == [(1, "c", 9), (3, "b", 10), (7, None, 7)]
        assert rows(again.snapshot("events", at=3))[1] == (2, "b", 2)
        table.run("OPTIMIZE $t")
        idle = again.tick()
        assert idle.rows_in == idle.statements == 0
        assert all(view.skipped for view in idle.views.values())
        assert_exact(again)
        assert again.replay().equal


@pytest.mark.parametrize("feed", ["true", "false"])
def test_tables_with_maps_are_followed_and_published(
    feed: str, place: Path, flow: IncrementalFlow, table: Table, spark: SparkSession
) -> None:
    table.run(
        "CREATE TABLE $t (id INT, m MAP<STRING, INT>, deep ARRAY<MAP<INT, DOUBLE>>) USING delta "
        f"TBLPROPERTIES (delta.enableChangeDataFeed = {feed})",
        "INSERT INTO $t VALUES (1, map('b', 1, 'a', 2), NULL), (2, NULL, array(map(1, -0.0D)))",
    )
    flow.register_source("events", delta_table=table.path)
    flow.register_view("read", "SELECT id, m['a'] AS a, m FROM events WHERE id < 9")
    flow.register_view("deep", "SELECT d FROM events LATERAL VIEW explode(deep) AS d")
    flow.tick()
    table.run("INSERT INTO $t VALUES (3, map(), array(NULL, map()))")
    flow.tick()
    table.run("UPDATE $t SET m = map('a', 7) WHERE id < 3", "DELETE FROM $t WHERE id = 3")
    flow.tick()
    assert_exact(flow)
    assert flow.replay().equal
    flow.publish()
    published = spark.read.format("delta").load(str(place / "published" / "read"))
    assert sorted(row.m["a"] for row in published.collect()) == [7, 7]


def test_added_files_are_followed_without_a_feed(flow: IncrementalFlow, table: Table) -> None:
    table.run(
        "CREATE TABLE $t (id INT, k STRING, x INT) USING delta PARTITIONED BY (k)",
        "INSERT INTO $t VALUES (1, 'a', 1), (2, 'b b', 2), (3, NULL, 3), (4, 'ä/%=', 4)",
    )
    follow(flow, table)
    assert seen(flow.tick()) == (4, "whole table")
    table.run("INSERT INTO $t VALUES (5, 'a', 5)", "INSERT INTO $t VALUES (6, NULL, 6)")
    summary = flow.tick()
    assert seen(summary) == (2, "added files")
    assert summary.notes == ()
    assert rows(flow.snapshot("n")) == [
        ("a", 2, 5),
        ("b b", 1, 2),
        ("ä/%=", 1, 4),
        (None, 2, 6),
    ]
    table.run("INSERT OVERWRITE $t VALUES (5, 'a', 5), (9, 'z', 9)")
    summary = flow.tick()
    assert seen(summary)[1] == "snapshot difference"
    assert "events" in summary.notes[0]
    assert "no change data feed" in summary.notes[0]
    assert rows(flow.snapshot("n")) == [("a", 1, 5), ("z", 1, 9)]
    assert_exact(flow)


def test_deletion_vectors_are_followed(flow: IncrementalFlow, table: Table) -> None:
    table.run(
        "CREATE TABLE $t (id INT, k STRING, x INT) USING delta "
        "TBLPROPERTIES (delta.enableDeletionVectors = true)",
        "INSERT INTO $t SELECT /*+ COALESCE(1) */ id, CAST(id % 3 AS STRING), id FROM RANGE(30)",
    )
    follow(flow, table)
    assert flow.tick().rows_in == 30
    table.run("DELETE FROM $t WHERE id < 6")
    summary = flow.tick()
    assert seen(summary) == (6, "snapshot difference")
    assert summary.notes
    table.run("INSERT INTO $t VALUES (100, '0', 100)")
    assert seen(flow.tick()) == (1, "added files")
    assert rows(flow.snapshot("n")) == [("0", 9, 100), ("1", 8, 28), ("2", 8, 29)]
    assert_exact(flow)


def test_views_that_lag_catch_up_over_several_versions(flow: IncrementalFlow, table: Table) -> None:
    table.run(
        f"CREATE TABLE $t (id INT, k STRING, x INT) USING delta TBLPROPERTIES ({FEED})",
        "INSERT INTO $t VALUES (1, 'a', 1)",
    )
    follow(flow, table)
    flow.register_view("ids", "SELECT id FROM events")
    flow.tick()
    table.run("INSERT INTO $t VALUES (2, 'b', 2)")
    flow.tick(views=["ids"])
    table.run("DELETE FROM $t WHERE id = 1", "INSERT INTO $t VALUES (3, 'b', 3)")
    flow.tick(views=["ids"])
    assert rows(flow.snapshot("ids")) == [(2,), (3,)]
    assert rows(flow.snapshot("n")) == [("a", 1, 1)]
    assert_exact(flow)
    summary = flow.tick()
    assert summary.rows_in == 0
    assert summary.views["ids"].skipped
    assert rows(flow.snapshot("n")) == [("b", 2, 3)]
    assert_exact(flow)
    assert flow.replay().equal


def test_a_view_over_a_table_that_was_never_read_is_hydrated_at_once(
    flow: IncrementalFlow, table: Table
) -> None:
    table.run("CREATE TABLE $t USING delta AS SELECT 1 AS id, 'a' AS k, 5 AS x")
    flow.register_source("events", delta_table=table.path)
    with pytest.raises(OutOfRange):
        flow.snapshot("events")
    flow.register_view("k", "SELECT k FROM events", hydrate=True)
    assert rows(flow.snapshot("k")) == [("a",)]


def test_a_schema_change_stops_after_what_came_before_it(
    flow: IncrementalFlow, table: Table, spark: SparkSession
) -> None:
    table.run(
        "CREATE TABLE $t (id INT, k STRING, x INT) USING delta",
        "INSERT INTO $t VALUES (1, 'a', 1)",
    )
    follow(flow, table)
    flow.register_source("other", "x INT")
    flow.tick()
    table.run("INSERT INTO $t VALUES (2, 'b', 2)")
    other = spark.sql("SELECT 3 AS id, 'c' AS k, 'three' AS x")
    other.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(table.path)
    summary = flow.tick()
    assert summary.rows_in == 1
    assert "schema" in summary.notes[0]
    with pytest.raises(SourceReplaced, match="schema"):
        flow.tick()
    assert rows(flow.snapshot("n")) == [("a", 1, 1), ("b", 1, 2)]
    assert flow.tick("other", [(1,)]).tick == 3


def test_columns_that_a_table_gains_pass_through(
    flow: IncrementalFlow, table: Table, place: Path, spark: SparkSession
) -> None:
    table.run(f"CREATE TABLE $t (id INT, k STRING, x INT) USING delta TBLPROPERTIES ({FEED})")
    follow(flow, table)
    table.run("ALTER TABLE $t ADD COLUMN early INT", "INSERT INTO $t VALUES (1, 'a', 1, 5)")
    flow.register_view("ids", "SELECT id FROM events")
    flow.register_view("places", "SELECT id, ROW_NUMBER() OVER (ORDER BY k) AS n FROM events")
    assert flow.tick().rows_in == 1  # before it was read at all
    table.run(
        "INSERT INTO $t VALUES (2, 'b', 2, 5)",
        "ALTER TABLE $t ADD COLUMN more STRING AFTER k",
        "INSERT INTO $t VALUES (3, 'c', 'm', 3, 5)",
        "UPDATE $t SET x = 9 WHERE id = 1",
    )
    assert seen(flow.tick(views=["ids"])) == (4, "change data feed")
    flow.register_view("mores", "SELECT more, COUNT(*) AS n FROM events GROUP BY more")
    table.run("DELETE FROM $t WHERE id = 2")
    flow.tick()  # and n has yet to read the versions before
    assert rows(flow.snapshot("n")) == [("a", 1, 9), ("c", 1, 3)]
    assert rows(flow.snapshot("mores")) == [("m", 1), (None, 1)]
    assert rows(flow.snapshot("events", at=1)) == [(1, "a", None, 1, 5)]
    assert_exact(flow)
    assert flow.replay().equal

    # a view that would change with them is named, and the others go on
    flow.register_view("everything", "SELECT * FROM events", hydrate=True)
    table.run("ALTER TABLE $t ADD COLUMN last INT", "INSERT INTO $t VALUES (5, 'e', 'm', 5, 5, 5)")
    with pytest.raises(DefinitionConflict, match="everything, because its columns"):
        flow.tick()
    assert flow.alter_view("everything", "SELECT id, k FROM events").tick
    assert flow.tick().rows_in == 1
    assert rows(flow.snapshot("ids")) == [(1,), (3,), (5,)]
    flow.close()
    with IncrementalFlow.open(place, spark) as again:
        again.register_source("events", delta_table=table.path)
        table.run("UPDATE $t SET last = 6 WHERE id = 3")
        again.tick()
        assert_exact(again, "n", "ids", "mores")
        assert again.check("everything").equal


def test_what_a_table_may_let_go_of_is_told_before(
    flow: IncrementalFlow, table: Table, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.run(
        "CREATE TABLE $t (id INT, k STRING, x INT) USING delta "
        "TBLPROPERTIES (delta.deletedFileRetentionDuration = 'interval 4 seconds')",
        "INSERT INTO $t VALUES (1, 'a', 1), (2, 'b', 2)",
    )
    follow(flow, table)
    flow.register_source("other", "x INT")
    flow.register_view("apart", "SELECT x FROM other")
    flow.tick()
    assert read_status(place).sources[0].warning == ""
    table.run("DELETE FROM $t WHERE id = 1")
    monkeypatch.setattr(followed_retention, "NEAR", 1.0)
    monkeypatch.setattr(core, "LOOK_EVERY_SECONDS", 0.0)
    notes = flow.tick("other", [(1,)], views=["apart"]).notes
    assert any("events: version 1 of 2 is read; VACUUM" in each for each in notes), notes
    assert "VACUUM" in read_status(place).sources[0].warning
    assert main(["status", str(place)]) == 0
    assert flow.tick().notes[-1:] != notes[-1:]  # it has caught up


def test_a_check_whose_files_were_vacuumed_names_the_ways_out(
    flow: IncrementalFlow, table: Table
) -> None:
    table.run(
        "CREATE TABLE $t (id INT, k STRING, x INT) USING delta",
        "INSERT INTO $t VALUES (1, 'a', 1), (2, 'b', 2)",
    )
    follow(flow, table)
    flow.tick()
    table.run("UPDATE $t SET x = 3 WHERE id = 1")
    DeltaTable(table.path).vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(HistoryLost) as refused:
        flow.tick()
    with pytest.raises(HistoryLost, match="vacuumed or deleted") as unchecked:
        flow.check("n")
    assert refused.value.fix
    assert refused.value.fix in unchecked.value.fix


def test_a_table_that_was_made_again_is_refused(flow: IncrementalFlow, table: Table) -> None:
    make = "CREATE TABLE $t (id INT, k STRING, x INT) USING delta"
    table.run(make, "INSERT INTO $t VALUES (1, 'a', 1)")
    follow(flow, table)
    flow.register_source("names", "k STRING, name STRING")
    flow.register_view("named", "SELECT e.id, n.name FROM events e JOIN names n ON e.k = n.k")
    flow.tick()
    flow.tick(views=["n"])
    shutil.rmtree(table.path)
    table.run(make, "INSERT INTO $t VALUES (7, 'a', 7)", "INSERT INTO $t VALUES (8, 'a', 8)")
    for use in (
        flow.tick,
        lambda: flow.tick("names", [("a", "Ann")]),  # would join with rows of another table
        lambda: flow.snapshot("events"),
        lambda: flow.check("n"),
        flow.replay,
    ):
        with pytest.raises(SourceReplaced, match="another one"):
            use()
    assert flow.tick("names", [("a", "Ann")], views=["n"]).views["n"].skipped
    shutil.rmtree(table.path)
    with pytest.raises(UserError):
        flow.tick()
    assert flow.current_tick == 3
    assert rows(flow.snapshot("n")) == [("a", 1, 1)]


def test_a_broken_table_stops_only_the_views_that_read_it(
    flow: IncrementalFlow, table: Table
) -> None:
    table.run(
        "CREATE TABLE $t (id INT, k STRING, x INT) USING delta", "INSERT INTO $t VALUES (1, 'a', 1)"
    )
    follow(flow, table)
    flow.register_source("other", "x INT")
    flow.register_view("apart", "SELECT x + 1 AS x FROM other")
    flow.tick()
    shutil.rmtree(table.path)
    with pytest.raises(UserError):
        flow.tick()
    flow.tick("other", [(1,)], views=["apart"])
    assert flow.tick(views=["apart"]).notes == ()
    assert rows(flow.snapshot("apart")) == [(2,)]


def test_a_table_that_lost_files_stops_only_the_views_that_read_it(
    flow: IncrementalFlow, table: Table, tmp_path: Path, spark: SparkSession
) -> None:
    table.run(
        "CREATE TABLE $t (id INT, k STRING, x INT) USING delta", "INSERT INTO $t VALUES (1, 'a', 1)"
    )
    whole = Table(spark, tmp_path / "whole").run("CREATE TABLE $t (x INT) USING delta")
    follow(flow, table)
    flow.register_source("whole", delta_table=whole.path)
    flow.register_view("apart", "SELECT x + 1 AS x FROM whole")
    flow.tick()
    before = set(Path(table.path).glob("*.parquet"))
    table.run("INSERT INTO $t VALUES (2, 'b', 2)")
    whole.run("INSERT INTO $t VALUES (1)")
    for lost in set(Path(table.path).glob("*.parquet")) - before:
        lost.unlink()
    with pytest.raises(UserError):
        flow.tick()
    flow.tick(views=["apart"])
    assert rows(flow.snapshot("apart")) == [(2,)]
    assert rows(flow.snapshot("n")) == [("a", 1, 1)]


def test_separators_of_unicode_are_letters_like_others(
    flow: IncrementalFlow, table: Table, place: Path
) -> None:
    table.run("CREATE TABLE $t (id INT, k STRING, x INT) USING delta")
    follow(flow, table)
    flow.tick()
    for number, letter in enumerate("\u2028\u2029\x85\x1c\x0b"):
        table.run(f"INSERT INTO $t VALUES ({number}, 'a{letter}b', 1)")
        flow.tick()
    assert flow.snapshot("n").count() == 5
    assert read_status(place).sources[0].warning == ""


def test_a_source_is_declared_again_after_its_table_has_changed(
    flow: IncrementalFlow, table: Table
) -> None:
    table.run("CREATE TABLE $t (id INT, k STRING, x INT) USING delta")
    follow(flow, table)
    flow.tick()
    table.run("INSERT INTO $t VALUES (1, 'a', 1)", "ALTER TABLE $t ADD COLUMN more INT")
    flow.register_source("events", delta_table=str(table.path))
    flow.tick()
    assert rows(flow.snapshot("n")) == [("a", 1, 1)]


def test_a_followed_table_is_not_watched(flow: IncrementalFlow, table: Table) -> None:
    table.run("CREATE TABLE $t (id INT, k STRING, x INT) USING delta")
    follow(flow, table)
    with pytest.raises(UserError, match="watch a view"):
        flow.watch_output("events")


def test_a_table_is_followed_by_its_name(
    flow: IncrementalFlow, spark: SparkSession, table: Table
) -> None:
    spark.sql(
        f"CREATE TABLE default.named_events USING delta LOCATION '{table.path}' AS SELECT 1 AS id"
    )
    try:
        flow.register_source("e", delta_table="default.named_events")
        flow.register_source("e", delta_table=table.path)
        flow.register_view("v", "SELECT id FROM e")
        flow.tick()
        assert rows(flow.snapshot("v")) == [(1,)]
    finally:
        spark.sql("DROP TABLE default.named_events")


def test_a_followed_table_is_never_fed(flow: IncrementalFlow, table: Table) -> None:
    table.run("CREATE TABLE $t USING delta AS SELECT 1 AS id, 'a' AS k, 5 AS x")
    follow(flow, table)
    with pytest.raises(UserError, match="can't be fed"):
        flow.tick("events", DeltaBatch.inserts([(1, "a", 1)]))
    with pytest.raises(Unsupported, match="change data feed"):
        flow.changes("events")
    with pytest.raises(UserError, match="no Delta table"):
        flow.register_source("more", delta_table=f"{table.path}/nowhere")
    with pytest.raises(UserError, match="no Delta table"):
        flow.register_source("more", delta_table="no_such_name")
    with pytest.raises(UserError, match="own"):
        flow.register_source("more", "id INT", delta_table=table.path)


@pytest.mark.parametrize("columns", ["v VARIANT", "`_weight` BIGINT"])
def test_a_table_that_no_source_can_be_is_refused(
    columns: str, flow: IncrementalFlow, table: Table
) -> None:
    table.run(f"CREATE TABLE $t (id INT, {columns}) USING delta")
    with pytest.raises((Unsupported, UserError)):
        flow.register_source("events", delta_table=table.path)


def test_a_large_table_is_hydrated_and_followed(flow: IncrementalFlow, table: Table) -> None:
    table.run(
        "CREATE TABLE $t USING delta AS "
        "SELECT CAST(id AS INT) AS id, CAST(id % 10 AS STRING) AS k, CAST(id AS INT) AS x "
        "FROM RANGE(60000)"
    )
    follow(flow, table)
    summary = flow.tick()
    assert summary.rows_in == 60_000
    table.run("INSERT INTO $t VALUES (70000, '3', 70000)")
    assert flow.tick().views["n"].rows_out == 2
    table.run("DELETE FROM $t WHERE id = 70000")
    flow.tick()
    assert_exact(flow)


def test_many_added_rows_stay_with_spark(
    flow: IncrementalFlow, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relations, "LOCAL_ROWS", 3)
    table = Table(spark, tmp_path / "a [1] {b} *?").run(
        "CREATE TABLE $t (id INT, k STRING, x INT) USING delta",
        "INSERT INTO $t VALUES (0, 'a', 1)",
    )
    follow(flow, table)
    flow.register_view("ids", "SELECT id FROM events WHERE x IS NULL OR x > 2")
    flow.register_view("pairs", "SELECT a.id, b.id AS other FROM events a JOIN events b USING (k)")
    flow.tick()
    folded = "delta, insert-only, folded in high gear (5 changes of events)"
    table.run("INSERT INTO $t SELECT id, 'k' || id % 2, id FROM RANGE(1, 6)")
    summary = flow.tick()
    assert seen(summary) == (5, "added files")
    assert folded in summary.views["n"].ways.values()
    table.run(
        "ALTER TABLE $t ADD COLUMN more INT",
        "INSERT INTO $t SELECT id, NULL, id, id FROM RANGE(6, 8)",
        "INSERT INTO $t SELECT 9, 'a', NULL, 9 FROM RANGE(4)",  # four rows that are equal
    )
    assert seen(flow.tick()) == (6, "added files")
    assert rows(flow.snapshot("n")) == [
        ("a", 5, 1),
        ("k0", 2, 4),
        ("k1", 3, 5),
        (None, 2, 7),
    ]
    assert_exact(flow)
    assert flow.replay().equal
    table.run("INSERT INTO $t SELECT id, 'z', id, 0 FROM RANGE(20, 30)", "OPTIMIZE $t")
    assert seen(flow.tick()) == (10, "added files")  # whose files were rewritten
    table.run("DELETE FROM $t WHERE id % 2 = 0", "INSERT INTO $t VALUES (4, 'k0', 8, 0)")
    assert seen(flow.tick())[1] == "snapshot difference"
    assert_exact(flow)


def test_a_change_of_most_rows_is_a_full_refresh_by_choice(
    flow: IncrementalFlow, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relations, "LOCAL_ROWS", 3)
    table.run(
        f"CREATE TABLE $t (id INT, k STRING, x INT) USING delta TBLPROPERTIES ({FEED})",
        "INSERT INTO $t SELECT id, 'k' || id % 3, 1 + id FROM RANGE(20)",
    )
    flow.register_source("events", delta_table=table.path)
    flow.register_source("names", "k STRING, name STRING", primary_key=["k"])
    sums = "COUNT(*) AS n, SUM(60 DIV x) AS s, AVG(x / 3) AS a FROM events"
    flow.register_view("all_of_it", f"SELECT {sums}")
    flow.register_view("named", f"SELECT name, {sums} JOIN names USING (k) GROUP BY name")
    flow.register_view("largest", "SELECT k, MAX(x) AS m FROM events GROUP BY k")
    flow.tick("names", [("k0", "a"), ("k1", "b"), ("k2", "b")])
    flow.tick()
    table.run("UPDATE $t SET x = x + 1 WHERE id <> 7")
    summary = flow.tick()
    assert seen(summary) == (38, "change data feed")
    told = "recomputed from all rows, folded in high gear (23 rows to read, by delta 41)"
    assert told in summary.views["named"].ways.values()
    # rows that no expression may see: they came and went between two ticks
    table.run("UPDATE $t SET x = 0", "UPDATE $t SET x = id + 5, k = 'k' || id % 4")
    assert seen(flow.tick()) == (80, "change data feed")
    assert_exact(flow)
    table.run("DELETE FROM $t")
    flow.tick()
    assert rows(flow.snapshot("all_of_it")) == [(0, None, None)]
    assert_exact(flow)


def test_tables_that_cannot_be_read_as_they_are_are_refused(
    flow: IncrementalFlow, table: Table, tmp_path: Path, spark: SparkSession
) -> None:
    table.run("CREATE TABLE $t (id INT) USING delta", "INSERT INTO $t VALUES (1)")
    clone = Table(spark, tmp_path / "clone").run(f"CREATE TABLE $t SHALLOW CLONE {table.name}")
    with pytest.raises(Unsupported, match="shallow clone"):
        flow.register_source("s", delta_table=clone.path)
    table.run("ALTER TABLE $t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    with pytest.raises(Unsupported, match="type widening"):
        flow.register_source("s", delta_table=table.path)
    assert flow.sources == ()


def test_a_table_that_deltalake_has_rewritten_is_looked_up_by_text(
    flow: IncrementalFlow, tmp_path: Path
) -> None:
    """Files of its `merge`, `update` and `delete` hold views of text, which have other types."""
    place = str(tmp_path / "people")
    people = pa.table({"name": ["ann", "bob", None, "cy"], "city": ["Rome", "Oslo", "x", "Bonn"]})
    write_deltalake(place, people, configuration={"delta.enableChangeDataFeed": "true"})
    flow.register_source("people", delta_table=place)
    flow.register_source("orders", "id INT, who STRING", primary_key=["id"])
    flow.register_view(
        "sent", "SELECT o.id, p.city FROM orders o JOIN people p ON o.who = p.name", hydrate=True
    )
    flow.tick("orders", [(1, "ann"), (2, "bob")])
    table = DeltaTable(place)
    table.update(updates={"city": "'Paris'"}, predicate="name = 'ann'")
    table.delete("name = 'bob'")
    changed = pa.table({"name": ["cy"], "city": ["Graz"]})
    table.merge(
        changed, "s.name = t.name", source_alias="s", target_alias="t"
    ).when_matched_update_all().execute()
    flow.tick()
    flow.tick("orders", [(3, "ann"), (4, "cy"), (5, "bob"), (6, None)])
    assert rows(flow.snapshot("sent")) == [(1, "Paris"), (3, "Paris"), (4, "Graz")]
    assert_exact(flow)
