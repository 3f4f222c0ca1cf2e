"""The Spark that a run is made on: local, a Connect server, or a standalone cluster.

Servers that are started here are what pip's pyspark carries, all of it on this machine: they show
that the same programs run there, and what the way to them costs, not what a real cluster gains.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from bench.machine import start_spark
from bench.measure import progress
from ivm_core.engine.delta_jars import delta_jars
from ivm_core.engine.local_spark import remote_spark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession


@contextmanager
def started_spark(
    where: str | None, memory: str, folder: Path, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session, stopped at the end with all that was started for it; `settings` win over others.

    A cluster that is not started here has its own executors: of those nothing is said, but that
    they are given Delta's jars.
    """
    with ExitStack() as started:
        spark = _session(where, memory, folder, dict(settings or {}), started)
        started.callback(spark.stop)
        yield spark


def _session(
    where: str | None, memory: str, folder: Path, settings: dict[str, str], started: ExitStack
) -> SparkSession:
    if not where:
        return start_spark(memory, settings)
    if where in ("connect", "cluster"):
        from tests.other_sparks import servers

        progress(f"starting a {where} of Spark")
        if where == "connect":
            where = started.enter_context(servers.connect_server(folder))
        else:
            where = started.enter_context(servers.cluster(folder)).url
            settings = {**servers.cluster_settings(where), **settings}
    if where.startswith("sc://"):
        return remote_spark(where, settings)
    return start_spark(memory, {**of_a_cluster(where), **settings})


def of_a_cluster(url: str) -> dict[str, str]:
    """What a cluster's session needs to be told: as many partitions of a shuffle as Spark's own."""
    return {
        "spark.master": url,
        "spark.jars": ",".join(map(str, delta_jars())),
        "spark.sql.shuffle.partitions": "200",
    }
