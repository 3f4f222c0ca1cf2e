"""How refusals reach the reader of a run: our words first, the cause below."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from dagster import Failure, RetryPolicy

from ivm_core import IvmError, TickConflict

if TYPE_CHECKING:
    from collections.abc import Iterator

RETRIES = RetryPolicy(max_retries=2, delay=5)
"""For steps that write to a flow: only what waiting can cure is tried again."""


@contextmanager
def told_in_our_words() -> Iterator[None]:
    """Turn an `IvmError` into a `Failure` whose description is the error's own text.

    A run that finds another writer at work may be tried again; anything else would fail alike.
    """
    try:
        yield
    except IvmError as error:
        can_wait = isinstance(error, TickConflict)
        raise Failure(description=str(error), allow_retries=can_wait) from error
