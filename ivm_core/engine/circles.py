"""Which views a change of texts ties together, or no longer does.

A component is as it is by all its texts: views that read each other in a circle change together,
and so do those that did so before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.frontend.recursion import relations_named
from ivm_core.frontend.sql import parse_statement
from ivm_core.model.errors import UserError
from ivm_core.plan.recursion import components

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.engine.core import Engine


class Circles:
    """The views of a flow as they read each other once some have other texts."""

    def __init__(self, engine: Engine, texts: Mapping[str, str | None]) -> None:
        """None for the text that is stored; `UserError` for a circle with views not named here."""
        self._engine = engine
        self._given = texts
        live = dict.fromkeys((*engine.history.live_views, *texts))
        self._spelled = {name.casefold(): name for name in live}
        self._reads = {name: self._read_by(name) for name in live}
        groups = components(self._reads)
        circular = [group for group in groups if self.is_circle(group)]
        wanted = set(texts)
        while True:
            tied = [set(group) for group in circular if wanted & set(group)]
            tied += [set(self._component(name)) for name in wanted]
            more = wanted.union(*tied)
            if more == wanted:
                break
            wanted = more
        for group in circular:
            self._refuse_strangers(group)
        self.touched = [group for group in groups if wanted & set(group)]
        """What changes: groups of views that read each other, or one view; inputs first."""

    def is_circle(self, group: tuple[str, ...]) -> bool:
        """Whether a group is more than one view that doesn't read itself."""
        return len(group) > 1 or group[0] in self._reads[group[0]]

    def _component(self, view: str) -> tuple[str, ...]:
        stored = self._engine.history.views.get(view)
        return () if stored is None else stored.component

    def _read_by(self, view: str) -> set[str]:
        """The views that a view reads, itself or by what is inside of it."""
        views, catalog = self._engine.history.views, self._engine.catalog
        text = self._given.get(view)
        if text is not None:
            named = relations_named(parse_statement(text, f"view {view}"))
            return {self._spelled[name] for name in named if name in self._spelled}
        inner = [name for name, each in views.items() if each.inside == view]
        found = {read for name in (view, *inner) for read in catalog.program(name).reads}
        return found & set(self._spelled.values())

    def _refuse_strangers(self, group: tuple[str, ...]) -> None:
        """A view becomes recursive only where the call names it, or one that it is tied to."""
        named = [name for name in group if name in self._given]
        tied = {other for name in named for other in (name, *self._component(name))}
        strangers = [name for name in group if name not in tied]
        if named and strangers:
            raise UserError(
                f"views read each other in a circle: {', '.join(group)}",
                where=f"view {named[0]}",
                fix="let one of them read something else; or, if they are to be one recursion, "
                f"name all of them: also={{{strangers[0]!r}: None}}",
            )
