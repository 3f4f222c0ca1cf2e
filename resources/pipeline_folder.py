"""A pipeline as a folder: `pipeline.yaml` with its sources, and `views/*.sql`, one view a file.

A file `views/*.dl` is a Datalog program, with a view for each relation that it derives.

Reading it needs neither Spark nor Dagster, so that a code location loads fast and a program may
use the same folder without either.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from ivm_core import IvmError, UserError
from ivm_core.api.datalog_views import declared_names, read_program, refuse_taken
from ivm_core.api.declaration import Declaration
from ivm_core.api.sound_views import unsound_views
from ivm_core.api.view_file import passed_over, program_files, read_view, view_files
from ivm_core.model.errors import in_our_words
from tideview.resources.expectation_rules import check_expectations
from tideview.resources.pipeline_settings import (
    pipeline_settings,
    program_specs,
    source_spec,
    view_spec,
)
from tideview.resources.pipeline_spec import Pipeline, PipelineSpec, Problem, SourceSpec, ViewSpec

__all__ = ["Pipeline", "load_pipeline", "pipeline_folders", "survey_pipeline"]

DECLARATION = "pipeline.yaml"
OTHER_ENDING = "pipeline.yml"


def load_pipeline(folder: str | Path, store: Path | None = None) -> PipelineSpec:
    """Read a pipeline's folder; whatever is wrong with it is an `IvmError` that names the file.

    Tables whose columns the file leaves to them are looked for in a store, the usual one for None.
    """
    pipeline = _read(Path(folder), store)
    for problem in pipeline.problems:
        raise problem.error
    return pipeline


def survey_pipeline(folder: str | Path, store: Path | None = None) -> PipelineSpec | Problem:
    """What can be used of a pipeline's folder; the rest is among the pipeline's problems.

    A `Problem` instead where there is nothing to use. Never raises an `IvmError`.
    """
    root = Path(folder)
    try:
        return _read(root, store)
    except IvmError as error:
        return Problem("pipeline", root.absolute().name, str(root / DECLARATION), error)


def pipeline_folders(folder: str | Path) -> list[Path]:
    """The pipelines of a folder: itself, or every folder in it that has a `pipeline.yaml`."""
    root = Path(folder)
    if _declares(root):
        return [root]
    return sorted({each.parent for each in root.glob("*/pipeline.y*ml") if _declares(each.parent)})


def _declares(folder: Path) -> bool:
    """Whether a folder is meant to be a pipeline."""
    return any((folder / name).is_file() for name in (DECLARATION, OTHER_ENDING))


def _passed_over(file: Path) -> UserError:
    return UserError(
        "the file would be passed over: views are files of views/ itself, *.sql or *.dl",
        where=str(file),
        fix="move it into views/, and let its name end in small letters",
    )


def _read(root: Path, store: Path | None) -> PipelineSpec:
    if not (root / DECLARATION).exists() and (root / OTHER_ENDING).is_file():
        fix = f"rename it to {DECLARATION}"
        raise UserError(f"a pipeline is declared by {DECLARATION}", str(root / OTHER_ENDING), fix)
    declared = Declaration(root / DECLARATION, store=store)
    pipeline = PipelineSpec(declared.name(), (), (), folder=root, **pipeline_settings(declared))
    problems: list[Problem] = []
    sources: list[SourceSpec] = []
    lost: list[str] = []
    source_names = declared.source_names
    for name in source_names:
        try:
            sources.append(source_spec(declared, declared.source(name)))
        except Exception as error:
            file = root / DECLARATION
            problems.append(_problem(name, str(file), error, kind="source"))
    problems += [
        Problem("view", str(file.relative_to(root / "views")), str(file), _passed_over(file))
        for file in passed_over(root / "views")
    ]
    files, programs = list(view_files(root / "views")), list(program_files(root / "views"))
    if not files and not programs:
        where, fix = str(root / "views"), "put one SELECT a file"
        raise UserError("the pipeline has no views", where=where, fix=fix)
    views: dict[str, ViewSpec] = {}
    fronts = {}
    for file in files:
        try:
            read = read_view(file)
            views[file.stem], fronts[file.stem] = view_spec(read), read.front
        except Exception as error:  # whatever a file makes of us, the others are none the worse
            problems.append(_problem(file.stem, str(file), error))
    taken = {name: f"the source of {declared.where(('sources', name))}" for name in source_names}
    taken |= {file.stem: f"the view of {file}" for file in files}
    for file in programs:
        try:
            program = read_program(file)
            refuse_taken(program, taken)
            views |= {each.name: each for each in program_specs(program)}
            taken |= {each.text.name: f"the relation of {each.where}" for each in program.relations}
        except Exception as error:
            problems.append(_problem(file.name, str(file), error))
            lost += [name for name in declared_names(file) if name not in taken]
    pipeline = _sound(replace(pipeline, sources=tuple(sources)), views, problems, lost)
    for view in pipeline.views:
        if view.name not in fronts:
            continue
        try:
            check_expectations(fronts[view.name], view.columns)
        except Exception as error:
            problems.append(_problem(view.name, view.where, error))
            del views[view.name]
    if len(views) < len(pipeline.views):
        pipeline = _sound(pipeline, views, problems, lost)
    # to make a pipeline is to parse its views
    return replace(pipeline, problems=tuple(problems)) if problems else pipeline


def _problem(
    name: str, file: str, error: Exception, kind: Literal["source", "view"] = "view"
) -> Problem:
    return Problem(kind, name, file, in_our_words(error, file))


def _sound(
    pipeline: PipelineSpec,
    views: dict[str, ViewSpec],
    problems: list[Problem],
    lost: list[str],
) -> PipelineSpec:
    """The pipeline with those of the views that can be made; the others become problems.

    `lost` are relations of programs that can't be used.
    """
    if not problems:
        try:
            return replace(pipeline, views=tuple(views.values()))
        except Exception:
            pass  # which of them?
    schemas = {source.name: source.schema for source in pipeline.sources}
    texts = {view.name: view.text for view in views.values()}
    missing = [*(each.name for each in problems), *lost]
    for name, error in unsound_views(schemas, texts, missing).items():
        problems.append(Problem("view", name, views.pop(name).where, error))
    return replace(pipeline, views=tuple(views.values()))
