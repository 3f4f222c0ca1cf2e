"""Loading a code location of 100 views, beside Dagster's own empty project.

Each load is a process of its own, timed from its start until it has what a code server serves: the
repository, resolved, with its snapshot. No Spark is started on the way; that is checked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Plan, Section, progress

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = 5.0
VIEWS, SOURCES = 100, 20
LOAD = """
import json, sys
sys.path.insert(0, sys.argv[1])
from definitions import defs
from dagster._core.remote_representation.external_data import RepositorySnap
repository = (defs() if callable(defs) else defs).get_repository_def()
repository.validate_loadable()
RepositorySnap.from_def(repository)
spark = sys.modules.get("pyspark.core.context")
jvm = spark is not None and spark.SparkContext._gateway is not None
print(json.dumps({"assets": len(list(repository.asset_graph.get_all_asset_keys())), "jvm": jvm}))
"""
EMPTY = """
from pathlib import Path
from dagster import definitions, load_from_defs_folder

@definitions
def defs():
    return load_from_defs_folder(path_within_project=Path(__file__).parent)
"""
EMPTY_PROJECT = """
[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "empty"
"""
FULL = """
from pathlib import Path
from tideview.assets import tideview_definitions

defs = tideview_definitions(Path(__file__).parent)
"""


def run(folder: Path, plan: Plan) -> Section:
    """Load both in turn."""
    section = Section("dagster-load", f"loading a code location of {VIEWS} views, no Spark")
    projects = {"Dagster's empty project": _empty(folder), f"{VIEWS} views": _full(folder)}
    samples = {name: section.sample(name) for name in projects}
    seen: dict[str, dict[str, int]] = {}
    for keep in [False, *[True] * plan.repeats]:
        for name, project in projects.items():
            progress(f"dagster-load: {name}")
            seen[name] = samples[name].time(_load, project, keep=keep)
    empty, full = projects
    section.check("no Spark while loading", not any(each["jvm"] for each in seen.values()))
    section.check("all views are there", seen[full]["assets"] >= VIEWS + SOURCES)
    ratio = samples[full].median / samples[empty].median
    section.bar(f"{full} / {empty}", ratio, "<=", LIMIT)
    return section


def _load(project: Path) -> dict[str, int]:
    root = str(Path(__file__).resolve().parents[1])
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(project)],
        cwd=project,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def _empty(folder: Path) -> Path:
    project = folder / "empty"
    (project / "src" / "empty" / "defs").mkdir(parents=True)
    (project / "pyproject.toml").write_text(EMPTY_PROJECT, encoding="utf-8")
    package = project / "src" / "empty"
    for each in (package, package / "defs"):
        (each / "__init__.py").write_text("", encoding="utf-8")
    (package / "definitions.py").write_text(EMPTY, encoding="utf-8")
    (project / "definitions.py").write_text(
        "import sys\nfrom pathlib import Path\n"
        'sys.path.insert(0, str(Path(__file__).parent / "src"))\n'
        "from empty.definitions import defs\n",
        encoding="utf-8",
    )
    return project


def _full(folder: Path) -> Path:
    project = folder / "full"
    views = project / "many" / "views"
    views.mkdir(parents=True)
    sources = {
        f"source_{number}": {
            "schema": "id BIGINT, customer STRING, amount DECIMAL(12,2), placed_on DATE",
            "primary_key": ["id"],
        }
        for number in range(SOURCES)
    }
    declaration = json.dumps({"name": "many", "sources": sources})
    (project / "many" / "pipeline.yaml").write_text(declaration, encoding="utf-8")
    for name, sql in _views():
        (views / f"{name}.sql").write_text(sql, encoding="utf-8")
    (project / "definitions.py").write_text(FULL, encoding="utf-8")
    return project


def _views() -> Iterator[tuple[str, str]]:
    """A join, sums over it, first rows of those, and two more, over each source."""
    for number in range(VIEWS // 5):
        here, there = f"source_{number}", f"source_{(number + 1) % SOURCES}"
        yield (
            f"joined_{number}",
            "/*---\ndescription: Orders of both.\nowners: [team:sales]\n"
            "expectations:\n  - type: expect_column_values_to_not_be_null\n"
            "    kwargs: {column: id}\n---*/\n"
            f"SELECT a.id, a.customer, a.amount, b.amount AS other, a.placed_on\n"
            f"FROM {here} AS a JOIN {there} AS b ON b.id = a.id WHERE a.amount > {number}",
        )
        yield (
            f"sums_{number}",
            "SELECT customer, SUM(amount) AS total, SUM(other) AS others, COUNT(*) AS n\n"
            f"FROM joined_{number} GROUP BY customer HAVING COUNT(*) > 1",
        )
        yield (
            f"best_{number}",
            "SELECT customer, total FROM (SELECT customer, total, row_number() OVER "
            f"(ORDER BY total DESC, customer) AS place FROM sums_{number}) AS t WHERE place <= 10",
        )
        yield (
            f"days_{number}",
            f"SELECT placed_on, MIN(amount) AS low, MAX(amount) AS high FROM {here} "
            "GROUP BY placed_on",
        )
        yield (
            f"missing_{number}",
            f"SELECT id, customer FROM {here} AS a WHERE NOT EXISTS "
            f"(SELECT 1 FROM {there} AS b WHERE b.customer = a.customer)",
        )
