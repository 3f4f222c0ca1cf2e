"""Everything that Dagster shows of folders of pipelines, by one call.

from tideview.assets import tideview_definitions

defs = tideview_definitions("pipelines")     # or of one pipeline: "pipelines/shop"
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dagster import Definitions, in_process_executor

from ivm_core import DuplicateName, IvmError, UserError
from ivm_core.api.documents import read_document
from tideview.assets.pipeline_definitions import pipeline_definitions
from tideview.assets.problems import plain, problem_definitions
from tideview.assets.resource_keys import USUAL, ResourceKeys
from tideview.resources.flow_store import FlowStore
from tideview.resources.local_spark import LocalSpark
from tideview.resources.pipeline_folder import DECLARATION, pipeline_folders, survey_pipeline
from tideview.resources.pipeline_spec import Pipeline, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dagster import ExecutorDefinition

_CLAIMS: dict[Path, tuple[str, Path]] = {}
"""By flow the pipeline, and its folder, that a call in this process has made definitions of."""


def tideview_definitions(
    *pipelines: str | Path | Pipeline,
    store: str | Path = "",
    spark: LocalSpark | None = None,
    executor: ExecutorDefinition | None = in_process_executor,
    resource_keys: ResourceKeys = USUAL,
) -> Definitions:
    """Assets, checks, jobs, sensors, schedules and resources of pipelines.

    A folder stands for itself, or for all pipelines in it. What is wrong with one of them is shown
    in its place; the others go on. `executor=None` leaves the choice to what this is merged with;
    then choose one that runs steps in one process: a process a step starts a Spark a step.
    `resource_keys` are the names of the resources, for a project that has others of those names.
    """
    flows = _flows(str(store))
    resources = {resource_keys.flows: flows, resource_keys.spark: spark or _spark()}
    shared = Definitions(resources=resources, executor=executor)
    made: dict[str, Definitions] = {}
    flow_of: dict[Path, str] = {}
    problems: dict[str, list[Problem]] = {}
    taken: dict[str, set[str]] = {}
    for found in (each for given in pipelines for each in _surveyed(given, flows.root)):
        told = problems.setdefault(plain(found.name), [])
        if isinstance(found, Problem):
            told.append(found)
        elif found.name in made:
            what = f"another pipeline is called {found.name} already"
            told.append(_problem(found, DuplicateName(what, _file(found))))
        else:
            told += found.problems
            try:
                _refuse_shared_flow(found, flows, flow_of)
                made[found.name] = _loadable(found, flows, shared, resource_keys)
            except Exception as error:  # what Dagster won't take of it, in whatever words
                told.append(_problem(found, _in_our_words(error, _file(found))))
                continue
            flow_of[_flow(found, flows)] = found.name
            if found.folder is not None:
                _CLAIMS[_flow(found, flows)] = (found.name, found.folder.resolve())
            sources = {source.name for source in found.sources}
            taken[found.name] = sources | {view.name for view in found.views}
    return Definitions.merge(
        *made.values(),
        *(problem_definitions(name, told, taken.get(name, ())) for name, told in problems.items()),
        shared,
    )


def _loadable(
    pipeline: Pipeline, flows: FlowStore, shared: Definitions, keys: ResourceKeys
) -> Definitions:
    """The definitions of a pipeline, looked at alone: what is wrong with it is raised here."""
    made = pipeline_definitions(pipeline, flows, keys)
    Definitions.validate_loadable(Definitions.merge(made, shared))
    return made


def _refuse_shared_flow(pipeline: Pipeline, flows: FlowStore, flow_of: dict[Path, str]) -> None:
    """`UserError` for a pipeline whose flow is that of another: they would undo each other."""
    flow = _flow(pipeline, flows)
    other = flow_of.get(flow) or _claimed_before(pipeline, flow)
    if other:
        raise UserError(
            f"the pipelines {other} and {pipeline.name} have one store, {flow.parent}",
            where=_place_of_store(pipeline),
            fix="give each a store of its own, or leave store out",
        )


def _claimed_before(pipeline: Pipeline, flow: Path) -> str:
    """The pipeline of a former call whose flow it is; empty for none that is still there."""
    name, folder = _CLAIMS.get(flow, ("", None))
    if folder is None or pipeline.folder is None or name == pipeline.name:
        return ""
    is_there = (folder / DECLARATION).is_file() and folder != pipeline.folder.resolve()
    return name if is_there else ""


def _flow(pipeline: Pipeline, flows: FlowStore) -> Path:
    return flows.flow_path(pipeline).resolve()


def _place_of_store(pipeline: Pipeline) -> str:
    if pipeline.folder is None:
        return _file(pipeline)
    return read_document(pipeline.folder / DECLARATION).where(("store",))


def _in_our_words(error: Exception, where: str) -> IvmError:
    if isinstance(error, IvmError):
        return error
    return UserError(f"{type(error).__name__}: {error}", where)


# Dagster merges definitions whose resources are the same objects: one call a folder is as good as
# one call for all of them
@cache
def _flows(store: str) -> FlowStore:
    return FlowStore(path=store)


@cache
def _spark() -> LocalSpark:
    return LocalSpark()


def _surveyed(given: str | Path | Pipeline, store: Path) -> Iterable[Pipeline | Problem]:
    if isinstance(given, Pipeline):
        return [given]
    folders = pipeline_folders(given)
    if not folders:
        where = str(Path(given).absolute())
        fix = "make one: tideview new NAME --at FOLDER"
        error = UserError(f"there is no {DECLARATION} here or one folder below", where, fix)
        return [Problem("pipeline", Path(given).absolute().name or "pipelines", where, error)]
    return (_survey(folder, store) for folder in folders)


def _survey(folder: Path, store: Path) -> Pipeline | Problem:
    """`survey_pipeline`, with nothing raised whatever a file makes of us."""
    try:
        return survey_pipeline(folder, store)
    except Exception as error:
        file = str(folder / DECLARATION)
        return Problem("pipeline", folder.absolute().name, file, _in_our_words(error, file))


def _problem(pipeline: Pipeline, error: IvmError) -> Problem:
    return Problem("pipeline", pipeline.name, _file(pipeline), error)


def _file(pipeline: Pipeline) -> str:
    return str(pipeline.folder / DECLARATION) if pipeline.folder else f"pipeline {pipeline.name}"
