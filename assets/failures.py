"""How refusals reach the reader of a run: our words first, the cause below."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from dagster import Failure, RetryRequested

from ivm_core import IvmError, TickConflict
from tideview.assets.way_out import in_dagster

if TYPE_CHECKING:
    from collections.abc import Iterator

RETRIES = 2
SECONDS_BETWEEN = 5.0


@contextmanager
def told_in_our_words() -> Iterator[None]:
    """Turn an `IvmError` into a `Failure` whose description is its text, for Dagster's reader.

    A step that finds another writer at work waits and is tried again; anything else would fail
    alike. A retry policy of the step would do the same to a run that someone cancels, so it has
    none.
    """
    try:
        yield
    except IvmError as error:
        told = Failure(description=in_dagster(str(error)), allow_retries=False)
        if not isinstance(error, TickConflict):
            raise told from error
        told.__cause__ = error
        raise RetryRequested(max_retries=RETRIES, seconds_to_wait=SECONDS_BETWEEN) from told
