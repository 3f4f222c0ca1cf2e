"""Finding the flow that someone means by a path."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from ivm_core.api.flow import IncrementalFlow
from ivm_core.model.errors import NotAFlow

if TYPE_CHECKING:
    import argparse

LOG = Path("ticks", "_delta_log")


def add_flow(parser: argparse.ArgumentParser) -> None:
    """The argument that names a flow."""
    parser.add_argument("flow", metavar="FLOW", help="folder or URI of the flow")


def open_flow(path: str, *, to_write: bool = False) -> IncrementalFlow:
    """The flow at a path, never a new one; `NotAFlow` with what may have been meant.

    To write, it is opened so that a killed tick is finished first.
    """
    require_flow(path)
    return IncrementalFlow.open(path, read_only=not to_write)


def require_flow(path: str) -> str:
    """The path, if a flow is there; `NotAFlow` with what may have been meant."""
    if "://" in path:
        return path
    folder = Path(path)
    if (folder / LOG).is_dir():
        return path
    if folder.is_file():
        raise NotAFlow("this is a file", path, "give the folder of a flow")
    if not folder.exists():
        raise NotAFlow("there is no such folder", path, _near(folder))
    inside = [each for each in sorted(folder.iterdir()) if (each / LOG).is_dir()]
    if inside:
        raise NotAFlow("there is no flow here", path, f"did you mean {inside[0]}?")
    raise NotAFlow("there is no flow here", path, "give the folder that a flow was made in")


def _near(folder: Path) -> str:
    if not folder.parent.is_dir():
        return "give the folder that a flow was made in"
    there = [each.name for each in folder.parent.iterdir() if (each / LOG).is_dir()]
    near = get_close_matches(folder.name, there, n=1) or there[:3]
    if not near:
        return "give the folder that a flow was made in"
    return f"did you mean {' or '.join(str(folder.parent / name) for name in near)}?"
