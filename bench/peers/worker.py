"""Peers in a process of their own, asked and answered in lines of JSON.

The first line that a worker writes says that it is ready; then it answers every line it reads. What
it has to say besides goes to its standard error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyarrow import parquet

from bench.peers import environment
from bench.peers.case import comparable
from bench.peers.peer import Absent
from ivm_core.engine.delta_jars import delta_jars

if TYPE_CHECKING:
    import pyarrow as pa

    from bench.peers.case import Case, Row

PLACE = Path(__file__).parent
PATIENCE_S = 30


class Worker:
    """One such process."""

    def __init__(self, python: str, script: str, *words: str, **variables: str) -> None:
        """Started; `RuntimeError` with its last words where it doesn't get ready."""
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [python, str(PLACE / script), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **variables},
        )
        self._answer()

    def ask(self, **question: Any) -> Any:
        """The answer to a question; `RuntimeError` with its last words where none comes."""
        assert self._process.stdin is not None
        try:
            print(json.dumps(question), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            self._refuse()
        return self._answer()

    def stop(self) -> None:
        """End it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                answer = json.loads(line)
                if "answer" in answer:
                    return answer["answer"]
        return self._refuse()

    def _refuse(self) -> Any:
        self._process.kill()
        self._process.wait()
        self._errors.seek(0)
        said = [line.strip() for line in self._errors.read().splitlines() if line.strip()]
        told = [line for line in said if not line.startswith(("at ", "File "))]
        raise RuntimeError(f"it ended: {' / '.join(told[-3:])[-400:]}")


class DuckDb:
    """DuckDB makes its table anew from the Parquet files of the Delta tables."""

    name = "DuckDB's full refresh"
    about = "CREATE OR REPLACE TABLE in a database file, over the Delta tables' Parquet files"

    def start(self, case: Case) -> None:
        """The first result."""
        if "duckdb" not in environment.peer_versions():
            raise Absent(f"duckdb is not installed; {environment.INSTALL}")
        self._case = case
        file = str(case.folder / "result.duckdb")
        self._worker = Worker(str(environment.PYTHON), "duckdb_worker.py", file, case.sql)
        self._refresh()

    def refresh(self, new: pa.Table) -> None:
        """All of it again."""
        self._refresh()

    def rows(self) -> list[Row]:
        """Of the table; sums of money come in cents."""
        return comparable(tuple(row) for row in self._worker.ask(do="rows"))

    def stop(self) -> None:
        """End the process."""
        self._worker.stop()

    def _refresh(self) -> None:
        self._worker.ask(do="refresh", files=self._case.files())


class Pathway:
    """A Pathway program that is given new orders and keeps its result in memory."""

    name = "Pathway"
    about = (
        "append-only: in memory, nothing durable; new orders are given to its Python connector, "
        "in cents, as it has no decimals; timed until its result has changed"
    )

    def start(self, case: Case) -> None:
        """Give it all rows."""
        if "pathway" not in environment.peer_versions():
            raise Absent(f"pathway is not installed; {environment.INSTALL}")
        self._case = case
        self._number = 0
        files = case.files()
        words = json.dumps({"view": case.view, "files": files})
        self._worker = Worker(
            str(environment.PYTHON), "pathway_worker.py", words, PATHWAY_THREADS="2"
        )
        self._worker.ask(do="take", files=files["orders"])

    def refresh(self, new: pa.Table) -> None:
        """Give it what is new."""
        self._number += 1
        file = str(self._case.folder / f"new-{self._number}.parquet")
        parquet.write_table(new, file)
        self._worker.ask(do="take", files=[file])

    def rows(self) -> list[Row]:
        """Its result."""
        return comparable(tuple(row) for row in self._worker.ask(do="rows"))

    def stop(self) -> None:
        """End the process."""
        self._worker.stop()


class DeclarativePipelines:
    """A materialized view of Spark Declarative Pipelines, in a warm session of its own."""

    name = "Spark Declarative Pipelines"
    about = (
        "a materialized view in Delta, updated by a run of the pipeline; its session is warm and "
        "in a process of its own, as it needs Spark Connect"
    )

    def start(self, case: Case) -> None:
        """The first run."""
        self._case = case
        self._warehouse = case.folder / "pipelines"
        jars = os.pathsep.join(str(jar) for jar in delta_jars())
        words = json.dumps(
            {
                "folder": str(self._warehouse),
                "jars": jars,
                "sql": f"CREATE MATERIALIZED VIEW result AS {case.sql_over_paths}",
            }
        )
        try:
            self._worker = Worker(sys.executable, "pipelines_worker.py", words)
        except RuntimeError as error:
            raise Absent(str(error)) from error
        self._worker.ask(do="run")

    def refresh(self, new: pa.Table) -> None:
        """A run."""
        self._worker.ask(do="run")

    def rows(self) -> list[Row]:
        """Of the Delta table."""
        place = str(self._warehouse / "warehouse" / "result")
        stored = self._case.spark.read.format("delta").load(place)
        return comparable(tuple(row) for row in stored.collect())

    def stop(self) -> None:
        """End the process."""
        self._worker.stop()
