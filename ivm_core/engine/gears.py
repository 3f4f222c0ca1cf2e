"""Two gears over one Spark: how a statement is executed, whatever it says.

Low: rows on the driver in, rows on the driver out, one partition, interpreted; the price of a
statement is some tens of milliseconds. High: files in, files out, with all of Spark's machinery.
Both are sessions of our own, so that a user's settings and temporary views are neither used nor
touched, and the settings that change meaning are pinned.
"""

from __future__ import annotations

import logging
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Observation
from pyspark.sql import functions as F

from ivm_core.engine.local_spark import ends_at_exit
from ivm_core.engine.nullable_fields import with_nullable_fields
from ivm_core.engine.spark_errors import told_by_pyspark
from ivm_core.model.digest import Digest
from ivm_core.model.names import quote
from ivm_core.model.schema import Schema
from ivm_core.operators.arrow_types import arrow_schema, to_spark
from ivm_core.operators.exact_moments import FUNCTION, moment
from ivm_core.operators.netting import are_flat
from ivm_core.operators.row_identity import digest_aggregates, digest_from_limbs
from ivm_core.operators.sql import text_of
from ivm_core.store.trace_writing import SPARK_WRITE_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ivm_core.engine.functions import Function

PINNED = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    # it adds the numbers of a frame in an order of its own
    "spark.sql.window.segmentTree.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
# Rules that pay for themselves on large inputs only. On a few rows in memory their cost is all that
# counts: they look again and again at every expression, and a predicate that is pushed
# down brings a copy of all it is computed from. Rules that a plan can't run without are not here.
LEFT_OUT = (
    *(
        f"org.apache.spark.sql.catalyst.optimizer.{rule}"
        for rule in (
            "BooleanSimplification",
            "CombineConcats",
            "ConstantFolding",
            "FoldablePropagation",
            "InferFiltersFromConstraints",
            "NullDownPropagation",
            "NullPropagation",
            "OptimizeCsvJsonExprs",
            "OptimizeUpdateFields",
            "PruneFilters",
            "PushDownPredicates",
            "PushFoldableIntoBranches",
            "PushPredicateThroughNonJoin",
            "RemoveNoopOperators",
            "RemoveRedundantAliases",
            "ReorderAssociativeOperator",
            "SimplifyBinaryComparison",
            "SimplifyCasts",
            "SimplifyConditionals",
            "UnwrapCastInBinaryComparison",
        )
    ),
    *(
        f"org.apache.spark.sql.execution.datasources.{rule}"
        for rule in ("PruneFileSourcePartitions", "PushVariantIntoScan", "SchemaPruning")
    ),
    "org.apache.spark.sql.delta.metric.OptimizeConditionalIncrementMetric",
    "org.apache.spark.sql.delta.optimizer.RangePartitionIdRewrite",
)
CONSTRAINTS = "spark.sql.constraintPropagation.enabled"
EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
MANY_SCHEMAS = 200
PATTERN = re.compile(r"[][{}*?\\]")
WITH_OFFSET = re.compile(r"\b(PRECEDING|FOLLOWING|OFFSET)\b")
LOW = {
    EXCLUDED_RULES: ",".join(LEFT_OUT),
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
}
HIGH = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.parquet.compression.codec": "snappy",
}
PARTS = 3
SCATTERED = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.leafNodeDefaultParallelism": str(PARTS),
    "spark.sql.shuffle.partitions": str(2 * PARTS - 1),
}
"""Other partitions than those that ticks have, in both gears."""


@dataclass(frozen=True)
class LocalRows:
    """Rows on the driver."""

    table: pa.Table
    schema: Schema

    def are(self, others: LocalRows) -> bool:
        """Whether others are known to be these; to Arrow 0.0 and −0.0 are one."""
        if self.table is others.table:
            return True
        if self.schema != others.schema or not are_flat(self.schema):
            return False
        return bool(self.table.equals(others.table))


@dataclass(frozen=True)
class StoredRows:
    """Rows in Parquet files of a trace, those of the ticks in (since, at]."""

    uris: tuple[str, ...]
    schema: Schema
    at: int | None = None
    since: int | None = None


