"""The Spark that a run is made on: local, a Connect server, or a standalone cluster.

Servers that are started here are what pip's pyspark carries, all of it on this machine: they show
that the same programs run there, and what the way to them costs, not what a real cluster gains.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from bench.machine import CORES, start_spark
from bench.measure import progress
from ivm_core.engine.local_spark import local_spark, remote_spark

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@contextmanager
def started_spark(where: str | None, memory: str, folder: Path) -> Iterator[SparkSession]:
    """A session, stopped at the end with all that was started for it."""
    with ExitStack() as started:
        spark = _session(where, memory, folder, started)
        started.callback(spark.stop)
        yield spark


def _session(where: str | None, memory: str, folder: Path, started: ExitStack) -> SparkSession:
    if not where:
        return start_spark(memory)
    if where in ("connect", "cluster"):
        from tests.other_sparks import servers

        progress(f"starting a {where} of Spark")
        if where == "connect":
            where = started.enter_context(servers.connect_server(folder))
        else:
            where = started.enter_context(servers.cluster(folder)).url
    if where.startswith("sc://"):
        return remote_spark(where)
    from tests.other_sparks.servers import cluster_settings

    return local_spark(
        "tideview-bench",
        cores=CORES,
        memory=memory,
        fast_start=False,
        extra=cluster_settings(where),
    )
