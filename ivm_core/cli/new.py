"""`tideview new`: a pipeline's folder to begin with; `tideview schema`: what its file may say."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ivm_core.api.declaration import SCHEMA_FILE, pipeline_rules
from ivm_core.cli.console import ExitCode
from ivm_core.model.errors import UserError, WriteFailed
from ivm_core.model.names import check_relation_name

if TYPE_CHECKING:
    import argparse

    from ivm_core.cli.console import Console

HELP = "make the folder of a new pipeline, with a source and a view to begin with"
EXAMPLES = """\
  tideview new sales                       # ./pipelines/sales; ./sales without such a folder
  tideview new sales --at my_project/flows
"""
SCHEMA_HELP = "print the JSON schema of pipeline.yaml, for editors"
SCHEMA_EXAMPLES = """\
  tideview schema > pipeline.schema.json   # and in pipeline.yaml, as the first line:
                                           # yaml-language-server: $schema=pipeline.schema.json
"""
TEMPLATES = Path(__file__).with_name("templates")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the subcommand takes."""
    parser.add_argument("name", metavar="NAME", help="what the pipeline is called")
    parser.add_argument(
        "--at", metavar="FOLDER", type=Path, help="where (default: ./pipelines if there is one)"
    )


def add_schema_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes nothing."""


def run(options: argparse.Namespace, console: Console) -> ExitCode:
    """Make the folder, whole or not at all."""
    name = check_relation_name(options.name, "pipeline")
    parent: Path = options.at or (Path("pipelines") if Path("pipelines").is_dir() else Path())
    if not parent.is_dir():
        what = "this is a file" if parent.exists() else "there is no such folder"
        raise UserError(what, where=str(parent), fix="give a folder that is there")
    folder = parent / name
    if folder.exists() or folder.is_symlink():
        raise UserError(
            "there is something of that name already",
            where=str(folder),
            fix="choose another name, or another folder with --at",
        )
    try:
        files = make_pipeline(folder, name)
    except OSError as error:
        raise WriteFailed(f"the folder can't be made: {error.strerror}", str(folder)) from error
    told = "\n".join(
        [
            *(str(folder / each) for each in files),
            "",
            f"tideview check {folder}    # what each of its views would be",
            "Reload the code location in Dagster, and it is there.",
        ]
    )
    console.answer(told, {"format": 1, "folder": str(folder), "files": [str(f) for f in files]})
    return ExitCode.OK


def schema(options: argparse.Namespace, console: Console) -> ExitCode:
    """The schema as it is checked."""
    console.answer(SCHEMA_FILE.read_text(encoding="utf-8").rstrip(), pipeline_rules())
    return ExitCode.OK


def make_pipeline(folder: Path, name: str) -> list[Path]:
    """Make a pipeline's folder, by one renaming; the names of its files."""
    with tempfile.TemporaryDirectory(prefix=".tideview-new-", dir=folder.parent) as scratch:
        made = Path(scratch) / name
        files = sorted(file.relative_to(TEMPLATES) for file in TEMPLATES.rglob("*.*"))
        for file in files:
            text = (TEMPLATES / file).read_text(encoding="utf-8")
            (made / file).parent.mkdir(parents=True, exist_ok=True)
            (made / file).write_text(text.replace("NAME", name), encoding="utf-8")
        shutil.copy(SCHEMA_FILE, made)
        made.rename(folder)
    return [*files, Path(SCHEMA_FILE.name)]
