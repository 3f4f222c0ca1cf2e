"""A checkpoint's folder: numbered manifests, and the parts that they name with their checksums.

    checkpoint-000001.json      a manifest, put there when all of its parts are; the newest counts
    parts/000001-<id>/…         what this checkpoint has and those before it have not

A part is a Parquet file. Its checksum is XXH3 with 128 bits (`xxhsum -H2`), that of a manifest the
SHA-256 of the manifest's other keys as JSON with sorted keys and no spaces. Checksums tell damage,
they are no signature. Nothing that a manifest says leads out of the folder: a path has plain names
only, and a symbolic link is not followed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import xxhash

from ivm_core.model.errors import CheckpointError, IvmError, NewerFormat, UserError
from ivm_core.store.faults import fault_point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import BinaryIO

    import pyarrow as pa

    from ivm_core.store.location import Location

FORMAT = 2
"""Format 1 differs in `mark` only: it is the fingerprint of the last entry alone."""
DELTA = "delta"
FULL = "full"
PARTS = "parts"
MARK = "tideview_checkpoint"
ABANDONED_SECONDS = 3600.0
_CHUNK = 1 << 20
_THREADS = 4
_MANIFEST = re.compile(r"checkpoint-(\d{6,})\.json")
_DRAFT = re.compile(r"\.[0-9a-f]{32}\.draft")
_UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RecursionError,
    OSError,
    IvmError,
)
_CHECKSUM = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a checkpoint; `path` is relative to the checkpoint's folder."""

    path: str
    bytes: int
    checksum: str
    rows: int = 0
    first_tick: int = 0
    last_tick: int = 0
    name: str = ""
    """What the file is called where it came from."""

    @classmethod
    def parse(cls, body: Any) -> Part:
        """Read back what a manifest says; `ValueError` for anything else."""
        part = cls(**body)
        numbers = (part.bytes, part.rows, part.first_tick, part.last_tick)
        if (
            not all(isinstance(each, int) and each >= 0 for each in numbers)
            or not all(isinstance(each, str) for each in (part.path, part.name))
            or not part.path.startswith(f"{PARTS}/")
            or not _CHECKSUM.fullmatch(part.checksum)
        ):
            raise ValueError(f"{body} is no part")
        return part


@dataclass(frozen=True)
class Manifest:
    """What a checkpoint says of itself."""

    number: int
    kind: str
    tick: int
    entries: int
    """Entries of the flow's log that it has, with those of the checkpoints before it."""
    mark: str
    """Fingerprint of all of them."""
    log: Part
    sources: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    """A delta checkpoint: the rows of fed sources."""
    traces: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """A full checkpoint: by folder, the trace's `schema`, `cluster_by` and `parts`."""
    digests: Mapping[str, Any] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    """Python functions that views call, which no checkpoint has."""
    made_at: str = ""
    flow_format: int = 1
    previous: str = ""
    """Checksum of the manifest before; empty for the first."""
    checksum: str = ""
    format: int = FORMAT
    """That it is written in."""

    @property
    def parts(self) -> list[Part]:
        """All parts."""
        of_sources = [part for parts in self.sources.values() for part in parts]
        return [self.log, *of_sources, *(p for t in self.traces.values() for p in t["parts"])]

    def text(self) -> str:
        """As it is stored."""
        content = {MARK: self.format, **asdict(self)}
        del content["format"]
        content["checksum"] = _checksum(content)
        return json.dumps(content, sort_keys=True, indent=1)

    @classmethod
    def parse(cls, text: bytes) -> Manifest:
        """Read back what `text` wrote; `NewerFormat`, or `ValueError` for anything else."""
        content = json.loads(text)
        written = content.pop(MARK) if isinstance(content, dict) else None
        if isinstance(written, int) and written > FORMAT:
            raise NewerFormat(
                f"the checkpoint has format {written}, this version knows formats up to {FORMAT}",
                fix="restore it with that version of Tideview or a later one",
            )
        if (
            not isinstance(written, int)
            or written < 1
            or content["checksum"] != _checksum({MARK: written, **content})
        ):
            raise ValueError("its checksum is wrong")
        numbers = (content["number"], content["tick"], content["entries"], content["flow_format"])
        if content["kind"] not in (DELTA, FULL) or not all(isinstance(n, int) for n in numbers):
            raise ValueError("it is none of ours")
        content["log"] = Part.parse(content["log"])
        for name, parts in content["sources"].items():
            content["sources"][name] = tuple(map(Part.parse, parts))
        for trace in content["traces"].values():
            trace["parts"] = tuple(map(Part.parse, trace["parts"]))
        return cls(**content, format=written)


