"""YAML and JSON files as values that know where each of their parts stands.

A file is what someone wrote, perhaps in bad faith: tags that make objects, anchors that contain
themselves or unfold to gigabytes, and keys given twice are refused, each with its line.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ivm_core.model.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Key = tuple[str | int, ...]
LARGEST = 1 << 20
"""Characters of a document."""
MOST_PARTS = 20_000


@dataclass(frozen=True)
class Document:
    """A value, and the file and lines that it is from."""

    file: str
    content: Any
    lines: Mapping[Key, int] = field(default_factory=dict)
    """By key, from 1 on; none for JSON."""

    def where(self, key: Key = ()) -> str:
        """`shop/pipeline.yaml, line 7, key sources.orders.schema`; of a missing key, its parent."""
        line = next((self.lines[part] for part in _upwards(key) if part in self.lines), None)
        at = f", line {line}" if line is not None else ""
        return f"{self.file}{at}, key {spelled(key)}" if key else f"{self.file}{at}"

    def line(self, key: Key = ()) -> int | None:
        """The line of a key, or of what it would stand in."""
        return next((self.lines[part] for part in _upwards(key) if part in self.lines), None)


def spelled(key: Key) -> str:
    """`sources.orders.primary_key[1]`."""
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_document(file: Path) -> Document:
    """A file of JSON (`.json`) or YAML; whatever is wrong with it is a `UserError`."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise UserError(
            "there is no such file", where=str(file), fix="a pipeline's folder has one"
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"the file is not UTF-8 text: byte {error.start} is none", where=str(file)
        ) from error
    except OSError as error:
        raise UserError(f"the file can't be read: {error.strerror}", where=str(file)) from error
    return from_json(text, str(file)) if file.suffix == ".json" else from_yaml(text, str(file))


def from_json(text: str, file: str) -> Document:
    """A document of JSON."""
    try:
        return Document(file, json.loads(text))
    except json.JSONDecodeError as error:
        where = f"{file}, line {error.lineno}, column {error.colno}"
        raise UserError(f"the file is not JSON: {error.msg}", where=where) from error
    except RecursionError as error:
        raise UserError("the file is nested too deeply", where=file) from error


def from_yaml(text: str, file: str, first_line: int = 1) -> Document:
    """A document of YAML that begins at a line of its file."""
    try:
        import yaml
    except ImportError as error:
        raise UserError(
            "reading YAML needs PyYAML, which is not installed",
            where=file,
            fix="pip install pyyaml, or write the same as a .json file",
        ) from error
    if len(text) > LARGEST:
        raise UserError(f"{len(text):,} characters are too many", where=file, fix="write less")
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        lines: dict[Key, int] = {(): first_line}
        for key, part in _parts(node, file, first_line):
            lines[key] = part.start_mark.line + first_line
            if len(lines) > MOST_PARTS:
                raise UserError(
                    f"more than {MOST_PARTS:,} values, counting what anchors stand for", where=file
                )
        content = None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at = "" if mark is None else f", line {mark.line + first_line}, column {mark.column + 1}"
        raise UserError(f"the file is not YAML: {error.problem}", where=f"{file}{at}") from error
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + first_line
        raise UserError(
            f"the file is not YAML: {error.reason}", where=f"{file}, line {line}"
        ) from error
    except ValueError as error:  # a date such as 2024-13-45
        raise UserError(f"the file is not YAML: {error}", where=file) from error
    except RecursionError as error:
        raise UserError("the file is nested too deeply", where=file) from error
    finally:
        loader.dispose()
    return Document(file, content, lines)


def _parts(node: Any, file: str, first_line: int) -> Iterator[tuple[Key, Any]]:
    """Every key with the node that says where it is."""
    import yaml

    def walk(key: Key, node: Any, above: tuple[int, ...]) -> Iterator[tuple[Key, Any]]:
        if id(node) in above:
            where = f"{file}, line {node.start_mark.line + first_line}"
            raise UserError("an anchor contains itself", where=where, fix="write it out")
        inside = (*above, id(node))
        if isinstance(node, yaml.SequenceNode):
            for number, each in enumerate(node.value):
                yield (*key, number), each
                yield from walk((*key, number), each, inside)
        elif isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for name, value in node.value:
                if not isinstance(name, yaml.ScalarNode):
                    continue  # no name of anything: told when the document is looked at
                if name.value in seen:
                    where = f"{file}, line {name.start_mark.line + first_line}"
                    what = f"{name.value!r} is given twice"
                    raise UserError(what, where=where, fix="leave one of them out")
                seen.add(name.value)
                yield (*key, name.value), name
                yield from walk((*key, name.value), value, inside)

    yield from walk((), node, ())


def _upwards(key: Key) -> Iterator[Key]:
    for length in range(len(key), -1, -1):
        yield key[:length]
