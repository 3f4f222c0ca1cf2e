"""Makes a failing story smaller for as long as it fails in the same way, and keeps it as a case.

Large steps first: views that the failing one doesn't need, ticks, rows, then parts of the queries.
A story costs seconds to run and is made of a thousand choices; knowing what a view, a row and a
subquery is takes tens of runs where shrinking the choices themselves takes hundreds.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fuzz.query_tree import (
    Combined,
    Derived,
    Exploded,
    Expression,
    Join,
    Query,
    Select,
    Table,
    Top,
    With,
)
from tests.fuzz.stories import Found, Story
from tests.fuzz.tree_walks import children, closed, plain, relations, with_child
from tests.sql.bags import identity
from tests.sql.case_format import Case, Change, Tick
from tests.sql.case_text import case_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

FAILURES = Path(__file__).with_name("failures")
SECONDS = 300.0
"""After that what is there is kept."""


class Shrinking:
    """The smallest story so far that fails as the first one did."""

    def __init__(
        self, found: Found, tell: Callable[[Story], None], seconds: float = SECONDS
    ) -> None:
        """`tell` runs a story, and raises Found if it doesn't hold."""
        self.found = found
        self._tell = tell
        self._until = time.monotonic() + seconds
        self.runs = 0

    def run(self) -> Found:
        """Try what is smaller until nothing is, or the time is over."""
        while self._step():
            pass
        return self.found

    def _step(self) -> bool:
        before = self.found.story
        for smaller in (_fewer_views, _fewer_ticks, _fewer_rows, _smaller_queries, _fewer_sources):
            self._greedily(smaller)
        return self.found.story is not before and time.monotonic() < self._until

    def _greedily(self, smaller: Callable[[Story], Iterable[Story]]) -> None:
        """From the place of the last success on: the candidates behind it have moved up to there."""
        place = 0
        improved = True
        while improved:
            improved = False
            now = self.found.story
            for candidate in islice((c for c in smaller(now) if c != now), place, None):
                if time.monotonic() > self._until:
                    return
                if self._still_fails(candidate):
                    improved = True
                    break
                place += 1

    def _still_fails(self, story: Story) -> bool:
        self.runs += 1
        try:
            self._tell(story)
        except Found as found:
            if found.kind == self.found.kind:
                self.found = found
                return True
        return False


def keep(found: Found) -> Path:
    """Write the case among those that are replayed first."""
    FAILURES.mkdir(exist_ok=True)
    words = re.sub(r"\W+", "_", f"{found.story.title} {found.kind}".lower()).strip("_")
    path = FAILURES / f"{words}.sql"
    case = Case(
        f"{found.story.title}: {found.kind}", found.case.sources, found.case.views, found.case.ticks
    )
    path.write_text(case_text(case), encoding="utf-8")
    return path


# --- stories that are smaller in one way ---


def _fewer_views(story: Story) -> Iterator[Story]:
    names = [name for name, _ in story.views]
    for last in names:
        needed = {last}
        for name, query in reversed(story.views):
            if name in needed:
                needed |= relations(query) & set(names)
        if len(needed) < len(names):
            yield _with_views(story, [each for each in story.views if each[0] in needed])
    for name in names:
        if not any(name in relations(query) for _, query in story.views) and len(names) > 1:
            yield _with_views(story, [each for each in story.views if each[0] != name])


def _with_views(story: Story, views: list[tuple[str, Query]]) -> Story:
    names = {name for name, _ in views}
    ticks = [replace(t, only=tuple(n for n in t.only if n in names)) for t in story.ticks]
    return replace(story, views=views, ticks=ticks)


def _fewer_ticks(story: Story) -> Iterator[Story]:
    ticks = story.ticks
    for place in reversed(range(len(ticks))):
        if len(ticks) > 1:
            yield replace(story, ticks=ticks[:place] + ticks[place + 1 :])
    for place in range(len(ticks) - 1):
        one, other = ticks[place], ticks[place + 1]
        both = Tick(one.title, [*one.changes, *other.changes], only=other.only)
        yield replace(story, ticks=[*ticks[:place], both, *ticks[place + 2 :]])
    for place, tick in enumerate(ticks):
        if tick.only:
            yield replace(
                story, ticks=[*ticks[:place], replace(tick, only=()), *ticks[place + 1 :]]
            )


def _fewer_rows(story: Story) -> Iterator[Story]:
    """Without all that happens to one row, or to one key."""
    for source in story.sources:
        yield _without(story, source.name, None)
    for source in story.sources:
        places = len(source.primary_key)
        keys = {
            identity(row[:places] if places else row): None
            for tick in story.ticks
            for change in tick.changes
            if change.source == source.name
            for row in change.rows
        }
        if keys == {}:
            continue
        for key in keys:
            yield _without(story, source.name, key)
    for place, tick in enumerate(story.ticks):
        for number, change in enumerate(tick.changes):
            if any(weight > 1 for weight in change.weights):
                once = replace(change, weights=tuple(1 for _ in change.weights))
                changes = [*tick.changes[:number], once, *tick.changes[number + 1 :]]
                ticks = [*story.ticks[:place], replace(tick, changes=changes)]
                yield replace(story, ticks=ticks + story.ticks[place + 1 :])


