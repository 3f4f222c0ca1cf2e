"""`python -m bench.peers.environment`: an environment for peers that are not Spark.

Their packages are the group `bench` of pyproject.toml. They go into an environment of their own,
because what they ask for and what requirements.lock pins need not fit together.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache" / "bench-peers"
PYTHON = FOLDER / "bin" / "python"
PACKAGES = ("duckdb", "pathway")
INSTALL = "python -m bench.peers.environment installs it"
_ASK = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps(found))
"""


@cache
def peer_versions() -> dict[str, str]:
    """The peers that are installed, with their versions; those that are not are left out."""
    if not PYTHON.exists():
        return {}
    ask = [str(PYTHON), "-c", _ASK, *PACKAGES]
    done = subprocess.run(ask, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def install() -> int:
    """Make the environment, by the same index and settings as set-up."""
    setup = runpy.run_path(str(ROOT / "tools" / "setup.py"))
    uv = str(Path(sys.executable).with_name("uv"))
    environment = setup["settings_for_uv"]() | os.environ
    for words in (
        ["venv", "--allow-existing", "--python", sys.executable, str(FOLDER)],
        ["pip", "install", "--python", str(PYTHON), "--group", f"{ROOT / 'pyproject.toml'}:bench"],
    ):
        done = subprocess.run([uv, *words], env=environment, cwd=ROOT, check=False)
        if done.returncode:
            return done.returncode
    peer_versions.cache_clear()
    print(", ".join(f"{name} {version}" for name, version in peer_versions().items()))
    return 0


if __name__ == "__main__":
    sys.exit(install())
