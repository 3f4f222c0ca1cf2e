"""Making and shrinking stories, without running them."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest
import sqlglot

from tests.fuzz.coverage import Coverage
from tests.fuzz.query_tree import Join, Query
from tests.fuzz.random_changes import Batches, random_source
from tests.fuzz.random_queries import QueryMaker
from tests.fuzz.shrinking import Shrinking, variants
from tests.fuzz.stories import Found, Story
from tests.fuzz.tree_walks import constructs, walk
from tests.sql.case_format import Case, ViewSpec, read_cases
from tests.sql.case_text import case_text
from tests.sql.source_model import SourceModel

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = range(40)


def story_of(seed: int, ticks: int = 4) -> Story:
    random = Random(seed)
    story = Story(f"seed {seed}", [random_source(random, f"t{i}") for i in range(2)])
    models = {source.name: SourceModel(source) for source in story.sources}
    tables = [
        (source.name, tuple((f.name, f.type.ddl) for f in source.schema), 8)
        for source in story.sources
    ]
    for number in range(3):
        query = QueryMaker(random, tables).view(1 + number * 2)
        story.views.append((f"v{number}", query))
        tables.append((f"v{number}", query.columns, 8))
    batches = Batches(random)
    for number in range(1, ticks + 1):
        tick = batches.tick(number, models)
        for change in tick.changes:
            models[change.source].apply(change)
        for model in models.values():
            model.check()
        story.ticks.append(tick)
    return story


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_gives_one_story_of_sql(seed: int) -> None:
    story = story_of(seed)
    assert story == story_of(seed)
    for _, query in story.views:
        sqlglot.parse_one(query.text, dialect="spark")


@pytest.mark.parametrize("seed", SEEDS[::8])
def test_a_variant_is_another_query_of_sql(seed: int) -> None:
    for _, query in story_of(seed).views:
        for variant in variants(query)[:20]:
            assert variant.text != query.text
            sqlglot.parse_one(variant.text, dialect="spark")


@pytest.mark.parametrize("seed", SEEDS[::10])
def test_a_story_is_read_back_as_it_was_written(seed: int, tmp_path: Path) -> None:
    story = story_of(seed)
    path = tmp_path / "case.sql"
    path.write_text(case_text(_case(story)), encoding="utf-8")
    (read,) = read_cases(path)
    assert case_text(read) == path.read_text(encoding="utf-8")
    assert [view.sql for view in read.views] == [query.text for _, query in story.views]


def test_together_the_seeds_have_every_kind_of_construct() -> None:
    found = {
        name for seed in SEEDS for _, query in story_of(seed).views for name in constructs(query)
    }
    kinds = {"INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "CROSS"}
    assert {f"{kind} JOIN" for kind in kinds} <= found
    assert {"UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"} <= found
    assert {"WITH", "ORDER BY LIMIT", "QUALIFY", "GROUP BY", "DISTINCT"} <= found
    assert {"LATERAL VIEW explode", "scalar subquery, correlated", "EXISTS, correlated"} <= found


def test_what_remains_is_what_fails() -> None:
    """As if every FULL JOIN failed from the moment on that t0 has a row with a NULL."""

    def tell(story: Story) -> None:
        joined = any(_has_full_join(query) for _, query in story.views)
        rows = [
            row for tick in story.ticks for c in tick.changes if c.source == "t0" for row in c.rows
        ]
        if joined and any(None in row for row in rows):
            raise Found(story, _case(story), AssertionError("differs"))

    told = []
    for seed in SEEDS[:12]:
        try:
            tell(story_of(seed))
        except Found as found:
            told.append(Shrinking(found, tell).run().story)
    assert told
    for story in told:
        ((_, query),) = [each for each in story.views if _has_full_join(each[1])]
        assert len(query.text) < 250, query.text
        (tick,) = story.ticks
        (row,) = [row for change in tick.changes for row in change.rows]
        assert None in row


def _has_full_join(query: Query) -> bool:
    return any(isinstance(node, Join) and node.kind == "FULL" for node in walk(query))


def _case(story: Story) -> Case:
    views = [ViewSpec(name, query.text) for name, query in story.views]
    return Case(story.title, story.sources, views, story.ticks)


def test_coverage_adds_up_and_goes_through_json() -> None:
    covered = Coverage(stories=1, combinations=3, constructs=Counter({"WITH": 2}))
    covered.refuse("too wide", "SELECT 1")
    total = Coverage()
    for _ in range(2):
        total += Coverage.of(json.loads(json.dumps(vars(covered))))
    assert (total.stories, total.combinations, total.constructs["WITH"]) == (2, 6, 4)
    assert "refused, too wide: SELECT 1" in total.told()
