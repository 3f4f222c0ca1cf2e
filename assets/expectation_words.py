"""What Great Expectations and Spark say of an expectation that can't be evaluated, for a reader.

Both tell it with stack traces, of models of Great Expectations or of Java; the reader has a file
with an expectation in it, and wants to know which argument is wrong.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tideview.resources.pipeline_spec import Expectation

_CAUSE = re.compile(r"^Caused by: (?:\w+\.)*(\w+: .*?)(?=\n\s+at |\n\s+\.\.\. |\Z)", re.M | re.S)
_TAIL = re.compile(r"\n+(?:== DataFrame ==|JVM stacktrace:|\s+at ).*", re.S)
_WHOLE = "__root__"
"""What pydantic calls a model as a whole."""


def call(expectation: Expectation) -> str:
    """The expectation with its arguments."""
    arguments = ", ".join(f"{key}={value!r}" for key, value in expectation.kwargs.items())
    return f"{expectation.type}({arguments})"


def not_evaluated(expectation: Expectation, why: str) -> str:
    """That there is no verdict: of which expectation, why, and where it is written."""
    where = f"\n  where: {expectation.where}" if expectation.where else ""
    return f"{call(expectation)} can't be evaluated: {why}{where}"


def refused(expectation: Expectation, error: Exception) -> str:
    """Why Great Expectations doesn't take an expectation: the arguments, and what it says."""
    if not hasattr(error, "errors"):
        return reason(str(error)) or type(error).__name__
    told: dict[str, list[str]] = {}
    for each in error.errors():
        found = told.setdefault(str(each["loc"][0]), [])
        if each["msg"] not in found:
            found.append(each["msg"])
    if len(told) > 1:
        told.pop(_WHOLE, None)  # it only misses the argument that is wrong
    return "; ".join(_about(name, expectation.kwargs, found) for name, found in told.items())


def raised(info: Mapping[str, Any]) -> str:
    """Why an expectation was given up while it ran; it may tell several reasons."""
    parts = [info, *(each for each in info.values() if isinstance(each, dict))]
    texts = (str(each.get("exception_message") or "") for each in parts)
    return next((reason(each) for each in texts if each), "")


def reason(text: str) -> str:
    """The innermost cause of those that Java tells, else what is said before any stack."""
    causes = _CAUSE.findall(text)
    return _TAIL.sub("", str(causes[-1] if causes else text)).strip()


def _about(name: str, arguments: Mapping[str, Any], found: list[str]) -> str:
    said = ", ".join(found)
    if name == _WHOLE:
        return said
    return f"{name} is {arguments[name]!r}: {said}" if name in arguments else f"{name}: {said}"
