"""Every error of Tideview, in three families, each with one text made here.

`UserError`: something given was wrong; it says what, where and how to put it right.
`Unsupported` and `NotIncremental`: legal SQL that is refused; construct, position, reason, rewrite.
`InternalError`: our bug, or damage we can't explain; it says what to report.

All of them pickle, and their text is put together when asked for.
"""

from __future__ import annotations

from typing import ClassVar

from ivm_core.model.secrets import masked


def _text(headline: str, **lines: object) -> str:
    """The headline, then one indented `label: value` line for each value that is given."""
    shown = [headline]
    for label, value in lines.items():
        if value is not None and value != "":
            indented = str(value).replace("\n", "\n    ")
            shown.append(f"  {label.replace('_', ' ')}: {indented}")
    return "\n".join(shown)


class IvmError(Exception):
    """The base of every error that Tideview raises; none of its parts repeats a secret."""

    def __init__(self, *parts: object) -> None:
        """Keep the parts."""
        super().__init__(*(masked(each) if isinstance(each, str) else each for each in parts))

    def __setattr__(self, name: str, value: object) -> None:
        """Texts are kept without secrets."""
        super().__setattr__(name, masked(value) if isinstance(value, str) else value)


# --- UserError -----------------------------------------------------------------------------------


class UserError(IvmError):
    """Wrong input: `what` is wrong, `where` it was found, how to `fix` it."""

    default_fix: ClassVar[str] = ""

    def __init__(self, what: str, where: str = "", fix: str = "") -> None:
        """Keep the three parts; an empty `fix` becomes the one usual for this kind of error."""
        self.what = what
        self.where = where
        self.fix = fix or self.default_fix
        super().__init__(what, where, fix)

    def __str__(self) -> str:
        """All parts as readable lines."""
        return _text(self.what, where=self.where, fix=self.fix)


