"""Random programs against the reference; what ever failed is kept, and replayed first."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.datalog.random_programs import random_story
from tests.datalog.shrinking import FAILURES, keep, shrunk
from tests.datalog.stories import Story, play

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLE = 2
SEEDS = range(1000, 1060)


def told(story: Story, spark: SparkSession) -> str | None:
    """How a story fails; None if it holds."""
    try:
        play(story, spark).destroy()
    except Exception as error:
        return type(error).__name__
    return None


@pytest.mark.parametrize("file", sorted(FAILURES.glob("*.dl")), ids=lambda file: file.stem)
def test_what_failed_once_holds(file: object, spark: SparkSession) -> None:
    play(Story.parse(file.read_text()), spark, with_batch=True).destroy()  # type: ignore[attr-defined]


def test_a_random_program_is_what_the_reference_says(spark: SparkSession) -> None:
    play(random_story(Random(SAMPLE), 2), spark, with_batch=True).destroy()


@pytest.mark.nightly
@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs_are_what_the_reference_says(
    seed: int, spark: SparkSession, record_property: pytest.RecordProperty
) -> None:
    story = random_story(Random(seed), 4)
    how = told(story, spark)
    if how is not None:
        small, _ = shrunk(story, lambda each: told(each, spark))
        path = keep(small, f"seed_{seed}_{how.lower()}")
        pytest.fail(f"{how}; the smallest that fails so is kept in {path}:\n{small.text}")
    record_property("covered", f"random program {seed}: {len(story.steps)} steps")


def test_shrinking_finds_what_a_failure_needs() -> None:
    """With a failure that is known: no Spark."""
    story = random_story(Random(11), 4)
    story = replace(story, steps=(*story.steps, (("+", "e", (9, 9)), ("+", "g", (1,)))))
    small, way = shrunk(story, lambda each: "nine" if "e(9, 9)" in each.text else None)
    assert way == "nine"
    assert small.steps == ((("+", "e", (9, 9)),),)
    assert len(small.program.splitlines()) < len(story.program.splitlines())
    assert Story.parse(small.text).steps == small.steps
