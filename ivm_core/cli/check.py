"""`tideview check`: verdicts for a folder of .sql files, before anything is registered."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ivm_core.api.datalog_views import read_program, refuse_taken
from ivm_core.api.declaration import Declaration
from ivm_core.api.judging import Judgement, over_flow, over_sources
from ivm_core.api.view_file import program_files, read_view_file, view_files
from ivm_core.cli.console import ExitCode, table
from ivm_core.cli.flows import require_flow
from ivm_core.engine.definitions import INCREMENTAL
from ivm_core.model.errors import UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from ivm_core.api.judging import Judge
    from ivm_core.api.outline import ViewText
    from ivm_core.cli.console import Console

HELP = "verdicts for a folder of .sql and .dl files; 1 where a view can't be registered"
EXAMPLES = """\
  tideview check pipelines/shop                          # pipeline.yaml and views/*.sql
  tideview check sql/ --schema sources.json              # {"sources": {"orders": "id BIGINT, …"}}
  tideview check sql/ --flow shop/flow --require incremental --json
"""
DECLARATION = "pipeline.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the subcommand takes."""
    parser.add_argument(
        "folder", metavar="FOLDER", type=Path, help="one SELECT a .sql file, a program a .dl"
    )
    given = parser.add_mutually_exclusive_group()
    given.add_argument("--flow", help="the sources and views of this flow are what files may read")
    given.add_argument(
        "--schema",
        type=Path,
        metavar="FILE",
        help="sources with their columns, as JSON or YAML (default: the folder's pipeline.yaml)",
    )
    parser.add_argument(
        "--require",
        choices=[INCREMENTAL],
        help="every view must be, not only those whose file says so",
    )


def run(options: argparse.Namespace, console: Console) -> ExitCode:
    """Judge every file."""
    folder, schema = _places(options)
    texts: dict[str, ViewText] = {}
    taken: dict[str, str] = {}
    found: list[Judgement] = []
    for file in view_files(folder):
        try:
            text = read_view_file(file)
        except UserError as error:
            found.append(Judgement(file.stem, str(file), "wrong", "", error=str(error)))
            continue
        texts[text.name] = text
        taken[text.name] = f"the view of {file}"
    for file in program_files(folder):
        program = read_program(file)
        refuse_taken(program, taken)
        texts |= {each.text.name: each.text for each in program.relations}
        taken |= {each.text.name: f"the relation of {each.where}" for each in program.relations}
    if options.require:
        texts = {name: replace(text, require=options.require) for name, text in texts.items()}
    if not texts and not found:
        raise UserError("there are no .sql files", where=str(folder), fix="put one SELECT a file")
    count = len(found) + len(texts)
    with console.progress("starting Spark") as progress, _judge(options, schema, texts) as judge:
        for judged in judge.judge(texts):
            found.append(judged)
            progress.step(f"checked {len(found)} of {count} views")
    passes = all(each.passes for each in found)
    content = {"format": 1, "passes": passes, "views": [each.to_dict() for each in found]}
    console.answer(_text(found), content)
    return ExitCode.OK if passes else ExitCode.NO


def _places(options: argparse.Namespace) -> tuple[Path, Path | None]:
    """The folder of the files, and the file that declares their sources."""
    folder: Path = options.folder
    if not folder.is_dir():
        what = "this is a file" if folder.exists() else "there is no such folder"
        raise UserError(what, where=str(folder), fix="give a folder of .sql files")
    schema: Path | None = options.schema
    if (folder / DECLARATION).is_file() and (folder / "views").is_dir():
        folder, schema = folder / "views", schema or folder / DECLARATION
    elif (folder.parent / DECLARATION).is_file():
        schema = schema or folder.parent / DECLARATION
    if options.flow is not None:
        return folder, None
    if schema is None:
        raise UserError(
            "nothing says which columns the sources have",
            where=str(folder),
            fix="give --schema FILE or --flow FLOW, or put a pipeline.yaml there",
        )
    return folder, schema


@contextmanager
def _judge(
    options: argparse.Namespace, schema: Path | None, texts: dict[str, ViewText]
) -> Iterator[Judge]:
    if schema is None:
        with over_flow(require_flow(options.flow), texts) as judge:
            yield judge
    else:
        with over_sources(list(Declaration(schema, of_sources=True).sources())) as judge:
            yield judge


def _text(found: list[Judgement]) -> str:
    rows = [
        (each.view, each.verdict, "ok" if each.passes else "NO", each.require)
        for each in sorted(found, key=lambda each: each.where)
    ]
    lines = [table(("view", "verdict", "passes", "requires"), rows)]
    for each in found:
        reasons = [each.error] if each.error else [str(why) for why in each.why_not]
        if reasons:
            lines += ["", each.where, *("  " + why.replace("\n", "\n  ") for why in reasons)]
    passing = sum(each.passes for each in found)
    return "\n".join([*lines, "", f"{passing} of {len(found)} views can be registered"])