def _without(story: Story, source: str, key: Any) -> Story:
    ticks = []
    for tick in story.ticks:
        changes: list[Change] = []
        for change in tick.changes:
            if change.source != source:
                changes.append(change)
                continue
            size = len(key) if key is not None else 0
            kept = [
                (row, weight)
                for row, weight in zip(change.rows, change.weights, strict=True)
                if key is not None and identity(row[:size]) != key
            ]
            if kept:
                rows, weights = zip(*kept, strict=True)
                changes.append(replace(change, rows=rows, weights=weights))
        ticks.append(replace(tick, changes=changes))
    return replace(story, ticks=ticks)


def _fewer_sources(story: Story) -> Iterator[Story]:
    used = {name for _, query in story.views for name in relations(query)}
    kept = [source for source in story.sources if source.name in used]
    if len(kept) < len(story.sources):
        ticks = [
            replace(t, changes=[c for c in t.changes if c.source in used]) for t in story.ticks
        ]
        yield replace(story, sources=kept, ticks=ticks)


def _smaller_queries(story: Story) -> Iterator[Story]:
    seen = {tuple(query.text for _, query in story.views)}
    # the failing view is the last, the others are what it reads
    for place, (name, query) in reversed(list(enumerate(story.views))):
        for smaller in variants(query):
            views = _closed(
                story, [*story.views[:place], (name, smaller), *story.views[place + 1 :]]
            )
            texts = tuple(each.text for _, each in views)
            if texts not in seen:
                seen.add(texts)
                yield replace(story, views=views)


def _closed(story: Story, views: list[tuple[str, Query]]) -> list[tuple[str, Query]]:
    catalog = {
        source.name: tuple((f.name, f.type.ddl) for f in source.schema) for source in story.sources
    }
    mended = []
    for name, query in views:
        query = closed(query, catalog)
        catalog[name] = query.columns
        mended.append((name, query))
    return mended


# --- queries that are smaller in one place ---


def variants(query: Any) -> list[Any]:
    """The tree made smaller in one place: places near the root first, then those that weigh most."""
    return [tree for _, _, tree in sorted(_variants(query), key=lambda each: each[:2])]


def _variants(node: Any) -> Iterator[tuple[int, int, Any]]:
    for smaller in _smaller(node):
        yield 0, len(smaller.text) - len(node.text), smaller
    for name, place, child in children(node):
        for depth, weight, variant in _variants(child):
            yield depth + 1, weight, with_child(node, name, place, variant)


def _smaller(node: Any) -> Iterator[Any]:
    if isinstance(node, Expression):
        if node.parts:
            yield plain(node.type)
        yield from (p for p in node.parts if getattr(p, "type", None) == node.type)
    elif isinstance(node, Combined):
        yield node.left
        yield node.right
        yield from _narrower(node)
    elif isinstance(node, With):
        yield node.main
        yield node.body
    elif isinstance(node, Top):
        yield node.query
        if node.offset:
            yield replace(node, offset=0)
        if len(node.order) > 1:
            yield replace(node, order=node.order[:1])
    elif isinstance(node, Join):
        yield node.left
        if not node.kind.endswith("LATERAL"):
            yield node.right
        if len(node.on) > 1:
            yield replace(node, on=node.on[:1])
    elif isinstance(node, Exploded):
        yield node.source
    elif isinstance(node, Derived):
        if isinstance(node.query, Select) and isinstance(node.query.source, Table):
            yield replace(node.query.source, alias=node.alias)
    elif isinstance(node, Select):
        yield from _smaller_select(node)


def _smaller_select(node: Select) -> Iterator[Query]:
    if isinstance(node.source, Derived):
        yield node.source.query
    if node.is_distinct:
        yield replace(node, is_distinct=False)
    if node.grouping:
        yield replace(node, grouping="")
    for name in ("where", "having", "qualify", "items", "keys"):
        held = getattr(node, name)
        for place in range(len(held)):
            if name != "items" or len(held) + len(node.keys) > 1:
                yield replace(node, **{name: held[:place] + held[place + 1 :]})


def _narrower(node: Combined) -> Iterator[Combined]:
    left, right = node.left, node.right
    if isinstance(left, Select) and isinstance(right, Select):
        lists = (left.items, right.items)
        if not left.keys and not right.keys and len(lists[0]) > 1:
            for place in range(len(lists[0])):
                one, other = (each[:place] + each[place + 1 :] for each in lists)
                yield replace(
                    node, left=replace(left, items=one), right=replace(right, items=other)
                )
