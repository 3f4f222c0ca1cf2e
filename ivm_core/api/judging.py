"""Views judged before any of them is registered: what each would be, or why it can't be.

The flow that judges them lives in a folder of its own for as long as that takes.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ivm_core.api.outline import reading_order, views_in
from ivm_core.engine.core import Engine
from ivm_core.engine.declaring import declare_source
from ivm_core.engine.definitions import FED, SourceDefinition
from ivm_core.engine.explaining import explain_draft
from ivm_core.engine.explanation import WhyNot
from ivm_core.engine.history import History
from ivm_core.engine.layout import Layout
from ivm_core.engine.opening import FORMAT
from ivm_core.frontend.sql import parse_statement
from ivm_core.model.errors import IvmError, Refusal, UserError
from ivm_core.model.names import check_relation_name
from ivm_core.store.location import Location
from ivm_core.store.ticklog import TickLog

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from os import PathLike

    from ivm_core.api.declaration import DeclaredSource
    from ivm_core.api.outline import ViewText
    from ivm_core.engine.explanation import Explanation

REFUSED = "refused"
WRONG = "wrong"
NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class Judgement:
    """One view: its verdict, and what is wrong with it or could be better."""

    view: str
    where: str
    verdict: str
    """A verdict of `explain`, or `refused`, `wrong` (no SQL of these sources), `not judged`."""
    require: str
    why_not: tuple[WhyNot, ...] = ()
    error: str = ""
    explanation: Explanation | None = None

    @property
    def passes(self) -> bool:
        """Whether registering the view would."""
        return self.explanation is not None and not (self.require and self.why_not)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the explanation, in types that JSON has."""
        return {
            "view": self.view,
            "file": self.where,
            "verdict": self.verdict,
            "passes": self.passes,
            "require": self.require,
            "why_not": [each.to_dict() for each in self.why_not],
            "error": self.error,
        }


class Judge:
    """Judges views over given relations."""

    def __init__(self, engine: Engine) -> None:
        """Use `over_sources` or `over_flow`."""
        self._engine = engine

    def judge(self, texts: Mapping[str, ViewText]) -> Iterator[Judgement]:
        """The views in an order in which each can be made; wrong ones first."""
        left = dict(texts)
        failed: set[str] = set()
        for name, text in texts.items():
            try:
                check_relation_name(name, "view")
                parse_statement(text.sql, f"view {name}")
            except IvmError as error:
                failed.add(name)
                yield self._wrong(left.pop(name), error)
        while left:
            try:
                order = reading_order(left)
                break
            except UserError as error:
                circle = next(name for name, text in left.items() if text.where == error.where)
                failed.add(circle)
                yield self._wrong(left.pop(circle), error)
        else:
            return
        spelled = {name.casefold(): name for name in texts}
        with self._engine.catalog.drafting():
            for name in order:
                found = self._judged(left[name], failed & set(views_in(left[name], spelled)))
                if found.explanation is None:
                    failed.add(name)
                yield found

    def _judged(self, text: ViewText, missing: set[str]) -> Judgement:
        if missing:
            reads = f"it reads {', '.join(sorted(missing))}, which can't be made"
            return Judgement(text.name, text.where, NOT_JUDGED, text.require, error=reads)
        try:
            self._engine.catalog.refuse_taken(text.name)
            found = explain_draft(self._engine, text.name, text.sql, text.require)
        except Refusal as refusal:
            why_not = (WhyNot.of(REFUSED, refusal),)
            return Judgement(text.name, text.where, REFUSED, text.require, why_not, str(refusal))
        except UserError as error:
            return self._wrong(text, error)
        return Judgement(
            text.name, text.where, found.verdict, text.require, found.why_not, explanation=found
        )

    @staticmethod
    def _wrong(text: ViewText, error: IvmError) -> Judgement:
        return Judgement(text.name, text.where, WRONG, text.require, error=str(error))


@contextmanager
def over_sources(sources: Iterable[DeclaredSource]) -> Iterator[Judge]:
    """A judge of views over declared sources."""
    with _scratch() as engine:
        for each in sources:
            name = check_relation_name(each.name, "source")
            declare_source(engine, SourceDefinition(name, FED, each.schema, each.primary_key))
        yield Judge(engine)


@contextmanager
def over_flow(path: str | PathLike[str], replacing: Iterable[str]) -> Iterator[Judge]:
    """A judge of views over a flow's sources and those of its views that aren't replaced."""
    replaced = {name.casefold() for name in replacing}
    history = History()
    history.catch_up(TickLog.open(Layout(Location(path)).log, FORMAT).entries)
    with _scratch() as engine:
        for source in history.sources.values():
            engine.append("source", source.body)
        for node in history.shared.values():
            engine.append("shared", node.body)
        for name in history.live_views:
            if name.casefold() not in replaced:
                engine.append("view", history.views[name].body)
        yield Judge(engine)


@contextmanager
def _scratch() -> Iterator[Engine]:
    with tempfile.TemporaryDirectory(prefix="tideview-check-") as folder:
        engine = Engine(Location(folder), None)
        try:
            yield engine
        finally:
            engine.close()
