"""Pipelines that are wrong, in whole or in part, beside ones that are right."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from dagster import AssetKey, DagsterInstance, Definitions, RunConfig

from tests.dagster.conftest import DECLARATION, VIEWS, write_pipeline
from tests.processes import ROOT
from tideview.assets import tideview_definitions
from tideview.assets.problems import CHECK

if TYPE_CHECKING:
    from pathlib import Path

CODE = """
from pathlib import Path
from tideview.assets import tideview_definitions

defs = tideview_definitions(Path(__file__).parent)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pipelines")
    write_pipeline(place / "till", DECLARATION, VIEWS)
    write_pipeline(place / "to-rn", "name: torn\nsources: {", VIEWS)
    wrong = {
        "bad": "SELECT customer\nFROM",
        "worse": "SELECT * FROM bad",
        "sales": "SELECT 1",
    }
    half = DECLARATION.replace("till", "half")
    write_pipeline(place / "half", half, {**VIEWS, **wrong})
    write_pipeline(place / "twin", half, VIEWS)
    return place


@pytest.fixture(scope="module")
def defs(folder: Path) -> Definitions:
    return tideview_definitions(folder)


def test_the_code_location_loads_and_shows_what_is_wrong(defs: Definitions, folder: Path) -> None:
    Definitions.validate_loadable(defs)
    specs = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    for name in (*VIEWS, "sales", "cities"):
        assert AssetKey(["till", name]) in specs
        assert AssetKey(["half", name]) in specs
    wrong = {key for key, spec in specs.items() if "tideview/problem" in spec.tags}
    views = folder / "half" / "views"
    assert wrong == {
        AssetKey(["to_rn", "pipeline_yaml"]),
        AssetKey(["half", "bad"]),
        AssetKey(["half", "worse"]),
        AssetKey(["half", "sales_problem_2"]),
        AssetKey(["half", "pipeline_yaml"]),
    }
    shown = {key.path[-1]: str(specs[key].description) for key in wrong}
    assert f"of {views / 'bad.sql'}" in shown["bad"]
    assert "line 2, column" in shown["bad"]
    assert "it reads bad" in shown["worse"]
    assert specs[AssetKey(["half", "bad"])].group_name == "half"
    torn = str(specs[AssetKey(["to_rn", "pipeline_yaml"])].description)
    assert f"{folder / 'to-rn' / 'pipeline.yaml'}, line 2" in torn
    twin = str(specs[AssetKey(["half", "pipeline_yaml"])].description)
    assert "another pipeline is called half already" in twin


def test_a_run_of_what_is_wrong_fails_with_the_error(defs: Definitions) -> None:
    with DagsterInstance.ephemeral() as instance:
        job = defs.resolve_implicit_global_asset_job_def()
        ran = job.execute_in_process(
            asset_selection=[AssetKey(["half", "bad"])],
            instance=instance,
            raise_on_error=False,
            run_config=RunConfig(),
        )
        assert not ran.success
        [failure] = [event for event in ran.all_events if event.is_step_failure]
        assert failure.step_failure_data.user_failure_data is not None
        description = str(failure.step_failure_data.user_failure_data.description)
        assert "bad.sql" in description
        assert "worse" not in description
        [checked] = ran.get_asset_check_evaluations()
        assert (checked.check_name, checked.passed) == (CHECK, False)


def test_dagsters_own_validation_passes_and_prints_it(folder: Path) -> None:
    (folder / "definitions.py").write_text(CODE)
    ran = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-f", "definitions.py"],
        cwd=folder,
        env={**os.environ, "DAGSTER_HOME": str(folder), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    told = ran.stdout + ran.stderr
    assert ran.returncode == 0, told
    assert "view bad of half can't be used" in told
    assert "pipeline.yaml, line 2" in told
