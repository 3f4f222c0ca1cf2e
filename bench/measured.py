"""Figures that the documentation is made from: `bench/measured`, a JSON file a program.

A program measured again replaces its own file only, so the pages can be made anew at any time from
runs of different days; each file says on what, with what and when it was measured.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

FOLDER = Path(__file__).parent / "measured"


def keep(content: Mapping[str, Any], folder: Path = FOLDER) -> Iterator[Path]:
    """Write what each program of a run found, but for what failed or was wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    for section in content["sections"]:
        if not section["error"] and all(section["checks"].values()):
            path = folder / f"{file_name(section, content)}.json"
            path.write_text(
                json.dumps({**content, "sections": [section]}, indent=1) + "\n", "utf-8"
            )
            yield path


def file_name(section: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """By program, with its options, and the Spark that it ran on where that is no local one."""
    spark = content["plan"]["spark"].partition(":")[0]
    words = [section["key"], *re.findall(r"[\w.]+", section["options"])]
    return "-".join(words if spark == "local" else [*words, spark])


def kept(folder: Path = FOLDER) -> list[Path]:
    """All files, in the order in which the programs run; of one those of a local Spark first."""
    from bench.programs import PROGRAMS

    order = list(PROGRAMS)
    files = {path: json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")}

    def place(path: Path) -> tuple[int, bool, Path]:
        found = files[path]
        return order.index(found["sections"][0]["key"]), found["plan"]["spark"] != "local", path

    return sorted(files, key=place)
