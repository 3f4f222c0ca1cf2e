"""`tideview datalog`: a program evaluated once over files of facts, as Soufflé would."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ivm_core.api.datalog_run import run as run_program
from ivm_core.api.session import program_text
from ivm_core.cli.console import ExitCode
from ivm_core.frontend.datalog.functors import Kind
from ivm_core.frontend.datalog.program import checked_program
from ivm_core.model.errors import BatchError, UserError

if TYPE_CHECKING:
    import argparse

    from ivm_core.cli.console import Console
    from ivm_core.frontend.datalog.relations import Column, Relation

HELP = "evaluate a Datalog program once over files of facts"
EXAMPLES = """\
  tideview datalog reach.dl --facts facts/
  tideview datalog reach.dl --facts facts/ --json
  tideview datalog reach.dl --strata
"""
SUFFIX = ".facts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the subcommand takes."""
    parser.add_argument("program", metavar="PROGRAM", help="file of the program")
    parser.add_argument(
        "--facts",
        metavar="FOLDER",
        help=f"has RELATION{SUFFIX} for inputs: a fact a line, values parted by tabs",
    )
    parser.add_argument(
        "--strata", action="store_true", help="only check it, and show what is computed when"
    )


def run(options: argparse.Namespace, console: Console) -> ExitCode:
    """Evaluate, or show the strata."""
    text = program_text(Path(options.program))
    program = checked_program(text)
    if options.strata:
        strata = [
            {"relations": list(each.relations), "recursive": each.is_recursive}
            for each in program.strata
        ]
        content: dict[str, Any] = {
            "inputs": list(program.inputs),
            "strata": strata,
            "outputs": list(program.outputs),
        }
        console.answer(program.explain(), {"format": 1, **content})
        return ExitCode.OK
    folder = None if options.facts is None else Path(options.facts)
    if folder is not None and not folder.is_dir():
        raise UserError("there is no such folder", str(folder), "give the folder of the facts")
    facts = {}
    for name in program.inputs:
        file = None if folder is None else folder / f"{name}{SUFFIX}"
        if file is not None and file.is_file():
            facts[name] = _facts(program.relations[name], file)
        else:
            console.note(f"{name} has no facts: there is no {file or '--facts'}")
    with console.progress("evaluating (starts Spark)"):
        found = run_program(text, facts)
        rows = {name: list(facts) for name, facts in found.items()}
    lines = []
    for name, each in rows.items():
        lines.append(f"{name}: {len(each)} facts")
        lines.extend("\t".join(map(str, fact)) for fact in each)
    relations = {name: [list(fact) for fact in each] for name, each in rows.items()}
    console.answer("\n".join(lines), {"format": 1, "relations": relations})
    return ExitCode.OK


def _facts(relation: Relation, file: Path) -> list[tuple[Any, ...]]:
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the facts can't be read: {error}", str(file)) from error
    facts = []
    lines = text.removesuffix("\n").split("\n") if text else []
    for number, line in enumerate(lines, 1):
        values = line.split("\t")
        if len(values) != len(relation.columns):
            raise _wrong(relation, file, number, f"{len(relation.columns)} values", line)
        facts.append(
            tuple(
                _value(relation, file, number, column, value)
                for column, value in zip(relation.columns, values, strict=True)
            )
        )
    return facts


def _value(relation: Relation, file: Path, number: int, column: Column, text: str) -> Any:
    if column.kind is Kind.SYMBOL:
        return text
    try:
        return float(text) if column.kind is Kind.FLOAT else int(text)
    except ValueError:
        raise _wrong(relation, file, number, f"a {column.kind.value}", text) from None


def _wrong(relation: Relation, file: Path, number: int, expected: str, got: str) -> BatchError:
    return BatchError(
        f"this is no fact of {relation.name}",
        f"line {number} of {file}",
        f"it is declared as {relation.text}; values are parted by tabs",
        expected=expected,
        got=repr(got),
    )
