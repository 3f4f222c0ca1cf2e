"""Reading types and column lists written as Spark DDL: one small recursive-descent parser."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ivm_core.model.errors import SqlError, Unsupported, position
from ivm_core.model.types import (
    SCALAR_KINDS,
    SYNONYMS,
    Array,
    DataType,
    Decimal,
    Map,
    Scalar,
    Struct,
    refused_type,
)

_TOKEN = re.compile(
    r"(?P<space>\s+|--[^\n]*)|(?P<quoted>`(?:[^`]|``)+`)|(?P<word>\w+)|(?P<mark>[<>(),:])|(?P<odd>.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    offset: int


class DdlReader:
    """Reads types and columns from one text; what it can't read is a `SqlError` with the place."""

    def __init__(self, text: str, where: str) -> None:
        """`where` says whose DDL this is, for the messages."""
        if not isinstance(text, str):
            raise SqlError(f"DDL is text, not {type(text).__name__}", where)
        self._text = text
        self._where = where
        self._tokens = [
            _Token(match.lastgroup or "odd", match.group(), match.start())
            for match in _TOKEN.finditer(text)
            if match.lastgroup != "space"
        ]
        self._next = 0

    def columns(self) -> list[tuple[str, DataType, bool]]:
        """`name TYPE [NOT NULL], …` to the end, as (name, type, nullable)."""
        found = [self._column()]
        while self._take(","):
            found.append(self._column())
        self.end()
        return found

    def type(self) -> DataType:
        """One type."""
        token = self._peek()
        if token.kind != "word":
            raise self._error("expected a type")
        word = SYNONYMS.get(token.text.upper(), token.text.upper())
        refusal = refused_type(word, self._position(token))
        if refusal:
            raise refusal
        self._next += 1
        if word == "DECIMAL":
            return self._decimal()
        if word == "ARRAY":
            self._expect("<")
            element = self.type()
            self._expect(">")
            return Array(element)
        if word == "MAP":
            self._expect("<")
            key = self.type()
            self._expect(",")
            value = self.type()
            self._expect(">")
            return Map(key, value)
        if word == "STRUCT":
            return self._struct()
        if word not in SCALAR_KINDS:
            self._next -= 1
            raise self._error("there is no such type")
        if self._peek().text.upper() == "COLLATE":
            raise refused_type("COLLATE", self._position(self._peek())) or AssertionError
        return Scalar(word)

    def end(self) -> None:
        """Refuse whatever is left."""
        if self._peek().kind != "end":
            raise self._error("unexpected")

    def _column(self) -> tuple[str, DataType, bool]:
        name = self._name()
        self._take(":")
        of = self.type()
        return name, of, not self._not_null()

    def _decimal(self) -> Decimal:
        if not self._take("("):
            return Decimal(10, 0)
        precision = self._number()
        scale = self._number() if self._take(",") else 0
        self._expect(")")
        return Decimal(precision, scale)

    def _struct(self) -> Struct:
        self._expect("<")
        fields: list[tuple[str, DataType]] = []
        while not fields or self._take(","):
            name = self._name()
            self._take(":")
            of = self.type()
            spot = self._position(self._peek())
            if self._not_null():
                raise Unsupported(
                    "NOT NULL inside a STRUCT",
                    spot,
                    "fields of structs may always be NULL here",
                    "leave NOT NULL out, or lift the field to a column of its own",
                )
            fields.append((name, of))
        self._expect(">")
        return Struct(tuple(fields))

    def _name(self) -> str:
        token = self._peek()
        if token.kind == "quoted":
            self._next += 1
            return token.text[1:-1].replace("``", "`")
        if token.kind == "word":
            self._next += 1
            return token.text
        raise self._error("expected a column name (quote unusual ones with backticks)")

    def _not_null(self) -> bool:
        if self._peek().text.upper() != "NOT":
            return False
        self._next += 1
        self._expect("NULL")
        return True

    def _number(self) -> int:
        token = self._peek()
        if not token.text.isascii() or not token.text.isdigit():
            raise self._error("expected a number")
        self._next += 1
        return int(token.text)

    def _take(self, text: str) -> bool:
        if self._peek().text.upper() != text:
            return False
        self._next += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._error(f"expected {text}")

    def _peek(self) -> _Token:
        if self._next < len(self._tokens):
            return self._tokens[self._next]
        return _Token("end", "", len(self._text))

    def _spot(self, token: _Token) -> tuple[int, int]:
        before = self._text[: token.offset]
        return before.count("\n") + 1, token.offset - (before.rfind("\n") + 1) + 1

    def _position(self, token: _Token) -> str:
        return f"{position(*self._spot(token))} of {self._where}"

    def _error(self, what: str) -> SqlError:
        token = self._peek()
        line, column = self._spot(token)
        return SqlError(
            f"{what}: {token.text!r}" if token.text else f"{what}: the text ends here",
            self._where,
            "write columns like: id BIGINT NOT NULL, amount DECIMAL(12,2), tags ARRAY<STRING>",
            line=line,
            column=column,
        )


def parse_type(text: str, where: str = "the type") -> DataType:
    """The type that Spark DDL text names; `SqlError` with the place, or `Unsupported`."""
    reader = DdlReader(text, where)
    found = reader.type()
    reader.end()
    return found
