"""SQL functions: an expression over parameters, written into a view wherever the view calls it.

    vat(amount DECIMAL(12,2)) RETURNS DECIMAL(14,2): amount * 1.2
    vat(x + 1)      CAST(CAST(x + 1 AS DECIMAL(12,2)) * 1.2 AS DECIMAL(14,2))

That is what Spark makes of a call: arguments cast to the types of the parameters, the body over
them, the result cast to the return type. Written out, it is an expression like any other, so all
that is said of expressions holds for it, in every session.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend import functions
from ivm_core.frontend.aggregates import is_aggregate
from ivm_core.frontend.dialect import Verbatim
from ivm_core.frontend.positions import Positions
from ivm_core.frontend.refusals import called, refuse_unsupported
from ivm_core.frontend.spelling import folded
from ivm_core.model.errors import InternalError, InvalidName, SqlError, UnknownName, Unsupported
from ivm_core.operators.sql import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Parse = Callable[[str, str], exp.Expr]

STATEMENTS = (exp.Query, exp.DDL, exp.DML, exp.Command, exp.Alias, exp.Drop, exp.Set, exp.Values)


@dataclass(frozen=True)
class Parameter:
    """What a function is given: a name, a type, and what stands for a missing argument."""

    name: str
    type: str
    default: str | None = None


@dataclass(frozen=True)
class SqlFunction:
    """A function whose body is an expression."""

    name: str
    parameters: tuple[Parameter, ...]
    return_type: str
    body: str

    @property
    def where(self) -> str:
        """By what messages call it."""
        return f"function {self.name}"

    @property
    def fingerprint(self) -> str:
        """The whole declaration: a view keeps the functions that it was registered with."""
        given = [[each.name, each.type, each.default] for each in self.parameters]
        return json.dumps({"parameters": given, "returns": self.return_type, "body": self.body})

    def is_as(self, fingerprint: str) -> bool:
        """Whether this is the function of a stored fingerprint."""
        return self.fingerprint == fingerprint

    @property
    def entry(self) -> dict[str, str]:
        """As the tick log stores it."""
        return {"name": self.name, "declaration": self.fingerprint}

    @classmethod
    def parse(cls, entry: Mapping[str, str]) -> SqlFunction:
        """Read back what `entry` wrote."""
        found = cls.of(entry["name"], entry["declaration"])
        if found is None:
            raise InternalError(f"{entry} declares no SQL function")
        return found

    @staticmethod
    def of(name: str, fingerprint: str) -> SqlFunction | None:
        """The function of a fingerprint; None for that of a Python function."""
        if not fingerprint.startswith("{"):
            return None
        found = json.loads(fingerprint)
        given = tuple(Parameter(*each) for each in found["parameters"])
        return SqlFunction(name, given, found["returns"], found["body"])


def without_defaults(parameters: str) -> list[tuple[str, str | None]]:
    """Declarations of parameters, each with the text behind its DEFAULT."""
    found: list[tuple[str, str | None]] = []
    start, depth = 0, 0
    default: int | None = None
    for token in Verbatim().tokenize(parameters + ","):
        depth += token.text in ("(", "<", "[")
        depth -= token.text in (")", ">", "]")
        if depth == 0 and token.text.upper() == "DEFAULT":
            default = token.start
        if depth == 0 and token.text == ",":
            whole = parameters[start : token.start].strip()
            if default is not None:
                given = parameters[default + len("DEFAULT") : token.start]
                found.append((parameters[start:default].strip(), given.strip()))
            elif whole:
                found.append((whole, None))
            start, default = token.end + 1, None
    return found


class SqlFunctions:
    """The SQL functions that a text may call."""

    def __init__(self, known: Mapping[str, SqlFunction], parse: Parse) -> None:
        """`parse` makes the tree of a text."""
        self._known = {folded(name): function for name, function in known.items()}
        self._parse = parse

    def __bool__(self) -> bool:
        return bool(self._known)

    def question(self, function: SqlFunction) -> str:
        """A query that has the function's value, for Spark to judge the body and the types.

        Raises for a body that is no expression over the parameters, or that can't be kept.
        """
        _refuse_names(function)
        body = self._body(function)
        given = []
        for each in function.parameters:
            value = exp.null() if each.default is None else self._default(function, each.default)
            name = exp.to_identifier(each.name, quoted=True)
            given.append(exp.alias_(_cast(value, each.type), name))
        nothing = exp.alias_(exp.null(), "nothing")
        rows = exp.Select(expressions=[*given, nothing]).subquery(
            exp.to_identifier(function.name, quoted=True)
        )
        value = _cast(self.written_out(body, (function.name,)), function.return_type)
        return text_of(exp.Select(expressions=[exp.alias_(value, "value")]).from_(rows))

    def written_out(self, tree: exp.Expr, within: tuple[str, ...] = ()) -> exp.Expr:
        """The tree with the calls of SQL functions as what they stand for.

        `within` are the functions whose bodies are being written out.
        """

        def one(node: exp.Expr) -> exp.Expr:
            name = folded(node.name) if isinstance(node, exp.Anonymous) else ""
            function = self._known.get(name)
            if function is None:
                return node
            if name in map(folded, within):
                raise SqlError(
                    f"the function {function.name} calls itself",
                    where=function.where,
                    fix="write the steps that you need one in the other",
                )
            arguments = [self.written_out(each, within) for each in node.expressions]
            return self._call(function, arguments, (*within, function.name))

        return tree.transform(one)

    def _call(
        self, function: SqlFunction, arguments: list[exp.Expr], within: tuple[str, ...]
    ) -> exp.Expr:
        given = self._given(function, arguments)
        body = self.written_out(self._body(function), within)

        def one(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column):
                return node
            name, *fields = _without_qualifier(node, function, given)
            value = _cast(given[folded(name.name)].copy(), _type(function, name.name))
            for each in fields:
                value = exp.Dot(this=value, expression=each.copy())
            return value

        return _cast(exp.paren(_with_field_names(body).transform(one)), function.return_type)

    def _given(self, function: SqlFunction, arguments: list[exp.Expr]) -> dict[str, exp.Expr]:
        """Arguments by parameter: those in turn, then those by name, then defaults."""
        names = [folded(each.name) for each in function.parameters]
        given: dict[str, exp.Expr] = {}
        for place, argument in enumerate(arguments):
            name = names[place] if place < len(names) else ""
            if isinstance(argument, exp.Kwarg):
                name, argument = folded(argument.this.name), argument.expression
            if name not in names or name in given:
                raise SqlError(
                    f"{function.name}() is called with {len(arguments)} arguments that are not "
                    f"its {len(names)} parameters",
                    where=function.where,
                    fix=f"call {_signature(function)}",
                )
            given[name] = argument
        for each in function.parameters:
            if folded(each.name) in given:
                continue
            if each.default is None:
                raise SqlError(
                    f"{function.name}() is called without {each.name}",
                    where=function.where,
                    fix=f"call {_signature(function)}",
                )
            given[folded(each.name)] = self._default(function, each.default)
        return given

    def _default(self, function: SqlFunction, text: str) -> exp.Expr:
        """What stands for a missing argument: an expression of its own."""
        alone = SqlFunction(f"{function.name}, DEFAULT", (), function.return_type, text)
        return self._body(alone)

    def _body(self, function: SqlFunction) -> exp.Expr:
        body = self._parse(function.body, function.where)
        if isinstance(body, STATEMENTS):
            raise Unsupported(
                f"{body.key.upper()} as the body of a function",
                position=function.where,
                reason="a SQL function is an expression over its parameters",
                rewrite="write the expression alone: amount * 1.2",
            )
        positions = Positions(function.body)
        refuse_unsupported(exp.Select(expressions=[body]), function.where, positions)
        body.pop()
        _refuse_many_rows(body, function)
        for each in body.find_all(exp.Column):
            known = {folded(parameter.name) for parameter in function.parameters}
            if folded(_without_qualifier(each, function, known)[0].name) not in known:
                raise UnknownName(
                    f"{each.sql(dialect=Verbatim)} is no parameter of {function.name}",
                    where=f"{function.where}, {positions.find(each)}",
                    fix=f"its parameters are: {_signature(function)}",
                )
        return body


def _refuse_names(function: SqlFunction) -> None:
    """Refuse names of parameters that can't be told apart, from each other or from Spark's own."""
    names = [folded(each.name) for each in function.parameters]
    for name in names:
        if names.count(name) > 1 or name in functions.WITHOUT_PARENTHESES:
            raise InvalidName(
                f"the parameter {name} is called like another one or like a function of Spark's",
                where=function.where,
                fix="choose another name",
            )


def _refuse_many_rows(body: exp.Expr, function: SqlFunction) -> None:
    """Refuse what is no function of one row."""
    for node in body.walk():
        found = ""
        if isinstance(node, exp.Query):
            found = "a subquery"
        elif isinstance(node, exp.Window):
            found = "a window function"
        elif is_aggregate(node):
            found = f"the aggregate {called(node)}"
        elif isinstance(node, exp.Anonymous) and folded(node.name) in functions.GENERATORS:
            found = f"the generator {called(node)}"
        elif isinstance(node, exp.Anonymous) and folded(node.name) == "arrays_zip":
            found = "arrays_zip, whose fields are called by its arguments,"
        if found:
            raise Unsupported(
                f"{found} in the body of a SQL function",
                position=function.where,
                reason="a SQL function is an expression over its parameters",
                rewrite="write it in the view, and give the function its value",
            )


def _without_qualifier(
    column: exp.Column, function: SqlFunction, among: Mapping[str, object] | set[str]
) -> list[exp.Expr]:
    """The parts of a name without that of the function, by which Spark lets it be qualified."""
    parts = list(column.parts)
    is_own = len(parts) > 1 and folded(parts[0].name) == folded(function.name)
    return parts[1:] if is_own and folded(parts[1].name) in among else parts


def _with_field_names(body: exp.Expr) -> exp.Expr:
    """`struct(a)` has a field `a`, whatever stands for the parameter."""
    for call in body.find_all(exp.Anonymous):
        if folded(call.name) == "struct":
            fields = [
                exp.alias_(each.copy(), exp.to_identifier(each.name, quoted=True))
                if isinstance(each, exp.Column)
                else each
                for each in call.expressions
            ]
            call.set("expressions", fields)
    return body


def _type(function: SqlFunction, parameter: str) -> str:
    return next(p.type for p in function.parameters if folded(p.name) == folded(parameter))


def _cast(tree: exp.Expr, kind: str) -> exp.Expr:
    return exp.Cast(this=tree, to=exp.DataType.build(kind, dialect=Verbatim))


def _signature(function: SqlFunction) -> str:
    return f"{function.name}({', '.join(f'{p.name} {p.type}' for p in function.parameters)})"
