"""A pipeline as a value: everything that `pipeline.yaml` and the views' front matter can say.

    Pipeline(
        name="shop",
        sources=[Source("orders", "id BIGINT, amount DECIMAL(12,2)", primary_key=["id"])],
        views=[View("totals", "SELECT SUM(amount) AS total FROM orders", owners=["team:sales"])],
    )

Names are those of the files. What can't be a pipeline can't be made: the constructors raise the
`IvmError` that the files would get. Nothing here needs Spark or Dagster.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from ivm_core import IvmError, UserError
from ivm_core.api.arguments import key_columns, recursion_limits
from ivm_core.api.outline import ViewText, outline_views
from ivm_core.api.places import expanded, names_store
from ivm_core.api.table_schema import table_schema
from ivm_core.engine.requiring import checked_requirement
from ivm_core.model.names import check_relation_name
from ivm_core.model.schema import Schema, parse_schema
from ivm_core.plan.recursion import Limits
from tideview.resources.freshness_rules import check_freshness
from tideview.resources.view_declaring import declare_views

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ivm_core import IncrementalFlow
    from ivm_core.api.expected_columns import ExpectedColumns

Severity = Literal["critical", "warning", "info"]
ChangedViews = Literal["alter", "refuse"]
CheckName = Literal["determinism", "replay_equality", "certificate_chain", "expectations"]
CHECKS: tuple[CheckName, ...] = (
    "determinism",
    "replay_equality",
    "certificate_chain",
    "expectations",
)
RESERVED = tuple(name for name in CHECKS if name != "expectations")
"""Checks that every view may have, and whose names no expectation takes."""


@dataclass(frozen=True)
class Expectation:
    """One of Great Expectations: its type, such as `expect_column_to_exist`, and arguments."""

    type: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    severity: Severity = "critical"
    name: str = ""
    """What its check is called; empty: a name made from type and column."""
    where: str = field(default="", compare=False)


def refuse_taken_names(expectations: Sequence[Expectation], where: Callable[[int], str]) -> None:
    """`UserError` for one whose name is that of another check; `where` says where the nth is."""
    taken = set[str](RESERVED)
    for number, each in enumerate(expectations):
        if each.name in taken:
            raise UserError(
                f"another check of the view is called {each.name}",
                where=where(number),
                fix="give the expectation a name of its own, or none",
            )
        if each.name:
            taken.add(each.name)


@dataclass(frozen=True)
class CheckPolicy:
    """Which checks a view has, and which of them keep views downstream from running."""

    run: tuple[CheckName, ...] = CHECKS
    blocking: tuple[CheckName, ...] = ()
    complete_below: int = 100_000
    """Rows up to which `replay_equality` compares all of a view, and above which a shard."""
    shards: int = 16
    """Into how many shards of keys a larger view is cut; a tick's check compares one."""

    def __post_init__(self) -> None:
        """Lists become tuples."""
        object.__setattr__(self, "run", tuple(self.run))
        object.__setattr__(self, "blocking", tuple(self.blocking))


@dataclass(frozen=True)
class Freshness:
    """How old a view may be: since its last tick, or at a time of day."""

    fail_after: timedelta | None = None
    warn_after: timedelta | None = None
    cron: str = ""
    """A deadline instead: at these times the view is no older than `lookback`."""
    lookback: timedelta | None = None
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        """Refuse what Dagster would not take."""
        check_freshness(self)


@dataclass(frozen=True)
class Automation:
    """Dagster's own way to ask for ticks: `eager`, or `on_cron` with a time table."""

    kind: Literal["eager", "on_cron"]
    cron: str = ""
    timezone: str = "UTC"


@dataclass(frozen=True)
class Schedules:
    """Time tables in cron's notation; empty: none."""

    tick: str = ""
    replay: str = ""
    """The complete comparison of all views, usually at night."""
    maintenance: str = ""
    """Compaction, checkpoint, retention."""
    timezone: str = "UTC"


@dataclass(frozen=True)
class SensorSpec:
    """The sensor that looks at the sources."""

    every: timedelta = timedelta(seconds=5)
    running: bool = True
    """Whether it is on without anybody switching it on."""


