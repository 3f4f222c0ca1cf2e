"""How refusals reach the reader of a run: our words first, the stack below."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from dagster import Failure

from ivm_core import IvmError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def told_in_our_words() -> Iterator[None]:
    """Turn an `IvmError` into a `Failure` whose description is the error's own text."""
    try:
        yield
    except IvmError as error:
        raise Failure(description=str(error)) from error
