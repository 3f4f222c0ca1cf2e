"""Sparks that are not in the test's own process: a standalone cluster, and a Connect server.

All of it is what pip's pyspark carries. Whatever is started here is stopped here.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from ivm_core.engine.delta_jars import delta_jars, spark_home
from ivm_core.engine.local_spark import CONVENIENCE, DELTA, MEANING
from tests.processes import ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 120.0
QUICK = "-XX:TieredStopAtLevel=1"
JARS = os.pathsep.join(str(jar) for jar in delta_jars())
MASTER_URL = re.compile(r"spark://[\w.]+:\d+")


def environment(folder: Path) -> dict[str, str]:
    return ENVIRONMENT | {
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


@dataclass
class Started:
    """A process with its log."""

    process: subprocess.Popen[bytes]
    log: Path

    def wait_for(self, pattern: re.Pattern[str]) -> str:
        """The first match in the log."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            found = pattern.search(self.log.read_text(errors="replace"))
            if found:
                return found[0]
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise AssertionError(f"not up: {self.log.read_text(errors='replace')[-3000:]}")

    def kill(self) -> None:
        """It and all that it has started, at once."""
        try:
            family = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            family = []
        for each in family:
            try:
                each.kill()
            except psutil.NoSuchProcess:
                continue
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)


def start(folder: Path, name: str, *command: str, memory: str = "256m") -> Started:
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{name}.log"
    own = environment(folder) | {"SPARK_DAEMON_MEMORY": memory}
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, stdout=stream, stderr=subprocess.STDOUT, env=own, cwd=folder
        )
    return Started(process, log)


@dataclass
class Cluster:
    """A master and two workers."""

    url: str
    workers: list[Started]

    def executors(self) -> list[psutil.Process]:
        """Processes that run tasks, wherever they are."""
        found = []
        for worker in self.workers:
            if worker.process.poll() is None:
                found += psutil.Process(worker.process.pid).children(recursive=True)
        return [each for each in found if "CoarseGrainedExecutorBackend" in " ".join(_words(each))]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    spark_class = str(spark_home() / "bin" / "spark-class")
    deploy = "org.apache.spark.deploy"
    running = []
    try:
        words = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = start(folder, "master", spark_class, f"{deploy}.master.Master", *words)
        running.append(master)
        url = master.wait_for(MASTER_URL)
        for number in (1, 2):
            words = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "700m")
            name = f"worker{number}"
            worker = start(folder, name, spark_class, f"{deploy}.worker.Worker", *words, url)
            running.append(worker)
        for worker in running[1:]:
            worker.wait_for(re.compile("Successfully registered with master"))
        yield Cluster(url, running[1:])
    finally:
        for each in reversed(running):
            each.kill()


def cluster_settings(url: str) -> dict[str, str]:
    """Beside those of a local Spark."""
    return {
        "spark.master": url,
        "spark.executor.memory": "512m",
        "spark.executor.extraClassPath": JARS,
        "spark.executor.extraJavaOptions": QUICK,
        "spark.sql.shuffle.partitions": "2",
    }


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    settings = {
        **DELTA,
        **MEANING,
        **CONVENIENCE,
        "spark.master": "local[2]",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.memory": "1g",
        "spark.driver.extraClassPath": JARS,
        "spark.driver.extraJavaOptions": QUICK,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
    }
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    server = start(
        folder,
        "connect",
        str(spark_home() / "bin" / "spark-submit"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *words,
        "spark-internal",
        memory="1g",
    )
    try:
        server.wait_for(re.compile("Spark Connect server started at"))
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.kill()
