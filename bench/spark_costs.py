"""What Spark says that some work has cost: jobs, stages, tasks, bytes, and time inside of jobs.

Asked of the status stores of Spark's driver, which fill up even without a web interface. Over Spark
Connect there is nothing to ask, and all of it is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.machine import collection_ms, has_jvm

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

Interval = tuple[float, float]
"""From and to, in milliseconds."""


@dataclass(frozen=True)
class Statement:
    """One that Spark has executed."""

    text: str
    milliseconds: float
    in_jobs: float
    files: int


@dataclass
class Costs:
    """What was seen between two looks."""

    facts: dict[str, float] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)


class SparkCosts:
    """Looks at what is new in Spark's stores since the last look."""

    def __init__(self, spark: SparkSession) -> None:
        """From now on."""
        self._has_jvm = has_jvm(spark)
        if not self._has_jvm:
            return
        self._spark = spark
        self._context = spark._jsc.sc()  # noqa: SLF001
        self._status = self._context.statusStore()
        self._sql = spark._jsparkSession.sharedState().statusStore()  # noqa: SLF001
        self._gateway = spark.sparkContext._gateway  # noqa: SLF001
        self._job = self._stage = self._execution = -1
        self._collected = 0.0
        self.look()

    def look(self) -> Costs:
        """What came since the last look; waits until Spark has written it down."""
        if not self._has_jvm:
            return Costs()
        self._context.listenerBus().waitUntilEmpty()
        jobs = self._new_jobs()
        stages = self._new_stages()
        statements = list(self._new_statements(jobs))
        collected = collection_ms(self._spark)
        facts = {
            "stages": float(len(stages)),
            "tasks": float(sum(each.numCompleteTasks() for each in stages)),
            "spark_bytes_read": float(sum(each.inputBytes() for each in stages)),
            "spark_bytes_written": float(sum(each.outputBytes() for each in stages)),
            "spark_bytes_shuffled": float(sum(each.shuffleWriteBytes() for each in stages)),
            "spark_files_read": float(sum(each.files for each in statements)),
            "in_jobs_ms": covered(jobs),
            "in_statements_ms": covered([span for span, _ in self._seen]),
            "collections_ms": collected - self._collected,
        }
        facts["planning_ms"] = max(0.0, facts["in_statements_ms"] - facts["in_jobs_ms"])
        self._collected = collected
        return Costs(facts, statements)

    def _new_jobs(self) -> list[Interval]:
        found = [each for each in _each(self._status.jobsList(None)) if each.jobId() > self._job]
        self._job = max((each.jobId() for each in found), default=self._job)
        spans = [(_moment(each.submissionTime()), _moment(each.completionTime())) for each in found]
        return [(start, end) for start, end in spans if start is not None and end is not None]

    def _new_stages(self) -> list[Any]:
        none = self._gateway.new_array(self._gateway.jvm.double, 0)
        empty = self._gateway.jvm.java.util.ArrayList()
        listed = self._status.stageList(None, False, False, none, empty)
        found = [each for each in _each(listed) if each.stageId() > self._stage]
        self._stage = max((each.stageId() for each in found), default=self._stage)
        return [each for each in found if each.status().toString() == "COMPLETE"]

    def _new_statements(self, jobs: Sequence[Interval]) -> Iterator[Statement]:
        self._seen: list[tuple[Interval, str]] = []
        newest = self._execution
        for each in _each(self._sql.executionsList()):
            number = each.executionId()
            end = _moment(each.completionTime())
            if number <= self._execution or end is None:
                continue
            newest = max(newest, number)
            span = (float(each.submissionTime()), end)
            self._seen.append((span, each.description()))
            yield Statement(
                each.description(),
                span[1] - span[0],
                covered([(max(a, span[0]), min(b, span[1])) for a, b in jobs]),
                self._files_read(each),
            )
        self._execution = newest

    def _files_read(self, execution: Any) -> int:
        wanted = {
            each.accumulatorId()
            for each in _each(execution.metrics())
            if each.name() == "number of files read"
        }
        if not wanted:
            return 0
        values = self._sql.executionMetrics(execution.executionId())
        texts = [values.get(number) for number in wanted]
        return sum(int(each.get().replace(",", "")) for each in texts if each.isDefined())


def covered(spans: Iterable[Interval]) -> float:
    """Milliseconds that lie in any of them."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(span for span in spans if span[1] > span[0]):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def folder_contents(folder: Path) -> dict[str, int]:
    """All files below a folder, with their bytes."""
    return {str(path): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def bytes_read_by_python() -> int:
    """What this process has asked of the file system so far; 0 where nobody counts."""
    try:
        lines = Path("/proc/self/io").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar"))


def _each(sequence: Any) -> Iterator[Any]:
    for number in range(sequence.size()):
        yield sequence.apply(number)


def _moment(option: Any) -> float | None:
    return float(option.get().getTime()) if option.isDefined() else None
