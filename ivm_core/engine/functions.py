"""Python functions that views may call, once their author vouches that they are deterministic."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from ivm_core.engine.evaluation import spark_message
from ivm_core.model.errors import DefinitionConflict, DuplicateName, UnknownName, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ivm_core.engine.definitions import ViewDefinition
    from ivm_core.engine.gears import Gears


@dataclass(frozen=True)
class Function:
    """A registered function; its fingerprint follows its code."""

    name: str
    code: Callable[..., Any]
    return_type: str

    @property
    def fingerprint(self) -> str:
        """Identity of the code, its constants and the names it uses."""
        digest = hashlib.sha256()
        _add_code(getattr(self.code, "__code__", None), digest)
        digest.update(repr(getattr(self.code, "__defaults__", None)).encode())
        digest.update(self.return_type.encode())
        return digest.hexdigest()[:16]

    def is_called_in(self, sql: str) -> bool:
        """Whether a text calls it; one that only has it in a string counts as well."""
        return bool(re.search(rf"(?<!\w){re.escape(self.name)}`?\s*\(", sql, re.IGNORECASE))


class Functions:
    """The functions that this process has registered, by name."""

    def __init__(self, known: Iterable[Function] = ()) -> None:
        """Start with functions that were checked before."""
        self._known = {each.name: each for each in known}

    def __iter__(self) -> Iterator[Function]:
        return iter(self._known.values())

    def add(self, function: Function, gears: Gears) -> None:
        """Make a function known to views; one of Spark's own is never replaced."""
        where = f"function {function.name}"
        same = [each for each in self._known if each.casefold() == function.name.casefold()]
        if not same and gears.low.catalog.functionExists(function.name):
            raise DuplicateName(f"Spark has a function {function.name}", where=where)
        if not callable(function.code):
            raise UserError(
                f"{function.code!r} can't be called", where=where, fix="give a function"
            )
        try:
            gears.register(function)
        except PySparkException as error:
            raise UserError(
                f"Spark doesn't take the function: {spark_message(error)}",
                where=where,
                fix="give a return type such as DOUBLE or ARRAY<STRING>",
            ) from error
        for each in same:
            del self._known[each]
        self._known[function.name] = function

    def called_in(self, sql: str) -> dict[str, str]:
        """Names and fingerprints of the functions that a text calls."""
        return {each.name: each.fingerprint for each in self if each.is_called_in(sql)}

    def suffice(self, views: Iterable[ViewDefinition]) -> bool:
        """Whether every function that the views call is here as it was."""
        return not any(True for _ in self._missing(views))

    def check(self, views: Iterable[ViewDefinition]) -> None:
        """`UnknownName` for a function that is missing, `DefinitionConflict` for a changed one."""
        for name, view in self._missing(views):
            if name in self._known:
                raise DefinitionConflict(
                    f"the function {name} is not the one that view {view} was registered with",
                    where=f"view {view}",
                    fix=f"flow.alter_view({view!r}) takes the function as it is now into the view; "
                    "or register it as it was, and the changed one under another name",
                )
            raise UnknownName(
                f"view {view} calls the function {name}, which this process has not registered",
                where=f"view {view}",
                fix=f'call flow.register_function("{name}", …, deterministic=True) after open',
            )

    def _missing(self, views: Iterable[ViewDefinition]) -> Iterator[tuple[str, str]]:
        for view in views:
            for name, fingerprint in view.functions.items():
                if name not in self._known or self._known[name].fingerprint != fingerprint:
                    yield name, view.name


def _add_code(code: Any, digest: Any) -> None:
    if code is None:
        return
    digest.update(code.co_code)
    digest.update(repr(code.co_names).encode())
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            _add_code(constant, digest)
        else:
            digest.update(_stable(constant).encode())


def _stable(constant: Any) -> str:
    """The text of a constant; the order of a set's members is another in every process."""
    if isinstance(constant, frozenset):
        return f"frozenset({sorted(map(_stable, constant))})"
    if isinstance(constant, tuple):
        return f"({', '.join(map(_stable, constant))})"
    return repr(constant)
