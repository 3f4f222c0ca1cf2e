"""The Spark session that everything runs in, and what it and the machine look like from outside.

Here, unlike in the core, the JVM is asked directly: for its heap, and for the jobs it has run.
"""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from bench.background import Background
from bench.peers.environment import peer_versions
from ivm_core.engine.local_spark import local_spark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

CORES = 2
MOST_COLLECTIONS = 12
COLLECTION_PAUSE_S = 1.0
SETTLED_AFTER = 3
SETTLED = 0.02
"""Heap is settled when this many collections in a row differ by less than this share."""
PACKAGES = ("pyspark", "delta-spark", "deltalake", "pyarrow", "sqlglot", "pandas", "numpy")
SHOWN_SETTINGS = (
    "spark.master",
    "spark.driver.memory",
    "spark.sql.shuffle.partitions",
    "spark.sql.adaptive.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
)


def start_spark(memory: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session with the JVM's full compiler, for these are not short runs; local unless told."""
    return local_spark(
        "tideview-bench", cores=CORES, memory=memory, fast_start=False, extra=settings
    )


def has_jvm(spark: SparkSession) -> bool:
    """Whether Spark's driver is a JVM of this process, and not behind Spark Connect."""
    return hasattr(spark, "_jsc")


def jobs_run(spark: SparkSession) -> int:
    """Spark jobs since the session's start; none are seen over Spark Connect."""
    if not has_jvm(spark):
        return 0
    return int(spark._jsc.sc().dagScheduler().numTotalJobs())  # noqa: SLF001


def python_memory() -> int:
    """Resident bytes of this process."""
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def heap_used(spark: SparkSession) -> int:
    """Bytes on the JVM's heap once what nobody holds is gone; 0 over Spark Connect.

    Python lets go of its JVM objects first. Spark then drops what belonged to them in a thread of
    its own, some time after a collection, so this collects until nothing more goes.
    """
    gc.collect()
    if not has_jvm(spark):
        return 0
    bean = _jvm(spark).java.lang.management.ManagementFactory.getMemoryMXBean()
    seen: list[int] = []
    while len(seen) < MOST_COLLECTIONS:
        bean.gc()
        seen.append(int(bean.getHeapMemoryUsage().getUsed()))
        settled = seen[-SETTLED_AFTER:]
        if len(settled) == SETTLED_AFTER and max(settled) - min(settled) < max(settled) * SETTLED:
            break
        time.sleep(COLLECTION_PAUSE_S)
    return min(seen)


def collection_ms(spark: SparkSession) -> float:
    """Milliseconds that the JVM's garbage collectors have taken so far."""
    if not has_jvm(spark):
        return 0.0
    beans = _jvm(spark).java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
    return float(sum(bean.getCollectionTime() for bean in beans))


@dataclass
class Peak(Background):
    """The most memory that this process and those that it has started have while it is open."""

    bytes: int = 0

    def _watch(self) -> None:
        self._look()
        while not self._done.wait(0.05):
            self._look()
        self._look()

    def _look(self) -> None:
        process = psutil.Process()
        total = 0
        for each in (process, *process.children(recursive=True)):
            try:
                total += each.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        self.bytes = max(self.bytes, total)


def describe(spark: SparkSession) -> dict[str, Any]:
    """Versions, machine and settings, for whoever reads the figures later."""
    java = "of the server"
    if has_jvm(spark):
        java = _jvm(spark).java.lang.System.getProperty("java.runtime.version")
    return {
        "versions": {
            "python": platform.python_version(),
            "java": java,
            **{name: version(name) for name in PACKAGES},
            **peer_versions(),
            "commit": _commit(),
        },
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_bytes": psutil.virtual_memory().total,
            "load_average": os.getloadavg(),
        },
        "settings": {name: spark.conf.get(name, None) or "" for name in SHOWN_SETTINGS},
    }


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm  # noqa: SLF001


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _commit() -> str:
    """The checkout's commit, with a + where files have changed since; empty outside of one."""
    here = Path(__file__).parent
    try:
        head, changed = (
            subprocess.run(
                ["git", "-C", str(here), *words], capture_output=True, text=True, check=True
            ).stdout.strip()
            for words in (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain"])
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head + ("+" if changed else "")
