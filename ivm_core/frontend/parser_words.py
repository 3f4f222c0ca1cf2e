"""What sqlglot says of SQL that doesn't parse, without the names of its own parts."""

from __future__ import annotations

import re

_MISSING = re.compile(r"Required keyword: '\w+' missing for <class '[^']*'>")
_TOKEN = re.compile(r"<Token token_type: [^,]*, text: (.*?), line: \d+.*?>", re.DOTALL)
_END = "SENTINEL"


def parser_words(description: str, word: str) -> str:
    """The description of an error at a word of the text."""
    missing = f"something is missing at {word}" if word else "something is missing"
    text = _MISSING.sub(lambda _: missing, description)
    return _TOKEN.sub(lambda found: _named(found[1]), text)


def _named(token: str) -> str:
    return "the end of the text" if token == _END else token