@dataclass(frozen=True)
class Retention:
    """What stays replayable: so many ticks, and those of so many days; None: all."""

    ticks: int | None = None
    days: float | None = None


@dataclass(frozen=True)
class RecursionSpec:
    """How far a tick of views that read each other, or themselves, may go before it fails."""

    max_iterations: int = Limits.iterations
    max_rows: int = Limits.rows

    def __post_init__(self) -> None:
        """Refuse what is no positive number."""
        recursion_limits(self.max_iterations, self.max_rows)


@dataclass(frozen=True)
class SparkSpec:
    """Which Spark the runs of a pipeline get; None and empty: the resource's own settings."""

    cores: int | None = None
    memory: str = ""
    fast_start: bool | None = None
    master: str = ""
    remote: str = ""
    """A Spark Connect server, `sc://host:port`."""
    connect: Literal["", "auto"] = ""
    """`auto`: a run finds this machine's Connect server or starts it, and leaves it running."""
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SourceSpec:
    """A source: an inbox that programs write to, or with `delta_table` someone else's table.

    Without `schema`, a followed table's own is read from its log.
    """

    name: str
    schema: Schema = None  # type: ignore[assignment]
    primary_key: tuple[str, ...] = ()
    description: str = ""
    delta_table: str = ""
    """A path or a URI; `${store}` is the store's folder."""
    inbox: str = ""
    """Where the inbox is; empty: in the store."""
    dedup: bool | Literal["consecutive"] = False
    """Whether the inbox drops a batch whose rows came before (right before)."""
    dedup_entries: int = 10_000
    owners: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    where: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        """Refuse what can't be a source; a schema may be given as text."""
        where = self.where or f"source {self.name}"
        check_relation_name(self.name, "source")
        if self.delta_table and (self.inbox or self.dedup):
            raise UserError(
                "a followed table has no inbox, and versions instead of batches",
                where=where,
                fix="leave inbox and dedup out, or delta_table",
            )
        given: object = self.schema
        if given is None and not self.delta_table:
            raise UserError(
                "a source needs a schema, or a Delta table that has one",
                where=where,
                fix="give schema: id BIGINT, name STRING; or delta_table: path",
            )
        if given is None and names_store(self.delta_table):
            raise UserError(
                f"which store {self.delta_table} is in is known to a run, not here",
                where=where,
                fix="give the table's schema, or a place without ${store}",
            )
        if given is None:
            object.__setattr__(self, "schema", table_schema(expanded(self.delta_table), where))
        elif isinstance(given, str):
            object.__setattr__(self, "schema", parse_schema(given, where))
        keys = key_columns(self.primary_key, self.schema, where)
        object.__setattr__(self, "primary_key", keys)
        object.__setattr__(self, "owners", tuple(self.owners))

    @property
    def is_inbox(self) -> bool:
        """Whether programs write to a table of the pipeline's own."""
        return not self.delta_table


@dataclass(frozen=True)
class ViewSpec:
    """A view: its SQL, what Dagster shows of it, and how it is checked.

    `reads`, `columns`, `fingerprint`, `circle` and `inputs` come from the SQL, once the view is
    part of a pipeline.
    """

    name: str
    sql: str
    description: str = ""
    owners: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    """Empty: the pipeline's name."""
    require: str = ""
    expectations: tuple[Expectation, ...] = ()
    freshness: Freshness | None = None
    checks: CheckPolicy | None = None
    """None: the pipeline's."""
    automation: Automation | None = None
    schema: str = ""
    """Columns with types of one that reads itself, where its branches can't tell them: `columns`
    of the front matter."""
    rules: str = ""
    """The rules that derive it, for a relation of a Datalog program."""
    expects: tuple[ExpectedColumns, ...] = ()
    """What such a program takes its inputs for."""
    where: str = field(default="", compare=False)
    reads: tuple[str, ...] = ()
    """Sources and views that it reads directly."""
    columns: tuple[str, ...] = ()
    fingerprint: str = ""
    """Identity of the parsed query and of its sources' columns: layout and comments don't count."""
    circle: tuple[str, ...] = ()
    """The views that it reads in a circle, itself among them; none for most."""
    inputs: tuple[str, ...] = ()
    """What it, or its circle, reads besides itself."""

    def __post_init__(self) -> None:
        """Refuse what can't be a view."""
        checked_requirement(self.require or None, self.where or f"view {self.name}")
        object.__setattr__(self, "owners", tuple(self.owners))
        object.__setattr__(self, "expectations", tuple(self.expectations))
        where = self.where or f"view {self.name}"
        refuse_taken_names(self.expectations, lambda _: where)

    @property
    def text(self) -> ViewText:
        """What can be said of it without the pipeline."""
        return ViewText(
            self.name,
            self.sql,
            self.where or f"view {self.name}",
            self.require,
            self.schema,
            is_derived=bool(self.rules),
            expects=self.expects,
        )


