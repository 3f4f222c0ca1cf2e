"""Changing a view's SQL: what is the same, what breaks, what would change; then the swap.

A text that means the same changes nothing. Another one is prepared beside the view, as a view of
its own that readers don't see, and takes the view's place in one tick (`swapping`).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ivm_core.compile.stages import scans
from ivm_core.engine.alter_report import AlterReport
from ivm_core.engine.history import shadow_of
from ivm_core.engine.requiring import refuse_unless
from ivm_core.engine.sharing import over_shared
from ivm_core.engine.swapping import Difference, Swap
from ivm_core.frontend.recursion import has_recursion
from ivm_core.frontend.sql import parse_statement
from ivm_core.model.digest import Digest
from ivm_core.model.errors import DefinitionConflict, IvmError, Unsupported, UserError
from ivm_core.model.schema import parse_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.compile.program import ViewProgram
    from ivm_core.engine.core import Engine
    from ivm_core.engine.definitions import ViewDefinition
    from ivm_core.engine.history import History
    from ivm_core.engine.summary import StepSummary


def alter_views(
    engine: Engine, wanted: Mapping[str, str | None], *, swap: bool
) -> dict[str, AlterReport]:
    """Change the definitions of views, given inputs first; None for the text that is stored.

    Without `swap` the next definitions are prepared, and tick beside the views from then on.
    """
    engine.begin_writing()
    texts = {engine.catalog.view_name(name): sql for name, sql in wanted.items()}
    plan = _Plan(engine, texts)
    for definition in plan.texts:
        engine.append("text", {"view": definition.body})
    if not plan.nexts:
        return plan.reports
    plan.drop_other_shadows()
    found = plan.swap() if swap else plan.prepare()
    return {name: {**plan.reports, **found}[name] for name in texts}


class _Plan:
    """What a call asks for, checked as a whole before anything is done."""

    def __init__(self, engine: Engine, texts: Mapping[str, str | None]) -> None:
        self._engine = engine
        self._catalog, self._history = engine.catalog, engine.history
        self.reports: dict[str, AlterReport] = {}
        self.nexts: dict[str, ViewDefinition] = {}
        self.texts: list[ViewDefinition] = []
        """Views that get another text for the very same steps."""
        self._reads: dict[str, tuple[str, ...]] = {}
        self._texts = frozenset(texts)
        for view in (*self._history.views, *self._history.shared):
            self._catalog.program(view)  # as it is stored, before anything is drafted
        with self._catalog.drafting() as drafts:
            for view, sql in texts.items():
                found = self._next(view, sql)
                if found is None:
                    drafts.pop(view, None)
                    self._take_text(view, sql)
                    stored = self._history.views[view]
                    same = self._catalog.program(view).fingerprint
                    self.reports[view] = AlterReport(
                        view, True, same, same, columns=stored.schema, columns_before=stored.schema
                    )
                else:
                    self.nexts[view] = found
            self._refuse_broken(texts)
            self._catalog.order(self._catalog.downstream(self.nexts))

    def _next(self, view: str, sql: str | None) -> ViewDefinition | None:
        """The next definition of a view; None for one that means the same."""
        engine, stored = self._engine, self._history.views[view]
        if stored.shadow_of:
            raise UserError(
                f"{view} is prepared as the next definition of view {stored.shadow_of}",
                where=f"view {view}",
                fix=f"alter view {stored.shadow_of}",
            )
        text = stored.sql if sql is None else sql
        _refuse_recursion(stored, text)
        functions = engine.functions.called_in(text)
        shadow = self._history.shadow(view)
        if shadow is not None and shadow.sql == text and shadow.functions == functions:
            reads = self._catalog.program(shadow.name).reads
            if not self._reads_other_columns(reads):
                self._reads[view] = reads
                return self._as_prepared(view, shadow)
        before = self._catalog.program(view)
        drafted = self._catalog.draft(
            view,
            text,
            engine.analyser(view),
            functions,
            stored.require,
            folder=self._history.free_folder(view, for_shadow=True),
        )
        program = self._catalog.program(view)
        self._reads[view] = program.reads
        refuse_unless(stored.require, program, self._catalog.schemas())
        over_others = self._reads_other_columns(program.reads)
        drafted = over_shared(self._catalog, drafted, self._usable(), engine.analyser(view))
        same = program.fingerprint == before.fingerprint and functions == stored.functions
        if same and not (over_others and _has_other_types(program, before)):
            return None
        if shadow is not None and not over_others and _is_same(shadow, drafted):
            return self._as_prepared(view, shadow)
        return self._over_own_rows(drafted)

    def _as_prepared(self, view: str, shadow: ViewDefinition) -> ViewDefinition:
        """What stands prepared beside a view as its next definition: nothing is compiled."""
        definition = self._over_own_rows(
            replace(shadow, name=view, folder=shadow.name, shadow_of="")
        )
        self._catalog.redraft(self._catalog.program(shadow.name).called(view), definition)
        return definition

    def _over_own_rows(self, definition: ViewDefinition) -> ViewDefinition:
        """A next definition, whose rows go on in the view's own trace where its columns stay."""
        stored = self._history.views[definition.name]
        if definition.schema == stored.schema:
            return replace(definition, rows_folder=stored.rows_in)
        return definition

    def _usable(self) -> list[str]:
        """Shared nodes that read nothing that the call alters: they stay what they are."""
        nodes = self._history.shared
        return [n for n in nodes if self._texts.isdisjoint(self._catalog.program(n).reads)]

    def _take_text(self, view: str, sql: str | None) -> None:
        """The text is stored in place of the old one where that leaves every step as it is."""
        stored = self._history.views[view]
        if sql is None or sql == stored.sql:
            return
        before = self._catalog.program(view)
        after = self._catalog.again(view, self._engine.analyser(view), sql)
        if [each.text for each in after.steps] == [each.text for each in before.steps]:
            self.texts.append(replace(stored, sql=sql, types=after.types))

    def _reads_other_columns(self, reads: tuple[str, ...]) -> bool:
        views = self._history.views
        return any(
            self.nexts[read].schema != views[read].schema for read in reads if read in self.nexts
        )

    def _refuse_broken(self, texts: Mapping[str, str | None]) -> None:
        """DefinitionConflict that names the readers which can't go on with the new columns."""
        broken: dict[str, str] = {}
        for view, definition in self.nexts.items():
            stored = self._history.views[view]
            if definition.schema == stored.schema:
                continue
            for reader in self._catalog.readers(view):
                if reader not in self.nexts and reader not in broken:
                    reason = breaks(self._engine, reader, self.nexts)
                    if reason:
                        broken[reader] = reason
        if broken:
            first = next(iter(self.nexts))
            raise DefinitionConflict(
                "the new columns break views: "
                + "; ".join(f"{name}, because {reason}" for name, reason in broken.items()),
                where=", ".join(f"view {name}" for name in texts),
                fix="alter them in the same call: "
                f"flow.alter_view({first!r}, …, also={{{next(iter(broken))!r}: '…'}}); None for "
                "its text as it is",
                stored=self._history.views[first].schema,
                given=self.nexts[first].schema,
            )

    def drop_other_shadows(self) -> None:
        """What was prepared for these views before, and is not what they become now."""
        found = [self._history.shadow(view) for view in self.nexts]
        kept = {each.kept_in for each in self.nexts.values()}
        names = [each.name for each in found if each is not None and each.name not in kept]
        if names:
            self._engine.append("drop", {"names": names})

    def prepare(self) -> dict[str, AlterReport]:
        """Let the next definitions tick beside the views."""
        for view in self.nexts:
            others = set(self.nexts) & set(self._reads[view])
            if others:
                raise UserError(
                    f"view {view} reads {', '.join(sorted(others))}, which the call alters too",
                    where=f"view {view}",
                    fix="swap them together at once: leave swap=False out",
                )
        engine = self._engine
        for definition in self.nexts.values():
            shadow = shadow_of(definition)
            if shadow.name not in self._history.views:
                engine.append("view", shadow.body)
        shadows = [each.kept_in for each in self.nexts.values()]
        self._tick(hydrate=True, views=shadows)
        time = self._history.logical_time or datetime.now(UTC)
        nexts = list(self.nexts.values())
        relations = engine.relations(self._history.tick + 1, time, self._history.pins, nexts)
        states = self._history.states
        return {
            each.name: self._report(
                each,
                Swap(relations, each).difference(store=False),
                rows=(states[each.name].rows, states[each.kept_in].rows),
                digests=(states[each.name].digest, states[each.kept_in].digest),
                prepared=each.kept_in,
            )
            for each in nexts
        }

    def swap(self) -> dict[str, AlterReport]:
        """Swap all of them in one tick."""
        engine, states = self._engine, self._history.states
        behind = self._behind()
        if behind:
            self._tick(views=behind)
        before = {view: replace(states[view]) for view in self.nexts}
        old = {view: self._history.views[view] for view in self.nexts}
        summary = self._tick(hydrate=True, altered=list(self.nexts.values()))
        downstream = set(self._catalog.downstream(self.nexts)) - set(self.nexts)
        found = {}
        for view, definition in self.nexts.items():
            found[view] = self._report(
                definition,
                engine.differences[view],
                old=old[view],
                rows=(before[view].rows, states[view].rows),
                digests=(before[view].digest, states[view].digest),
                tick=summary.tick,
                downstream={
                    name: each.rows_out
                    for name, each in summary.views.items()
                    if name in downstream
                },
            )
        return found

    def _tick(self, **wanted: Any) -> StepSummary:
        """A tick in which nothing but definitions changes: neither sources nor the time."""
        time = self._history.logical_time
        return self._engine.tick({}, pull=False, logical_time=time, **wanted)

    def _behind(self) -> list[str]:
        """Readers that have missed ticks of a view whose columns change: they catch up first."""
        states, views = self._history.states, self._history.views
        changed = [each for each in self.nexts.values() if each.schema != views[each.name].schema]
        names = {each.name for each in changed}
        readers = [name for each in names for name in self._catalog.readers(each)]
        late = [name for name in readers if 0 < states[name].upto < self._history.tick]
        for node in self._history.shared:
            reads = names & set(self._catalog.program(node).reads)
            if reads and 0 < states[node].upto < self._history.tick:
                late += self._catalog.sharers(node)
        return [name for name in dict.fromkeys(late) if name not in self.nexts]

    def _report(
        self,
        definition: ViewDefinition,
        difference: Difference,
        *,
        rows: tuple[int, int],
        digests: tuple[str, str],
        old: ViewDefinition | None = None,
        **more: Any,
    ) -> AlterReport:
        stored = old or self._history.views[definition.name]
        zero = Digest.zero().hex
        return AlterReport(
            definition.name,
            False,
            stored.fingerprint,
            definition.fingerprint,
            columns_before=parse_schema(stored.schema).ddl,
            columns=parse_schema(definition.schema).ddl,
            rows_before=rows[0],
            rows=rows[1],
            inserted=difference.inserted,
            deleted=difference.deleted,
            sample=difference.sample,
            digest_before=digests[0] or zero,
            digest=digests[1] or zero,
            **more,
        )


