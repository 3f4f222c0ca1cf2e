"""Spark's dialect, read without reinterpretation.

sqlglot knows many functions and writes them in its own way (`to_char(x, f)` loses its format,
patterns of dates are translated). What a function means is Spark's business: here a call keeps
its name and its arguments, except for the few whose syntax is not that of a call and the
aggregates that views maintain. String literals have the value that Spark gives them.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from ivm_core.frontend.pipes import PipeParser

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot.tokenizer_core import Token

MAINTAINED = ("COUNT", "SUM", "AVG", "MEAN", "MIN", "MAX")
OWN_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "POSITION", "OVERLAY")
WITH_UNIT = ("DATEADD", "DATE_ADD", "TIMESTAMPADD", "DATEDIFF", "DATE_DIFF", "TIMESTAMPDIFF")
BIT_OPERATORS = (TokenType.PIPE, TokenType.CARET, TokenType.AMP)
"""From the one that binds least."""
COMPARISONS = {**SparkParser.EQUALITY, **SparkParser.COMPARISON}
ESCAPE = re.compile(
    r"\\([01][0-7]{2})|\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\(.)|(''|\"\")", re.DOTALL
)
ESCAPED = {
    "0": "\0",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "Z": "\x1a",
    "%": r"\%",
    "_": r"\_",
}


def string_value(literal: str) -> str:
    """The value of a string literal, given with its quotes, as Spark reads it."""
    quote = literal[0]

    def one(found: re.Match[str]) -> str:
        octal, short, long, letter, doubled = found.groups()
        if octal:
            return chr(int(octal, 8))
        if short or long:
            return chr(int(short or long, 16))
        if doubled:
            return quote if doubled[0] == quote else doubled
        return ESCAPED.get(letter, letter)

    return ESCAPE.sub(one, literal[1:-1])


def _with_unit(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    """`dateadd(DAY, 1, d)`: the first of three arguments is a word, not a column."""

    def build(arguments: list[exp.Expr]) -> exp.Expr:
        first = arguments[0] if len(arguments) == 3 else None
        if isinstance(first, exp.Column) and not first.table and not first.this.quoted:
            arguments = [exp.var(first.name), *arguments[1:]]
        return exp.Anonymous(this=name, expressions=arguments)

    return build


class Verbatim(Spark):
    """Spark SQL whose function calls and strings stay as they are written."""

    class Tokenizer(Spark.Tokenizer):
        """Reads `''` within a string as one quote, as Spark does since version 4."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

        def tokenize(self, sql: str) -> list[Token]:
            """The tokens, with the values of strings and the meaning of WINDOW worked out here."""
            tokens = super().tokenize(sql)
            for token, following in zip_longest(tokens, tokens[1:]):
                if token.token_type == TokenType.STRING:
                    token.text = string_value(sql[token.start : token.end + 1])
                called = following is not None and following.token_type == TokenType.L_PAREN
                if token.token_type == TokenType.WINDOW and called:
                    token.token_type = TokenType.VAR  # the function, wherever it stands
            return tokens

    class Parser(PipeParser):
        """Builds `exp.Anonymous` for every call that it has no need to understand."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {
            **{n: SparkParser.FUNCTIONS.get(n, exp.Avg.from_arg_list) for n in MAINTAINED},
            **{name: _with_unit(name) for name in WITH_UNIT},
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: SparkParser.FUNCTION_PARSERS[name] for name in OWN_SYNTAX
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
        }
        SUPPORTS_TABLE_QUERY: ClassVar[bool] = True
        COLON_IS_VARIANT_EXTRACT: ClassVar[bool] = True
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}

        def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
            """Comparisons bind alike, from the left, and before BETWEEN, IN, LIKE and IS."""
            this = self._parse_bitwise()
            while self._match_set(COMPARISONS):
                kind, comments = COMPARISONS[self._prev.token_type], self._prev_comments
                this = self._build_predicate(kind, this, self._parse_bitwise(), comments=comments)
            found = self._parse_range(this, parse_is=True) if parse_is else this
            if found is not this and self._curr and self._curr.token_type in COMPARISONS:
                self.raise_error("a comparison behind a condition, which wants parentheses")
            return found

        def _parse_bitwise(self) -> exp.Expr | None:
            """Operators on bits bind as Spark's do: shifts first, then `&`, `^`, `|`."""
            return self._parse_bits(BIT_OPERATORS)

        def _parse_bits(self, operators: tuple[TokenType, ...]) -> exp.Expr | None:
            if not operators:
                return self._parse_shift()
            weakest, *others = operators
            this = self._parse_bits(tuple(others))
            while self._match(weakest):
                right = self._parse_bits(tuple(others))
                this = self.expression(self.BITWISE[weakest](this=this, expression=right))
            return this

        def _parse_shift(self) -> exp.Expr | None:
            this = self._parse_concatenation()
            while True:
                if self._match_pair(TokenType.LT, TokenType.LT):
                    name = "SHIFTLEFT"
                elif self._match_pair(TokenType.GT, TokenType.GT):
                    name = "SHIFTRIGHTUNSIGNED" if self._match(TokenType.GT) else "SHIFTRIGHT"
                else:
                    return this
                arguments = [this, self._parse_concatenation()]
                this = exp.Anonymous(this=name, expressions=arguments)

        def _parse_concatenation(self) -> exp.Expr | None:
            this = self._parse_term()
            while self._match(TokenType.DPIPE):
                this = self.expression(exp.DPipe(this=this, expression=self._parse_term()))
            return this

        def _replace_lambda(
            self, node: exp.Expr | None, expressions: list[exp.Expr]
        ) -> exp.Expr | None:
            """Variables are compared without regard to case, like all names."""
            variables = {each.name.lower(): each.name for each in expressions}
            for column in node.find_all(exp.Column) if node else ():
                first = column.parts[0]
                first.set("this", variables.get(first.name.lower(), first.name))
            return super()._replace_lambda(node, expressions)

        def _build_json_extract(
            self, this: exp.Expr | None, path_parts: list[Any]
        ) -> tuple[exp.Expr | None, list[Any]]:
            """`v:a.b[0]` is the part of a VARIANT at that path, itself a VARIANT."""
            if len(path_parts) < 2:
                return this, path_parts
            path = "$" + "".join(map(_step, path_parts[1:]))
            arguments = [this, exp.Literal.string(path), exp.Literal.string("variant")]
            found = exp.Anonymous(this="VARIANT_GET", expressions=arguments)
            return found, [exp.JSONPathRoot()]


def _step(part: exp.Expr) -> str:
    """A step of the path of a VARIANT."""
    if isinstance(part, exp.JSONPathSubscript):
        return f"[{part.this}]"
    return "['" + str(part.this).replace("'", "\\'") + "']"
