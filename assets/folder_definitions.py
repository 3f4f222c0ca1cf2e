"""Everything that Dagster shows of folders of pipelines, by one call.

from tideview.assets import tideview_definitions

defs = tideview_definitions("pipelines")     # or of one pipeline: "pipelines/shop"
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dagster import DagsterError, Definitions, in_process_executor

from ivm_core import DuplicateName, UserError
from tideview.assets.pipeline_definitions import pipeline_definitions
from tideview.assets.problems import plain, problem_definitions
from tideview.resources.flow_store import FlowStore
from tideview.resources.local_spark import LocalSpark
from tideview.resources.pipeline_folder import DECLARATION, pipeline_folders, survey_pipeline
from tideview.resources.pipeline_spec import Pipeline, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dagster import ExecutorDefinition


def tideview_definitions(
    *pipelines: str | Path | Pipeline,
    store: str | Path = "",
    spark: LocalSpark | None = None,
    executor: ExecutorDefinition | None = in_process_executor,
) -> Definitions:
    """Assets, checks, jobs, sensors, schedules and resources of pipelines.

    A folder stands for itself, or for all pipelines in it. What is wrong with one of them is shown
    in its place; the others go on. `executor=None` leaves the choice to what this is merged with;
    then choose one that runs steps in one process: a process a step starts a Spark a step.
    """
    made: dict[str, Definitions] = {}
    problems: dict[str, list[Problem]] = {}
    taken: dict[str, set[str]] = {}
    for found in (each for given in pipelines for each in _surveyed(given)):
        told = problems.setdefault(plain(found.name), [])
        if isinstance(found, Problem):
            told.append(found)
        elif found.name in made:
            what = f"another pipeline is called {found.name} already"
            told.append(_problem(found, DuplicateName(what, _file(found))))
        else:
            try:
                made[found.name] = pipeline_definitions(found)
            except DagsterError as error:  # what Dagster won't take of it
                told.append(_problem(found, UserError(str(error), _file(found))))
                continue
            told += found.problems
            sources = {source.name for source in found.sources}
            taken[found.name] = sources | {view.name for view in found.views}
    resources = {"flows": _flows(str(store)), "spark": spark or _spark()}
    return Definitions.merge(
        *made.values(),
        *(problem_definitions(name, told, taken.get(name, ())) for name, told in problems.items()),
        Definitions(resources=resources, executor=executor),
    )


# Dagster merges definitions whose resources are the same objects: one call a folder is as good as
# one call for all of them
@cache
def _flows(store: str) -> FlowStore:
    return FlowStore(path=store)


@cache
def _spark() -> LocalSpark:
    return LocalSpark()


def _surveyed(given: str | Path | Pipeline) -> Iterable[Pipeline | Problem]:
    if isinstance(given, Pipeline):
        return [given]
    folders = pipeline_folders(given)
    if not folders:
        where = str(Path(given).absolute())
        fix = "make one: tideview new NAME --at FOLDER"
        error = UserError(f"there is no {DECLARATION} here or one folder below", where, fix)
        return [Problem("pipeline", Path(given).absolute().name or "pipelines", where, error)]
    return map(survey_pipeline, folders)


def _problem(pipeline: Pipeline, error: UserError) -> Problem:
    return Problem("pipeline", pipeline.name, _file(pipeline), error)


def _file(pipeline: Pipeline) -> str:
    return str(pipeline.folder / DECLARATION) if pipeline.folder else f"pipeline {pipeline.name}"
