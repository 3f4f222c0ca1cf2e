"""Asking the disk to keep what was written, for those who want a power cut to be survived as well.

A killed process loses nothing that it has written; a machine that loses power may. With
`TIDEVIEW_FSYNC=1` every file of a local flow, and the folder that it is in, is synced before the
next step relies on it. docs/faults.md has what that costs.
"""

from __future__ import annotations

import os
from typing import IO

SETTING = "TIDEVIEW_FSYNC"


def is_on() -> bool:
    """Whether files are synced."""
    return os.environ.get(SETTING, "") not in ("", "0")


def sync_stream(stream: IO[bytes] | IO[str]) -> None:
    """Have the disk keep what was written to an open file."""
    if is_on():
        stream.flush()
        os.fsync(stream.fileno())


def sync_file(path: str) -> None:
    """Have the disk keep a file that someone else wrote, and its name."""
    if is_on():
        with open(path, "rb") as stream:
            os.fsync(stream.fileno())
        sync_folder(os.path.dirname(path))


def sync_folder(path: str) -> None:
    """Have the disk keep the names in a folder."""
    if is_on():
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
