"""What `deltalake` says of an error, as far as it is for a reader."""

from __future__ import annotations

import re

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_BACKTRACE = re.compile(r"\n\s*0: ")


def said(error: BaseException) -> str:
    """The error and its causes, without colours, and without where in Rust it happened."""
    text = _COLOURS.sub("", str(error))
    return _BACKTRACE.split(text, maxsplit=1)[0].rstrip() or type(error).__name__
