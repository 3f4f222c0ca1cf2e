"""The sensor of a pipeline: new versions of its sources become one run, without starting Spark."""

from dataclasses import dataclass, field

from dagster import (
    DagsterRunStatus,
    DefaultSensorStatus,
    RunRequest,
    RunsFilter,
    SensorDefinition,
    SensorEvaluationContext,
    SkipReason,
    sensor,
)

from ivm_core import IvmError, NotAFlow
from ivm_core.api.frontier import Frontier, SourceVersion, read_frontier
from tideview.assets.names import PIPELINE_TAG
from tideview.resources.flow_store import FlowStore
from tideview.resources.pipeline_folder import Pipeline

UNDER_WAY = [
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]
EVERY_SECONDS = 5


@dataclass
class Outlook:
    """A pipeline's sources beside what its views have seen of them."""

    tick: int = 0
    newest: dict[str, SourceVersion] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    replaced: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)
    """Views that lack something their sources have."""

    @property
    def run_key(self) -> str:
        """One run for one state of the sources and of the flow."""
        versions = [f"{n}@{v.table_id[:8]}.{v.version}" for n, v in sorted(self.newest.items())]
        return f"after tick {self.tick}: {' '.join(versions)}"


def look(pipeline: Pipeline, flows: FlowStore) -> Outlook:
    """Compare the newest version of every source with the frontier of every view."""
    outlook = Outlook()
    for name, inbox in flows.inboxes(pipeline).items():
        try:
            outlook.newest[name] = inbox.version
        except IvmError as error:
            outlook.unreadable[name] = str(error).splitlines()[0]
    try:
        frontier = read_frontier(flows.flow_path(pipeline))
    except NotAFlow:
        frontier = Frontier(0, {})
    outlook.tick = frontier.tick
    for view in pipeline.views:
        seen = frontier.views.get(view.name)
        versions = seen.versions if seen is not None else {}
        for source in sorted(pipeline.sources_of(view.name) & set(outlook.newest)):
            newest, known = outlook.newest[source], versions.get(source)
            if known is not None and known.table_id != newest.table_id:
                outlook.replaced.append(source)
            if known != newest and view.name not in outlook.behind:
                outlook.behind.append(view.name)
    outlook.replaced = sorted(set(outlook.replaced))
    return outlook


def source_sensor(pipeline: Pipeline, job_name: str) -> SensorDefinition:
    """A sensor that asks for a run of a job when a view lacks something its sources have.

    It waits while a run is under way, so that a burst of changes becomes one tick, and says why it
    skips. A state of the sources is tried once: a run that failed is not asked for again before
    something changes.
    """

    @sensor(
        name=f"{pipeline.name}_sources",
        description=f"New versions of the sources of {pipeline.name} become a tick of its views.",
        job_name=job_name,
        minimum_interval_seconds=EVERY_SECONDS,
        default_status=DefaultSensorStatus.RUNNING,
    )
    def sources(context: SensorEvaluationContext, flows: FlowStore) -> RunRequest | SkipReason:
        outlook = look(pipeline, flows)
        if outlook.unreadable:
            told = "; ".join(f"{name}: {why}" for name, why in outlook.unreadable.items())
            return SkipReason(f"sources can't be read: {told}")
        if outlook.replaced:
            names = ", ".join(outlook.replaced)
            return SkipReason(f"tables were replaced by others, the flow can't go on: {names}")
        if not outlook.behind:
            return SkipReason(f"every view has seen the newest versions, as of tick {outlook.tick}")
        runs = context.instance.get_runs(
            RunsFilter(tags={PIPELINE_TAG: pipeline.name}, statuses=UNDER_WAY), limit=1
        )
        if runs:
            return SkipReason(f"run {runs[0].run_id} is under way; what is new waits for it")
        return RunRequest(run_key=outlook.run_key, tags={PIPELINE_TAG: pipeline.name})

    return sources
