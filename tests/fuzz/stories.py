"""A story is a flow with its ticks: made at random while it runs, or run again as it was.

Changes are made tick by tick, from what the sources hold by then, since a tick that Spark can't
evaluate must fail whole and leave everything as it was. What the text of a view leaves open is
taken from its normalised query; all else must be Spark's own answer to the text.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from ivm_core import IncrementalFlow
from ivm_core.model.errors import Refusal, SqlError, UnknownName
from tests.fuzz.coverage import Coverage
from tests.fuzz.random_changes import Batches, random_source
from tests.fuzz.random_queries import QueryMaker
from tests.fuzz.tree_walks import constructs, is_open
from tests.sql.case_format import Case, SourceSpec, Tick, ViewSpec
from tests.sql.recompute import Recompute
from tests.sql.runner import CaseRun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.fuzz.query_tree import Query

DEPTHS = (1, 2, 2, 3, 3, 4, 5)
LONGEST = 800
"""Characters of a view's text: what Spark takes to analyse its statements grows faster than it."""
VIEWS = 6
TICKS = 6
ATTEMPTS = 4


@dataclass
class Story:
    """Sources, views as trees, and ticks."""

    title: str
    sources: list[SourceSpec]
    views: list[tuple[str, Query]] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)
    may_raise: bool = False


class Found(Exception):
    """A story that doesn't hold, and what it shows."""

    def __init__(self, story: Story, case: Case, error: BaseException) -> None:
        super().__init__(f"{story.title}: {kind_of(error)}: {error}")
        self.story = story
        self.case = case
        self.error = error
        self.kind = kind_of(error)


def kind_of(error: BaseException) -> str:
    """What remains the same about a failure while its story gets smaller."""
    if isinstance(error, AssertionError):
        return "difference"
    name = type(error).__name__
    condition = str(error).split("]")[0].split("[")[-1]
    return f"{name} {condition}" if condition.isupper() and " " not in condition else name


class Telling:
    """A story on its way through a real flow."""

    def __init__(self, story: Story, flow: IncrementalFlow, spark: SparkSession) -> None:
        self.story = story
        self.coverage = Coverage(stories=1)
        for source in story.sources:
            flow.register_source(source.name, source.ddl, primary_key=source.primary_key or None)
        self.run = CaseRun(Case(story.title, story.sources), flow, Recompute(spark))
        self.run.recompute.load(self.run.models.values())

    def register(self, name: str, query: Query) -> bool:
        """Whether the view is there; if not, its refusal was counted."""
        spec = ViewSpec(name, query.text)
        try:
            self.run.register([spec])
        except Refusal as refusal:
            self.coverage.refuse(f"{type(refusal).__name__} {refusal.construct}", query.text)
            return False
        except (SqlError, UnknownName) as error:
            if self._spark_says(spec) is None:
                raise
            self.coverage.refuse(f"by Spark: {kind_of(error)}", query.text)
            return False
        said = None if is_open(query) else self._spark_says(spec)
        if is_open(query) or said is not None:
            if said is not None:
                self.coverage.refuse(f"not the view, but its text, by Spark: {said}", query.text)
            means = str(self.run.flow.explain(name).normalised)
            self.run.views[-1] = replace(spec, means=means)
            self.run.recompute.define([self.run.views[-1]], None)
        self.coverage.constructs.update(constructs(query))
        return True

    def _spark_says(self, view: ViewSpec) -> str | None:
        """Why Spark doesn't run the text, if it doesn't."""
        try:
            self.run.recompute.define([view], None)
            self.run.recompute.rows(view)
        except (PySparkException, Py4JJavaError) as error:
            return kind_of(error)
        return None

    def tick(self, tick: Tick) -> None:
        tick.fails = self._failure(tick) if self.story.may_raise else None
        self.run.tick(tick)
        if tick.fails is not None:
            self.coverage.failing_ticks += 1
            # back to what there is: nothing of the failed tick
            self.run.recompute.load(self.run.models.values())
            self.run.recompute.define(self.run.views, None)
            return
        for view in self.run.views:
            if not tick.only or view.name in tick.only:
                self.coverage.combinations += 1
                self.coverage.nonempty += bool(self.run.held[view.name])

    def _failure(self, tick: Tick) -> str | None:
        """What Spark raises on the sources as they would be, if it does."""
        after = {name: model.clone() for name, model in self.run.models.items()}
        for change in tick.changes:
            after[change.source].apply(change)
        self.run.recompute.load(after.values())
        self.run.recompute.define(self.run.views, None)
        said = set()
        for view in self.run.views:
            try:
                self.run.recompute.rows(view)
            except (PySparkException, Py4JJavaError) as error:
                said.add(str(error).split("]")[0].split("[")[-1])
        if not said:
            return None
        return said.pop() if len(said) == 1 else ""

    @contextmanager
    def finding(self) -> Iterator[None]:
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            there = {view.name for view in self.run.views}
            views = [ViewSpec(n, q.text) for n, q in self.story.views if n not in there]
            views = [*self.run.views, *views]
            case = Case(self.story.title, self.story.sources, views, self.story.ticks)
            raise Found(self.story, case, error) from error


def random_story(
    seed: int, folder: Path, spark: SparkSession, *, views: int = VIEWS, ticks: int = TICKS
) -> Coverage:
    """Make and run the story of a seed; Found if something doesn't hold."""
    random = Random(seed)
    story = Story(
        f"seed {seed}", [random_source(random, f"t{i}") for i in range(random.choice((2, 2, 3)))]
    )
    story.may_raise = seed % 8 == 7
    tables = [
        (source.name, tuple((f.name, f.type.ddl) for f in source.schema), 8)
        for source in story.sources
    ]
    with IncrementalFlow.open(folder / "flow", spark) as flow:
        telling = Telling(story, flow, spark)
        for number in range(views):
            for _ in range(ATTEMPTS):
                maker = QueryMaker(random, tables)
                maker.may_raise = story.may_raise
                maker.ties = number % 2 == 1
                name, query = f"v{number}", _sized(maker, random.choice(DEPTHS))
                story.views.append((name, query))
                with telling.finding():
                    if telling.register(name, query):
                        break
                story.views.pop()
            else:
                continue
            if random.random() < 0.4:
                tables.append((name, query.columns, 8))
        batches = Batches(random)
        for number in range(1, ticks + 1):
            tick = batches.tick(number, telling.run.models)
            if not story.may_raise and story.views and 1 < number < ticks and random.random() < 0.3:
                names = [name for name, _ in story.views]
                tick.only = tuple(random.sample(names, random.randint(1, len(names))))
            story.ticks.append(tick)
            with telling.finding():
                telling.tick(tick)
        with telling.finding():
            telling.run.read_back(check=False)
    return telling.coverage


def _sized(maker: QueryMaker, depth: int) -> Query:
    query = maker.view(depth)
    while len(query.text) > LONGEST:
        query = maker.view(depth)
    return query


def retell(story: Story, folder: Path, spark: SparkSession) -> None:
    """Run a story as it is; Found if it doesn't hold."""
    with IncrementalFlow.open(folder / "flow", spark) as flow:
        telling = Telling(story, flow, spark)
        with telling.finding():
            for name, query in story.views:
                telling.register(name, query)
            for tick in story.ticks:
                telling.tick(tick)
            telling.run.read_back(check=False)