class SqlError(UserError):
    """SQL or DDL that doesn't parse; `line` and `column` count from 1."""

    def __init__(
        self,
        what: str,
        where: str = "",
        fix: str = "",
        *,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        """Put line and column, where known, in front of `where`."""
        spot = position(line, column)
        super().__init__(what, f"{spot} of {where}" if spot and where else spot or where, fix)
        self.line = line
        self.column = column


class DatalogError(UserError):
    """A Datalog program that doesn't parse or has no meaning; shows the rule and its place."""

    def __init__(
        self,
        what: str,
        where: str = "",
        fix: str = "",
        *,
        line: int | None = None,
        column: int | None = None,
        rule: str = "",
    ) -> None:
        """Keep place and text of the rule; `where` is made of line and column if it is empty."""
        super().__init__(what, where or position(line, column), fix)
        self.line = line
        self.column = column
        self.rule = rule

    def __str__(self) -> str:
        """All parts as readable lines."""
        return _text(self.what, where=self.where, rule=self.rule, fix=self.fix)


class UnknownName(UserError):
    """A source, view, column or function that doesn't exist."""


class DuplicateName(UserError):
    """A name that is taken already."""

    default_fix = "choose another name"


class InvalidName(UserError):
    """A name that can't be a relation's or a column's."""


class DefinitionConflict(UserError):
    """A definition that differs from the stored one; shows both."""

    default_fix = "give the stored definition, or register the new one under another name"

    def __init__(
        self,
        what: str,
        where: str = "",
        fix: str = "",
        *,
        stored: str = "",
        given: str = "",
        broken: tuple[str, ...] = (),
    ) -> None:
        """Keep both definitions as text, and the views that can't go on with the new one."""
        super().__init__(what, where, fix)
        self.stored = stored
        self.given = given
        self.broken = broken

    def __str__(self) -> str:
        """All parts as readable lines."""
        return _text(
            self.what, where=self.where, stored=self.stored, given=self.given, fix=self.fix
        )


class BatchError(UserError):
    """A batch that doesn't fit its source: the column, what it takes, what came, the first row.

    `row` counts from 0 in the order in which the rows were given.
    """

    def __init__(
        self,
        what: str,
        where: str = "",
        fix: str = "",
        *,
        column: str = "",
        expected: str = "",
        got: str = "",
        row: int | None = None,
    ) -> None:
        """Keep what is known of the first offending value."""
        super().__init__(what, where, fix)
        self.column = column
        self.expected = expected
        self.got = got
        self.row = row

    def __str__(self) -> str:
        """All parts as readable lines."""
        return _text(
            self.what,
            where=self.where,
            column=self.column,
            expected=self.expected,
            got=self.got,
            first_offending_row=self.row,
            fix=self.fix,
        )


class ConstraintViolation(UserError):
    """Changes that contradict what the source holds; `keys` are the offending keys or rows."""

    shown_keys: ClassVar[int] = 10

    def __init__(
        self, what: str, where: str = "", fix: str = "", *, keys: tuple[object, ...] = ()
    ) -> None:
        """Keep all offending keys; the text shows the first ones and counts the others."""
        super().__init__(what, where, fix)
        self.keys = tuple(keys)

    def __str__(self) -> str:
        """All parts as readable lines."""
        shown = ", ".join(repr(key) for key in self.keys[: self.shown_keys])
        more = len(self.keys) - self.shown_keys
        keys = f"{shown} and {more} more" if more > 0 else shown
        return _text(self.what, where=self.where, keys=keys, fix=self.fix)


class TickConflict(UserError):
    """Another writer has this flow; nothing was done, or `fix` says that the tick had begun."""

    default_fix = "let one process write to a flow at a time; reopen the flow to continue after it"


class TickFailed(UserError):
    """A tick that evaluated to an error; it is recorded as aborted, the flow is as before."""

    default_fix = "correct the data or the view, then tick again"

    def __init__(
        self,
        what: str,
        where: str = "",
        fix: str = "",
        *,
        view: str = "",
        cause: str = "",
        row: str = "",
    ) -> None:
        """Keep the view, the cause and an offending row, where one was found, as text."""
        super().__init__(what, where or (f"view {view}" if view else ""), fix)
        self.view = view
        self.cause = cause
        self.row = row

    def __str__(self) -> str:
        """All parts as readable lines."""
        return _text(self.what, where=self.where, row=self.row, cause=self.cause, fix=self.fix)


class RecursionLimit(TickFailed):
    """A recursion that went further than it may: which view, which iteration, how many rows."""

    default_fix = (
        "give the recursion an end (UNION instead of UNION ALL in cycles, a bound in WHERE), or "
        "declare the views with a larger max_iterations= or max_rows="
    )


class WriteFailed(UserError):
    """The flow's place doesn't take what is to be written: it is full, or not to be written to."""

    default_fix = "make room, or let the place be written to; then do the same again"


class SparkLost(UserError):
    """Spark ended in the middle of something; what had begun is finished by the next start."""

    default_fix = "open the flow again in a new process: that finishes the tick if it had begun"


class NotAFlow(UserError):
    """A directory that holds something else than a flow."""

    default_fix = "open an empty or new directory, or one that a flow was made in"


class NewerFormat(UserError):
    """A flow written by a newer version of Tideview."""

    default_fix = "open it with that version of Tideview or a later one"


class OtherPlan(UserError):
    """A view that was registered by a version of Tideview which kept other nodes for it."""

    default_fix = (
        "open the flow with that version; or register its sources and views in a new flow, and "
        "tick that with the rows that the sources hold"
    )


class CheckpointError(UserError):
    """A checkpoint that can't be used, or a flow that none can be restored into."""

    default_fix = "restore from another checkpoint; this one and the flow are as they were"


class WrongThread(UserError):
    """A flow used by another thread than the one that opened it."""

    default_fix = "use the flow in the thread that opened it, or open it again in this one"


class ClosedFlow(UserError):
    """A flow used after `close()`."""

    default_fix = "open the flow again with IncrementalFlow.open"


class OutOfRange(UserError):
    """`at=` or `since=` outside of the ticks that are kept."""


class LogicalTimeError(UserError):
    """A logical time that is earlier than the last tick's, or not a time."""

    default_fix = "give a timezone-aware time that is not before the last tick's"


class HistoryLost(UserError):
    """Versions of a followed table that are gone (VACUUM, log retention) before they were read."""

    default_fix = (
        "register the table as a new source, and views over that one; views that don't read the "
        "old one go on with tick(views=[…])"
    )


class SourceReplaced(UserError):
    """A followed table that was dropped and made again, or whose schema changed."""

    default_fix = (
        "register the table that is there now as a new source, and views over that one; views that "
        "don't read the old one go on with tick(views=[…])"
    )


# --- Refused SQL ---------------------------------------------------------------------------------


class Refusal(IvmError):
    """Legal SQL that is refused: the construct, its position, the reason and a rewrite."""

    verdict: ClassVar[str] = "is refused"

    def __init__(
        self, construct: str, position: str = "", reason: str = "", rewrite: str = ""
    ) -> None:
        """Keep the four parts."""
        self.construct = construct
        self.position = position
        self.reason = reason
        self.rewrite = rewrite
        super().__init__(construct, position, reason, rewrite)

    def __str__(self) -> str:
        """All parts as readable lines."""
        return _text(
            f"{self.construct} {self.verdict}",
            where=self.position,
            reason=self.reason,
            rewrite=self.rewrite,
        )


class Unsupported(Refusal):
    """SQL that Tideview doesn't maintain (yet)."""

    verdict = "is not supported"


class NotIncremental(Refusal):
    """SQL whose result isn't determined by its inputs, so that no view can keep it."""

    verdict = "can't be kept as a view"


class CostsMore(NotIncremental):
    """A node that can't do with the change alone, in a view that is required to."""

    verdict = "is not incremental"


# --- InternalError -------------------------------------------------------------------------------


class InternalError(IvmError):
    """A bug of Tideview: what happened, and what to report."""

    default_report: ClassVar[str] = "the whole traceback, and the definitions of the flow's views"

    def __init__(self, what: str, report: str = "") -> None:
        """Keep both parts; an empty `report` becomes the usual one."""
        self.what = what
        self.report = report or self.default_report
        super().__init__(what, report)

    def __str__(self) -> str:
        """All parts as readable lines."""
        return _text(f"internal error: {self.what}", please_report=self.report)


class CorruptStore(InternalError):
    """Stored state that no version of Tideview writes."""

    default_report = (
        "the whole traceback, a listing of the flow's directory, and whether anything but "
        "Tideview has written to it or removed files from it"
    )
    repairable: ClassVar[str] = (
        "nothing, if something else has removed or changed the file: flow.repair() makes it again "
        "where the recorded ticks allow it"
    )
    """The report of damage that a repair finds."""


def in_our_words(error: Exception, where: str) -> IvmError:
    """The error itself if it is one of ours; else a bug, met at a place such as a file."""
    if isinstance(error, IvmError):
        return error
    return InternalError(f"{type(error).__name__}: {error}, in {where}")


def position(line: int | None, column: int | None) -> str:
    """`line 3, column 7`, as far as known; empty when nothing is."""
    parts = [
        f"{label} {value}"
        for label, value in (("line", line), ("column", column))
        if value is not None
    ]
    return ", ".join(parts)
