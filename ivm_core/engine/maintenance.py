"""Compaction by itself: small files are merged, state is folded.

State and inner nodes are only ever read as of the newest tick that their view has seen, so
their small files are folded. Rows of sources and views keep their ticks apart, so that `at=`,
`changes` and `replay` reach back.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ivm_core.engine.definitions import FED
from ivm_core.engine.stage_run import statements_of
from ivm_core.model.errors import TickConflict
from ivm_core.model.secrets import logger
from ivm_core.store.compaction import compact, merge_small, netted, small_files, sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from ivm_core.compile.program import ViewProgram
    from ivm_core.engine.definitions import SourceDefinition
    from ivm_core.engine.history import History
    from ivm_core.engine.layout import Layout
    from ivm_core.store.trace import Trace

SMALL_FILES = 32
"""A trace with more small files than this is compacted."""
DRIVER_FOLD_ROWS = 2_000_000
"""Above this many stored rows only what is in small files is folded."""

log = logger(__name__)


def maintain(layout: Layout, history: History, programs: Iterable[ViewProgram], epoch: int) -> bool:
    """Compact the traces that have grown many files; whether it came to the end of them.

    One that can't be compacted doesn't keep the others from it; it is told in the end.
    """
    failed: list[Exception] = []
    for job in _jobs(layout, history, programs, epoch):
        try:
            job()
        except TickConflict as conflict:
            log.warning("compaction is left for later: %s", conflict)
            return False
        except Exception as error:
            failed.append(error)
    if failed:
        raise failed[0]
    return True


def _jobs(
    layout: Layout, history: History, programs: Iterable[ViewProgram], epoch: int
) -> Iterator[Callable[[], None]]:
    for program in programs:
        yield partial(_maintain_view, layout, history, program, epoch)
    for source in history.sources.values():
        if source.kind == FED:
            yield partial(_maintain_source, layout, history, source)


def _maintain_source(layout: Layout, history: History, source: SourceDefinition) -> None:
    _merge(layout.source_rows(source.name, source.schema, source.primary_key), history)


def _maintain_view(layout: Layout, history: History, program: ViewProgram, epoch: int) -> None:
    upto = history.states[program.name].upto
    for stage in program.stages:
        relation = stage.stage.relation
        if stage.stage.keeps_rows:
            is_view = relation == program.name
            rows = layout.stage_rows(relation, stage.output)
            _merge(rows, history, None if is_view else netted)
        if stage.stage.aggregate is None:
            continue
        statements = statements_of(stage)
        state = layout.stage_state(relation, statements.state_schema)
        if small_files(state, history.committed) <= SMALL_FILES:
            continue
        if state.rows_estimate(history.committed) > DRIVER_FOLD_ROWS:
            _merge(state, history, statements.folded_state)
        else:
            compact(state, history.committed, upto, epoch, statements.folded_state)
            sweep(state)


def _merge(
    trace: Trace, history: History, fold: Callable[[pa.Table], pa.Table] | None = None
) -> None:
    if small_files(trace, history.committed) <= SMALL_FILES:
        return
    merge_small(trace, history.committed, fold)
    sweep(trace)
