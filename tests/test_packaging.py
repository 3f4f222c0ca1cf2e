from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_wheel_brings_two_packages_and_no_generic_names(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    [wheel] = tmp_path.glob("*.whl")
    files = {Path(name) for name in zipfile.ZipFile(wheel).namelist()}
    packages = {file.parts[0] for file in files if not file.parts[0].endswith(".dist-info")}
    assert packages == {"ivm_core", "tideview"}
    for folder in ("assets", "resources", "pipelines"):
        expected = {Path("tideview", file) for file in sources(folder)}
        assert {file for file in files if file.parts[:2] == ("tideview", folder)} == expected
    assert {file for file in files if file.parts[0] == "ivm_core"} == sources("ivm_core")


def test_a_checkout_imports_the_folders_by_the_names_of_the_wheel() -> None:
    for folder in ("assets", "resources", "pipelines"):
        assert (ROOT / "tideview" / folder).resolve() == ROOT / folder


def sources(folder: str) -> set[Path]:
    return {
        file.relative_to(ROOT)
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
