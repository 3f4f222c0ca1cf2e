"""A program and the steps that its facts go through; run against batch mode and the reference.

As text, one story is a program with comments of the form

    // step +edge(1, 2) -edge(2, 3)
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ivm_core import Session, run
from tests.datalog.reference import evaluate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from pyspark.sql import SparkSession

Operation = tuple[str, str, tuple[Any, ...]]
STEP = re.compile(r"^// step ?(.*)$", re.MULTILINE)
OPERATION = re.compile(r"([+-])(\w+)(\([^()]*\))")


@dataclass(frozen=True)
class Story:
    """What is inserted (+) and removed (-) before each step."""

    program: str
    steps: tuple[tuple[Operation, ...], ...]

    @property
    def text(self) -> str:
        lines = [self.program.strip()]
        for step in self.steps:
            shown = (f"{sign}{name}({', '.join(map(repr, fact))})" for sign, name, fact in step)
            lines.append(f"// step {' '.join(shown)}".rstrip())
        return "\n".join(lines) + "\n"

    @classmethod
    def parse(cls, text: str) -> Story:
        steps = []
        for line in STEP.findall(text):
            found = []
            for sign, name, fact in OPERATION.findall(line):
                value = ast.literal_eval(fact)
                found.append((sign, name, value if isinstance(value, tuple) else (value,)))
            steps.append(tuple(found))
        return cls(STEP.sub("", text).strip() + "\n", tuple(steps))


def play(story: Story, spark: SparkSession, *, with_batch: bool = False) -> Session:
    """Take every step, and compare all relations and all deltas; the session is left open.

    AssertionError, or what the session raises, says in which step they differ.
    """
    session = Session.create(story.program, spark=spark)
    try:
        facts: dict[str, set[tuple[Any, ...]]] = {name: set() for name in session.program.inputs}
        before: dict[str, set[tuple[Any, ...]]] = {name: set() for name in session.program.outputs}
        for number, step in enumerate(story.steps, 1):
            apply(session, facts, step)
            delta = session.step()
            expected = evaluate(story.program, facts)
            for name in session.program.outputs:
                where = f"step {number}, relation {name}"
                changed = [(row, 1) for row in expected[name] - before[name]]
                changed += [(row, -1) for row in before[name] - expected[name]]
                assert list(delta[name]) == sorted(changed), where
                assert list(session.snapshot(name)) == sorted(expected[name]), where
                before[name] = expected[name]
            if with_batch:
                batch = run(story.program, {n: list(rows) for n, rows in facts.items()}, spark)
                for name, rows in batch.items():
                    assert list(rows) == sorted(expected[name]), f"batch, step {number}, {name}"
    except BaseException:
        session.destroy()
        raise
    return session


def apply(
    session: Session, facts: dict[str, set[tuple[Any, ...]]], step: Sequence[Operation]
) -> None:
    for sign, name, fact in step:
        if sign == "+":
            session.insert(name, [fact])
            facts[name].add(fact)
        else:
            session.remove(name, [fact])
            facts[name].discard(fact)


def random_steps(
    random: Random, domains: dict[str, Sequence[Sequence[Any]]], count: int, size: int
) -> tuple[tuple[Operation, ...], ...]:
    """Steps that insert and remove facts of small domains, so that they meet often."""
    steps = []
    there: dict[str, list[tuple[Any, ...]]] = {name: [] for name in domains}
    for number in range(count):
        step: list[Operation] = []
        for name, columns in domains.items():
            for _ in range(size * 3 if not number else random.randint(0, size)):
                known = there[name]
                if number and known and random.random() < 0.5:
                    fact = known.pop(random.randrange(len(known)))
                    step.append(("-", name, fact))
                else:
                    fact = tuple(random.choice(values) for values in columns)
                    known.append(fact)
                    step.append(("+", name, fact))
        random.shuffle(step)
        steps.append(tuple(step))
    return tuple(steps)
