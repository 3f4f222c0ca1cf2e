from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Tool


def test_a_flow_goes_to_a_folder_and_comes_back(tideview: Tool, shop: Path, tmp_path: Path) -> None:
    for more in ((), ("--full",)):
        folder = tmp_path / f"checkpoint{len(more)}"
        made = tideview("checkpoint", shop, folder, *more, "--json")
        assert made.code == 0, made.err
        assert (made.json["tick"], made.json["kind"]) == (2, "full" if more else "delta")
        flow = tmp_path / f"flow{len(more)}"
        restored = tideview("restore", flow, folder)
        assert restored.code == 0, restored.err
        assert "tick 2" in restored.out
        first = tideview("snapshot", shop, "cities", "--json").json["rows"]
        assert tideview("snapshot", flow, "cities", "--json").json["rows"] == first
        twice = tideview("restore", flow, folder)
        assert twice.code == 3
        assert "not empty" in twice.err
    assert "nothing is new" in tideview("checkpoint", shop, tmp_path / "checkpoint0").out


def test_what_can_not_be_restored_leaves_nothing(
    tideview: Tool, shop: Path, tmp_path: Path
) -> None:
    assert tideview("restore", tmp_path / "flow", tmp_path / "none").code == 3
    assert tideview("checkpoint", shop, tmp_path / "full", "--full").code == 0
    shutil.rmtree(tmp_path / "full" / "parts")
    answer = tideview("restore", tmp_path / "flow", tmp_path / "full", "--json")
    assert answer.code == 3
    assert answer.json["error"]["kind"] == "CheckpointError"
    assert not (tmp_path / "flow").exists()
