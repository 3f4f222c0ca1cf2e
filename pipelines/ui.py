"""`python -m tideview.pipelines.ui`: Dagster's web interface on the shop, with trade going on.

Starts `dagster dev` (web server and daemon) and the feeder, and stops both when it is stopped.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tideview.resources.flow_store import STORE_VARIABLE, default_store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

SETTINGS = Path(__file__).with_name("dagster.yaml")
PATIENCE = 30


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until interrupted, or until the web server ends by itself."""
    options = _options().parse_args(arguments)
    store = default_store()
    home = Path(os.environ.get("DAGSTER_HOME") or store.parent / "dagster").absolute()
    environment = {**os.environ, STORE_VARIABLE: str(store), "DAGSTER_HOME": str(home)}
    _prepare(home)
    signal.signal(signal.SIGTERM, _interrupt)
    _say(f"Dagster at http://{options.host}:{options.port} in half a minute; Ctrl-C stops it")
    _say(f"flows and inboxes in {store}, runs in {home}")
    commands = [_dagster(options)]
    if options.every > 0:
        commands.append(_module("tideview.pipelines.feed", "--every", str(options.every)))
    # a group of its own each: Ctrl-C reaches this process alone, which stops them in order
    children = [
        subprocess.Popen(command, env=environment, start_new_session=True) for command in commands
    ]
    try:
        while all(child.poll() is None for child in children):
            time.sleep(0.5)
        _say("one of its processes has ended; its last words are above")
        return 1
    except KeyboardInterrupt:
        _say("stopping")
        return 0
    finally:
        for child in children:
            child.terminate()  # all at once: the feeder must not go on while Dagster ends
        for child in children:
            _wait(child)


def _prepare(home: Path) -> None:
    """Make Dagster's folder, with the sample settings unless it has settings already."""
    home.mkdir(parents=True, exist_ok=True)
    if not (home / SETTINGS.name).exists():
        shutil.copy(SETTINGS, home)


def _dagster(options: argparse.Namespace) -> list[str]:
    return _module(
        "dagster",
        *("dev", "-m", "tideview.pipelines.definitions"),
        *("--host", options.host, "--port", str(options.port)),
    )


def _module(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", name, *arguments]


def _wait(child: subprocess.Popen[bytes]) -> None:
    try:
        child.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _say(text: str) -> None:
    sys.stdout.write(f"ui: {text}\n")
    sys.stdout.flush()


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tideview.pipelines.ui", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=3000)
    parser.add_argument(
        "--every", type=float, default=20.0, help="seconds between changes; 0: no feeder"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
