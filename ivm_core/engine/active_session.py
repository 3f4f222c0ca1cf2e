"""Leaving the caller's active Spark session as it was."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from ivm_core.model.errors import SparkLost

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
    except SparkLost:
        raise  # there are no sessions any more
    except BaseException:
        _put_back(before or otherwise())
        raise
    _put_back(before or otherwise())


def _put_back(session: SparkSession | None) -> None:
    if session is not None and SparkSession.getActiveSession() is not session:
        _activate(session)


def _activate(session: SparkSession) -> None:
    # making a frame is the one public way to make a session the active one
    session.createDataFrame([], "nothing INT")
