"""What Arrow allocates from when a flow is open, in a process of its own."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

OPEN = """
import sys
import pyarrow as pa
from ivm_core.api.flow import IncrementalFlow
from ivm_core.engine.native_memory import give_back
with IncrementalFlow.open(sys.argv[1]):
    print(pa.default_memory_pool().backend_name)
give_back()
"""


def said(program: str, folder: Path, **environment: str) -> list[str]:
    """The words that a program prints that is given a flow's folder."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder / "flow")],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.parametrize(("chosen", "used"), [("", "system"), ("mimalloc", "mimalloc")])
def test_arrow_shares_memory_among_threads_unless_told_otherwise(
    tmp_path: Path, chosen: str, used: str
) -> None:
    assert said(OPEN, tmp_path, ARROW_DEFAULT_MEMORY_POOL=chosen) == [used]


LARGE = """
import ctypes
import sys
import pyarrow as pa
from ivm_core.api.flow import IncrementalFlow
class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks",
        "keepcost")]
def apart():
    return mallinfo().hblkhd
with IncrementalFlow.open(sys.argv[1]):
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Counts
    first = pa.allocate_buffer(8 << 20)
    del first  # by itself glibc would put the next one among small pieces
    before = apart()
    second = pa.allocate_buffer(8 << 20)
    print(apart() - before >= 8 << 20)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="no glibc of 2.33 or later")
@pytest.mark.parametrize(("chosen", "is_apart"), [("", "True"), ("33554432", "False")])
def test_large_pieces_lie_apart_unless_told_otherwise(
    tmp_path: Path, chosen: str, is_apart: str
) -> None:
    limit = {"MALLOC_MMAP_THRESHOLD_": chosen} if chosen else {}
    assert said(LARGE, tmp_path, ARROW_DEFAULT_MEMORY_POOL="", **limit) == [is_apart]


@pytest.mark.parametrize(
    ("chosen", "used"), [("", "narenas:2"), ("narenas:3,stats_print:true", "narenas: 3")]
)
def test_deltalake_has_few_arenas_unless_told_otherwise(chosen: str, used: str) -> None:
    environment = {key: each for key, each in os.environ.items() if key != "_RJEM_MALLOC_CONF"}
    if chosen:  # the library itself says at its end what it was told
        environment["_RJEM_MALLOC_CONF"] = chosen
    told = "import ivm_core.store.owned_table, os; print(os.environ['_RJEM_MALLOC_CONF'])"
    done = subprocess.run(
        [sys.executable, "-c", told], env=environment, capture_output=True, text=True, check=True
    )
    assert used in done.stdout + done.stderr
