"""Makes a failing story smaller for as long as it fails in the same way, and keeps it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ivm_core.frontend.datalog.program import checked_program
from ivm_core.model.errors import IvmError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.datalog.stories import Story

FAILURES = Path(__file__).with_name("failures")
SECONDS = 300.0


def shrunk(
    story: Story, failing: Callable[[Story], str | None], seconds: float = SECONDS
) -> tuple[Story, str]:
    """The smallest story found that fails as the first one does; `failing` says how, or None."""
    way = failing(story)
    assert way is not None
    until = time.monotonic() + seconds
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(story):
            if time.monotonic() > until:
                return story, way
            if _is_legal(candidate) and failing(candidate) == way:
                story, smaller = candidate, True
                break
    return story, way


def _smaller(story: Story) -> Iterator[Story]:
    """Fewer steps, fewer rules, fewer operations."""
    for place in range(len(story.steps)):
        yield replace(story, steps=story.steps[:place] + story.steps[place + 1 :])
    lines = story.program.splitlines()
    for place in reversed(range(len(lines))):
        yield replace(story, program="\n".join(lines[:place] + lines[place + 1 :]) + "\n")
    for number, step in enumerate(story.steps):
        for place in range(len(step)):
            fewer = step[:place] + step[place + 1 :]
            yield replace(story, steps=(*story.steps[:number], fewer, *story.steps[number + 1 :]))


def _is_legal(story: Story) -> bool:
    try:
        program = checked_program(story.program)
    except IvmError:
        return False
    given = {name for step in story.steps for _, name, _ in step}
    return bool(program.strata) and given <= set(program.inputs)


def keep(story: Story, name: str) -> Path:
    """Store a failure as data, to be replayed first from then on."""
    FAILURES.mkdir(exist_ok=True)
    path = FAILURES / f"{name}.dl"
    path.write_text(story.text)
    return path
