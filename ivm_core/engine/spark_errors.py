"""Errors of statements as PySpark tells them, also those that it hands on as Java's."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import UnknownException, convert_exception

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.errors import PySparkException

DEEPEST = 10


@contextmanager
def told_by_pyspark() -> Iterator[None]:
    """PySpark's own exception for what is raised within.

    What goes wrong in a thread of Spark's own, as that of a broadcast, comes wrapped in
    exceptions of Java's; PySpark looks at the outermost alone.
    """
    try:
        yield
    except Py4JJavaError as error:
        found = _within(error)
        if found is None:
            raise
        raise found from None


def _within(error: Py4JJavaError) -> PySparkException | None:
    cause = error.java_exception
    for _ in range(DEEPEST):
        if cause is None:
            break
        found = convert_exception(cause)
        if not isinstance(found, UnknownException):
            return found
        cause = cause.getCause()
    return None