def breaks(engine: Engine, reader: str, nexts: Mapping[str, ViewDefinition] | None = None) -> str:
    """Why a view can't go on as it is over the drafted relations; empty where it can.

    `nexts` are the next definitions of views.
    """
    before = engine.catalog.program(reader)
    try:
        after = engine.catalog.again(reader, engine.analyser(reader))
    except IvmError as error:
        return str(error).splitlines()[0]
    if after.schema.ddl != before.schema.ddl:
        return f"its columns would be ({after.schema.ddl})"
    same = after.plan.text == before.plan.text and not _has_other_types(after, before)
    if not same or _reads_other_types(engine.history, before, nexts or {}):
        return "columns that it reads have other types"
    return ""


def _reads_other_types(
    history: History, reader: ViewProgram, nexts: Mapping[str, ViewDefinition]
) -> bool:
    """Whether a column that it reads of a view comes in another type."""
    for scan in scans(reader.plan):
        if scan.relation in nexts:
            old = parse_schema(history.views[scan.relation].schema)
            new = parse_schema(nexts[scan.relation].schema)
            if any(old.field(each).type != new.field(each).type for each in scan.fields):
                return True
    return False


def _is_same(one: ViewDefinition, other: ViewDefinition) -> bool:
    """Whether two definitions of this version mean the same."""
    return one.fingerprint == other.fingerprint and one.functions == other.functions


def _refuse_recursion(stored: ViewDefinition, text: str) -> None:
    where = f"view {stored.name}"
    if stored.component or stored.recursions or has_recursion(parse_statement(text, where)):
        raise Unsupported(
            "altering a recursive view",
            position=where,
            reason="its next definition would read itself under two names while both tick",
            rewrite="register the new definition under another name, and drop this view",
        )


def _has_other_types(one: ViewProgram, other: ViewProgram) -> bool:
    """Whether Spark says otherwise of a node that both programs have."""
    return any(other.types.get(node, said) != said for node, said in one.types.items())
