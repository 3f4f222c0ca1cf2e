"""The class-data-sharing archive: Spark's classes, parsed once, mapped by every later start.

The JVM writes the archive when it ends, long after Python may be gone. So each process lets it
write to a name of its own, and a later start puts a finished one in place. The header is written
last: a file without it is unfinished. An archive that doesn't fit the JVM is ignored by
`-Xshare:auto`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

HEADER_BYTES = 4
ABANDONED_AFTER_SECONDS = 600
QUIET = ("-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr")


@dataclass(frozen=True)
class ClassArchive:
    """One archive of `folder`, which need not exist yet."""

    folder: Path
    stem: str

    @classmethod
    def matching(cls, folder: Path, java_identity: str, class_path: Iterable[Path]) -> ClassArchive:
        """Name the archive after all that the JVM compares before it accepts one."""
        seen = hashlib.sha256(java_identity.encode())
        for jar in class_path:
            facts = jar.stat()
            seen.update(f"\n{jar} {facts.st_size} {facts.st_mtime_ns}".encode())
        return cls(folder, f"spark-{seen.hexdigest()[:16]}")

    def jvm_options(self) -> list[str]:
        """Options that use the archive, or write a missing one; none where neither works."""
        try:
            if self.is_ready():
                return [f"-XX:SharedArchiveFile={self._finished}", *QUIET]
            if self.is_given_up() or self.is_being_made():
                return []
            self.folder.mkdir(parents=True, exist_ok=True)
            candidate = self.folder / f"{self.stem}.{os.getpid()}.making"
            candidate.touch()
        except OSError:
            return []
        return [f"-XX:ArchiveClassesAtExit={candidate}", *QUIET]

    def is_ready(self) -> bool:
        """Tell whether the archive can be used, after putting in place one that was finished."""
        for candidate in [] if self._finished.exists() else self._candidates():
            with contextlib.suppress(FileNotFoundError), candidate.open("rb") as content:
                if any(content.read(HEADER_BYTES)):
                    candidate.replace(self._finished)
                    break
        return self._finished.exists()

    def is_being_made(self) -> bool:
        """Tell whether some process may yet finish one, after removing what none will finish."""
        wanted = [_may_be_finished(candidate) for candidate in self._candidates()]
        return any(wanted)

    def give_up(self) -> None:
        """Remember that this archive can't be made here, so that no later start tries."""
        self._unobtainable.touch()

    def is_given_up(self) -> bool:
        """Tell whether `give_up` was called for this archive."""
        return self._unobtainable.exists()

    @property
    def _finished(self) -> Path:
        return self.folder / f"{self.stem}.jsa"

    @property
    def _unobtainable(self) -> Path:
        return self.folder / f"{self.stem}.unobtainable"

    def _candidates(self) -> list[Path]:
        return list(self.folder.glob(f"{self.stem}.*.making"))


def _may_be_finished(candidate: Path) -> bool:
    maker = int(candidate.suffixes[-2].removeprefix("."))
    with contextlib.suppress(FileNotFoundError):
        if _is_alive(maker) or time.time() - candidate.stat().st_mtime < ABANDONED_AFTER_SECONDS:
            return True
        candidate.unlink()
    return False


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
