"""Spark for runs."""

from dagster import ConfigurableResource
from pydantic import Field
from pyspark.sql import SparkSession

from ivm_core.engine.local_spark import local_spark


class LocalSpark(ConfigurableResource):  # type: ignore[type-arg]
    """A local Spark with Delta, started when a step first asks for it.

    Not dagster-pyspark's `LazyPySparkResource`, though its session has the same name here: that one
    takes a dictionary of settings, and ours are only known when Spark starts (Delta's jars in the
    cache, the class archive that fits this Java, a scratch folder that goes at exit). A session
    that is active in the process already is used as it is, so that a process that lives longer than
    a run starts Spark once; it ends with the process.
    """

    cores: int = Field(default=2, description="How many threads Spark may use.")
    memory: str = Field(default="", description="The driver's heap, such as 2g; empty: by machine.")
    fast_start: bool = Field(
        default=True, description="Right for short runs; False for large hydrations."
    )
    settings: dict[str, str] = Field(
        default_factory=dict, description="Spark settings that win over Tideview's."
    )

    @property
    def spark_session(self) -> SparkSession:
        """The session; errors as `ivm_core.engine.local_spark.local_spark`."""
        return local_spark(
            "tideview-dagster",
            cores=self.cores,
            memory=self.memory or None,
            fast_start=self.fast_start,
            extra=self.settings,
        )
