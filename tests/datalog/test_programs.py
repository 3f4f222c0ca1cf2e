"""Programs that people write, step by step against the reference and batch mode."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.datalog.programs import EVERYTHING, FACTS, PROGRAMS, together
from tests.datalog.stories import Story, play, random_steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEPS = 50


def test_programs_are_what_the_reference_and_batch_mode_say_after_every_step(
    spark: SparkSession,
) -> None:
    program = together(["types", "shortest paths"])
    steps = random_steps(Random(7), program.domains, 3, 2)
    with play(Story(program.text, steps), spark, with_batch=True) as session:
        replayed = session.flow.replay()
        assert replayed.equal
        assert {each.tick for each in replayed.deltas} == {1, 2, 3}


@pytest.mark.nightly
def test_rules_of_every_kind_are_kept(spark: SparkSession) -> None:
    random = Random(3)
    given = [("+", name, fact) for name, facts in FACTS.items() for fact in facts]
    steps = [tuple(given), ()]
    for _ in range(3):
        some = random.sample(given, 5)
        steps += [tuple(("-", *each[1:]) for each in some), tuple(some)]
    with play(Story(EVERYTHING, tuple(steps)), spark) as session:
        assert session.flow.replay().equal


@pytest.mark.nightly
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_what_batch_mode_says_after_each_of_many_steps(
    name: str, spark: SparkSession, record_property: pytest.RecordProperty
) -> None:
    program = PROGRAMS[name]
    steps = random_steps(Random(name), program.domains, STEPS, 3)
    with play(Story(program.text, steps), spark, with_batch=True) as session:
        assert session.epoch == STEPS
        assert session.flow.replay().equal
    record_property("covered", f"{name}: {STEPS} steps, each equal to reference and batch mode")