@dataclass(frozen=True)
class Problem:
    """Something of a pipeline that can't be used, and why; the rest of the pipeline goes on."""

    kind: Literal["pipeline", "source", "view"]
    name: str
    file: str
    error: IvmError

    @property
    def where(self) -> str:
        """The file, with line and key as far as they are known."""
        place = getattr(self.error, "where", "") or getattr(self.error, "position", "")
        return place if self.file in place else ", ".join(filter(None, (self.file, place)))

    def __str__(self) -> str:
        """The error's own words."""
        return str(self.error)


@dataclass(frozen=True)
class PipelineSpec:
    """Sources and views that belong together; views are put in order, each behind its inputs.

    Views that read each other in a circle stand one after the other.
    """

    name: str
    sources: tuple[SourceSpec, ...]
    views: tuple[ViewSpec, ...]
    description: str = ""
    store: str = ""
    """The folder of flow and inboxes; empty: a folder of the store resource's."""
    schedules: Schedules = Schedules()
    sensor: SensorSpec = SensorSpec()
    retention: Retention = Retention()
    recursion: RecursionSpec = RecursionSpec()
    spark: SparkSpec = SparkSpec()
    checks: CheckPolicy = CheckPolicy()
    changed_views: ChangedViews = "alter"
    """What a tick does to a view whose SQL means something else now."""
    owners: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    problems: tuple[Problem, ...] = ()
    """Sources and views that were left out, and the views that read them."""

    def __post_init__(self) -> None:
        """Refuse what can't be a pipeline: names, SQL that doesn't fit the sources."""
        check_relation_name(self.name, "pipeline")
        object.__setattr__(self, "sources", tuple(self.sources))
        object.__setattr__(self, "owners", tuple(self.owners))
        texts = {view.name: view.text for view in self.views}
        given = {view.name: view for view in self.views}
        if len(given) < len(self.views) or len({s.name for s in self.sources}) < len(self.sources):
            raise UserError("two sources or views have one name", where=f"pipeline {self.name}")
        outlines = outline_views({source.name: source.schema for source in self.sources}, texts)
        views = tuple(
            replace(
                given[each.name],
                sql=each.sql.strip(),
                reads=each.reads,
                columns=each.columns,
                fingerprint=each.fingerprint,
                circle=each.circle,
                inputs=each.inputs,
            )
            for each in outlines
        )
        object.__setattr__(self, "views", views)

    def checks_of(self, view: ViewSpec) -> CheckPolicy:
        """The view's own policy, else the pipeline's."""
        return view.checks or self.checks

    def sources_of(self, view: str) -> frozenset[str]:
        """The sources that a view reads, itself or through other views."""
        return self._sources_by_view[view]

    @cached_property
    def _sources_by_view(self) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for view in self.views:  # inputs first
            read = (found.get(name, frozenset([name])) for name in view.inputs)
            found[view.name] = frozenset().union(*read)
        return found

    def register_fed(self, flow: IncrementalFlow) -> None:
        """Declare everything in a flow whose sources are fed by `flow.tick(source, changes)`."""
        for source in self.sources:
            keys = list(source.primary_key)
            flow.register_source(source.name, source.schema.ddl, primary_key=keys)
        self.register_views(flow)

    def register_views(self, flow: IncrementalFlow) -> None:
        """Declare the views in a flow that has the sources; the same again is a no-op."""
        declare_views(self, flow, self.views)


Pipeline = PipelineSpec
Source = SourceSpec
View = ViewSpec
Recursion = RecursionSpec
