"""What `deltalake` says of an error, as far as it is for a reader."""

from __future__ import annotations

import re

from ivm_core.model.secrets import harmless

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_BACKTRACE = re.compile(r"\n\s*0: ")


def said(error: BaseException) -> str:
    """The error and its causes, without colours, and without where in Rust it happened."""
    text = _COLOURS.sub("", str(error))
    return _BACKTRACE.split(text, maxsplit=1)[0].rstrip() or type(error).__name__


def cause(error: BaseException) -> BaseException | None:
    """The error to be shown as the cause of another, in the same words; None if it has a secret."""
    if len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (said(error),)
    return harmless(error)
