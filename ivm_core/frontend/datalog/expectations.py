"""The grammar, and what it says of a text that it doesn't take: what came, what was expected."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from ivm_core.model.errors import DatalogError

if TYPE_CHECKING:
    from collections.abc import Iterable

SPELLED = {
    "NAME": "a name",
    "STRING": "a text",
    "UNDERSCORE": "_",
    "AGGREGATE": "an aggregate",
    "COMPARISON": "a comparison",
    "SUBTYPE": "<:",
    "$END": "the end of the program",
}
NUMBERS = {"INTEGER", "FLOAT", "UNSIGNED", "HEXADECIMAL", "BINARY"}
OPERATORS = {"PLUS", "MINUS", "TIMES", "OVER", "MODULO", "TO_THE"}
DIRECTIVE = re.compile(r"\s*\.(\w+)")
TAKEN = ("decl", "type", "input", "output")
NOT_FOR_PEOPLE = {"COMMENT", "WHITESPACE"}
SHOWN = re.compile(r"\w+|[:<>!=]+-?|.", re.DOTALL)


@cache
def grammar() -> Lark:
    """The parser of the notation, made once."""
    text = files("ivm_core.frontend.datalog").joinpath("grammar.lark").read_text("utf-8")
    return Lark(
        text,
        parser="lalr",
        start="program",
        propagate_positions=True,
        maybe_placeholders=False,
    )


def unexpected(error: UnexpectedInput, text: str) -> DatalogError:
    """What was found where something else was expected, for people."""
    names: Iterable[str] = ()
    if isinstance(error, UnexpectedToken):
        names = error.accepts or error.expected
    elif isinstance(error, UnexpectedCharacters):
        names = error.allowed or ()
    at = error.pos_in_stream
    ended = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    rest = "" if ended or at is None else text[at:]
    found = SHOWN.match(rest) if rest.strip() else None
    what = f"unexpected {found.group()!r}" if found else "the program ends too early"
    fix = f"expected {_listed(names)}"
    history = getattr(error, "token_history", None)
    if history and history[-1] is not None and history[-1].type == "AGGREGATE":
        fix += f"; {history[-1]} is a word of the language, and no name"
    directive = DIRECTIVE.match(text[:at].rpartition("\n")[2] + rest) if rest else None
    if directive and directive.group(1) not in TAKEN:
        what = f".{directive.group(1)} is not taken"
        fix = f"leave it out; taken are {', '.join(f'.{each}' for each in TAKEN)}"
    elif directive and rest.startswith("("):
        what = f"options of .{directive.group(1)} are not taken"
        fix = "name the relation alone: facts are inserted, and results are read, by the program"
    if rest.startswith('"'):
        what, fix = "a text without its end", 'close it with " on the same line'
    elif rest.startswith("/*"):
        what, fix = "a comment without its end", "close it with */"
    elif not found:
        lines = text.rstrip().splitlines() or [""]
        return DatalogError(what, fix=fix, line=len(lines), column=len(lines[-1]) + 1)
    line, column = error.line, error.column
    return DatalogError(what, fix=fix, line=line, column=column, rule=_line(text, line))


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def _listed(names: Iterable[str]) -> str:
    """What could have come, for people: names of tokens by their look."""
    given = set(names) - NOT_FOR_PEOPLE
    shown = {SPELLED.get(name) or _look(name) for name in given - NUMBERS - OPERATORS}
    if given & NUMBERS:
        shown.add("a number")
    if given & OPERATORS:
        shown.add("an operator")
    words = sorted(each for each in shown if each[0].isalpha())
    listed = [*words, *sorted(f'"{each}"' for each in shown if not each[0].isalpha())]
    return " or ".join([", ".join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed)


@cache
def _looks() -> dict[str, str]:
    terminals = grammar().terminals
    return {str(each.name): str(each.pattern.value) for each in terminals}


def _look(name: str) -> str:
    return _looks().get(name, name).replace("\\", "")
