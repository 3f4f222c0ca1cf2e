"""Leaving the caller's active Spark session as it was."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def active_session_kept(otherwise: Callable[[], SparkSession | None]) -> Iterator[None]:
    """Put the active session back, or what `otherwise` gives where there was none.

    Spark makes the session of the newest `createDataFrame` the active one, and those are ours.
    """
    before = SparkSession.getActiveSession()
    try:
        yield
    finally:
        session = before or otherwise()
        if session is not None and SparkSession.getActiveSession() is not session:
            _activate(session)


def _activate(session: SparkSession) -> None:
    jvm = getattr(session, "_jvm", None)  # Spark Connect has none, and keeps its active session
    if jvm is None:
        return
    SparkSession._activeSession = session  # noqa: SLF001
    java = SparkSession._get_j_spark_session_class(jvm)  # noqa: SLF001
    java.setActiveSession(session._jsparkSession)  # noqa: SLF001
