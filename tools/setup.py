"""Sets up all that Tideview needs in a checkout: `.venv`, Delta's jars, Spark's class archive.

Standard library only: it runs before anything is installed. Done once, it takes a moment to see
that nothing is left to do. `--lock` resolves requirements.lock anew instead.
"""

import argparse
import hashlib
import os
import runpy
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK = ROOT / "requirements.lock"
STAMP = VENV / "tideview-setup"
STARTED = time.monotonic()

# pip's settings, and the variables under which uv takes the same ones.
UV_VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}


class Refused(Exception):
    """Set-up can't go on: what is missing, and what to do about it."""

    def __init__(self, missing: str, remedy: str) -> None:
        super().__init__(f"{missing}\n  what to do: {remedy}")


def main() -> int:
    """Run set-up; print what is missing and return 1 where it can't go on."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--lock", action="store_true", help="resolve requirements.lock anew")
    try:
        if options.parse_args().lock:
            resolve_lock()
        else:
            set_up()
    except Refused as refused:
        print(f"\nset-up stopped: {refused}", file=sys.stderr)
        return 1
    return 0


def set_up() -> None:
    """Do each step that is not done yet."""
    check_java()
    if STAMP.is_file() and STAMP.read_text() == fingerprint():
        say("packages in .venv are those of requirements.lock")
    else:
        install_packages()
        STAMP.write_text(fingerprint())
    prepare_spark()
    say("ready")


def say(message: str) -> None:
    """Print one line of progress with the seconds since the start."""
    print(f"set-up {time.monotonic() - STARTED:5.1f} s  {message}", flush=True)


def check_java() -> None:
    """Refuse to go on without a Java that Spark can use."""
    finder = runpy.run_path(str(ROOT / "ivm_core" / "engine" / "java_home.py"))
    java = finder["inspect_java"]()
    if java.problem:
        raise Refused(java.problem, finder["INSTALL_JAVA"])
    say(f"Python {sys.version.split()[0]}, Java {java.version}")


def fingerprint() -> str:
    """Name the state of everything that decides what must be in .venv."""
    seen = hashlib.sha256(f"{sys.version}\n{ROOT}".encode())
    for source in (LOCK, ROOT / "pyproject.toml"):
        seen.update(source.read_bytes())
    return seen.hexdigest()


def install_packages() -> None:
    """Make .venv and put into it exactly what requirements.lock names, and the project itself."""
    STAMP.unlink(missing_ok=True)
    if not PYTHON.exists() or interpreter_changed():
        say("making .venv")
        make_environment()
    say("installing packages (a minute or two, the first time)")
    if not (install_uv() and uv("pip", "sync", "--require-hashes", str(LOCK))):
        say("uv could not do it; trying pip")
        if not pip("install", "--require-hashes", "--requirement", str(LOCK)):
            raise Refused(
                "packages could not be installed; pip's own message is above.",
                "Check the network, and behind a proxy or a mirror pip's settings "
                "(`pip config list`); set-up uses them. Then run it again: it goes on from here.",
            )
    say("installing tideview itself, editable")
    editable = ("install", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    if not (uv("pip", *editable) or pip(*editable)):
        raise Refused("tideview itself could not be installed.", "The message is above.")


def interpreter_changed() -> bool:
    """Tell whether .venv belongs to another Python than the one running."""
    ask = [str(PYTHON), "-c", "import sys; print(sys.version)"]
    answer = subprocess.run(ask, capture_output=True, text=True, check=False)
    return answer.stdout.strip() != sys.version


def make_environment() -> None:
    """Make an empty .venv with pip."""
    try:
        venv.EnvBuilder(with_pip=True, clear=True, symlinks=True).create(VENV)
    except (subprocess.CalledProcessError, OSError) as failure:
        raise Refused(
            f"Python could not make a virtual environment ({failure}).",
            "On Debian and Ubuntu install python3-venv (or python3.11-venv), then run it again.",
        ) from failure


def install_uv() -> bool:
    """Install the uv that the lock names, with its hashes; False where that fails."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as only_uv:
        only_uv.write(locked("uv"))
        only_uv.flush()
        return pip("install", "--require-hashes", "--requirement", only_uv.name)


def locked(package: str) -> str:
    """Return the lock's lines on one package."""
    lines = LOCK.read_text().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if line.startswith(f"{package}=="))
    last = next(n for n, line in enumerate(lines[first:], first) if not line.endswith("\\\n"))
    return "".join(lines[first : last + 1])


def pip(*arguments: str) -> bool:
    """Run the pip of .venv; False where it fails."""
    command = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    return subprocess.run(command, check=False).returncode == 0


def uv(*arguments: str) -> bool:
    """Run the uv of .venv under pip's settings; False where it fails or is not there."""
    command = [str(VENV / "bin" / "uv"), "--quiet", *arguments]
    environment = settings_for_uv() | os.environ | {"VIRTUAL_ENV": str(VENV)}
    try:
        return subprocess.run(command, check=False, env=environment, cwd=ROOT).returncode == 0
    except OSError:
        return False


def settings_for_uv() -> dict[str, str]:
    """Translate what pip is configured with (file or environment) into uv's variables."""
    ask = [str(PYTHON), "-m", "pip", "config", "list"]
    listed = subprocess.run(ask, capture_output=True, text=True, check=False).stdout
    settings = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        variable = UV_VARIABLES.get(name.rpartition(".")[2])
        if variable:
            several = value.strip("'\"").replace("\\n", " ").split()
            settings[variable] = ("," if variable == "UV_FIND_LINKS" else " ").join(several)
    return settings


def prepare_spark() -> None:
    """Resolve Delta's jars and make the class archive, where they are not there yet."""
    say("preparing Spark")
    prepared = subprocess.run(
        [str(PYTHON), "-m", "ivm_core.engine.prepare_spark"], check=False, cwd=ROOT
    )
    if prepared.returncode:
        raise Refused("Spark could not be prepared.", "The reason and the remedy are above.")


def resolve_lock() -> None:
    """Resolve pyproject.toml into requirements.lock for every platform, naming no index."""
    resolved = uv(
        "pip",
        "compile",
        *("--universal", "--generate-hashes", "--no-emit-index-url", "--python-version", "3.11"),
        *("--custom-compile-command", "make lock"),
        *("--extra", "dagster", "--group", "dev"),
        *("pyproject.toml", "--output-file", "requirements.lock", "--upgrade"),
    )
    if not resolved:
        raise Refused("requirements.lock could not be resolved.", "Run `make setup` first.")
    say("requirements.lock is new; `make setup` installs it")


if __name__ == "__main__":
    sys.exit(main())
