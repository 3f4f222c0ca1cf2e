"""Delta's jars, resolved once by Spark's own Ivy into the project's cache, then used from there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import pyspark

from ivm_core.engine.project_cache import cache_folder, only_one_process
from ivm_core.model.errors import UserError

SCALA = "2.13"
OWN_GROUPS = ("io.delta_", "io.unitycatalog_")
# Everything else that Delta names is inside pip's pyspark, in the version that Spark needs.
CARRIED_BY_SPARK = "com.*:*,org.*:*,commons-*:*,javax.*:*,jakarta.*:*,io.airlift:*"


def delta_jars() -> list[Path]:
    """Return the jars that Spark needs for Delta, resolving them on first use.

    Without network on that first use (or with a registry out of reach): `UserError`.
    """
    ready = _jar_folder()
    if not delta_jars_are_here():
        with only_one_process(cache_folder() / "jars.lock"):
            if not ready.is_dir():
                _resolve_into(ready)
    return sorted(ready.glob("*.jar"))


def delta_jars_are_here() -> bool:
    """Tell whether `delta_jars` will answer without network."""
    return _jar_folder().is_dir()


def spark_home() -> Path:
    """Return the Spark that pyspark will start."""
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def _coordinate() -> str:
    spark_line = ".".join(pyspark.__version__.split(".")[:2])
    return f"io.delta:delta-spark_{spark_line}_{SCALA}:{version('delta-spark')}"


def _jar_folder() -> Path:
    return cache_folder() / "jars" / _coordinate().replace(":", "_")


def _resolve_into(ready: Path) -> None:
    ready.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="resolving-", dir=cache_folder()) as scratch:
        work = Path(scratch)
        asked = _ask_ivy(work)
        found = [
            jar
            for jar in sorted((work / "ivy" / "jars").glob("*.jar"))
            if jar.name.startswith(OWN_GROUPS)
        ]
        if asked.returncode or not found:
            raise UserError(
                f"Delta's jars could not be resolved:\n{_reason(asked)}",
                where=_coordinate(),
                fix="Check the network, and behind a proxy JAVA_TOOL_OPTIONS; where Maven Central "
                "is mirrored, set DEFAULT_ARTIFACT_REPOSITORY to the mirror. Then run it again: "
                f"the jars are kept in {cache_folder()}, and no network is needed after that.",
            )
        chosen = work / "chosen"
        chosen.mkdir()
        for jar in found:
            shutil.copyfile(jar, chosen / jar.name)
        chosen.rename(ready)


def _ask_ivy(work: Path) -> subprocess.CompletedProcess[str]:
    nothing = work / "nothing.py"
    nothing.write_text("")
    command = [
        str(spark_home() / "bin" / "spark-submit"),
        *("--master", "local[1]"),
        *("--packages", _coordinate()),
        *("--exclude-packages", CARRIED_BY_SPARK),
        *("--conf", f"spark.jars.ivy={work / 'ivy'}"),
        str(nothing),
    ]
    interpreter = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return subprocess.run(
        command, env=os.environ | interpreter, capture_output=True, text=True, check=False
    )


def _reason(asked: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in (asked.stdout + asked.stderr).splitlines()]
    telling = [line for line in lines if "not found" in line.lower() or "exception" in line.lower()]
    return "\n".join((telling or lines)[-4:])
