"""What `deltalake` says of an error, as far as it is for a reader."""

from __future__ import annotations

import re

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def said(error: BaseException) -> str:
    """The first line, without colours: what follows is where in Rust it happened."""
    lines = _COLOURS.sub("", str(error)).strip().splitlines()
    return lines[0].rstrip() if lines else type(error).__name__
