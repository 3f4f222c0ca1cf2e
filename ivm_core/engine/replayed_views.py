"""Which views a replay is about: all, or some of them and what they read.

Of some, ticks are run as if the others were not there: a source that only others read may be gone,
and a view that lags behind for it keeps no replay from beginning late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.engine.history import History

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ivm_core.engine.core import Engine
    from ivm_core.engine.definitions import ViewDefinition


class ReplayedViews:
    """The views of one replay."""

    def __init__(self, names: Iterable[str] | None = None) -> None:
        """None: all of them."""
        self._names = None if names is None else frozenset(names)
        self._compared = self._names

    @classmethod
    def of(cls, engine: Engine, views: Iterable[str] | None) -> ReplayedViews:
        """Views by the names that they have now; `UnknownName` for others.

        All, where names have changed: ticks know views by the names that they had then.
        """
        if views is None:
            return cls()
        names = [engine.catalog.view_name(view) for view in views]
        return cls(None if engine.history.renamed else names)

    def newest_whole_tick(self, engine: Engine, upto: int) -> int:
        """The newest tick, no later than one, after which none of them lagged behind; 0: none."""
        if self._names is None:
            return max((tick for tick in engine.history.whole_ticks if tick <= upto), default=0)
        then, found = History(), 0
        for entry in engine.log.entries:
            if entry.kind == "commit" and entry.tick > upto:
                break
            then.catch_up([entry])
            states = (then.states[name] for name in self._names if name in then.states)
            if entry.kind == "commit" and all(state.upto == entry.tick for state in states):
                found = entry.tick
        return found

    def begin(self, flow: Engine) -> None:
        """Take note of what they read where the replay begins: it is compared too."""
        if self._names is not None:
            self._compared = self._names | self._needed(flow)

    def there(self, flow: Engine) -> list[str] | None:
        """Those that there are in a flow; None for all."""
        return None if self._names is None else sorted(self._names & set(flow.history.views))

    def of_tick(
        self, flow: Engine, views: list[str], altered: list[ViewDefinition]
    ) -> tuple[list[str], list[ViewDefinition]]:
        """What of a recorded tick is run again: its views, and definitions that it changed."""
        if self._names is None:
            return views, altered
        needed = self._names | self._needed(flow)
        is_touched = any(each.name in needed for each in altered)
        return [name for name in views if name in needed], altered if is_touched else []

    def is_compared(self, name: str) -> bool:
        """Whether a view, or a node that views share, has the ticks that it had."""
        return self._compared is None or name in self._compared

    def _needed(self, flow: Engine) -> frozenset[str]:
        return frozenset(flow.catalog.order(self.there(flow) or ()))