@dataclass(frozen=True)
class FrameRows:
    """Rows of a Spark frame, for what only Spark can read."""

    frame: DataFrame


Rows = LocalRows | StoredRows | FrameRows


@dataclass(frozen=True)
class Written:
    """What a statement in the high gear wrote."""

    rows: int
    digest: Digest
    deletions: int
    net: int


@dataclass
class Hand:
    """A session of the low gear, and the rows that are bound in it."""

    session: SparkSession
    rows: dict[str, LocalRows] = field(default_factory=dict)


class Gears:
    """Runs statements over bound relations; counts them.

    Every thread has a session of the low gear to itself. They share that of the high gear: one at a
    time binds its rows there.
    """

    def __init__(self, spark: SparkSession, *, scattered: bool = False) -> None:
        """Sessions of our own over the given one.

        `scattered` gives statements the same rows in another order and other partitions: what
        comes out must not show it.
        """
        self.spark = spark
        self._is_scattered = scattered
        self._others = SCATTERED if scattered else {}
        self._lock = threading.RLock()
        self._hands: dict[int, Hand] = {}
        self._functions: dict[str, Function] = {}
        self.high = _session(spark, {**PINNED, **HIGH, **self._others})
        self.statements = 0
        self._knows_moments = False
        self._empties: dict[str, DataFrame] = {}
        # what Spark refuses is raised with its text; it need not be logged as well
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)

    @property
    def low(self) -> SparkSession:
        """The low gear's session of the thread that asks."""
        return self._hand.session

    @property
    def _hand(self) -> Hand:
        thread = threading.get_ident()
        with self._lock:
            if thread not in self._hands:
                session = _session(self.spark, {**PINNED, **LOW, **self._others})
                if self._knows_moments:
                    session.udf.register(FUNCTION, moment, "DOUBLE")
                for each in self._functions.values():
                    session.udf.register(each.name, each.code, each.return_type)
                self._hands[thread] = Hand(session)
            return self._hands[thread]

    @property
    def _sessions(self) -> list[SparkSession]:
        return [self.high, *(hand.session for hand in self._hands.values())]

    def _count(self) -> None:
        with self._lock:
            self.statements += 1

    def rows(self, sql: str, relations: Mapping[str, Rows], schema: Schema) -> pa.Table:
        """Run in the low gear; the result on the driver, with the schema's types."""
        for name, bound in relations.items():
            self._take(name, bound)
        self._count()
        folding = self.folding() if WITH_OFFSET.search(sql) else nullcontext()
        with folding, told_by_pyspark():
            table = with_nullable_fields(self.query(self.low, sql)).toArrow()
        return table.select(list(schema.names)).cast(arrow_schema(schema, weight=False))

    def write(
        self, sql: str, relations: Mapping[str, Rows], schema: Schema, target: str, tick: int
    ) -> Written:
        """Run in the high gear and write Parquet files; rows and digest come from the same pass.

        `schema` has the columns that are written; a `_weight` among them counts in the digest.
        """
        with self.reading(sql, relations) as frame:
            return self.write_frame(frame, schema, target, tick)

    def write_frame(self, frame: DataFrame, schema: Schema, target: str, tick: int) -> Written:
        """Write a frame of any session, as `write` does."""
        self._count()
        frame = frame.select(
            *[F.col(quote(each.name)).cast(each.type.ddl) for each in schema],
            F.lit(tick).cast("bigint").alias("_tick"),
        )
        observation = Observation()
        weighted = "_weight" in schema.names
        measures = [F.count("*").alias("rows")]
        if weighted:
            columns = tuple(each for each in schema if each.name != "_weight")
            limbs = digest_aggregates(Schema(columns, internal=True))
            measures += [F.expr(text_of(tree)).alias(name) for name, tree in limbs]
            measures.append(F.expr("COUNT_IF(`_weight` < 0)").alias("deletions"))
            measures.append(F.expr("SUM(`_weight`)").alias("net"))
        frame = frame.observe(observation, *measures)
        with told_by_pyspark():
            frame.write.mode("overwrite").options(**SPARK_WRITE_OPTIONS).parquet(target)
        seen = observation.get
        if not weighted or not seen["rows"]:
            return Written(int(seen["rows"]), Digest.zero(), 0, 0)
        return Written(
            int(seen["rows"]), digest_from_limbs(seen), int(seen["deletions"]), int(seen["net"])
        )

    def try_out(self, sql: str, relations: Mapping[str, Rows]) -> None:
        """Run in the high gear and keep nothing; raises what Spark raises."""
        with self.reading(sql, relations) as frame, told_by_pyspark():
            frame.write.format("noop").mode("overwrite").save()

    @contextmanager
    def reading(self, sql: str, relations: Mapping[str, Rows]) -> Iterator[DataFrame]:
        """A frame of the high gear, to be run within.

        Names are bound for one thread at a time. Spark looks them up when it is given the text, so
        that statements of several threads can run side by side; over Connect only when they run.
        """
        with self._lock, self._bound(relations):
            frame = self.query(self.high, sql)
            if is_remote(self.spark):
                yield frame
        if not is_remote(self.spark):
            yield frame

    def materialised(self, frame: DataFrame) -> DataFrame:
        """The frame's rows, computed now and held where the executors are: no plan of their own.

        Spark would keep what it knows of the columns of that plan, and fail where the rows are
        joined with themselves: some of these columns are gone by then.
        """
        self._count()
        settings = frame.sparkSession.conf
        with self._lock:
            settings.set(CONSTRAINTS, "false")
            try:
                return frame.localCheckpoint()
            finally:
                settings.unset(CONSTRAINTS)

    def analysed(self, sql: str, relations: Mapping[str, Schema]) -> StructType:
        """The columns that Spark's analyzer gives a query over empty relations.

        AnalysisException for what Spark refuses; its text is Spark's own.
        """
        for name, schema in relations.items():
            self._empty(schema).createOrReplaceTempView(quote(name))
        try:
            return self.query(self.low, sql).schema
        finally:
            for name in relations:
                self.low.catalog.dropTempView(name)

    def _empty(self, schema: Schema) -> DataFrame:
        """A relation without rows; those of the last questions are kept for the next."""
        if schema.ddl not in self._empties:
            if len(self._empties) > MANY_SCHEMAS:
                self._empties.clear()
            self._empties[schema.ddl] = self.low.createDataFrame([], to_spark(schema))
        return self._empties[schema.ddl]

    def query(self, session: SparkSession, sql: str) -> DataFrame:
        """A statement in one of the sessions, which learns our own functions when they occur."""
        if FUNCTION in sql:
            with self._lock:
                if not self._knows_moments:
                    for each in self._sessions:
                        each.udf.register(FUNCTION, moment, "DOUBLE")
                    self._knows_moments = True
        return session.sql(sql)

    def register(self, function: Function) -> None:
        """Make a user's function known to all sessions."""
        for session in (self.low, *self._sessions):
            session.udf.register(function.name, function.code, function.return_type)
        self._functions[function.name] = function

    def read(self, rows: Rows) -> DataFrame:
        """A frame of bound rows in the high gear."""
        return self._frame(self.high, rows)

    def frame_in(self, session: SparkSession, rows: Rows) -> DataFrame:
        """A frame of bound rows in one of the sessions."""
        return self._frame(session, rows)

    @property
    def is_alive(self) -> bool:
        """Whether Spark still answers a thread that has never asked it anything."""

        def ask() -> bool:
            try:
                return bool(self.spark.version)
            except Exception:  # py4j's, a socket's, gRPC's: whatever it is, nobody answers
                return False

        with ThreadPoolExecutor(1) as fresh:
            return fresh.submit(ask).result()

    def close(self) -> None:
        """Give back sessions of our own, where that leaves the given one as it is: over Connect."""
        for session in self._sessions if is_remote(self.spark) else ():
            with suppress(Exception):  # a server that is gone has given them back already
                session.stop()

    def release(self) -> None:
        """Let go of the rows that the low gear has on hand for the next statement of a tick."""
        for hand in self._hands.values():
            for name in hand.rows:
                hand.session.catalog.dropTempView(name)
            hand.rows.clear()

    def _take(self, name: str, rows: Rows) -> None:
        """Bind rows in the low gear, unless they are on hand from the statement before."""
        hand = self._hand
        known = hand.rows.get(name)
        if known is not None and isinstance(rows, LocalRows) and known.are(rows):
            return
        frame = self._frame(hand.session, rows)
        if not self._is_scattered:
            frame = frame.coalesce(1)  # by declaration, so that no exchange is planned
        frame.createOrReplaceTempView(quote(name))
        hand.rows.pop(name, None)
        if isinstance(rows, LocalRows):
            hand.rows[name] = rows

    @contextmanager
    def folding(self) -> Iterator[None]:
        """For frames and pages with offsets: they are literals only when Spark has folded them."""
        rules = ",".join(rule for rule in LEFT_OUT if not rule.endswith(".ConstantFolding"))
        self.low.conf.set(EXCLUDED_RULES, rules)
        try:
            yield
        finally:
            self.low.conf.set(EXCLUDED_RULES, LOW[EXCLUDED_RULES])

    @contextmanager
    def _bound(self, relations: Mapping[str, Rows]) -> Iterator[None]:
        for name, rows in relations.items():
            self._frame(self.high, rows).createOrReplaceTempView(quote(name))
        try:
            yield
        finally:
            for name in relations:
                self.high.catalog.dropTempView(name)

    def _frame(self, session: SparkSession, rows: Rows) -> DataFrame:
        frame = _bound_frame(session, rows)
        return frame.repartition(PARTS) if self._is_scattered else frame


