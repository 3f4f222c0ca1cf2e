"""A Datalog program as a flow: a source for each input relation, a view for each derived one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ivm_core.api.arguments import recursion_limits
from ivm_core.engine.altering import alter_views
from ivm_core.engine.renaming import drop_unread_sources, unread_sources
from ivm_core.frontend.datalog.parsing import too_deep
from ivm_core.frontend.datalog.program import Program, checked_program
from ivm_core.frontend.datalog.queries import relation_query, source_names
from ivm_core.model.errors import DatalogError, DefinitionConflict, IvmError
from ivm_core.operators.sql import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ivm_core.api.flow import IncrementalFlow
    from ivm_core.engine.core import Engine

ALTER = "keep it as it is, or begin another session elsewhere"


@dataclass(frozen=True)
class ProgramFlow:
    """What a flow has to have to be a program."""

    program: Program
    sources: Mapping[str, str]
    """The source of each input relation."""
    views: Mapping[str, str]
    """The SQL of each derived relation, lower strata first."""
    max_iterations: int | None = None
    max_rows: int | None = None

    @classmethod
    def of(
        cls, text: str, max_iterations: int | None = None, max_rows: int | None = None
    ) -> ProgramFlow:
        """From a program's text; `DatalogError` or `Unsupported` for what has no meaning."""
        program = checked_program(text)
        sources = source_names(program)
        views = {}
        for stratum in program.strata:
            for name in stratum.relations:
                try:
                    query = relation_query(program, name, sources, stratum.is_recursive)
                    views[name] = text_of(query)
                except RecursionError as error:
                    rule = max(program.rules_of(name), key=len)
                    raise too_deep(rule, f"a rule of {name}") from error
        return cls(program, sources, views, max_iterations, max_rows)

    def rules_of(self, relation: str, most: int = 5) -> str:
        """The rules that derive a relation, as they are written."""
        texts = self.program.rules_of(relation)
        more = [f"and {len(texts) - most} more"] if len(texts) > most else []
        return "\n".join([*texts[:most], *more])

    def declare(self, flow: IncrementalFlow, engine: Engine) -> None:
        """Register all of it; `DefinitionConflict` where the flow is another program.

        Inputs that a change of the program declared, and that ended before its rules came, go.
        """
        if flow.sources or flow.views:
            own = set(self.sources.values())
            unread = [name for name in unread_sources(engine) if name not in own]
            self._check_same_relations(flow, unread)
            if unread:
                drop_unread_sources(engine, unread)
        for name, source in self.sources.items():
            flow.register_source(source, self.program.relations[name].schema.ddl)
        try:
            self._register(flow, self.views)
        except DefinitionConflict as error:
            name = error.where.removeprefix("view ")
            raise DefinitionConflict(
                f"the session at this path derives {name} by other rules",
                where=f"relation {name}\n{self.rules_of(name)}" if name in self.views else "",
                fix="create the session with the program that it has, then call alter",
                stored=error.stored,
                given=error.given,
            ) from error

    def change_to(self, other: ProgramFlow, flow: IncrementalFlow, engine: Engine) -> None:
        """Make the flow another program; what can't be changed is refused before anything is."""
        self._check_change(other)
        added = {name: sql for name, sql in other.views.items() if name not in self.views}
        changed = {n: sql for n, sql in other.views.items() if self.views.get(n, sql) != sql}
        new = {n: source for n, source in other.sources.items() if n not in self.sources}
        try:
            for name, source in new.items():
                flow.register_source(source, other.program.relations[name].schema.ddl)
            alter_views(
                engine,
                changed,
                swap=True,
                schemas=other._columns_of_recursive(other.views),
                added=added,
                limits=recursion_limits(other.max_iterations, other.max_rows),
                dropped=[name for name in self.views if name not in other.views],
            )
        except IvmError:
            drop_unread_sources(engine, list(new.values()))
            raise

    def _columns_of_recursive(self, views: Iterable[str]) -> dict[str, str]:
        recursive = self._recursive
        return {
            name: self.program.relations[name].schema.ddl for name in views if name in recursive
        }

    def _register(self, flow: IncrementalFlow, views: Mapping[str, str]) -> None:
        recursive = self._columns_of_recursive(views)
        options: dict[str, Any] = {}
        if recursive:
            given = {"max_iterations": self.max_iterations, "max_rows": self.max_rows}
            options = {"schemas": recursive} | {k: v for k, v in given.items() if v is not None}
        if views:
            flow.register_views(views, **options)

    def _check_same_relations(self, flow: IncrementalFlow, unread: Sequence[str]) -> None:
        wanted = {*self.sources.values()} | {*self.views}
        there = {*flow.sources} - {*unread} | {*flow.views}
        if wanted != there:
            raise DefinitionConflict(
                "the flow at this path is another program",
                fix="create the session with the program that it has, then call alter",
                stored=", ".join(sorted(there)),
                given=", ".join(sorted(wanted)),
            )

    @property
    def _recursive(self) -> set[str]:
        strata = self.program.strata
        return {name for each in strata if each.is_recursive for name in each.relations}

    def _check_change(self, other: ProgramFlow) -> None:
        for name, source in self.sources.items():
            if other.sources.get(name) != source:
                became = "is no input" if name not in other.sources else "is also derived"
                raise DatalogError(
                    f"the input {name} {became} in the new program",
                    where=f"relation {name}",
                    fix=ALTER,
                    rule=self.program.relations[name].text,
                )
        for name, relation in self.program.relations.items():
            now = other.program.relations.get(name)
            if now is None:
                continue
            is_input = name in self.sources or name in other.sources
            if is_input and now.columns != relation.columns:
                raise DatalogError(
                    f"the input {name} has other columns in the new program",
                    where=f"relation {name}",
                    fix=ALTER,
                    rule=now.text,
                )
            if (name in self.views) != (name in other.views):
                raise DatalogError(
                    f"{name} is derived in one of the programs, and given in the other",
                    where=f"relation {name}",
                    fix=ALTER,
                    rule=now.text,
                )
