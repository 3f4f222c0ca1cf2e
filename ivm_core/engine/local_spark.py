"""Starts Spark on this machine, with Delta, from the project's cache."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from atexit import register
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import ref

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ivm_core.engine.class_archive import ClassArchive
from ivm_core.engine.delta_jars import delta_jars, spark_home
from ivm_core.engine.java_home import INSTALL_JAVA, inspect_java
from ivm_core.engine.project_cache import cache_folder
from ivm_core.model.errors import SparkLost, UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

REMOTE_VARIABLE = "SPARK_REMOTE"
MODE_VARIABLE = "SPARK_CONNECT_MODE_ENABLED"
MEMORY_VARIABLE = "TIDEVIEW_DRIVER_MEMORY"
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
}
MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
}
CONVENIENCE = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # the status store fills up even without a UI, and a flow runs many small jobs
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "20",
}


def local_spark(
    app_name: str = "tideview",
    *,
    cores: int | str = 2,
    memory: str | None = None,
    fast_start: bool = True,
    extra: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return the active Spark session, else that of `SPARK_REMOTE`, else start a local one.

    `fast_start` keeps the JVM's compiler at its first level: right for tests and short runs, slower
    for large scans. `memory` is the driver's heap (else `TIDEVIEW_DRIVER_MEMORY`, else half of the
    machine's, at most 4g). `extra` are Spark settings that win over the ones made here. Without a
    usable Java, or without Delta's jars and a network to get them: `UserError`.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    remote = os.environ.get(REMOTE_VARIABLE)
    if remote:
        return remote_spark(remote, extra)
    settings = _settings(app_name, cores, memory, fast_start)
    if "spark.master" in (extra or {}):
        del settings["spark.default.parallelism"]  # a cluster knows its own cores
    settings |= dict(extra or {})
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.Builder()
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def remote_spark(url: str, extra: Mapping[str, str] | None = None) -> SparkSession:
    """The session of a Spark Connect server, one a process; `SparkLost` where nobody answers.

    The server has Delta's jars and extension; `extra` are settings of the session.
    """
    mode = os.environ.get(MODE_VARIABLE)
    fix = f"start it, or correct {REMOTE_VARIABLE} or spark.remote"
    try:
        session = ends_at_exit(SparkSession.Builder().remote(url).getOrCreate())
        _ = session.version  # the first thing that asks the server
        for name, value in (extra or {}).items():
            session.conf.set(name, value)
        return session
    except Exception as error:
        # pyspark has turned all of the process to Connect; a local Spark is still possible
        if mode is None:
            os.environ.pop(MODE_VARIABLE, None)
        else:
            os.environ[MODE_VARIABLE] = mode
        what = f"refuses: {error}" if isinstance(error, PySparkException) else "doesn't answer"
        where = url.partition(";")[0]  # what follows may be a token
        raise SparkLost(f"the Spark Connect server {what}", where, fix) from error


def ends_at_exit(session: SparkSession) -> SparkSession:
    """A session of Spark Connect that is let go before Python ends.

    Its own end comes when the threads are gone that would close the channel, and waits for them.
    """
    known = ref(session)

    def end() -> None:
        left = known()
        if left is not None:
            with suppress(Exception):  # the server may be gone, and so may we
                left.stop()

    register(end)
    return session


def spark_class_archive() -> ClassArchive:
    """The class archive that fits this Java, this Spark and these jars; errors as `local_spark`."""
    java = inspect_java()
    if java.problem:
        raise UserError(java.problem, where="starting Spark", fix=INSTALL_JAVA)
    jars = [*delta_jars(), *sorted((spark_home() / "jars").glob("*.jar"))]
    return ClassArchive.matching(cache_folder() / "classes", java.identity, jars)


def _settings(
    app_name: str, cores: int | str, memory: str | None, fast_start: bool
) -> dict[str, str]:
    archive = spark_class_archive()
    scratch = _scratch_folder()
    jvm_options = [
        f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}",
        f"-Dderby.system.home={scratch}",
        *(["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m"] if fast_start else []),
        *archive.jvm_options(),
    ]
    return {
        **DELTA,
        **MEANING,
        **CONVENIENCE,
        "spark.app.name": app_name,
        "spark.master": f"local[{cores}]",
        "spark.default.parallelism": _partitions(cores),
        "spark.sql.shuffle.partitions": _partitions(cores),
        "spark.driver.memory": memory or os.environ.get(MEMORY_VARIABLE) or _half_of_memory(),
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in delta_jars()),
        "spark.driver.extraJavaOptions": _quoted(jvm_options),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
    }


def _quoted(options: Iterable[str]) -> str:
    return " ".join(f'"{option}"' if " " in option else option for option in options)


def _partitions(cores: int | str) -> str:
    return str(os.cpu_count() or 2) if cores == "*" else str(cores)


def _half_of_memory() -> str:
    try:
        installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    except (OSError, ValueError):
        return "2g"
    return f"{min(max(installed // 2, 1024), 4096)}m"


def _scratch_folder() -> Path:
    """Make a folder for what Spark would leave in the working directory; it goes at exit."""
    scratch = Path(tempfile.mkdtemp(prefix="tideview-spark-"))
    register(shutil.rmtree, scratch, ignore_errors=True)
    return scratch
