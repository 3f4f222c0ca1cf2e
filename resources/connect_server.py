"""A Spark Connect server of this machine that runs find, or start and leave for the next one.

A run that starts its own Spark pays for it every time; one that finds a server pays a connection.
The server listens on this machine only, to who knows its token (a file that only its owner reads),
and ends by itself when nobody has used it for a while.

    python -m tideview.resources.connect_server list | stop
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ivm_core import SparkLost
from ivm_core.engine.local_spark import REMOTE_VARIABLE, local_spark, remote_spark
from ivm_core.engine.project_cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

PATIENCE = 180.0
"""Seconds that a server may take to start."""
IDLE = 1800.0
"""Seconds without a user after which a server ends."""
LOOKS = 5.0
FOLDER_VARIABLE = "TIDEVIEW_CONNECT_FOLDER"
_TOKEN = "TIDEVIEW_CONNECT_TOKEN"


@dataclass(frozen=True)
class ServerSettings:
    """What a server is started with; another server for other settings."""

    cores: int = 2
    memory: str = ""
    fast_start: bool = True
    settings: dict[str, str] = field(default_factory=dict)
    idle_seconds: float = IDLE

    @property
    def name(self) -> str:
        """What its files are called."""
        told = json.dumps([asdict(self), sys.version, os.getuid()], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Server:
    """A server that is up, or was."""

    pid: int
    port: int
    token: str
    settings: ServerSettings

    @property
    def url(self) -> str:
        """What a client connects to; a token goes without TLS to `localhost` of that name alone."""
        return f"sc://localhost:{self.port}/;token={self.token}"

    @property
    def is_up(self) -> bool:
        """Whether its process is there and something listens."""
        try:
            os.kill(self.pid, 0)
            socket.create_connection(("127.0.0.1", self.port), timeout=2).close()
        except OSError:
            return False
        return True


class ConnectServers:
    """The servers that a folder knows of."""

    def __init__(self, folder: Path | None = None) -> None:
        """By default `TIDEVIEW_CONNECT_FOLDER`, else in the project's cache."""
        given = os.environ.get(FOLDER_VARIABLE)
        self._given = folder or (Path(given) if given else None)
        self._uses: dict[str, IO[str]] = {}

    @property
    def _folder(self) -> Path:
        return self._given or cache_folder() / "connect"

    def session(self, settings: ServerSettings) -> SparkSession:
        """A session of the server with these settings, which is found or started.

        `SparkLost` where none comes up or answers; its log has the reason.
        """
        return remote_spark(self.find_or_start(settings).url)

    def find_or_start(self, settings: ServerSettings) -> Server:
        """The server with these settings; it stays up as long as this process lives."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(self._file(settings, "lock")):
            self._use(settings)
            server = self._known(self._file(settings, "json"))
            return server if server is not None and server.is_up else self._start(settings)

    def known(self) -> list[Server]:
        """All that are up."""
        files = sorted(self._folder.glob("*.json")) if self._folder.is_dir() else []
        found = (self._known(file) for file in files)
        return [server for server in found if server is not None and server.is_up]

    def stop(self) -> int:
        """Stop all that are up; how many."""
        servers = self.known()
        for server in servers:
            os.kill(server.pid, signal.SIGTERM)
        return len(servers)

    def serve(self, name: str, token: str) -> None:
        """Be the server with the settings that the folder has under a name, until it is idle."""
        given = json.loads((self._folder / f"{name}.settings").read_text(encoding="utf-8"))
        settings = ServerSettings(**given)
        port = _free_port()
        session = local_spark(
            "tideview-connect",
            cores=settings.cores,
            memory=settings.memory or None,
            fast_start=settings.fast_start,
            extra={
                "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
                "spark.connect.grpc.binding.address": "127.0.0.1",
                "spark.connect.grpc.binding.port": str(port),
                "spark.connect.authenticate.token": token,
                **settings.settings,
            },
        )
        file = self._folder / f"{name}.json"
        content = {"pid": os.getpid(), "port": port, "token": token, "settings": given}
        _write(file, json.dumps(content))
        try:
            _wait_until_idle(self._folder / f"{name}.users", settings.idle_seconds)
        finally:
            file.unlink(missing_ok=True)
            session.stop()

    def _start(self, settings: ServerSettings) -> Server:
        name, log = settings.name, self._file(settings, "log")
        file = self._file(settings, "json")
        file.unlink(missing_ok=True)
        _write(self._file(settings, "settings"), json.dumps(asdict(settings)))
        token = secrets.token_hex(16)
        environment = {k: v for k, v in os.environ.items() if k != REMOTE_VARIABLE}
        with log.open("w", encoding="utf-8") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", __spec__.name, "serve", "--name", name],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**environment, FOLDER_VARIABLE: str(self._folder), _TOKEN: token},
            )
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends and process.poll() is None:
            server = self._known(file)
            if server is not None and server.is_up:
                return server
            time.sleep(0.2)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise SparkLost(
            "the Spark Connect server didn't come up", where=str(log), fix="read its log"
        )

    def _use(self, settings: ServerSettings) -> None:
        """Keep the server from going for as long as this process lives."""
        if settings.name not in self._uses:
            users = self._file(settings, "users").open("a", encoding="utf-8")
            fcntl.flock(users, fcntl.LOCK_SH)
            self._uses[settings.name] = users
        os.utime(self._file(settings, "users"))

    def _file(self, settings: ServerSettings, kind: str) -> Path:
        return self._folder / f"{settings.name}.{kind}"

    @staticmethod
    def _known(file: Path) -> Server | None:
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            settings = ServerSettings(**content.pop("settings"))
            return Server(**content, settings=settings)
        except (OSError, ValueError, TypeError, KeyError):
            return None


def _wait_until_idle(users: Path, seconds: float) -> None:
    """Return when nobody has held the file for so long, or the process is told to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    last = time.monotonic()
    with users.open("a", encoding="utf-8") as file:
        while time.monotonic() - last < seconds:
            time.sleep(min(LOOKS, seconds / 4))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.flock(file, fcntl.LOCK_UN)
            except OSError:
                last = time.monotonic()


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("a", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _write(file: Path, text: str) -> None:
    """Put a file in place that only its owner reads."""
    draft = file.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as output:
        output.write(text)
    draft.replace(file)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(arguments: Sequence[str] | None = None) -> int:
    """List or stop the servers; `serve` is for this file alone."""
    parser = argparse.ArgumentParser(prog="python -m tideview.resources.connect_server")
    parser.add_argument("what", choices=["list", "stop", "serve"])
    parser.add_argument("--name", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    servers = ConnectServers()
    if options.what == "serve":
        servers.serve(options.name, os.environ.pop(_TOKEN))
    elif options.what == "stop":
        sys.stdout.write(f"{servers.stop()} stopped\n")
    else:
        for each in servers.known():
            sys.stdout.write(f"process {each.pid}, port {each.port}, {each.settings}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
