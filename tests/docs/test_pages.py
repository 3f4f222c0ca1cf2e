"""The documentation's examples do what they say, and its site can be built."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.docs.pages import ROOT, Reader, blocks_of, commands_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.glob("*.md"))
RUN = [
    page
    for page in PAGES
    if any(block.language in ("python", "console") for block in blocks_of(page))
]
ELSEWHERE = {
    "make demo": ("tests/test_demo.py", "demo"),
    "make test": (".ci/run", "make test"),
    "make ui": ("tests/dagster/test_ui.py", "ui"),
    "make docs": ("tests/docs/test_pages.py", "mkdocs"),
    "make bench": ("bench/__main__.py", "argparse"),
    "make nightly": ("tests/resuming.py", "--resume"),
    "make setup": ("tools/setup.py", "def main"),
}
"""Commands that other tests run, or that take hours: where, and a word that is there."""


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_a_page_does_what_it_says(
    page: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Reader(page, {"spark": spark}).follow()


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.stem)
def test_make_commands_are_run_by_something(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in page.read_text(encoding="utf-8").splitlines():
        found = re.match(r"\s*(?:\$ )?(make [a-z]+)\b", line)
        if found is None or not line.startswith((" ", "$")):
            continue
        assert found[1].split()[1] in targets, line
        file, word = ELSEWHERE[found[1]]
        assert word in (ROOT / file).read_text(encoding="utf-8")


def test_every_command_of_the_tool_is_shown_and_run() -> None:
    from ivm_core.cli.main import COMMANDS

    shown = {
        shlex.split(command)[1]
        for page in RUN
        for block in blocks_of(page)
        if block.language == "console"
        for command, _ in commands_of(block)
    }
    endless = {"watch"}
    assert {each.name for each in COMMANDS} - shown - endless == set()


def test_every_page_is_in_the_table_of_contents() -> None:
    # the file has tags of Material's that only MkDocs knows
    site = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader=yaml.BaseLoader)
    listed = set(re.findall(r"[\w-]+\.md", str(site["nav"])))
    assert listed == {page.name for page in PAGES}


def test_the_site_can_be_built_and_no_link_leads_nowhere(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    reference = (tmp_path / "site" / "api" / "index.html").read_text()
    assert "IncrementalFlow.register_view" in reference
