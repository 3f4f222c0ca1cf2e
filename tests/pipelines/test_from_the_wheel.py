"""The wheel in someone's own, empty Dagster project, in an environment of its own.

The environment has what the checkout's has, by a path, and the wheel before it; `dg` comes from the
package index.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.processes import ROOT

DG = "dagster-dg-cli==1.13.27"
DEFINITIONS = """
from pathlib import Path
from dagster import definitions, load_from_defs_folder

@definitions
def defs():
    return load_from_defs_folder(path_within_project=Path(__file__).parent)
"""
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "mine"
version = "0.1.0"

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "mine"
"""
FILL = """
import sys
from decimal import Decimal
import ivm_core
from tideview.resources.flow_store import FlowStore
from tideview.resources.pipeline_folder import load_pipeline

assert sys.prefix in ivm_core.__file__, ivm_core.__file__
box = FlowStore().inboxes(load_pipeline(sys.argv[1]))["orders"]
box.make()
box.append([(1, "ada", Decimal("7.00")), (2, "ben", Decimal("3.50")), (3, "ada", Decimal("1.00"))])
"""
LIST = """
import json
from mine.definitions import defs

found = defs()
print(json.dumps(sorted("/".join(spec.key.path) for spec in found.resolve_all_asset_specs())))
"""
FACTORY = """
import json
from dagster import Definitions, asset
from tideview.assets import tideview_definitions

@asset
def mine(): ...

defs = Definitions.merge(Definitions(assets=[mine]), tideview_definitions("flows"))
Definitions.validate_loadable(defs)
print(json.dumps(sorted("/".join(spec.key.path) for spec in defs.resolve_all_asset_specs())))
"""


class Home:
    """A project, and an environment with the wheel."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.bin = folder / "venv" / "bin"
        self.environment = {
            **os.environ,
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "VIRTUAL_ENV": str(folder / "venv"),
            "TIDEVIEW_STORE": str(folder / "store"),
            "DAGSTER_HOME": str(folder / "dagster"),
            "DAGSTER_DG_CLI_CONFIG": str(folder / "dg.toml"),
            "TIDEVIEW_CACHE": os.environ.get("TIDEVIEW_CACHE", str(ROOT / ".cache" / "tideview")),
        }
        self.environment.pop("PYTHONPATH", None)

    def run(self, *command: str, fails: bool = False) -> str:
        done = subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + (done.stderr if fails else "")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("someone")
    made = Home(folder)
    venv.create(folder / "venv", with_pip=True)
    [site] = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "checkout.pth").write_text(sysconfig.get_path("purelib") + "\n")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    subprocess.run([*build, str(folder)], cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    package = made.project / "src" / "mine"
    (package / "defs").mkdir(parents=True)
    (folder / "dagster").mkdir()
    for each in (package, package / "defs"):
        (each / "__init__.py").write_text("")
    (package / "definitions.py").write_text(DEFINITIONS)
    (made.project / "pyproject.toml").write_text(PROJECT)
    made.run("python", "-m", "pip", "install", "--no-deps", "--no-index", "-q", str(wheel))
    (site / "project.pth").write_text(str(made.project / "src") + "\n")
    return made


@pytest.mark.nightly
def test_a_pipeline_is_made_and_materialized(home: Home) -> None:
    (home.project / "flows").mkdir()
    home.run("tideview", "new", "sales", "--at", "flows")
    assert json.loads(home.run("python", "-c", FACTORY).splitlines()[-1]) == [
        "mine",
        "sales/history/replay",
        "sales/orders",
        "sales/totals",
    ]
    (home.project / "defs.py").write_text(FACTORY)
    home.run("python", "-c", FILL, "flows/sales")
    select = ["--select", 'key:"sales/totals"']
    told = home.run("python", "-m", "dagster", "asset", "materialize", "-f", "defs.py", *select)
    flow = str(Path(home.environment["TIDEVIEW_STORE"]) / "sales" / "flow")
    rows = json.loads(home.run("tideview", "snapshot", flow, "totals", "--json"))
    assert {row["customer"]: row["orders"] for row in rows["rows"]} == {"ada": 2, "ben": 1}, told


@pytest.mark.nightly
def test_dg_lists_scaffolds_and_checks_the_component(home: Home) -> None:
    install = [str(home.bin / "python"), "-m", "pip", "install", "-q", DG]
    installed = subprocess.run(install, env=home.environment, capture_output=True, check=False)
    if installed.returncode:
        pytest.skip(f"{DG} can't be installed: is there a package index?")
    assert "tideview.assets.TideviewPipelines" in home.run("dg", "list", "components", "--json")
    home.run("dg", "scaffold", "defs", "tideview.assets.TideviewPipelines", "trade")
    made = home.project / "src" / "mine" / "defs" / "trade"
    assert (made / "trade" / "pipeline.yaml").is_file()
    assert "folder: trade" in (made / "defs.yaml").read_text()
    home.run("dg", "check", "yaml")
    home.run("dg", "check", "defs")
    assets = json.loads(home.run("python", "-c", LIST).splitlines()[-1])
    assert {"trade/orders", "trade/totals"} <= set(assets)