class CheckpointFolder:
    """A folder that holds checkpoints, or will."""

    def __init__(self, location: Location) -> None:
        """Nothing is read or made."""
        self.location = location

    def chain(self) -> list[Manifest]:
        """All checkpoints, oldest first; `CheckpointError` where one is missing or altered."""
        numbers = self._numbers()
        if numbers != list(range(1, len(numbers) + 1)):
            raise self.refusal(f"its manifests are numbered {', '.join(map(str, numbers))}")
        return self._read(numbers)

    @property
    def is_begun(self) -> bool:
        """Whether it has any checkpoint."""
        return bool(self._numbers())

    def newest(self) -> Manifest | None:
        """The checkpoint that counts; None before the first."""
        found = self._read(self._numbers()[-1:])
        return found[0] if found else None

    def put(self, manifest: Manifest) -> None:
        """Make it the newest checkpoint; `CheckpointError` if another was made meanwhile."""
        path = f"checkpoint-{manifest.number:06d}.json"
        fault_point("before:checkpoint.manifest")
        if not self._put_if_absent(path, manifest.text().encode()):
            raise self.refusal(
                f"checkpoint {manifest.number} was made here by another process meanwhile",
                "checkpoint again",
            )
        fault_point("after:checkpoint.manifest")

    def new_parts(self, number: int) -> str:
        """A folder for the parts of the next checkpoint; what killed ones left behind goes."""
        moment = time.time() - ABANDONED_SECONDS
        for entry in self.location.list(PARTS):
            is_begun = entry.path.startswith(f"{PARTS}/{number:06d}-")
            if is_begun and 0 < entry.modified < moment:
                self.location.delete(entry.path)
        return f"{PARTS}/{number:06d}-{uuid.uuid4().hex}"

    def check_usable(self) -> None:
        """`UserError` where the folder holds something else than checkpoints."""
        if self.location.is_local and self.location.exists() and not self.location.path.is_dir():
            raise UserError("this is a file", self.location.uri, "give a folder for checkpoints")
        strange = [
            entry.path
            for entry in self.location.list()
            if entry.path != PARTS and not (_MANIFEST.fullmatch(entry.path) or _is_draft(entry))
        ]
        if strange:
            raise UserError(
                f"the folder holds something else: {', '.join(strange[:5])}",
                self.location.uri,
                "give a new folder, or one that has checkpoints of this flow only",
            )

    def check_present(self) -> None:
        """`CheckpointError` where a part of a checkpoint is gone or cut off.

        What is in the parts is read by `verify`; in an object store, where each question costs, a
        folder is taken at its word.
        """
        parts = [part for each in self.chain() for part in each.parts]
        for part in parts if self.location.is_local else ():
            try:
                size = self.location.size(part.path)
            except OSError:
                size = -1
            if size != part.bytes:
                raise self.refusal(
                    f"its part {part.path} is {'missing' if size < 0 else 'cut off'}",
                    "checkpoint into a new folder",
                )

    def verify(self, parts: Iterable[Part]) -> None:
        """Read every part; `CheckpointError` for one that is missing or altered."""
        in_parallel([(lambda part=part: self.copy(part, None)) for part in parts])  # type: ignore[misc]

    def copy(self, part: Part, sink: BinaryIO | pa.NativeFile | None) -> None:
        """Copy a part; `CheckpointError` for one that is missing or altered."""
        try:
            with self.open(part) as stream:
                size, checksum = copied(stream, sink)
        except OSError as error:
            raise self.refusal(f"its part {part.path} can't be read: {error}") from error
        if (size, checksum) != (part.bytes, part.checksum):
            raise self.refusal(f"its part {part.path} was altered")

    def open(self, part: Part) -> BinaryIO | pa.NativeFile:
        """A part for reading, never one outside of the folder."""
        try:
            full = self.location.resolve(part.path)
        except UserError as error:
            raise self.refusal(f"it names the part {part.path!r}") from error
        if not self.location.is_local:
            return self.location.open_input(part.path)
        root = os.path.realpath(self.location.uri)
        if os.path.realpath(full) != os.path.join(root, *part.path.split("/")):
            raise self.refusal(f"its part {part.path} is a link to elsewhere")
        return open(full, "rb")

    def refusal(self, what: str, fix: str = "") -> CheckpointError:
        """That the checkpoint can't be used."""
        return CheckpointError(f"the checkpoint can't be used: {what}", self.location.uri, fix)

    def _numbers(self) -> list[int]:
        found = (_MANIFEST.fullmatch(entry.path) for entry in self.location.list())
        return sorted(int(match[1]) for match in found if match)

    def _read(self, numbers: list[int]) -> list[Manifest]:
        found: list[Manifest] = []
        for number in numbers:
            name = f"checkpoint-{number:06d}.json"
            try:
                manifest = Manifest.parse(self.location.read_bytes(name))
            except NewerFormat as error:
                raise NewerFormat(error.what, self.location.uri, error.fix) from error
            except _UNREADABLE as error:
                raise self.refusal(f"{name} was altered: {error}") from error
            before = found[-1] if found else None
            is_next = before is None or (
                manifest.previous == before.checksum
                and manifest.kind == before.kind
                and manifest.entries >= before.entries
            )
            if manifest.number != number or not is_next:
                raise self.refusal(f"{name} doesn't follow the one before it")
            found.append(manifest)
        return found

    def _put_if_absent(self, path: str, content: bytes) -> bool:
        if not self.location.is_local:
            if self.location.exists(path):
                return False
            with self.location.open_output(path) as stream:
                stream.write(content)
            return True
        draft = self.location.resolve(f".{uuid.uuid4().hex}.draft")
        try:
            with open(draft, "wb") as stream:
                stream.write(content)
            os.link(draft, self.location.resolve(path))
        except FileExistsError:
            return False
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft)
        return True


def copied(
    stream: BinaryIO | pa.NativeFile, sink: BinaryIO | pa.NativeFile | None
) -> tuple[int, str]:
    """Copy a stream; its size and checksum."""
    checksum, size = xxhash.xxh3_128(), 0
    while chunk := stream.read(_CHUNK):
        checksum.update(chunk)
        size += len(chunk)
        if sink is not None:
            sink.write(chunk)
    return size, checksum.hexdigest()


def in_parallel(jobs: list[Callable[[], Any]], point: str = "") -> list[Any]:
    """Run jobs that mostly copy, several at once; passes a fault point around each."""
    with ThreadPoolExecutor(_THREADS) as pool:
        waiting = []
        for job in jobs:
            if point:
                fault_point(f"before:{point}")
            waiting.append(pool.submit(job))
        results = []
        try:
            for each in waiting:
                results.append(each.result())
                if point:
                    fault_point(f"after:{point}")
        except BaseException:
            for each in waiting:
                each.cancel()
            raise
        return results


def _checksum(content: Mapping[str, Any]) -> str:
    told = {key: value for key, value in content.items() if key != "checksum"}
    text = json.dumps(told, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _is_draft(entry: Any) -> bool:
    return bool(_DRAFT.fullmatch(entry.path))
