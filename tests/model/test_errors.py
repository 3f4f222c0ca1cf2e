"""Errors are tested by their text: it is what a user gets."""

from __future__ import annotations

import inspect
import pickle

import pytest

from ivm_core.model import errors
from ivm_core.model.errors import (
    BatchError,
    ConstraintViolation,
    CorruptStore,
    DefinitionConflict,
    InternalError,
    IvmError,
    NotIncremental,
    SqlError,
    TickConflict,
    TickFailed,
    Unsupported,
    UserError,
)

TEXTS = [
    (UserError("it is wrong", "here", "do that"), "it is wrong\n  where: here\n  fix: do that"),
    (UserError("it is wrong"), "it is wrong"),
    (
        SqlError("no such word: 'FORM'", "view v", line=2, column=7),
        "no such word: 'FORM'\n  where: line 2, column 7 of view v",
    ),
    (
        DefinitionConflict("view v is another", fix="x", stored="SELECT 1", given="SELECT\n 2"),
        "view v is another\n  stored: SELECT 1\n  given: SELECT\n     2\n  fix: x",
    ),
    (
        BatchError(
            "bad", "batch for source s", "f", column="c", expected="INT", got="str 'a'", row=0
        ),
        "bad\n  where: batch for source s\n  column: c\n  expected: INT\n  got: str 'a'\n"
        "  first offending row: 0\n  fix: f",
    ),
    (
        ConstraintViolation("keys exist", keys=tuple(range(12))),
        "keys exist\n  keys: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more",
    ),
    (
        TickFailed("tick 3 failed", view="v", cause="DIVIDE_BY_ZERO", fix="f"),
        "tick 3 failed\n  where: view v\n  cause: DIVIDE_BY_ZERO\n  fix: f",
    ),
    (
        TickConflict("tick 3 was written by another process"),
        "tick 3 was written by another process\n  fix: let one process write to a flow at a time; "
        "reopen the flow to continue after it",
    ),
    (
        Unsupported("LEFT JOIN", "line 1, column 20", "not yet", "UNION ALL of …"),
        "LEFT JOIN is not supported\n  where: line 1, column 20\n  reason: not yet\n"
        "  rewrite: UNION ALL of …",
    ),
    (
        NotIncremental("rand()", reason="differs"),
        "rand() can't be kept as a view\n  reason: differs",
    ),
    (InternalError("odd", "this"), "internal error: odd\n  please report: this"),
]


@pytest.mark.parametrize(("error", "text"), TEXTS, ids=lambda each: type(each).__name__)
def test_text(error: IvmError, text: str) -> None:
    assert str(error) == text
    assert str(pickle.loads(pickle.dumps(error))) == text


def test_every_error_is_in_one_family() -> None:
    families = (UserError, errors.Refusal, InternalError)
    for _, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, Exception) and kind is not IvmError:
            assert sum(issubclass(kind, family) for family in families) == 1, kind
    assert issubclass(CorruptStore, InternalError)
