"""Publishing views as a program asks for it: arguments checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.engine.publishing import Publisher
from ivm_core.model.errors import UserError

if TYPE_CHECKING:
    from ivm_core.engine.core import Engine
    from ivm_core.engine.publishing import Publication

AUTO = "auto"


def publish(
    engine: Engine, views: tuple[str, ...], lag: int | str | None
) -> tuple[Publication, ...]:
    """Publish these views, or all that have rows; `lag` None leaves what was said before."""
    is_count = isinstance(lag, int) and not isinstance(lag, bool) and lag >= 0
    if lag is not None and lag != AUTO and not is_count:
        raise UserError(
            f"lag={lag!r} is not a number of ticks",
            where="lag=",
            fix=f"give 0 for every tick, how many it may be behind, or {AUTO!r}",
        )
    engine.refresh()
    history = engine.history
    chosen = views or tuple(name for name in history.live_views if history.states[name].upto)
    behind = lag if isinstance(lag, int) else None
    return tuple(Publisher(engine).publish(chosen, behind, sets_lag=lag is not None))
