"""`tideview new`, and what becomes of its folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from dagster import AssetKey, Definitions
from dagster.components.testing import create_defs_folder_sandbox

from ivm_core import UserError
from ivm_core.cli.main import main
from tideview.assets import ResourceKeys, TideviewPipelines, tideview_definitions
from tideview.resources.pipeline_folder import load_pipeline

if TYPE_CHECKING:
    from pathlib import Path


def test_a_new_pipeline_is_one_and_shows_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["new", "first", "--at", str(tmp_path)]) == 0
    assert str(tmp_path / "first" / "views" / "totals.sql") in capsys.readouterr().out
    before = {spec.key for spec in tideview_definitions(tmp_path).resolve_all_asset_specs()}
    monkeypatch.chdir(tmp_path)
    assert main(["new", "second", "--json"]) == 0
    assert "pipeline.yaml" in json.loads(capsys.readouterr().out)["files"]
    after = {spec.key for spec in tideview_definitions(tmp_path).resolve_all_asset_specs()}
    assert {key.path[0] for key in after - before} == {"second"}
    assert AssetKey(["second", "totals"]) in after
    made = load_pipeline(tmp_path / "second")
    assert (made.name, made.views[0].require) == ("second", "incremental")
    (tmp_path / "pipelines").mkdir()
    assert main(["new", "third"]) == 0
    assert (tmp_path / "pipelines" / "third" / "pipeline.yaml").is_file()


HOSTILE = ["", ".", "..", "../out", "/etc/x", "a/b", "a b", "a-b", "a\nb", "a\0b", "__init__", "é"]
HOSTILE += ["1a", "x" * 200, "$(ls)", "~", "-rf", "a;b"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_refused_and_change_nothing(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    assert main(["new", "--at", str(inside), "--", name]) == 3
    assert "can't be the name of a pipeline" in (told := capsys.readouterr().err) or (
        "too long" in told or "reserved" in told
    )
    assert list(inside.iterdir()) == []
    assert list(tmp_path.iterdir()) == [inside]


def test_what_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name, at, told in (
        ("kept", tmp_path, "something of that name already"),
        ("link", tmp_path, "something of that name already"),
        ("new", tmp_path / "none", "there is no such folder"),
    ):
        assert main(["new", name, "--at", str(at)]) == 3
        assert told in capsys.readouterr().err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["kept", "link"]


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["properties"]["sources"]


def test_the_component_is_found_by_its_entry_point() -> None:
    from dagster.components.core.package_entry import discover_package_objects

    found = {
        key.to_typename(): each
        for key, each in discover_package_objects(["tideview.assets"]).items()
    }
    assert found["tideview.assets.TideviewPipelines"] is TideviewPipelines


@pytest.mark.filterwarnings("ignore:.parse_obj_as. is deprecated")  # Dagster's own calls
@pytest.mark.filterwarnings("ignore:.*currently in beta")
def test_the_component_beside_resources_of_the_same_names(tmp_path: Path) -> None:
    attributes = {
        "folder": "sales",
        "store": str(tmp_path),
        "resource_keys": {"spark": "our_spark"},
    }
    content = {"type": "tideview.assets.TideviewPipelines", "attributes": attributes}
    with create_defs_folder_sandbox() as sandbox:
        place = sandbox.scaffold_component(
            TideviewPipelines, defs_path="sales", defs_yaml_contents=content
        )
        with sandbox.load_component_and_build_defs(place) as (component, defs):
            assert isinstance(component, TideviewPipelines)
            assert component.resource_keys == ResourceKeys(spark="our_spark")
            assert set(defs.resources or {}) == {"flows", "our_spark"}
            merged = Definitions.merge(defs, Definitions(resources={"spark": "theirs"}))
            Definitions.validate_loadable(merged)
            [totals] = [
                each
                for each in merged.resolve_asset_graph().assets_defs
                if AssetKey(["sales", "totals"]) in each.keys
            ]
            assert totals.required_resource_keys - {"io_manager"} == {"flows", "our_spark"}


def test_two_resources_of_one_name_are_refused() -> None:
    with pytest.raises(UserError, match="have one name, both"):
        ResourceKeys(flows="both", spark="both")
