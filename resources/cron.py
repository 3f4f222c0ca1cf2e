"""Time tables in cron's notation, looked at before Dagster gets them."""

from __future__ import annotations

import re
from datetime import date, timedelta
from functools import cache
from itertools import pairwise

_FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
}
_SAMPLED = range(date(2024, 1, 1).toordinal(), date(2044, 1, 1).toordinal())
_PART = re.compile(r"(?P<from>\*|\w+)(-(?P<to>\w+))?(/(?P<step>[1-9]\d*))?")


def is_cron(text: str) -> bool:
    """Whether it says minute, hour, day, month and day of the week, each within its bounds."""
    if text in _NICKNAMES:
        return True
    fields = text.split()
    return len(fields) == len(_FIELDS) and all(
        _is_field(field, low, high) for field, (low, high) in zip(fields, _FIELDS, strict=True)
    )


@cache
def shortest_gap(cron: str) -> timedelta | None:
    """The shortest time from one time of a checked time table to its next; None for fewer."""
    fields = _NICKNAMES.get(cron, cron).split()
    minutes, hours, days, months, weekdays = (
        _numbers(field, *bounds) for field, bounds in zip(fields, _FIELDS, strict=True)
    )
    weekdays = {each % 7 for each in weekdays}
    is_either = len(days) < 31 and len(weekdays) < 7

    def is_on(day: date) -> bool:
        fits = (day.day in days, day.isoweekday() % 7 in weekdays)
        return day.month in months and (any(fits) if is_either else all(fits))

    times = sorted(60 * hour + minute for hour in hours for minute in minutes)
    found = [number for number in _SAMPLED if is_on(date.fromordinal(number))]
    gaps = [24 * 60 * (after - day) + times[0] - times[-1] for day, after in pairwise(found)]
    if found:
        gaps += [after - time for time, after in pairwise(times)]
    return timedelta(minutes=min(gaps)) if gaps else None


def _numbers(field: str, low: int, high: int) -> set[int]:
    """What a checked field of a time table stands for."""
    found: set[int] = set()
    for part in filter(None, map(_PART.fullmatch, field.lower().split(","))):
        step = int(part["step"] or 1)
        first = low if part["from"] == "*" else _number(part["from"], high) or 0
        is_open = part["from"] == "*" or (part["step"] and part["to"] is None)
        last = high if is_open else _number(part["to"] or part["from"], high) or 0
        found.update(range(first, last + 1, step))
    return found


def _is_field(field: str, low: int, high: int) -> bool:
    return all(_is_part(part, low, high) for part in field.split(","))


def _is_part(part: str, low: int, high: int) -> bool:
    found = _PART.fullmatch(part.lower())
    if found is None:
        return False
    if int(found["step"] or 1) > high - low:
        return False  # it would never come a second time: */90 is not every 90 minutes
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
