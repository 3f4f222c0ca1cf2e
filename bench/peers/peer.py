"""The peers that run in this process' Spark; those in a process of their own are in `worker`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from bench.orders import SCHEMAS
from bench.peers.case import comparable
from ivm_core import IncrementalFlow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.streaming import StreamingQuery

    from bench.peers.case import Case, Row

ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"


class Absent(Exception):
    """A peer can't take part; the text says why."""


class Peer(Protocol):
    """Somebody who has a result and brings it up to date."""

    name: str
    about: str
    """What a reader has to know to judge the figures."""

    def start(self, case: Case) -> None:
        """Make the first result; `Absent` where the peer isn't installed."""

    def refresh(self, new: pa.Table) -> None:
        """Bring the result up to date; `new` are the orders that were appended."""

    def rows(self) -> list[Row]:
        """The result, as `comparable` makes it."""

    def stop(self) -> None:
        """Let go of everything."""


class Tideview:
    """A flow that follows the table of orders."""

    name = "Tideview"
    about = "follows the Delta table; every tick is durable and checked"

    def start(self, case: Case) -> None:
        """Hydrate."""
        self._flow = IncrementalFlow.open(case.folder / "flow", case.spark)
        for name, path in case.tables.items():
            self._flow.register_source(name, primary_key=["id"], delta_table=str(path))
        self._flow.register_view("result", case.sql)
        self._flow.tick()

    def refresh(self, new: pa.Table) -> None:
        """Tick."""
        self._flow.tick()

    def rows(self) -> list[Row]:
        """Of the view."""
        return comparable(tuple(row) for row in self._flow.snapshot("result").collect())

    def stop(self) -> None:
        """Close."""
        self._flow.close()


class FullRefresh:
    """Spark runs the query and writes its result to Delta."""

    name = "Spark's full refresh"
    about = "the query over all rows, overwriting a Delta table, in a warm session"

    def start(self, case: Case) -> None:
        """The first result."""
        self._case = case
        self._target = str(case.folder / "refreshed")
        self._write()

    def refresh(self, new: pa.Table) -> None:
        """All of it again."""
        self._write()

    def rows(self) -> list[Row]:
        """Of the Delta table."""
        stored = self._case.spark.read.format("delta").load(self._target)
        return comparable(tuple(row) for row in stored.collect())

    def stop(self) -> None:
        """Nothing is held."""

    def _write(self) -> None:
        self._case.query().write.format("delta").mode("overwrite").save(self._target)


class StructuredStreaming:
    """A streaming query over the table of orders that rewrites its result in complete mode."""

    name = "Structured Streaming"
    about = (
        "append-only: a running query, Delta to Delta in complete mode, state in RocksDB; "
        "timed until all that is new is processed"
    )

    def start(self, case: Case) -> None:
        """Process what is there."""
        spark = case.spark
        self._spark = spark
        self._former = spark.conf.get(PROVIDER)
        spark.conf.set(PROVIDER, ROCKS)
        for name in SCHEMAS:
            case.frame(name).createOrReplaceTempView(name)
        stream = spark.readStream.format("delta").load(str(case.tables["orders"]))
        stream.createOrReplaceTempView("orders")
        self._target = str(case.folder / "streamed")
        self._query: StreamingQuery = (
            spark.sql(case.sql)
            .writeStream.format("delta")
            .outputMode("complete")
            .option("checkpointLocation", str(case.folder / "checkpoint"))
            .start(self._target)
        )
        self._query.processAllAvailable()

    def refresh(self, new: pa.Table) -> None:
        """Wait until the query has caught up."""
        self._query.processAllAvailable()

    def rows(self) -> list[Row]:
        """Of the Delta table."""
        stored = self._spark.read.format("delta").load(self._target)
        return comparable(tuple(row) for row in stored.collect())

    def stop(self) -> None:
        """End the query."""
        self._query.stop()
        if self._former is not None:
            self._spark.conf.set(PROVIDER, self._former)
