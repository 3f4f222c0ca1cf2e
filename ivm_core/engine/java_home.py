"""Finds the Java that Spark will start.

Standard library alone: set-up runs this file before anything is installed.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

OLDEST_JAVA = 17

INSTALL_JAVA = (
    f"Install a Java {OLDEST_JAVA} runtime or newer (Debian and Ubuntu: openjdk-17-jre-headless; "
    "macOS: openjdk@17), then set JAVA_HOME to it or put its `java` first on PATH."
)


class Java(NamedTuple):
    """What was found: `identity` differs per build of Java, `problem` says why it won't do."""

    command: str
    version: str
    identity: str
    problem: str


def inspect_java() -> Java:
    """Return the Java that Spark would start; a missing or too old one has a `problem`."""
    command = _java_command()
    if not command:
        return Java("", "", "", _not_found())
    release = _release_text(command) or _version_text(command)
    stated = re.search(r'(?:JAVA_VERSION=|version )"([^"]+)"', release)
    if not stated:
        return Java(command, "", "", f"{command} does not run as Java (`java -version` failed).")
    version = stated.group(1)
    problem = ""
    if _major(version) < OLDEST_JAVA:
        problem = f"{command} is Java {version}, and Spark 4 needs Java {OLDEST_JAVA} or newer."
    return Java(command, version, f"{command}\n{release}", problem)


def _java_command() -> str:
    home = os.environ.get("JAVA_HOME")
    if home:
        return shutil.which("java", path=str(Path(home, "bin"))) or ""
    return shutil.which("java") or ""


def _not_found() -> str:
    home = os.environ.get("JAVA_HOME")
    return f"JAVA_HOME is {home}, which has no bin/java." if home else "There is no `java` on PATH."


def _release_text(command: str) -> str:
    release = Path(command).resolve().parent.parent / "release"
    try:
        return release.read_text(encoding="utf-8")
    except OSError:
        return ""


def _version_text(command: str) -> str:
    try:
        asked = subprocess.run(
            [command, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stderr + asked.stdout


def _major(version: str) -> int:
    numbers = [int(part) for part in re.findall(r"\d+", version)[:2]]
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]
