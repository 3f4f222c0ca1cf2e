"""What others raise in the middle of a tick, or of writing, as errors of ours."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from ivm_core.model.errors import InternalError, IvmError, TickFailed, WriteFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ivm_core.store.location import Location


_OF_WRITING = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EACCES", "EPERM", "EIO")
    if hasattr(errno, name)
}


def unforeseen(error: Exception, place: Location) -> IvmError:
    """An error of a tick's evaluation."""
    if isinstance(error, IvmError):
        return error
    what = f"{type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.errno in _OF_WRITING:
        return unwritten(error, place)
    if isinstance(error, OSError | PySparkException):
        return TickFailed(f"the tick can't be evaluated: {what}", cause=type(error).__name__)
    return InternalError(f"a tick ended with {what}")


def unwritten(error: OSError, place: Location, left: str = "nothing was changed") -> WriteFailed:
    """What was to be written and was not; `left` is how the flow is left."""
    said = error.strerror or str(error)
    return WriteFailed(
        f"nothing more can be written to the flow, and {left}: {said}",
        where=str(error.filename or place.uri),
    )


@contextmanager
def written_in_steps(place: Location) -> Iterator[None]:
    """In here a place that takes nothing more is `WriteFailed`; steps before it are not undone."""
    try:
        yield
    except OSError as error:
        raise unwritten(error, place, "what was done until then stays so") from error
