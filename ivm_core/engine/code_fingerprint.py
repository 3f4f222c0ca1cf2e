"""The identity of a Python function: all that its results follow, the same in every process.

The user's code is walked into: what it calls, the values that it reads, its defaults, its closure.
Code of libraries is known by its name and version (`engine.library_code`). Values of plain kinds
count by what they are, objects of the user's classes by their class and fields. Of any other
object only the class counts: neither an address nor a pickle is the same in every process.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import hashlib
import inspect
import operator
import re
import types
import uuid
import zoneinfo
from collections import defaultdict, deque
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ivm_core.engine.code_names import globals_in, imports_in, names_in
from ivm_core.engine.library_code import imported, is_library, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_PLAIN: tuple[Any, ...] = (
    types.NoneType,
    types.EllipsisType,
    types.NotImplementedType,
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    datetime.datetime,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    datetime.timezone,
    zoneinfo.ZoneInfo,
    decimal.Decimal,
    decimal.Context,
    fractions.Fraction,
    uuid.UUID,
    PurePath,
)
"""Kinds whose text says all of a value, and no address."""

_BUILT_IN = (
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)

_PARTS: tuple[tuple[tuple[type, ...], Callable[[Any], Iterable[object]]], ...] = (
    ((functools.partial, functools.partialmethod), lambda it: (it.func, it.args, it.keywords)),
    ((property,), lambda it: (it.fget, it.fset, it.fdel)),
    ((staticmethod, classmethod, types.MethodType), lambda it: (it.__func__,)),
    ((functools.cached_property,), lambda it: (it.func,)),
    ((functools._lru_cache_wrapper,), lambda it: (it.__wrapped__,)),  # noqa: SLF001
    ((re.Pattern,), lambda it: (it.pattern, it.flags)),
    ((slice,), lambda it: (it.start, it.stop, it.step)),
    ((datetime.datetime, datetime.time), lambda it: (it.tzinfo,)),
    ((defaultdict,), lambda it: (it.default_factory,)),
    ((operator.itemgetter, operator.attrgetter, operator.methodcaller), lambda it: it.__reduce__()),
    ((dict, types.MappingProxyType), lambda it: (part for pair in it.items() for part in pair)),
    ((list, tuple, deque), iter),
)
"""Kinds that are made of other values, and those values in order."""

_CALLING = 0xFFF
"""The flags that say how code is called and what it gives; others tell of `from __future__`."""

_NO_MEANING = {
    "__abstractmethods__",
    "__annotations__",
    "__dict__",
    "__doc__",
    "__module__",
    "__slotnames__",
    "__weakref__",
    "_abc_impl",
}
"""What a class says of itself that changes no result, or comes with its first use."""


def code_fingerprint(code: object, return_type: str) -> str:
    """The identity of a function with what it calls and reads, and the type of its results."""
    return _joined("function", return_type, _Walk().digest(code))[:32]


class _Walk:
    """One way through all that a value is made of; what is being walked is met again by place."""

    def __init__(self) -> None:
        self._under_way: list[object] = []
        self._modules_under_way: list[tuple[str, frozenset[str]]] = []
        self._done: dict[int, tuple[object, str]] = {}

    def digest(self, value: object) -> str:
        """The identity of a value."""
        if type(value) in _PLAIN and getattr(value, "tzinfo", None) is None:
            return _joined(type(value).__name__, repr(value))
        if id(value) in self._done:
            return self._done[id(value)][1]
        for place, each in enumerate(self._under_way):
            if each is value:
                return _joined("again", str(place))
        self._under_way.append(value)
        found = _joined(*self._described(value))
        self._under_way.pop()
        self._done[id(value)] = (value, found)
        return found

    def _read(self, value: object, names: frozenset[str]) -> str:
        """The identity of what code reads; of a user's module, that of what it has by `names`."""
        if not isinstance(value, types.ModuleType):
            return self.digest(value)
        if is_library(value.__name__):
            return _joined(*_library(value.__name__, ""))
        met = (value.__name__, names)
        if met in self._modules_under_way:
            return _joined("again", value.__name__)
        self._modules_under_way.append(met)
        parts = [
            part
            for name in sorted(names & vars(value).keys())
            for part in (name, self._read(vars(value)[name], names))
        ]
        self._modules_under_way.pop()
        return _joined("module", *parts)

    def _described(self, value: Any) -> Iterator[str]:
        if isinstance(value, types.FunctionType):
            yield from self._function(value)
        elif isinstance(value, types.CodeType):
            yield from self._code(value)
        elif isinstance(value, types.CellType):
            yield from self._cell(value)
        elif isinstance(value, type):
            yield from self._class(value)
        elif isinstance(value, _BUILT_IN):
            yield from self._built_in(value)
        elif isinstance(value, enum.Enum):
            yield from (
                "member",
                self.digest(type(value)),
                str(value.name),
                self.digest(value.value),
            )
        else:
            yield from ("object", self.digest(type(value)))
            yield from self._contents(value)
            yield from self._fields(value)

    def _function(self, function: types.FunctionType) -> Iterator[str]:
        home = function.__globals__
        if is_library(home.get("__name__", "")):
            # one that decorates a user's function has that in its closure
            yield from _library(home.get("__name__"), function.__qualname__)
            yield self.digest(function.__closure__)
            return
        yield from ("function", self.digest(function.__code__))
        for part in (function.__defaults__, function.__kwdefaults__, function.__closure__):
            yield self.digest(part)
        names = names_in(function.__code__)
        for name in sorted(globals_in(function.__code__) & home.keys()):
            yield from (name, self._read(home[name], names))
        for name in sorted(imports_in(function.__code__, home.get("__package__"))):
            yield from (name, self._read(imported(name), names))
        yield from self._named(vars(function))

    def _code(self, code: types.CodeType) -> Iterator[str]:
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        flags = code.co_flags & _CALLING
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, flags)
        yield from ("code", code.co_code.hex(), code.co_exceptiontable.hex())
        yield repr((code.co_names, arguments, counts))
        yield self.digest(code.co_consts)

    def _cell(self, cell: types.CellType) -> Iterator[str]:
        try:
            yield from ("cell", self.digest(cell.cell_contents))
        except ValueError:
            yield "empty"

    def _class(self, kind: type) -> Iterator[str]:
        if is_library(kind.__module__):
            yield from _library(kind.__module__, kind.__qualname__)
            return
        yield from ("class", kind.__qualname__, self.digest(type(kind)))
        for base in kind.__bases__:
            yield self.digest(base)
        yield from self._named(vars(kind))

    def _built_in(self, value: Any) -> Iterator[str]:
        module = getattr(value, "__module__", None) or getattr(
            getattr(value, "__objclass__", None), "__module__", None
        )
        yield from _library(module, value.__qualname__)
        owner = getattr(value, "__self__", None)
        if not isinstance(owner, types.ModuleType):
            yield self.digest(owner)

    def _contents(self, value: Any) -> Iterator[str]:
        """What a value holds, of the kinds that can be asked."""
        for kinds, parts in _PARTS:
            if isinstance(value, kinds):
                yield from map(self.digest, parts(value))
        if isinstance(value, types.MethodType):
            yield self.digest(value.__self__)
        elif isinstance(value, (set, frozenset)):
            yield from sorted(map(self._apart, value))
        elif plain := next((each for each in _PLAIN if isinstance(value, each)), None):
            yield plain.__repr__(value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value)
        else:
            yield from self._buffer(value)

    def _apart(self, member: object) -> str:
        """The identity of a set's member, whatever members were met before it."""
        other = _Walk()
        other._under_way, other._done = [*self._under_way], {**self._done}
        other._modules_under_way = [*self._modules_under_way]
        return other.digest(member)

    def _buffer(self, value: Any) -> Iterator[str]:
        """The bytes of an array; of one of objects, the objects."""
        try:
            view = memoryview(value)
        except (TypeError, ValueError):
            return
        if "O" in view.format:
            yield self.digest(value.tolist())
        else:
            yield from (view.format, repr(view.shape), hashlib.sha256(view.tobytes()).hexdigest())

    def _fields(self, value: Any) -> Iterator[str]:
        """The fields of an object; one of a library has them where it is code or a dataclass."""
        kind = type(value)
        if is_library(kind.__module__):
            if not callable(value) and not dataclasses.is_dataclass(value):
                return
            yield str(getattr(value, "__name__", ""))
        yield from self._named(dict(_stored_fields(value)))

    def _named(self, values: Mapping[str, object]) -> Iterator[str]:
        for name in sorted(values.keys() - _NO_MEANING):
            yield from (name, self.digest(values[name]))


def _stored_fields(value: object) -> Iterator[tuple[str, object]]:
    """What an object stores by name; not what a property keeps after its first use."""
    kind = type(value)
    own = getattr(value, "__dict__", None)
    for name, each in own.items() if isinstance(own, dict) else ():
        if not isinstance(inspect.getattr_static(kind, name, None), functools.cached_property):
            yield str(name), each
    for base in kind.__mro__:
        for name, slot in vars(base).items():
            if isinstance(slot, types.MemberDescriptorType) and not is_library(base.__module__):
                try:
                    yield f"{base.__qualname__}.{name}", slot.__get__(value)
                except AttributeError:
                    continue


def _library(module: str | None, name: str) -> Iterator[str]:
    yield from ("library", name)
    if is_library(module):
        yield from (module or "", version_of(module))


def _joined(*parts: str) -> str:
    """One identity of several parts in order; no two lists of parts are written the same."""
    whole = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        whole.update(len(encoded).to_bytes(8, "big") + encoded)
    return whole.hexdigest()
