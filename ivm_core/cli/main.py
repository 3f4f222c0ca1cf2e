"""`tideview`: the subcommands, their errors, and what they end with."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.cli import (
    check,
    checkpoints,
    compact,
    datalog,
    definitions,
    explain,
    metrics,
    new,
    publish,
    reading,
    repair,
    replay,
    status,
    tick,
)
from ivm_core.cli.console import Console, ExitCode
from ivm_core.model.errors import InternalError, IvmError, Refusal, UserError
from ivm_core.model.secrets import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CODES = """\
exit codes:
  0  done, and the answer is yes
  1  done, and the answer is no: a replay differs, a file can't be registered or is damaged, a
     view costs more than its change (--why-not), a flow is behind (--up-to-date)
  2  the command line is wrong
  3  something given is wrong: a path, a name, a file, a batch, a tick that fails on its data
  4  legal SQL that is refused
  5  a bug of tideview
  130  interrupted (watch ends with 0)

--json writes JSON to stdout and nothing else; progress and notes go to stderr.
"""
INTERRUPTED = 130


@dataclass(frozen=True)
class Command:
    """A subcommand."""

    name: str
    help: str
    examples: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Console], ExitCode]


COMMANDS = (
    Command("explain", explain.HELP, explain.EXAMPLES, explain.add_arguments, explain.run),
    Command("status", status.HELP, status.EXAMPLES, status.add_arguments, status.run),
    Command("metrics", metrics.HELP, metrics.EXAMPLES, metrics.add_arguments, metrics.run),
    Command("tick", tick.HELP, tick.EXAMPLES, tick.add_arguments, tick.run),
    Command(
        "snapshot",
        reading.SNAPSHOT_HELP,
        reading.SNAPSHOT_EXAMPLES,
        reading.add_snapshot_arguments,
        reading.snapshot,
    ),
    Command(
        "changes",
        reading.CHANGES_HELP,
        reading.CHANGES_EXAMPLES,
        reading.add_changes_arguments,
        reading.changes,
    ),
    Command(
        "watch",
        reading.WATCH_HELP,
        reading.WATCH_EXAMPLES,
        reading.add_watch_arguments,
        reading.watch,
    ),
    Command("replay", replay.HELP, replay.EXAMPLES, replay.add_arguments, replay.run),
    Command(
        "checkpoint",
        checkpoints.CHECKPOINT_HELP,
        checkpoints.CHECKPOINT_EXAMPLES,
        checkpoints.add_checkpoint_arguments,
        checkpoints.checkpoint,
    ),
    Command(
        "restore",
        checkpoints.RESTORE_HELP,
        checkpoints.RESTORE_EXAMPLES,
        checkpoints.add_restore_arguments,
        checkpoints.restore,
    ),
    Command(
        "alter",
        definitions.ALTER_HELP,
        definitions.ALTER_EXAMPLES,
        definitions.add_alter_arguments,
        definitions.alter,
    ),
    Command(
        "drop",
        definitions.DROP_HELP,
        definitions.DROP_EXAMPLES,
        definitions.add_drop_arguments,
        definitions.drop,
    ),
    Command(
        "rename",
        definitions.RENAME_HELP,
        definitions.RENAME_EXAMPLES,
        definitions.add_rename_arguments,
        definitions.rename,
    ),
    Command("publish", publish.HELP, publish.EXAMPLES, publish.add_arguments, publish.run),
    Command("compact", compact.HELP, compact.EXAMPLES, compact.add_arguments, compact.run),
    Command("repair", repair.HELP, repair.EXAMPLES, repair.add_arguments, repair.run),
    Command("check", check.HELP, check.EXAMPLES, check.add_arguments, check.run),
    Command("datalog", datalog.HELP, datalog.EXAMPLES, datalog.add_arguments, datalog.run),
    Command("new", new.HELP, new.EXAMPLES, new.add_arguments, new.run),
    Command("schema", new.SCHEMA_HELP, new.SCHEMA_EXAMPLES, new.add_schema_arguments, new.schema),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; its exit code."""
    options = parser().parse_args(arguments)
    console = Console(as_json=options.json, quiet=options.quiet)
    logging.basicConfig(level=logging.ERROR)
    run: Callable[[argparse.Namespace, Console], ExitCode] = options.run
    try:
        return int(run(options, console))
    except IvmError as error:
        console.complain(str(error), _content(error))
        return int(_code(error))
    except BrokenPipeError:
        # whoever read the answer has seen enough; the flush at exit must not complain either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.OK)
    except KeyboardInterrupt:
        console.note("interrupted")
        return INTERRUPTED
    except Exception as error:
        bug = InternalError(f"{type(error).__name__}: {error}")
        console.complain(f"{masked(traceback.format_exc())}{bug}", _content(bug))
        return int(ExitCode.INTERNAL)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(
        prog="tideview",
        description="SQL materialized views on Spark and Delta Lake, kept exactly equal to their "
        "query at the cost of the change.",
        epilog=CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = found.add_subparsers(metavar="COMMAND", required=True)
    for each in COMMANDS:
        command = commands.add_parser(
            each.name,
            help=each.help,
            description=f"{each.help}.",
            epilog=f"examples:\n{each.examples}\n{CODES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        each.add_arguments(command)
        command.add_argument("--json", action="store_true", help="answer in JSON")
        command.add_argument("--quiet", action="store_true", help="no progress, no notes")
        command.set_defaults(run=each.run)
    return found


def _code(error: IvmError) -> ExitCode:
    if isinstance(error, Refusal):
        return ExitCode.REFUSED
    return ExitCode.USER_ERROR if isinstance(error, UserError) else ExitCode.INTERNAL


def _content(error: IvmError) -> dict[str, str]:
    """The parts of an error by name, and all of it as text."""
    content = {"kind": type(error).__name__, "text": str(error)}
    if isinstance(error, Refusal):
        names: tuple[str, ...] = ("construct", "position", "reason", "rewrite")
    else:
        names = ("what", "report") if isinstance(error, InternalError) else ("what", "where", "fix")
    return content | {name: getattr(error, name, "") for name in names}
