"""Functions that views may call: in SQL, kept with the flow; in Python, needed in every process.

The author of a Python function vouches that it is deterministic; of SQL that is to be seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql.types import DataType, StructType

from ivm_core.engine.analysis import SparkAnalyser
from ivm_core.engine.code_fingerprint import code_fingerprint
from ivm_core.engine.evaluation import spark_message
from ivm_core.engine.own_code import own_code_fingerprint
from ivm_core.frontend.sql import parse_statement
from ivm_core.frontend.sql_functions import Parameter, SqlFunction, SqlFunctions, without_defaults
from ivm_core.model.errors import DefinitionConflict, DuplicateName, UnknownName, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ivm_core.engine.definitions import SharedDefinition, ViewDefinition
    from ivm_core.engine.gears import Gears


@dataclass(frozen=True)
class Function:
    """A registered function, and the identity of its code with all that it calls and reads.

    The code counts as it is now, as Spark takes it. What nests without end is `UserError`.
    """

    name: str
    code: Callable[..., Any]
    return_type: str
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        try:
            found = code_fingerprint(self.code, self.return_type)
        except RecursionError as error:
            raise UserError(
                "what the function calls and reads is nested too deeply to be compared",
                where=f"function {self.name}",
                fix="let it read flat tables of plain values",
            ) from error
        object.__setattr__(self, "fingerprint", found)

    @cached_property
    def _own_fingerprint(self) -> str:
        return own_code_fingerprint(self.code, self.return_type)

    def is_as(self, fingerprint: str) -> bool:
        """Whether this is the function of a stored fingerprint.

        One of a flow that an earlier version wrote knows the function's own code only.
        """
        if len(fingerprint) == len(self._own_fingerprint):
            return fingerprint == self._own_fingerprint
        return fingerprint == self.fingerprint


class Functions:
    """The Python functions that this process has registered, and the SQL functions of the flow."""

    def __init__(
        self, python: Iterable[Function] = (), stored: Mapping[str, SqlFunction] | None = None
    ) -> None:
        """Start with Python functions that were checked before; `stored` may still grow."""
        self._python = {each.name: each for each in python}
        self._stored = {} if stored is None else stored

    @property
    def _known(self) -> dict[str, Function | SqlFunction]:
        return {**self._stored, **self._python}

    @property
    def python(self) -> Iterator[Function]:
        """Those that Spark's sessions must know."""
        return iter(self._python.values())

    def forget(self, name: str) -> None:
        """Let the SQL function of that name be meant, not a Python function."""
        self._python.pop(name, None)

    def in_sql(
        self, name: str, body: str, returns: str, parameters: str, gears: Gears
    ) -> SqlFunction:
        """A function in SQL, judged by Spark; one of Spark's own is never replaced."""
        where = f"function {name}"
        self._refuse_taken(name, gears)
        name = next((each for each in self._known if each.casefold() == name.casefold()), name)
        try:
            given = parse_parameters(parameters)
            kind = DataType.fromDDL(returns).simpleString()
        except PySparkException as error:
            raise UserError(
                f"Spark doesn't take the types: {spark_message(error)}",
                where=where,
                fix="give types such as DOUBLE, parameters such as 'a INT, b STRING'",
            ) from error
        if any("char(" in each for each in (kind, *(parameter.type for parameter in given))):
            raise UserError("CHAR and VARCHAR as types of a function", where, "use STRING")
        function = SqlFunction(name, given, kind, body)
        others = {each.name: each for each in self._stored.values() if each.name != name}
        known = SqlFunctions({**others, name: function}, parse_statement)
        SparkAnalyser(gears, where).judged(known.question(function), {})
        return function

    def _refuse_taken(self, name: str, gears: Gears) -> None:
        is_ours = any(each.casefold() == name.casefold() for each in self._known)
        if not is_ours and gears.low.catalog.functionExists(name):
            raise DuplicateName(f"Spark has a function {name}", where=f"function {name}")

    def add(self, function: Function, gears: Gears) -> None:
        """Make a function known to views; one of Spark's own is never replaced."""
        where = f"function {function.name}"
        self._refuse_taken(function.name, gears)
        same = [each for each in self._python if each.casefold() == function.name.casefold()]
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
            del self._python[each]
        self._python[function.name] = function

    def called_in(self, sql: str) -> dict[str, str]:
        """Names and fingerprints of the functions that a text calls."""
        found: dict[str, str] = {}
        texts = [sql]
        while texts:
            text = texts.pop()
            for name, each in self._known.items():
                if name not in found and is_called_in(text, name):
                    found[name] = each.fingerprint
                    texts += [each.body] if isinstance(each, SqlFunction) else []
        return found

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
                if name not in self._known or not self._known[name].is_as(fingerprint):
                    yield name, view.name


def python_functions(view: ViewDefinition | SharedDefinition) -> dict[str, str]:
    """Those functions of a view that a process has to register: the others are in the log."""
    called = view.functions.items()
    return {name: each for name, each in called if SqlFunction.of(name, each) is None}


def is_called_in(sql: str, name: str) -> bool:
    """Whether a text calls a function; one that only has it in a string counts as well."""
    return bool(re.search(rf"(?<!\w){re.escape(name)}`?\s*\(", sql, re.IGNORECASE))


def parse_parameters(ddl: str) -> tuple[Parameter, ...]:
    """`a INT, b STRING DEFAULT 'x'` as Spark reads it."""
    found = []
    for declaration, default in without_defaults(ddl):
        kind = StructType.fromDDL(declaration)
        if not isinstance(kind, StructType):
            fix = "give names with types: 'a INT, b STRING'"
            raise UserError(f"{declaration!r} has no name", where="parameters=", fix=fix)
        one = kind.fields[0]
        if not one.nullable:
            fix = "leave NOT NULL out, and ask for it in the body"
            raise UserError(f"{declaration!r} is NOT NULL", where="parameters=", fix=fix)
        found.append(Parameter(one.name, one.dataType.simpleString(), default))
    return tuple(found)