def _bound_frame(session: SparkSession, rows: Rows) -> DataFrame:
    if isinstance(rows, LocalRows) and not rows.table.num_rows:
        return session.createDataFrame([], to_spark(rows.schema))
    if isinstance(rows, LocalRows):
        # Spark 4.2 stops reading a table's batches at the first empty one
        table = _from_the_start(rows.table.combine_chunks())
        return session.createDataFrame(table, to_spark(rows.schema))
    if isinstance(rows, FrameRows):
        return rows.frame
    if not rows.uris:
        return session.createDataFrame([], to_spark(rows.schema))
    reader = session.read.schema(to_spark(rows.schema))
    if not any("://" in uri for uri in rows.uris):
        # many small row groups: on local disks asking for ranges costs more than reading on
        reader = reader.option("parquet.hadoop.vectored.io.enabled", "false")
    # a folder's name is no pattern; with `__globPaths__` off Spark reads each file once a path
    frame = reader.parquet(*(PATTERN.sub(r"\\\g<0>", uri) for uri in rows.uris))
    if rows.at is not None:
        frame = frame.where(F.col("_tick") <= rows.at)
    if rows.since is not None:
        frame = frame.where(F.col("_tick") > rows.since)
    return frame


def _from_the_start(table: pa.Table) -> pa.Table:
    """The table with no column that is a slice: PySpark can't take lists of such a one apart."""
    columns = [
        pa.concat_arrays(column.chunks) if any(part.offset for part in column.chunks) else column
        for column in table.columns
    ]
    return pa.table(columns, schema=table.schema)


def _session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    session = _clone(spark) if is_remote(spark) else spark.newSession()
    for key, value in settings.items():
        session.conf.set(key, value)
    return session


def is_remote(spark: SparkSession) -> bool:
    """Whether it is a session of Spark Connect, which has clones instead of new sessions."""
    return not hasattr(spark, "newSession")


def _clone(spark: Any) -> SparkSession:
    """Of a session of Spark Connect, which knows no new ones: it copies temporary views too."""
    _ = spark.version  # a server clones what has asked it something
    session = spark.cloneSession()
    session.release_session_on_close = True  # pyspark 4.2 forgets it in clones, and can't end them
    return ends_at_exit(session)


__all__ = ["AnalysisException", "FrameRows", "Gears", "LocalRows", "Rows", "StoredRows", "Written"]
