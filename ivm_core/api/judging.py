"""Views judged before any of them is registered: what each would be, or why it can't be.

The flow that judges them lives in a folder of its own for as long as that takes.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ivm_core.api.expected_columns import check_expected
from ivm_core.api.outline import is_circle, reading_order, views_in
from ivm_core.api.recursive_outline import blamed
from ivm_core.engine.core import Engine
from ivm_core.engine.declaring import declare_source
from ivm_core.engine.definitions import FED, SourceDefinition
from ivm_core.engine.explaining import explain_component, explain_draft
from ivm_core.engine.explanation import WhyNot
from ivm_core.engine.history import History
from ivm_core.engine.layout import Layout
from ivm_core.engine.opening import FORMAT
from ivm_core.engine.recursion.declaring import Component
from ivm_core.frontend.sql import parse_statement
from ivm_core.model.errors import IvmError, Refusal, UserError
from ivm_core.model.names import check_relation_name
from ivm_core.plan.recursion import Limits
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
        spelled = {name.casefold(): name for name in texts}
        with self._engine.catalog.drafting() as drafts:
            for group in reading_order(left):
                own = {name: left[name] for name in group}
                missing = {
                    name: failed & set(views_in(text, spelled)) for name, text in own.items()
                }
                if is_circle(group, left):
                    judged = list(self._judged_together(own, set().union(*missing.values())))
                else:
                    judged = [self._judged(own[group[0]], missing[group[0]])]
                for found in judged:
                    if found.explanation is None:
                        failed.add(found.view)
                        drafts.pop(found.view, None)
                    yield found

    def _judged_together(
        self, texts: Mapping[str, ViewText], missing: set[str]
    ) -> Iterator[Judgement]:
        """Views that read each other: all of them can be made, or none."""
        if missing:
            for text in texts.values():
                yield self._judged(text, missing)
            return
        component = Component(
            {name: text.sql for name, text in texts.items()},
            {},
            {name: text.columns for name, text in texts.items() if text.columns},
            Limits(),
        )
        try:
            for text in texts.values():
                self._refuse(text, texts)
            require = {name: text.require for name, text in texts.items()}
            found = explain_component(self._engine, component, require)
        except (Refusal, UserError) as error:
            first = blamed(error, {name: f"view {name}" for name in texts})
            for name, text in texts.items():
                if name == first:
                    yield self._failed(text, error)
                else:
                    why = f"it and {first} read each other, and {first} can't be made"
                    yield Judgement(name, text.where, NOT_JUDGED, text.require, error=why)
            return
        for name, text in texts.items():
            yield self._explained(text, found[name])

    def _judged(self, text: ViewText, missing: set[str]) -> Judgement:
        if missing:
            reads = f"it reads {', '.join(sorted(missing))}, which can't be made"
            return Judgement(text.name, text.where, NOT_JUDGED, text.require, error=reads)
        try:
            self._refuse(text)
            found = explain_draft(self._engine, text.name, text.sql, text.require)
        except (Refusal, UserError) as error:
            return self._failed(text, error)
        return self._explained(text, found)

    def _refuse(self, text: ViewText, circle: Iterable[str] = ()) -> None:
        """A name that is taken, and relations that aren't what the text takes them for."""
        catalog = self._engine.catalog
        catalog.refuse_taken(text.name)
        if text.expects:
            check_expected(text.expects, circle, catalog.schemas(), {})

    @staticmethod
    def _explained(text: ViewText, found: Explanation) -> Judgement:
        return Judgement(
            text.name, text.where, found.verdict, text.require, found.why_not, explanation=found
        )

    def _failed(self, text: ViewText, error: IvmError) -> Judgement:
        if not isinstance(error, Refusal):
            return self._wrong(text, error)
        why_not = (WhyNot.of(REFUSED, error),)
        return Judgement(text.name, text.where, REFUSED, text.require, why_not, str(error))

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
    """A judge of views over a flow's sources and those of its views that aren't replaced.

    Views that read a replaced one in a circle go with it.
    """
    replaced = {name.casefold() for name in replacing}
    history = History()
    history.catch_up(TickLog.open(Layout(Location(path)).log, FORMAT).entries)
    with _scratch() as engine:
        for source in history.sources.values():
            engine.append("source", source.body)
        for node in history.shared.values():
            engine.append("shared", node.body)
        for name, view in history.views.items():
            shown = view.inside or name
            tied = {each.casefold() for each in (shown, *history.views[shown].component)}
            if shown in history.live_views and tied.isdisjoint(replaced):
                engine.append("view", view.body)
        yield Judge(engine)


@contextmanager
def _scratch() -> Iterator[Engine]:
    with tempfile.TemporaryDirectory(prefix="tideview-check-") as folder:
        engine = Engine(Location(folder), None)
        try:
            yield engine
        finally:
            engine.close()
