"""A directory on a local disk or in an object store, and nothing outside of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from deltalake.exceptions import DeltaError
from pyarrow import fs as arrow_fs

from ivm_core.model.errors import UserError
from ivm_core.model.secrets import keep_secret
from ivm_core.store.delta_words import cause, said
from ivm_core.store.syncing import sync_folder, sync_stream

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or directory below a location; `path` is relative to it."""

    path: str
    size: int
    is_dir: bool
    modified: float


class Location:
    """A directory given as a path or URI; paths below it are relative and can't leave it.

    Anything but a path, a `file:` URI or the URI of an object store is a `UserError`.
    """

    def __init__(
        self, target: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None
    ) -> None:
        """Settle whether the place is local; nothing is read or made."""
        is_place = isinstance(target, str | os.PathLike)
        text = os.fspath(target) if is_place else ""
        if not isinstance(text, str) or not text.strip() or "\0" in text:
            raise UserError(f"{target!r} is not a path or URI", fix="give a directory or a URI")
        if storage_options is not None and not isinstance(storage_options, Mapping):
            raise UserError(
                f"storage options are a mapping, not {type(storage_options).__name__}",
                where="storage_options=",
            )
        self.storage_options = dict(storage_options or {})
        keep_secret(self.storage_options)
        scheme = urlsplit(text).scheme.lower() if "://" in text or text[:5] == "file:" else ""
        self.is_local = scheme in ("", "file")
        if not self.is_local:
            _refuse_secrets(text)
        if scheme == "file":
            split = urlsplit(text)
            if split.netloc not in ("", "localhost"):
                raise UserError(f"{text!r} names another host", fix="use file:///path")
            text = unquote(split.path)
        self._target = os.path.abspath(text) if self.is_local else text.rstrip("/")
        if self.is_local and "%" in self._target:
            raise UserError(
                f"the path {self._target} has a % in it, which Delta readers take for an escape",
                fix="use a directory whose whole path has no %",
            )

    def __repr__(self) -> str:
        """The place, without its storage options, which may hold secrets."""
        return f"Location({self._target!r})"

    def __eq__(self, other: object) -> bool:
        """Whether both are the same place."""
        return isinstance(other, Location) and self._target == other._target

    def __hash__(self) -> int:
        """Equal places have equal hashes."""
        return hash(self._target)

    def is_entwined_with(self, other: Location) -> bool:
        """Whether one of both is the other, or inside of it, whatever links lead there."""
        if self.is_local != other.is_local:
            return False
        one, two = (
            f"{os.path.realpath(each.uri) if each.is_local else each.uri}/"
            for each in (self, other)
        )
        return one.startswith(two) or two.startswith(one)

    @property
    def uri(self) -> str:
        """What Spark and `deltalake` open: an absolute path, or the URI as it was given."""
        return self._target

    @property
    def path(self) -> Path:
        """The local directory; a `UserError` for an object store."""
        if not self.is_local:
            raise UserError(f"{self._target} is not a local directory")
        return Path(self._target)

    @property
    def name(self) -> str:
        """The last part of the place."""
        return self._target.rpartition("/")[2]

    def child(self, *parts: str) -> Location:
        """The directory below; a part that is empty, `.`, `..` or has a slash is a `UserError`."""
        if any("/" in part for part in parts):
            raise UserError(f"{'/'.join(parts)!r} has a slash within a name", self._target)
        inside = self.resolve("/".join(parts)) if parts else self._target
        return type(self)(inside, self.storage_options)

    def resolve(self, relative: str) -> str:
        """The full path or URI of something below; `UserError` for what would leave."""
        if not relative or any(
            part in ("", ".", "..") or "\\" in part or "\0" in part for part in relative.split("/")
        ):
            raise UserError(
                f"{relative!r} is not a path below {self._target}",
                fix="use plain names, without '..' and without a leading slash",
            )
        return f"{self._target.rstrip('/')}/{relative}"

    @cached_property
    def fs(self) -> arrow_fs.FileSystem:
        """The file system rooted here: all its paths are relative to this place."""
        if self.is_local:
            return arrow_fs.SubTreeFileSystem(self._target, arrow_fs.LocalFileSystem())
        from deltalake.fs import DeltaStorageHandler

        try:
            return arrow_fs.PyFileSystem(DeltaStorageHandler(self._target, self.storage_options))
        except DeltaError as error:
            raise UserError(
                f"{self._target} can't be opened: {said(error)}",
                fix="give a directory, or the URI of an object store such as s3://bucket/path",
            ) from cause(error)

    def exists(self, relative: str = "") -> bool:
        """Whether there is a file or directory."""
        if self.is_local:
            return os.path.exists(self.resolve(relative) if relative else self._target)
        if not relative:
            return bool(self.list())
        self.resolve(relative)
        try:
            found = self.fs.get_file_info(relative)
        except (OSError, DeltaError) as error:
            raise self._unreachable(error) from cause(error)
        return bool(found.type != arrow_fs.FileType.NotFound)

    def _unreachable(self, error: Exception) -> UserError:
        return UserError(
            f"{self._target} can't be reached: {said(error)}",
            where=self._target,
            fix="give a local path, or a URI of a store that is reachable from here",
        )

    def list(self, relative: str = "", recursive: bool = False) -> list[Entry]:
        """What is below, sorted by path; nothing where there is no such directory."""
        if relative:
            self.resolve(relative)
        selector = arrow_fs.FileSelector(relative, allow_not_found=True, recursive=recursive)
        try:
            found = self.fs.get_file_info(selector)
        except (OSError, DeltaError) as error:
            raise self._unreachable(error) from cause(error)
        entries = [
            Entry(
                each.path,
                each.size or 0,
                each.type == arrow_fs.FileType.Directory,
                (each.mtime_ns or 0) / 1e9,
            )
            for each in found
        ]
        return sorted(entries, key=lambda entry: entry.path)

    def make(self) -> None:
        """Make the directory, where places have directories."""
        if self.is_local:
            os.makedirs(self._target, exist_ok=True)

    def open_output(self, relative: str) -> BinaryIO | pa.NativeFile:
        """A stream that writes the file, replacing what is there; close it to have it written."""
        full = self.resolve(relative)
        if self.is_local:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            return open(full, "wb")
        return pa.PythonFile(_ObjectOutput(self._target, self.storage_options, relative), "wb")

    @contextmanager
    def writing(self, relative: str) -> Iterator[BinaryIO | pa.NativeFile]:
        """As `open_output`, in a `with` that leaves no part of a file where writing it fails."""
        try:
            with self.open_output(relative) as stream:
                yield stream
                if self.is_local:
                    sync_stream(cast("BinaryIO", stream))
            if self.is_local:
                sync_folder(os.path.dirname(self.resolve(relative)))
        except OSError:
            with suppress(OSError):
                self.delete(relative)
            raise

    def open_input(self, relative: str) -> pa.NativeFile:
        """The file for random access; `FileNotFoundError` where there is none."""
        full = self.resolve(relative)
        return pa.memory_map(full) if self.is_local else self.fs.open_input_file(relative)

    def read_bytes(self, relative: str) -> bytes:
        """The whole file; `FileNotFoundError` where there is none."""
        full = self.resolve(relative)
        if self.is_local:
            return Path(full).read_bytes()
        with self.fs.open_input_file(relative) as stream:
            return cast("bytes", stream.read())

    def misfit(self, relative: str, size: int) -> str:
        """What a file is instead of being there with a size; empty where it is as it should be."""
        try:
            found = self.size(relative)
        except OSError:
            return "is gone"
        return "" if found == size else f"has {found} bytes instead of {size}"

    def size(self, relative: str) -> int:
        """The file's size in bytes; `FileNotFoundError` where there is none."""
        full = self.resolve(relative)
        if self.is_local:
            return os.path.getsize(full)
        found = self.fs.get_file_info(relative)
        if found.type != arrow_fs.FileType.File:
            raise FileNotFoundError(full)
        return int(found.size)

    def delete(self, relative: str) -> bool:
        """Delete a file or a directory with all below; False where there was none."""
        full = self.resolve(relative)
        if self.is_local:
            if os.path.isdir(full) and not os.path.islink(full):
                shutil.rmtree(full)
                return True
            try:
                os.unlink(full)
            except FileNotFoundError:
                return False
            return True
        kind = self.fs.get_file_info(relative).type
        if kind == arrow_fs.FileType.NotFound:
            return False
        if kind == arrow_fs.FileType.Directory:
            self.fs.delete_dir(relative)
        else:
            self.fs.delete_file(relative)
        return True


def _refuse_secrets(uri: str) -> None:
    """A URI is stored and shown: `UserError` for one that has more in it than the place."""
    split = urlsplit(uri)
    if split.password or split.query:
        raise UserError(
            f"the URI {split.scheme}://{split.hostname or ''}{split.path} came with a "
            f"{'password' if split.password else 'query'} in it",
            fix="give keys and tokens in storage_options, or in the environment of the process: "
            "a URI is stored with the flow",
        )


class _ObjectOutput:
    """Collects what is written and puts it into the object store as one object on close."""

    def __init__(self, root: str, options: dict[str, str], relative: str) -> None:
        self._root, self._options, self._relative = root, options, relative
        self._collected = pa.BufferOutputStream()
        self.closed = False

    def write(self, data: pa.Buffer | bytes) -> int:
        self._collected.write(data)
        return len(data)

    def tell(self) -> int:
        return int(self._collected.tell())

    def flush(self) -> None:
        """Nothing is visible before close."""

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        from deltalake._internal import DeltaFileSystemHandler

        handler = DeltaFileSystemHandler(self._root, self._options)
        stream: Any = handler.open_output_stream(self._relative)
        stream.write(self._collected.getvalue().to_pybytes())
        stream.close()
