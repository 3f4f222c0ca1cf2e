"""A process whose disk is full again and again, and whose Spark dies in the end.

`python -m tests.faults.hard_times PLACE KEPT`: the flow is at PLACE, on a small file system; what
has become of it is copied to KEPT, and there Spark dies in the middle of a tick.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

from ivm_core import IncrementalFlow, SparkLost, WriteFailed
from ivm_core.store import faults
from tests.faults import story

ROOMS = (0, 4_096, 8_192, 16_384, 32_768)
LAST = 3


def fill(ballast: Path, room: int) -> None:
    """Leave so many bytes free on the file system."""
    with ballast.open("wb") as stream:
        free = os.statvfs(ballast.parent)
        left = free.f_bavail * free.f_frsize - room
        while left > 0:
            left -= stream.write(b"\0" * min(left, 4_096))


def tick_with_little_room(flow: IncrementalFlow, number: int, ballast: Path) -> None:
    """Try a tick with ever more room until it goes through."""
    for room in ROOMS:
        fill(ballast, room)
        before = flow.current_tick
        try:
            story.tick(flow, number)
        except WriteFailed as error:
            print(f"WriteFailed: {room} bytes: {error.what}")  # noqa: T201
            assert flow.current_tick == before
        else:
            return
        finally:
            ballast.unlink()
    story.tick(flow, number)


def die(flow: IncrementalFlow, number: int) -> None:
    """Kill Spark right after the tick's intent is written."""
    jvm = flow.spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    flow.current_tick  # noqa: B018
    entries = 0

    def at_point(name: str) -> None:
        nonlocal entries
        entries += name == "after:ticklog.commit"
        if entries == 2 and jvm.poll() is None:  # its epoch, its intent
            os.kill(jvm.pid, signal.SIGKILL)
            jvm.wait()

    faults.on_fault_point = at_point
    story.tick(flow, number)


if __name__ == "__main__":
    place, kept = Path(sys.argv[1]), Path(sys.argv[2])
    is_small = os.statvfs(place.parent).f_blocks * os.statvfs(place.parent).f_frsize < 1 << 22
    with IncrementalFlow.open(place) as opened:
        story.declare(opened)
        for each in range(1, LAST):
            if is_small and each > 1:
                tick_with_little_room(opened, each, place.parent / "ballast")
            else:
                story.tick(opened, each)
    shutil.copytree(place, kept)
    dying = IncrementalFlow.open(kept)
    try:
        die(dying, LAST)
    except SparkLost as error:
        print(f"SparkLost: {error.what}")  # noqa: T201
