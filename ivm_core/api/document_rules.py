"""Documents held to a JSON Schema, with complaints that name file, line and key.

The part of JSON Schema that our own schema and those of Great Expectations use; other keywords are
notes. A `title` is what the complaint says was expected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from ivm_core.model.errors import UserError
from ivm_core.model.names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ivm_core.api.documents import Document, Key

_TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    "string": ("text", (str,)),
    "integer": ("a whole number", (int,)),
    "number": ("a number", (int, float)),
    "boolean": ("true or false", (bool,)),
    "object": ("names with what belongs to them", (dict,)),
    "array": ("a list", (list, tuple)),
    "null": ("nothing", (type(None),)),
}
_NUMBER = r"[+-]?[\d.]+(?:[eE][+-]?\d+)?"
_DAY = r"\d{4}-\d{1,2}-\d{1,2}"
_FORMATS = {
    "date": ("a date such as 2026-01-31", re.compile(rf"{_DAY}|{_NUMBER}")),
    "date-time": ("a time such as 2026-01-31 09:00:00", re.compile(rf"{_DAY}[T ].+|{_NUMBER}")),
}
"""By format how it is called, and what may be one; times may be given as numbers."""


@dataclass(frozen=True)
class Complaint:
    """What is wrong, and at which key."""

    key: Key
    what: str
    fix: str = ""


def check_document(document: Document, schema: Mapping[str, Any], below: Key = ()) -> None:
    """Raise the first complaint about a document, or what it has below a key, as `UserError`."""
    value = document.content
    for part in below:
        value = value[part]
    for found in complaints(value, schema):
        raise UserError(found.what, where=document.where((*below, *found.key)), fix=found.fix)


def complaints(value: Any, schema: Mapping[str, Any]) -> Iterator[Complaint]:
    """All that is wrong with a value, by a schema that may refer to its own definitions."""
    yield from _Checker(schema).check(value, schema, ())


class _Checker:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def check(self, value: Any, schema: Any, key: Key) -> Iterator[Complaint]:
        rule = self._resolved(schema)
        for other in rule.get("allOf", ()):
            yield from self.check(value, other, key)
        choices = rule.get("anyOf") or rule.get("oneOf")
        if choices:
            yield from self._one_of(value, rule, choices, key)
            return
        kinds = rule.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if kinds and not any(_is_a(value, kind) for kind in kinds):
            yield _unexpected(key, _expected(rule), value)
            return
        if "const" in rule and not _is_same(value, rule["const"]):
            yield _unexpected(key, repr(rule["const"]), value)
        if "enum" in rule and not any(_is_same(value, each) for each in rule["enum"]):
            near = did_you_mean(value, [each for each in rule["enum"] if isinstance(each, str)])
            known = ", ".join(str(each) for each in rule["enum"])
            yield Complaint(key, f"{value!r} is none of: {known}", near.strip())
        if isinstance(value, str):
            yield from self._text(value, rule, key)
        elif isinstance(value, dict):
            yield from self._object(value, rule, key)
        elif isinstance(value, list):
            yield from self._list(value, rule, key)
        elif _is_a(value, "number"):
            yield from self._number(value, rule, key)

    def _one_of(self, value: Any, rule: Any, choices: Any, key: Key) -> Iterator[Complaint]:
        tried = [list(self.check(value, choice, key)) for choice in choices]
        if not all(tried):
            return
        # what someone meant is the form that the value has begun with
        inside = [found for found in tried if any(each.key != key for each in found)]
        if inside:
            yield from inside[0]
        elif _own_title(rule):
            yield _unexpected(key, _own_title(rule), value)
        else:
            same_kind = [
                found
                for found, choice in zip(tried, choices, strict=True)
                if _is_a(value, self._resolved(choice).get("type", "any"))
            ]
            has_formats = any("format" in self._resolved(choice) for choice in choices)
            if len(same_kind) == 1 or (same_kind and not has_formats):
                yield from same_kind[0]
            else:
                forms = dict.fromkeys(_expected(self._resolved(choice)) for choice in choices)
                yield _unexpected(key, " or ".join(forms), value)

    def _object(self, value: dict[Any, Any], rule: Any, key: Key) -> Iterator[Complaint]:
        known = rule.get("properties", {})
        others = rule.get("additionalProperties", True)
        for name, each in value.items():
            if not isinstance(name, str):
                yield Complaint(key, f"{name!r} is no name", "put it in quotes")
            elif name in known:
                yield from self.check(each, known[name], (*key, name))
            elif others is False:
                fix = f"{did_you_mean(name, known)}the keys are {', '.join(sorted(known))}"
                yield Complaint((*key, name), f"{name!r} is not a key that is known here", fix)
            else:
                names = self._resolved(rule.get("propertyNames", {}))
                yield from self._text(name, names, (*key, name))
                if others is not True:
                    yield from self.check(each, others, (*key, name))
        for name in rule.get("required", ()):
            if name not in value:
                wanted = _expected(self._resolved(known.get(name, {})))
                yield _unexpected((*key, name), wanted, None)

    def _list(self, value: list[Any], rule: Any, key: Key) -> Iterator[Complaint]:
        for number, each in enumerate(value):
            yield from self.check(each, rule.get("items", {}), (*key, number))
        fewest, most = rule.get("minItems", 0), rule.get("maxItems")
        if len(value) < fewest or (most is not None and len(value) > most):
            yield _unexpected(key, rule.get("title", f"a list of {fewest} or more"), value)
        if rule.get("uniqueItems") and any(each in value[:at] for at, each in enumerate(value)):
            yield Complaint(key, f"{value!r} has something twice", "name each once")

    @staticmethod
    def _text(value: str, rule: Any, key: Key) -> Iterator[Complaint]:
        is_short = len(value.strip()) < rule.get("minLength", 0)
        is_long = len(value) > rule.get("maxLength", len(value))
        # `$` is the end of the text here, not a line break before it
        pattern = re.sub(r"\$$", r"\\Z", rule.get("pattern", ""))
        has_format = rule.get("format") not in _FORMATS or bool(
            _FORMATS[rule["format"]][1].fullmatch(value.strip())
        )
        if is_short or is_long or not has_format or not re.search(pattern, value):
            yield _unexpected(key, _expected(rule), value)

    @staticmethod
    def _number(value: float, rule: Any, key: Key) -> Iterator[Complaint]:
        least, most = rule.get("minimum"), rule.get("maximum")
        above = rule.get("exclusiveMinimum")
        if (
            (least is not None and not value >= least)
            or (most is not None and not value <= most)
            or (above is not None and not value > above)
        ):
            yield _unexpected(key, _expected(rule), value)

    def _resolved(self, schema: Any) -> Mapping[str, Any]:
        found: Mapping[str, Any] = schema if isinstance(schema, dict) else {}
        while "$ref" in found:
            target: Any = self._root
            for part in found["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            found = target
        return found


def _is_a(value: object, kind: str | list[str]) -> bool:
    if isinstance(kind, list):
        return any(_is_a(value, each) for each in kind)
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind][1]) if kind in _TYPES else False


def _is_same(value: object, other: object) -> bool:
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _own_title(rule: Mapping[str, Any]) -> str:
    """What was expected, in words of ours; titles of others are names of fields."""
    title = str(rule.get("title", ""))
    return title if title[:1].islower() else ""


def _expected(rule: Mapping[str, Any]) -> str:
    """What a rule takes, in words."""
    title = _own_title(rule)
    if title:
        return title
    kinds = rule.get("type", [])
    words = [_TYPES[kind][0] for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    if rule.get("format") in _FORMATS:
        words = [_FORMATS[rule["format"]][0]]
    if "enum" in rule:
        words = [f"one of {', '.join(str(each) for each in rule['enum'])}"]
    if "minimum" in rule or "maximum" in rule:
        low, high = rule.get("minimum"), rule.get("maximum")
        words.append(f"from {low} on" if high is None else f"between {low} and {high}")
        return " ".join(words)
    choices = rule.get("anyOf", [])
    return " or ".join(words or dict.fromkeys(_expected(each) for each in choices)) or "a value"


def _unexpected(key: Key, expected: str, got: object) -> Complaint:
    found = "nothing" if got is None else _shown(got)
    is_plain = isinstance(got, bool | int | float)
    is_taken = (is_plain and expected.startswith("text")) or isinstance(got, date)
    fix = "put it in quotes" if is_taken else ""
    return Complaint(key, f"{expected} expected, {found} found", fix)


def _shown(value: object) -> str:
    text = f"the date {value}" if isinstance(value, date) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
