"""Declarative Pipelines' side of `worker`: a session of Spark Connect that stays warm.

Every run does what `spark-pipelines run` does once it has a session.
"""

import json
import sys
from pathlib import Path

from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
from pyspark.pipelines.spark_connect_pipeline import (
    create_dataflow_graph,
    handle_pipeline_events,
    start_run,
)
from pyspark.sql import SparkSession

ANSWERS = sys.stdout
sys.stdout = sys.stderr


def main() -> None:
    """Answer until there are no more questions."""
    given = json.loads(sys.argv[1])
    folder = Path(given["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # instead of USING delta: a second run would set that provider again, which Delta refuses
        "spark.sql.sources.default": "delta",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.driver.extraClassPath": given["jars"],
        "spark.driver.memory": "4g",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.remote("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    say(spark.version)
    for _ in sys.stdin:
        run(spark, given["sql"], folder / "storage")
        say(True)
    spark.stop()


def run(spark: SparkSession, sql: str, storage: Path) -> None:
    """Update the pipeline's one view."""
    graph = create_dataflow_graph(
        spark, default_catalog=None, default_database="default", sql_conf={}
    )
    SparkConnectGraphElementRegistry(spark, graph).register_sql(sql, Path("result.sql"))
    events = start_run(
        spark,
        graph,
        full_refresh=[],
        full_refresh_all=False,
        refresh=[],
        dry=False,
        storage=storage.as_uri(),
    )
    handle_pipeline_events(events)


def say(answer: object) -> None:
    """One line."""
    print(json.dumps({"answer": answer}), file=ANSWERS, flush=True)


if __name__ == "__main__":
    main()
