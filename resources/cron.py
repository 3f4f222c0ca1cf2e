"""Time tables in cron's notation, looked at before Dagster gets them."""

from __future__ import annotations

import re

_FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_NICKNAMES = {"@hourly", "@daily", "@weekly", "@monthly"}
_PART = re.compile(r"(?P<from>\*|\w+)(-(?P<to>\w+))?(/(?P<step>[1-9]\d*))?")


def is_cron(text: str) -> bool:
    """Whether it says minute, hour, day, month and day of the week, each within its bounds."""
    if text in _NICKNAMES:
        return True
    fields = text.split()
    return len(fields) == len(_FIELDS) and all(
        _is_field(field, low, high) for field, (low, high) in zip(fields, _FIELDS, strict=True)
    )


def _is_field(field: str, low: int, high: int) -> bool:
    return all(_is_part(part, low, high) for part in field.split(","))


def _is_part(part: str, low: int, high: int) -> bool:
    found = _PART.fullmatch(part.lower())
    if found is None:
        return False
    if found["from"] == "*":
        return found["to"] is None
    first = _number(found["from"], high)
    last = _number(found["to"], high) if found["to"] is not None else first
    return first is not None and last is not None and low <= first <= last <= high


def _number(text: str, high: int) -> int | None:
    if text.isascii() and text.isdigit():
        return int(text)
    if high == 12 and text in _MONTHS:
        return _MONTHS.index(text) + 1
    return _DAYS.index(text) if high == 7 and text in _DAYS else None
