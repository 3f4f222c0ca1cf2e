"""Secrets that this process was given, and texts without them.

Values of storage options that are keys, tokens or passwords are never stored; they are known here,
so that no error, note or log line repeats one that a library put into its own message. Neither
does any repeat a name and password that stand in a URI.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MASK = "***"
_SHORTEST = 4
_SECRET_OPTION = re.compile(r"key|secret|token|passw|credential|sas|signature|auth", re.IGNORECASE)
_IN_URI = re.compile(r"(?<=://)[^\s/@:'\"]*:[^\s/@'\"]+(?=@)")
_known: set[str] = set()


def keep_secret(options: Mapping[str, str]) -> None:
    """Remember the values that no text may repeat."""
    for name, value in options.items():
        if _SECRET_OPTION.search(name) and len(str(value)) >= _SHORTEST:
            _known.add(str(value))


def masked(text: str) -> str:
    """The text without secrets."""
    if "://" in text:
        text = _IN_URI.sub(MASK, text)
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def harmless(error: BaseException) -> BaseException | None:
    """The error, to be shown as the cause of another one; None for one that repeats a secret."""
    return error if masked(str(error)) == str(error) else None


class _Masking(logging.Filter):
    """Puts records together at once, without secrets.

    A traceback becomes part of the message: formatters that make JSON, as pyspark's does, look at
    `exc_info` only, which holds the error with its secret.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Every record passes."""
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + logging.Formatter().formatException(record.exc_info)
            record.exc_info = record.exc_text = None
        record.msg, record.args = masked(text), ()
        return True


def logger(name: str) -> logging.Logger:
    """A logger that tells no secrets."""
    found = logging.getLogger(name)
    if not any(isinstance(each, _Masking) for each in found.filters):
        found.addFilter(_Masking())
    return found
