"""Spark for runs: of this process, of a server, or of a cluster."""

from typing import Literal

from dagster import ConfigurableResource
from pydantic import Field
from pyspark.sql import SparkSession

from ivm_core.api.places import expanded
from ivm_core.engine.local_spark import local_spark, remote_spark
from tideview.resources.connect_server import ConnectServers, ServerSettings
from tideview.resources.pipeline_spec import SparkSpec

SERVERS = ConnectServers()


class LocalSpark(ConfigurableResource):  # type: ignore[type-arg]
    """Spark with Delta, started when a step first asks for it: on this machine unless told else.

    Not dagster-pyspark's `LazyPySparkResource`, though its session has the same name here: that one
    takes a dictionary of settings, and ours are only known when Spark starts (Delta's jars in the
    cache, the class archive that fits this Java, a scratch folder that goes at exit, the port and
    token of a server that is up). A session that is active in the process already is used as it is,
    so that a process that lives longer than a run starts Spark once; it ends with the process.

    What a pipeline says of Spark in its `pipeline.yaml` wins over what is said here.
    """

    cores: int = Field(default=2, description="How many threads a local Spark may use.")
    memory: str = Field(default="", description="The driver's heap, such as 2g; empty: by machine.")
    fast_start: bool = Field(
        default=True, description="Right for short runs; False for large hydrations."
    )
    master: str = Field(default="", description="A cluster's master; empty: this machine.")
    remote: str = Field(
        default="", description="A Spark Connect server, sc://host:port; empty: SPARK_REMOTE."
    )
    connect: Literal["", "auto"] = Field(
        default="",
        description="auto: find this machine's Spark Connect server or start it, and leave it up.",
    )
    settings: dict[str, str] = Field(
        default_factory=dict, description="Spark settings that win over Tideview's."
    )

    @property
    def spark_session(self) -> SparkSession:
        """The session, without any pipeline's wishes."""
        return self.session(SparkSpec())

    def session(self, wishes: SparkSpec) -> SparkSession:
        """The session that a pipeline gets.

        Errors as `local_spark` and `ConnectServers.session`: `UserError` without Java or Delta's
        jars, `SparkLost` for a server that doesn't answer.
        """
        is_placed = bool(wishes.master or wishes.remote or wishes.connect)
        master = wishes.master if is_placed else self.master
        remote = wishes.remote if is_placed else self.remote
        connect = wishes.connect if is_placed else self.connect
        cores = wishes.cores or self.cores
        memory = wishes.memory or self.memory
        fast_start = self.fast_start if wishes.fast_start is None else wishes.fast_start
        settings = {**self.settings, **wishes.settings}
        if remote:
            return remote_spark(expanded(remote), settings)
        if connect:
            return SERVERS.session(ServerSettings(cores, memory, fast_start, settings))
        return local_spark(
            "tideview-dagster",
            cores=cores,
            memory=memory or None,
            fast_start=fast_start,
            extra={**settings, **({"spark.master": master} if master else {})},
        )
