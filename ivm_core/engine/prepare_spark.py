"""Gets all that a fast start without network needs: `python -m ivm_core.engine.prepare_spark`.

Spark is started once on work like a tick's, so that the class archive holds what ticks load.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time

import pyarrow as pa

from ivm_core.engine.delta_jars import delta_jars, delta_jars_are_here
from ivm_core.engine.local_spark import local_spark, spark_class_archive
from ivm_core.model.errors import IvmError

ARCHIVE_WITHIN_SECONDS = 180
LEFT_OUT = "it can't be made here; Spark starts without it, more slowly"


def main() -> int:
    """Prepare, telling each step; print what is missing and return 1 where it can't be done."""
    try:
        if not delta_jars_are_here():
            _tell("resolving Delta's jars")
        jars = delta_jars()
        _tell(f"Delta's jars: {len(jars)} in the cache")
        _tell(f"Spark's class archive: {_prepare_archive()}")
    except IvmError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _tell(step: str) -> None:
    print(f"  {step}", flush=True)


def _prepare_archive() -> str:
    archive = spark_class_archive()
    if archive.is_ready():
        return "ready"
    if archive.is_given_up():
        return LEFT_OUT
    if archive.is_being_made():
        return "another process is making it"
    _tell("making Spark's class archive (a minute, once)")
    subprocess.run([sys.executable, "-m", __spec__.name, "rehearse"], check=False)
    give_up_at = time.monotonic() + ARCHIVE_WITHIN_SECONDS
    while not archive.is_ready():
        if time.monotonic() > give_up_at:
            archive.give_up()
            return LEFT_OUT
        time.sleep(0.5)
    return "made"


def _rehearse() -> int:
    """Load the classes that a tick loads: Arrow in and out, a join, aggregates, Parquet, Delta."""
    spark = local_spark()
    rows = pa.table({"k": [1, 2, 2], "amount": ["1.5", "2.5", None], "_weight": [1, 1, -1]})
    with tempfile.TemporaryDirectory() as scratch:
        spark.createDataFrame(rows).write.format("delta").save(f"{scratch}/trace")
        spark.read.format("delta").load(f"{scratch}/trace").createOrReplaceTempView("trace")
        spark.createDataFrame(rows).createOrReplaceTempView("delta")
        spark.sql(
            "SELECT t.k, SUM(CAST(t.amount AS DECIMAL(12,2)) * d._weight) AS total, COUNT(*) AS n, "
            "MAX(t.amount) AS most FROM trace t JOIN delta d ON t.k <=> d.k "
            "GROUP BY t.k HAVING COUNT(*) <> 0 ORDER BY t.k"
        ).toArrow()
        spark.read.schema("k BIGINT").parquet(f"{scratch}/trace").distinct().toArrow()
        spark.read.format("delta").load(f"{scratch}/trace").write.format("delta").mode(
            "append"
        ).save(f"{scratch}/trace")
    return 0


if __name__ == "__main__":
    sys.exit(_rehearse() if sys.argv[1:] == ["rehearse"] else main())
