"""From the text of a Datalog program to its syntax tree, or to what was expected where."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lark import Token, Tree
from lark.exceptions import UnexpectedInput

from ivm_core.frontend.datalog.expectations import grammar, unexpected
from ivm_core.frontend.datalog.syntax import (
    Atom,
    BodyAggregate,
    Call,
    Comparison,
    Conjunction,
    Constant,
    Declaration,
    Disjunction,
    Expression,
    Formula,
    HeadAggregate,
    Mention,
    Negation,
    Place,
    Rule,
    Source,
    TypeName,
    Variable,
    Wildcard,
)
from ivm_core.model.errors import DatalogError

if TYPE_CHECKING:
    from collections.abc import Callable

OPERAND_FREE = "count"
LONGEST_NUMBER = 100
SHOWN = 200
ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
Found = Expression | Formula


def parse_program(text: str) -> Source:
    """The syntax tree of a program; `DatalogError` with line, column and what was expected."""
    if not isinstance(text, str):
        raise DatalogError(
            f"a program is text, not {type(text).__name__}", fix="give the program's text"
        )
    reader = _Reader(text)
    try:
        tree = grammar().parse(text)
        return reader.source(tree)
    except UnexpectedInput as error:
        raise unexpected(error, text) from error
    except RecursionError as error:
        raise too_deep(reader.rule) from error


def too_deep(rule: str, what: str = "a rule") -> DatalogError:
    """That a rule has more levels than anybody can read."""
    shown = rule if len(rule) <= SHOWN else f"{rule[:SHOWN]}…"
    return DatalogError(
        f"{what} is nested too deeply",
        fix="split it: give parts of it relations of their own",
        rule=shown,
    )


class _Reader:
    """Reads lark's tree of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._rule = ""

    @property
    def rule(self) -> str:
        """The rule that is read last."""
        return self._rule

    def source(self, tree: Tree[Token]) -> Source:
        """The whole program."""
        readers: dict[str, Callable[[Tree[Token]], list[Any]]] = {
            "decl": self._declaration,
            "type": self._type,
            "input": self._mentions,
            "output": self._mentions,
            "rule": self._rules,
        }
        parts: dict[str, list[Any]] = {name: [] for name in readers}
        for child in tree.children:
            assert isinstance(child, Tree)
            self._rule = self._written(child)
            parts[child.data].extend(readers[child.data](child))
        return Source(
            tuple(parts["decl"]),
            tuple(parts["type"]),
            tuple(parts["input"]),
            tuple(parts["output"]),
            tuple(parts["rule"]),
        )

    def _written(self, tree: Tree[Token]) -> str:
        text = self._text[tree.meta.start_pos : tree.meta.end_pos]
        return " ".join(text.split())

    # --- directives ---

    def _declaration(self, tree: Tree[Token]) -> list[Declaration]:
        name, *attributes = tree.children
        columns = []
        for each in attributes:
            assert isinstance(each, Tree)
            column, kind = map(str, each.children)
            columns.append((column, kind, _place(each)))
        return [Declaration(str(name), tuple(columns), _place(tree), self._rule)]

    def _type(self, tree: Tree[Token]) -> list[TypeName]:
        name, of = str(tree.children[0]), str(tree.children[-1])
        return [TypeName(name, of, _place(tree))]

    def _mentions(self, tree: Tree[Token]) -> list[Mention]:
        return [Mention(str(name), _place(name)) for name in tree.children]

    # --- rules ---

    def _rules(self, tree: Tree[Token]) -> list[Rule]:
        heads: list[Atom] = []
        body: Formula | None = None
        for child in tree.children:
            assert isinstance(child, Tree)
            if child.data == "head":
                name, *arguments = child.children
                read = tuple(self._expression(each, in_head=True) for each in arguments)
                heads.append(Atom(str(name), read, _place(child)))
            else:
                body = self._formula(child)
        return [Rule(tuple(heads), body, self._rule, _place(tree))]

    def _formula(self, tree: Any) -> Formula:
        kind = tree.data
        if kind == "disjunction":
            return Disjunction(tuple(self._formula(each) for each in tree.children))
        if kind == "conjunction":
            return Conjunction(tuple(self._formula(each) for each in tree.children))
        if kind == "parenthesis":
            return self._formula(tree.children[0])
        if kind == "negation":
            return Negation(self._formula(tree.children[0]), _place(tree))
        if kind == "comparison":
            left, operator, right = tree.children
            return Comparison(
                str(operator), self._expression(left), self._expression(right), _place(tree)
            )
        if kind == "call":
            name, *arguments = tree.children
            read = tuple(self._expression(each) for each in arguments)
            return Atom(str(name), read, _place(tree))
        raise self._wrong(
            tree, "a value where something that holds or doesn't is expected", "compare it"
        )

    # --- expressions ---

    def _expression(self, tree: Any, *, in_head: bool = False) -> Expression:
        place = _place(tree)
        kind = tree.data
        if kind == "variable":
            return Variable(str(tree.children[0]), place)
        if kind == "wildcard":
            return Wildcard(place)
        if kind in ("text", "integer", "unsigned", "float"):
            return _constant(kind, str(tree.children[0]), place)
        if kind == "operation":
            left, operator, right = tree.children
            sides = (self._expression(left), self._expression(right))
            return Call(str(operator), sides, place)
        if kind == "negative":
            value = self._expression(tree.children[-1])
            if isinstance(value, Constant) and not isinstance(value.value, str):
                return Constant(-value.value, place, value.is_unsigned)
            return Call("neg", (value,), place)
        if kind == "call":
            name, *arguments = tree.children
            return Call(str(name), tuple(map(self._expression, arguments)), place)
        if kind == "parenthesis":
            return self._expression(tree.children[0], in_head=in_head)
        if kind.startswith("aggregate"):
            return self._aggregate(tree, place, in_head=in_head)
        raise self._wrong(tree, "a condition where a value is expected", "give a value")

    def _aggregate(self, tree: Any, place: Place, *, in_head: bool) -> Expression:
        function, *rest = tree.children
        name = str(function)
        if tree.data == "aggregate_call":
            arguments = tuple(map(self._expression, rest))
            if len(arguments) > 1:
                if name in ("min", "max"):
                    return Call(name, arguments, place)
                raise self._wrong(tree, f"{name} of {len(arguments)} values", "give it one")
            if not in_head:
                raise self._wrong(
                    tree,
                    f"{name}(…) of one value is an aggregate, which is no value of a body",
                    f"say what it is over: {name} x : {{ … }}; or let it stand alone in the head",
                )
            operand = arguments[0] if arguments else None
            self._check_operand(tree, name, operand)
            return HeadAggregate(name, operand, place)
        operands = tuple(map(self._expression, rest[:-1]))
        if len(operands) > 1:
            raise self._wrong(tree, f"{name} of {len(operands)} values", "give it one")
        operand = operands[0] if operands else None
        self._check_operand(tree, name, operand)
        return BodyAggregate(name, operand, self._formula(rest[-1]), place)

    def _check_operand(self, tree: Any, name: str, operand: Expression | None) -> None:
        if name == OPERAND_FREE and operand is not None:
            raise self._wrong(
                tree,
                "count counts the ways in which a body holds, and takes no value",
                "write count() in a head, count : { … } in a body; for distinct values give them "
                "a relation of their own",
            )
        if name != OPERAND_FREE and operand is None:
            raise self._wrong(tree, f"{name} of nothing", "say of which value")

    def _wrong(self, tree: Any, what: str, fix: str) -> DatalogError:
        place = _place(tree)
        return DatalogError(what, fix=fix, line=place.line, column=place.column, rule=self._rule)


def _place(node: Any) -> Place:
    at = node.meta if isinstance(node, Tree) else node
    return Place(at.line, at.column) if not getattr(at, "empty", False) else Place(1, 1)


def _constant(kind: str, text: str, place: Place) -> Constant:
    if kind == "text":
        inner = re.sub(r"\\(.)", lambda m: ESCAPES.get(m.group(1), m.group(1)), text[1:-1])
        return Constant(inner, place)
    if kind == "float":
        return Constant(float(text), place)
    digits = text.removesuffix("u")
    if len(digits) > LONGEST_NUMBER:
        raise DatalogError(
            f"a number of {len(digits)} digits is out of range",
            fix="give one of 64 bits",
            line=place.line,
            column=place.column,
        )
    base = {"0x": 16, "0b": 2}.get(digits[:2], 10)
    return Constant(int(digits, base), place, is_unsigned=text != digits)
