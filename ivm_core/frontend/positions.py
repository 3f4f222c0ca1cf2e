"""Where in the user's text a construct stands."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from ivm_core.frontend.dialect import Verbatim
from ivm_core.model.errors import position

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokenizer_core import Token

SYNONYMS = {"MINUS": "EXCEPT"}
AFTER_COLUMNS = frozenset(
    {"", ")", ";", "|>", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "LATERAL"}
    | {"UNION", "EXCEPT", "INTERSECT"}
)
"""Words, or the end, with which a SELECT goes on after its columns."""
NO_KEYWORDS = frozenset({TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER})


class Positions:
    """Finds words of a text that has been parsed, near a part of its tree."""

    def __init__(self, sql: str) -> None:
        """The text of one statement."""
        self._sql = sql
        self._words = [
            (SYNONYMS.get(word, word), token.start)
            for token in sqlglot.tokenize(sql, dialect=Verbatim)
            for word in _words_of(token)
        ]

    @property
    def word(self) -> str:
        """What the statement begins with."""
        return self._words[0][0] if self._words else "nothing"

    def find(self, tree: exp.Expr, phrase: str = "") -> str:
        """Line and column of a phrase at a tree, else of the tree's first token; may be empty.

        The nearest occurrence before the tree's first token counts, else the first of all.
        """
        anchor = _first_offset(tree)
        wanted = phrase.upper().split()
        places = [self._words[i][1] for i in range(len(self._words)) if self._is_at(i, wanted)]
        if anchor is not None:
            places = [place for place in places if place <= anchor][-1:] or places or [anchor]
        return self.at(places[0]) if places else ""

    def first(self, phrase: str) -> str:
        """Line and column of the first occurrence; empty where there is none."""
        return self.find(exp.Null(), phrase)

    def at(self, offset: int) -> str:
        """Line and column, counted from 1, of a place in the text."""
        return position(*self._spot(offset))

    def empty_select(self) -> tuple[int | None, int | None]:
        """Line and column of the first SELECT that is followed by what can't be a column."""
        words = [each for each in self._words if each[0] not in ("DISTINCT", "ALL")]
        for (word, offset), (after, _) in pairwise([*words, ("", len(self._sql))]):
            if word == "SELECT" and after in AFTER_COLUMNS:
                return self._spot(offset)
        return None, None

    def _spot(self, offset: int) -> tuple[int, int]:
        line = self._sql.count("\n", 0, offset) + 1
        return line, offset - self._sql.rfind("\n", 0, offset)

    def _is_at(self, index: int, wanted: Sequence[str]) -> bool:
        found = [word for word, _ in self._words[index : index + len(wanted)]]
        return bool(wanted) and found == list(wanted)


def _words_of(token: Token) -> list[str]:
    """The keywords of a token; a mark that is none for a string or a quoted name."""
    return ["`"] if token.token_type in NO_KEYWORDS else token.text.upper().split()


def _first_offset(tree: exp.Expr) -> int | None:
    """The earliest place that any node of the tree remembers."""
    return min((node.meta["start"] for node in tree.walk() if "start" in node.meta), default=None)
