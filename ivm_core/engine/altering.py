"""Changing a view's SQL: what is the same, what breaks, what would change; then the swap.

A text that means the same changes nothing. Another one is prepared beside the view, as a view of
its own that readers don't see, and takes the view's place in one tick (`swapping`).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ivm_core.engine.alter_report import AlterReport
from ivm_core.engine.breaking import breaks, has_other_types
from ivm_core.engine.circles import Circles
from ivm_core.engine.history import shadow_of
from ivm_core.engine.recursion.declaring import (
    Component,
    draft_component,
    draft_inner,
    same_inner,
)
from ivm_core.engine.renaming import with_hidden
from ivm_core.engine.requiring import refuse_unless
from ivm_core.engine.sharing import over_shared
from ivm_core.engine.swapping import Difference, Swap
from ivm_core.model.digest import Digest
from ivm_core.model.errors import DefinitionConflict, TickFailed, Unsupported, UserError
from ivm_core.model.schema import parse_schema
from ivm_core.plan.recursion import Limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ivm_core.engine.core import Engine
    from ivm_core.engine.definitions import ViewDefinition
    from ivm_core.engine.summary import StepSummary


def alter_views(
    engine: Engine,
    wanted: Mapping[str, str | None],
    *,
    swap: bool,
    schemas: Mapping[str, str] | None = None,
    added: Mapping[str, str] | None = None,
    require: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    dropped: Sequence[str] = (),
) -> dict[str, AlterReport]:
    """Change the definitions of views; None for the text that is stored.

    Without `swap` the next definitions are prepared, and tick beside the views from then on.
    `schemas` has columns of recursive views. `added` are new views, which come in the same tick,
    and `require` has what some of them must be. `limits` are for recursions that have none yet.
    `dropped` are views that go in the same tick; nothing that stays reads them then.
    """
    engine.begin_writing()
    texts = {engine.catalog.view_name(name): sql for name, sql in wanted.items()}
    for name in added or {}:
        engine.catalog.refuse_taken(name)
    plan = _Plan(engine, {**texts, **(added or {})}, schemas or {}, require or {}, limits)
    if not swap:
        plan.refuse_to_prepare()
    for definition in plan.texts:
        engine.append("text", {"view": definition.body})
    gone = with_hidden(engine, dropped)
    if not plan.nexts:
        if gone:
            engine.append("drop", {"names": gone})
        return plan.reports
    found = plan.swap(gone) if swap else plan.prepare()
    plan.drop_other_shadows()
    return plan.reports | found


def drop_failed(engine: Engine, failure: TickFailed) -> str:
    """Drop what was prepared beside a view and has failed a tick; what to tell, if it was that."""
    prepared = engine.history.views.get(failure.view)
    if prepared is None or not prepared.shadow_of:
        return ""
    engine.begin_writing()
    engine.append("drop", {"names": [prepared.name]})
    return (
        f"what was prepared for view {prepared.shadow_of} is dropped, the view goes on as it is: "
        f"{failure.cause or failure.what}"
    )


class _Plan:
    """What a call asks for, checked as a whole before anything is done."""

    def __init__(
        self,
        engine: Engine,
        texts: Mapping[str, str | None],
        schemas: Mapping[str, str],
        require: Mapping[str, str],
        limits: Limits | None,
    ) -> None:
        self._engine = engine
        self._catalog, self._history = engine.catalog, engine.history
        self._schemas, self._require = schemas, require
        self._limits = limits or Limits()
        self.reports: dict[str, AlterReport] = {}
        self.nexts: dict[str, ViewDefinition] = {}
        """Inputs first; views that are new, and what is inside of next definitions, among them."""
        self.texts: list[ViewDefinition] = []
        """Views that get another text for the very same steps."""
        self._reads: dict[str, tuple[str, ...]] = {}
        for view in (*self._history.views, *self._history.shared):
            self._catalog.program(view)  # as it is stored, before anything is drafted
        for view in texts:
            self._refuse_unseen(view)
        groups = Circles(engine, texts)
        self._texts = {name: texts.get(name) for group in groups.touched for name in group}
        self._before = {
            v: self._catalog.program(v) for v in self._texts if v in self._history.views
        }
        with self._catalog.drafting() as self._drafts:
            for group in groups.touched:
                if groups.is_circle(group):
                    self._take_component(group)
                else:
                    self._take(group[0])
            self._refuse_broken(texts)
            self._catalog.order(self._catalog.downstream(self.nexts))

    @property
    def _swapped(self) -> dict[str, ViewDefinition]:
        """The next definitions of views that there are."""
        return {name: each for name, each in self.nexts.items() if not self._history.is_new(name)}

    def _refuse_unseen(self, view: str) -> None:
        """`UserError` for what is prepared beside a view, or inside of one."""
        stored = self._history.views.get(view)
        if stored is None or not (stored.shadow_of or stored.inside):
            return
        other = stored.shadow_of or stored.inside
        how = "prepared as the next definition of" if stored.shadow_of else "a recursion inside of"
        raise UserError(
            f"{view} is {how} view {other}", where=f"view {view}", fix=f"alter view {other}"
        )

    def _inside_reads_others(self, view: str) -> bool:
        """Whether the recursions inside of a view read columns that change."""
        inner = self._history.views[view].recursions.values()
        return any(self._reads_other_columns(self._catalog.program(name).reads) for name in inner)

    def _text(self, view: str) -> str:
        given = self._texts[view]
        return self._history.views[view].sql if given is None else given

    def _required(self, view: str) -> str:
        stored = self._history.views.get(view)
        return self._require.get(view, "") if stored is None else stored.require

    def _take(self, view: str) -> None:
        """The next definition of a view that doesn't read itself, or that it means the same."""
        engine, stored = self._engine, self._history.views.get(view)
        text = self._text(view)
        functions = engine.functions.called_in(text)
        shadow = self._history.shadow(view)
        if shadow is not None and shadow.sql == text and shadow.functions == functions:
            reads = self._catalog.program(shadow.name).reads
            if not self._reads_other_columns(reads):
                self._reads[view] = reads
                self._come_prepared(view, shadow)
                return
        recursions = None
        if stored is not None and not stored.component and not self._inside_reads_others(view):
            recursions = same_inner(engine, view, text)
        has_same_inner = recursions is not None
        if recursions is None:
            inner = stored.recursions.values() if stored is not None else ()
            limits = self._limits_of(self._history.views[name] for name in inner)
            recursions = draft_inner(engine, view, text, limits=limits)
            self.nexts |= {name: self._catalog.definition(name) for name in recursions.values()}
        free = self._history.free_folder(view, for_shadow=stored is not None)
        drafted = self._catalog.draft(
            view,
            text,
            engine.analyser(view),
            functions,
            self._required(view),
            folder="" if free == view else free,
            recursions=recursions,
        )
        program = self._catalog.program(view)
        refuse_unless(drafted.require, program, self._catalog.schemas())
        over_others = self._reads_other_columns(program.reads)
        if has_same_inner and stored is not None:
            before = self._before[view]
            same = program.fingerprint == before.fingerprint and functions == stored.functions
            if same and not (over_others and has_other_types(program, before)):
                self._keep([view], {view: recursions})
                return
        if not recursions:
            drafted = over_shared(self._catalog, drafted, self._usable(), engine.analyser(view))
        self._reads[view] = self._catalog.program(view).reads
        if shadow is not None and not over_others and _is_same(shadow, drafted):
            self._come_prepared(view, shadow)
        else:
            self._come(drafted)

    def _come_prepared(self, view: str, shadow: ViewDefinition) -> None:
        """Take what stands prepared beside a view: nothing is compiled."""
        self._come(replace(shadow, name=view, folder=shadow.name, shadow_of=""))
        program = self._catalog.program(shadow.name).called(view)
        self._catalog.redraft(program, self.nexts[view])

    def _take_component(self, group: tuple[str, ...]) -> None:
        """The next definitions of views that read each other, or that all mean the same."""
        engine, views = self._engine, self._history.views
        stored = {name: views[name] for name in group if name in views}
        was = {each.component for each in stored.values()}
        if len(was) == 1 and set(group) == set(*was):
            group = next(iter(was))
        columns = {
            name: each.schema
            for name, each in stored.items()
            if self._text(name).strip() == each.sql.strip()
        }
        draft_component(
            engine,
            Component(
                {name: self._text(name) for name in group},
                {name: self._required(name) for name in group},
                columns | {name: ddl for name, ddl in self._schemas.items() if name in group},
                self._limits_of(stored.values()),
            ),
        )
        programs = {name: self._catalog.program(name) for name in group}
        self._reads |= {name: program.reads for name, program in programs.items()}
        is_same = was == {group} and all(
            programs[name].fingerprint == self._before[name].fingerprint
            and self._catalog.definition(name).functions == each.functions
            for name, each in stored.items()
        )
        reads = tuple(read for each in programs.values() for read in each.reads)
        if is_same and not (
            self._reads_other_columns(reads)
            and any(has_other_types(programs[name], self._before[name]) for name in group)
        ):
            self._keep(group)
            return
        for name in group:
            self._come(self._catalog.definition(name))

    def _limits_of(self, views: Iterable[ViewDefinition]) -> Limits:
        """What of these goes farthest, they all go; what was given, where none is recursive."""
        kept = [Limits(*each.limits) for each in views if each.limits] or [self._limits]
        return Limits(max(each.iterations for each in kept), max(each.rows for each in kept))

    def _come(self, drafted: ViewDefinition) -> None:
        """Take a next definition; its rows go on where those of the view are, if they can."""
        stored = self._history.views.get(drafted.name)
        if stored is not None and drafted.schema == stored.schema:
            drafted = replace(drafted, rows_folder=stored.rows_in)
        self.nexts[drafted.name] = drafted

    def _keep(
        self, views: Sequence[str], recursions: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        """Leave views as they are, with the texts that were given for them."""
        for view in views:
            self._drafts.pop(view, None)
        for view in views:
            self._take_text(view, (recursions or {}).get(view))
            stored, same = self._history.views[view], self._before[view].fingerprint
            self.reports[view] = AlterReport(
                view, True, same, same, columns=stored.schema, columns_before=stored.schema
            )

    def _usable(self) -> list[str]:
        """Shared nodes that read nothing that the call alters: they stay what they are."""
        nodes = self._history.shared
        return [n for n in nodes if set(self._texts).isdisjoint(self._catalog.program(n).reads)]

    def _take_text(self, view: str, recursions: Mapping[str, str] | None) -> None:
        """The text is stored in place of the old one where that leaves every step as it is."""
        stored, sql = self._history.views[view], self._texts[view]
        if sql is None or sql == stored.sql:
            return
        before = self._before[view]
        analyser = self._engine.analyser(view)
        after = self._catalog.again(view, analyser, sql, recursions=recursions)
        if [each.text for each in after.steps] == [each.text for each in before.steps]:
            own = stored.recursions if recursions is None else recursions
            self.texts.append(replace(stored, sql=sql, types=after.types, recursions=own))

    def _reads_other_columns(self, reads: tuple[str, ...]) -> bool:
        views, nexts = self._history.views, self._swapped
        return any(nexts[read].schema != views[read].schema for read in reads if read in nexts)

    def _refuse_broken(self, texts: Mapping[str, str | None]) -> None:
        """DefinitionConflict that names the readers which can't go on with the new columns."""
        broken: dict[str, str] = {}
        swapped, views = self._swapped, self._history.views
        for view, definition in swapped.items():
            if definition.schema == views[view].schema:
                continue
            for reader in self._catalog.readers(view):
                named = views[reader].inside or reader
                if named not in swapped and named not in broken:
                    reason = breaks(self._engine, reader, swapped)
                    if reason:
                        broken[named] = reason
        if broken:
            first = next(iter(swapped))
            raise DefinitionConflict(
                "the new columns break views: "
                + "; ".join(f"{name}, because {reason}" for name, reason in broken.items()),
                where=", ".join(f"view {name}" for name in texts),
                fix="alter them in the same call: "
                f"flow.alter_view({first!r}, …, also={{{next(iter(broken))!r}: '…'}}); None for "
                "its text as it is",
                stored=self._history.views[first].schema,
                given=self.nexts[first].schema,
                broken=tuple(broken),
            )

    def refuse_to_prepare(self) -> None:
        """`Unsupported` for next definitions that can't tick beside their views."""
        for view, each in self.nexts.items():
            if each.component or each.recursions or self._history.is_new(view):
                raise Unsupported(
                    "preparing a recursive view beside the one that there is",
                    position=f"view {each.inside or view}",
                    reason="a recursion reads itself by its name, which the view has until it is "
                    "swapped",
                    rewrite="swap at once: leave swap=False out",
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
        new = [each for each in self.nexts.values() if each.kept_in not in self._history.views]
        for definition in new:
            engine.append("view", shadow_of(definition).body)
        shadows = [each.kept_in for each in self.nexts.values()]
        try:
            self._tick(hydrate=True, views=shadows)
        except TickFailed:
            if new:
                engine.begin_writing()
                engine.append("drop", {"names": [each.kept_in for each in new]})
            raise
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

    def swap(self, gone: Sequence[str] = ()) -> dict[str, AlterReport]:
        """Swap all of them in one tick, after which some others are gone."""
        engine, states = self._engine, self._history.states
        behind = self._behind()
        if behind:
            self._tick(views=behind)
        swapped = self._swapped
        before = {view: replace(states[view]) for view in swapped}
        old = {view: self._history.views[view] for view in swapped}
        try:
            summary = self._tick(hydrate=True, altered=list(self.nexts.values()), dropped=gone)
        except TickFailed as error:
            raise self._of_view(error) from error
        downstream = set(self._catalog.downstream(self.nexts)) - set(self.nexts)
        found = {}
        for view, definition in swapped.items():
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

    def _of_view(self, error: TickFailed) -> TickFailed:
        """The error with the name that a view has, and not that of what stands beside it."""
        names = {each.kept_in: name for name, each in self.nexts.items()}
        view = names.get(error.view, error.view)
        return type(error)(
            error.what,
            f"the new definition of view {view}" if error.view in names else error.where,
            error.fix,
            view=view,
            cause=error.cause,
            row=error.row,
        )

    def _tick(self, **wanted: Any) -> StepSummary:
        """A tick in which nothing but definitions changes: neither sources nor the time."""
        time = self._history.logical_time
        return self._engine.tick({}, pull=False, logical_time=time, **wanted)

    def _behind(self) -> list[str]:
        """Readers that have missed ticks of a view whose columns change: they catch up first."""
        states, views = self._history.states, self._history.views
        nexts = self._swapped.values()
        changed = [each for each in nexts if each.schema != views[each.name].schema]
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


def _is_same(one: ViewDefinition, other: ViewDefinition) -> bool:
    """Whether two definitions of this version mean the same."""
    return one.fingerprint == other.fingerprint and one.functions == other.functions
