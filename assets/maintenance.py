"""The upkeep of a flow as a job: retention, compaction, a checkpoint."""

from dagster import JobDefinition, OpExecutionContext, Out, Output, in_process_executor, job, op

from ivm_core import IncrementalFlow, NotAFlow
from ivm_core.api.frontier import read_frontier
from tideview.assets.failures import told_in_our_words
from tideview.assets.names import PIPELINE_TAG, pool
from tideview.assets.resource_keys import USUAL, ResourceKeys
from tideview.resources.pipeline_spec import Pipeline

CHECKPOINTS = "checkpoints"


def maintenance_job(pipeline: Pipeline, keys: ResourceKeys = USUAL) -> JobDefinition:
    """A job that folds what the retention lets go of, and stores what is new in a checkpoint.

    The checkpoint is beside the flow; `tideview checkpoint` makes one wherever it is to be.
    """

    @op(
        name=f"{pipeline.name}_upkeep",
        pool=pool(pipeline),
        out=Out(dagster_type=type(None)),
        description="Retention, compaction, checkpoint.",
        required_resource_keys=keys.both,
    )
    def upkeep(context: OpExecutionContext) -> Output[None]:
        flows, spark = keys.store(context), keys.session(context)
        path = flows.flow_path(pipeline)
        with told_in_our_words():
            try:
                read_frontier(path)
            except NotAFlow:
                context.log.info("there is no flow yet: nothing to do")
                return Output(None)
        keeps = pipeline.retention
        with told_in_our_words(), IncrementalFlow.open(path, spark.session(pipeline.spark)) as flow:
            flow.set_retention(ticks=keeps.ticks, days=keeps.days)
            done = flow.compact()
            stored = flow.checkpoint(path.parent / CHECKPOINTS)
        for line in done or ("nothing was to be folded",):
            context.log.info(line)
        context.log.info(str(stored))
        return Output(None, metadata={"folded": len(done), "checkpoint_tick": stored.tick})

    @job(
        name=f"{pipeline.name}_maintenance",
        description=f"Retention, compaction and a checkpoint of {pipeline.name}.",
        tags={PIPELINE_TAG: pipeline.name},
        executor_def=in_process_executor,
    )
    def maintenance() -> None:
        upkeep()

    return maintenance
