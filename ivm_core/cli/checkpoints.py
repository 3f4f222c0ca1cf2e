"""`tideview checkpoint` and `tideview restore`: a flow to a folder elsewhere, and back."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ivm_core.api.flow import IncrementalFlow
from ivm_core.cli.console import ExitCode
from ivm_core.cli.flows import add_flow, open_flow
from ivm_core.model.errors import CheckpointError, IvmError

if TYPE_CHECKING:
    import argparse

    from ivm_core.cli.console import Console

CHECKPOINT_HELP = "store what is new in a flow, or all of it, in a folder elsewhere"
CHECKPOINT_EXAMPLES = """\
  tideview checkpoint shop/flow /backup/shop
  tideview checkpoint shop/flow /backup/shop-full --full
"""
RESTORE_HELP = "make a flow from the newest checkpoint in a folder"
RESTORE_EXAMPLES = """\
  tideview restore shop/flow-again /backup/shop
"""


def add_checkpoint_arguments(parser: argparse.ArgumentParser) -> None:
    """What `checkpoint` takes."""
    add_flow(parser)
    _add_folder(parser)
    parser.add_argument(
        "--full",
        action="store_true",
        help="everything that the flow has stored, to be restored without replaying its ticks",
    )


def checkpoint(options: argparse.Namespace, console: Console) -> ExitCode:
    """Make a checkpoint."""
    with (
        console.progress("writing the checkpoint"),
        open_flow(options.flow, to_write=options.full) as flow,
    ):
        made = (flow.checkpoint_full if options.full else flow.checkpoint)(options.folder)
    if made.functions:
        console.note(f"not in the checkpoint: the functions {', '.join(made.functions)}")
    console.answer(str(made), {"format": 1, **asdict(made)})
    return ExitCode.OK


def add_restore_arguments(parser: argparse.ArgumentParser) -> None:
    """What `restore` takes."""
    parser.add_argument("flow", metavar="FLOW", help="folder or URI of the flow, a new one")
    _add_folder(parser)


def restore(options: argparse.Namespace, console: Console) -> ExitCode:
    """Restore."""
    if "://" not in options.folder and not Path(options.folder).is_dir():
        raise CheckpointError("there is no such folder", options.folder, "give a checkpoint's")
    is_made_here = "://" not in options.flow and not Path(options.flow).exists()
    try:
        with (
            console.progress("restoring (starts Spark for ticks that are replayed)"),
            IncrementalFlow.open(options.flow) as flow,
        ):
            restored = flow.restore(options.folder)
    except IvmError:
        if is_made_here:
            shutil.rmtree(options.flow, ignore_errors=True)
        raise
    console.answer(str(restored), {"format": 1, **asdict(restored)})
    return ExitCode.OK


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="folder or URI of the checkpoints")
