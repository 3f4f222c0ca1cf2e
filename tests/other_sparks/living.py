"""Lives a story on another Spark and writes down what it came to: digests, checks, a replay.

    python -m tests.other_sparks.living PLACE SEED STEPS SPARK REPORT

SPARK is the URL of a Connect server (sc://…) or of a cluster's master (spark://…). After `--slow`
one more tick follows that takes some seconds on executors; a line says when it has begun.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ivm_core import IncrementalFlow
from ivm_core.engine.local_spark import local_spark
from tests.faults.long_story import LongStory, compact_often, declare, digests

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLOW = (
    "SELECT k, COUNT(*) AS n FROM (SELECT k, EXPLODE(SEQUENCE(1, 1000 + x)) AS i FROM facts) "
    "WHERE i % 7 < 5 GROUP BY k"
)


def session(url: str) -> SparkSession:
    """A session of that Spark."""
    if url.startswith("sc://"):
        from pyspark.sql import SparkSession

        return SparkSession.builder.remote(url).getOrCreate()
    from tests.other_sparks.servers import cluster_settings

    return local_spark("other", memory="1g", extra=cluster_settings(url))


def live(
    place: str, seed: int, steps: int, spark: SparkSession, *, slow: bool
) -> dict[str, object]:
    compact_often()
    with IncrementalFlow.open(place, spark) as flow:
        declare(flow)
        LongStory(seed, steps).go_on(flow)
        if slow:
            _told_when_it_is_begun(Path(place))
            flow.register_view("slow", SLOW, hydrate=True)
        equal = {view: flow.check(view).equal for view in flow.views}
        replay = flow.replay()
        return {
            "digests": digests(flow),
            "equal": equal,
            "replay": replay.equal,
            "replayed": len(replay.deltas),
        }


def _told_when_it_is_begun(place: Path) -> None:
    """Say so when the next tick's intent is in the log."""
    commits = len(list((place / "ticks" / "_delta_log").glob("*.json")))

    def watch() -> None:
        while len(list((place / "ticks" / "_delta_log").glob("*.json"))) < commits + 3:
            time.sleep(0.02)
        print("begun", flush=True)  # noqa: T201

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--slow"]
    spark = session(words[3])
    try:
        found = live(words[0], int(words[1]), int(words[2]), spark, slow="--slow" in sys.argv)
        Path(words[4]).write_text(json.dumps(found))
    finally:
        spark.stop()
