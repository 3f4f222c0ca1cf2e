"""Runs a case tick by tick through a real flow, beside Spark's recompute of every view.

After every tick, for every view: what the emitted deltas add up to is Spark's own answer to the
user's text, as a bag, both ways. At the end snapshot, changes and the flow's own check agree.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import IncrementalFlow, IvmError
from tests import exact_reference
from tests.sql.bags import Row, bag, differences, identity, rounded_differences
from tests.sql.recompute import Recompute
from tests.sql.source_model import SourceModel, batch

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from ivm_core.engine.summary import StepSummary
    from tests.sql.case_format import Case, ExactColumn, Tick, ViewSpec

ROUNDING = 1e-9


def run_case(case: Case, folder: Path, spark: SparkSession, *, thorough: bool = True) -> None:
    """Raise AssertionError with the tick, the view and the rows for the first difference.

    `thorough` also reads snapshot and changes back and lets the flow check itself.
    """
    with IncrementalFlow.open(folder / "flow", spark) as flow:
        for source in case.sources:
            flow.register_source(source.name, source.ddl, primary_key=source.primary_key or None)
        run = CaseRun(case, flow, Recompute(spark))
        run.register(case.views)
        for tick in case.ticks:
            run.tick(tick)
    if thorough:
        # by a flow that knows of the views only what is stored
        with IncrementalFlow.open(folder / "flow", spark) as flow:
            run.flow = flow
            run.read_back()


class CaseRun:
    """A case on its way: what the sources hold, and what the views' deltas add up to."""

    def __init__(self, case: Case, flow: IncrementalFlow, recompute: Recompute) -> None:
        self.case = case
        self.flow = flow
        self.recompute = recompute
        self.models = {source.name: SourceModel(source) for source in case.sources}
        self.views: list[ViewSpec] = []
        self.watches: dict[str, Any] = {}
        self.held: dict[str, Counter[Row]] = {}
        self.values: dict[str, dict[Row, Row]] = {}
        self.deltas: dict[str, dict[int, Counter[Row]]] = {}
        self.columns: dict[str, list[tuple[str, str]]] = {}
        self.names: dict[str, list[str]] = {}
        self.seen: dict[str, int] = {}

    def register(self, views: Iterable[ViewSpec]) -> None:
        for view in views:
            self.flow.register_view(view.name, view.sql)
            self.views.append(view)
            self.watches[view.name] = self.flow.watch_output(view.name, since=0)
            self.held[view.name] = Counter()
            self.values[view.name] = {}
            self.deltas[view.name] = {}

    def tick(self, tick: Tick) -> None:
        self.register(tick.views)
        by_source: dict[str, list[Any]] = {}
        for change in tick.changes:
            by_source.setdefault(change.source, []).append(change)
        after = {name: model.clone() for name, model in self.models.items()}
        for change in tick.changes:
            after[change.source].apply(change)
        batches = {name: batch(changes) for name, changes in by_source.items()}
        before = self.flow.current_tick
        only = tick.only or None
        if tick.fails is not None:
            with pytest.raises(IvmError) as caught:
                self.flow.tick(batches, views=only, logical_time=tick.at)
            assert tick.fails in str(caught.value), f"tick {tick.title!r} says: {caught.value}"
            assert self.flow.current_tick == before
            return
        for model in after.values():
            model.check()
        summary = self.flow.tick(batches, views=only, logical_time=tick.at)
        assert summary.tick == before + 1
        self.models = after
        self._compare(tick, summary)

    def _compare(self, tick: Tick, summary: StepSummary) -> None:
        self.recompute.load(self.models.values())
        self.recompute.define(self.views, tick.at)
        named = set(tick.only) or {view.name for view in self.views}
        missing = named - summary.views.keys()
        assert not missing, f"tick {summary.tick} left out {missing}"
        for view in self.views:
            if view.name not in summary.views:
                continue
            where = f"{self.case.title!r}, tick {summary.tick} ({tick.title}), view {view.name}"
            self._take_delta(view, summary, where)
            self.seen[view.name] = summary.tick
            if not view.beyond_spark:
                table = self.recompute.rows(view)
                self.columns[view.name] = _columns(table.schema)
                self._against_spark(view, _rows(table), table.column_names, where)
            for exact in view.exact:
                self._against_exact(view, exact, where)

    def _take_delta(self, view: ViewSpec, summary: StepSummary, where: str) -> None:
        held, values = self.held[view.name], self.values[view.name]
        emitted = 0
        for number, delta in self.watches[view.name]:
            table = delta.to_arrow()
            weights = table.column("_weight").to_pylist()
            rows = _rows(table.drop_columns("_weight"))
            self.names[view.name] = table.column_names
            change: Counter[Row] = Counter()
            for row, weight in zip(rows, weights, strict=True):
                key = identity(row)
                assert weight, f"{where}: weight 0 was emitted for {row}"
                assert key not in change, f"{where}: {row} was emitted twice"
                values[key] = row
                change[key] = weight
            self.deltas[view.name][number] = change
            emitted = len(change)
            for key, weight in change.items():
                held[key] += weight
                assert held[key] >= 0, f"{where}: less than nothing of {values[key]}"
                if not held[key]:
                    del held[key]
        told = summary.views[view.name].rows_out
        assert told == emitted, f"{where}: {told} rows out, {emitted} after netting"

    def _against_spark(
        self, view: ViewSpec, expected: list[Row], names: list[str], where: str
    ) -> None:
        held, values = self.held[view.name], self.values[view.name]
        if not view.rounded:
            found = differences(bag(expected), held)
        else:
            places = [names.index(name) for name in view.rounded]
            got = [values[key] for key, count in held.items() for _ in range(count)]
            found = rounded_differences(expected, got, places, ROUNDING)
        assert not found, f"{where} is not what Spark gives:\n{found}"

    def _against_exact(self, view: ViewSpec, exact: ExactColumn, where: str) -> None:
        names = self.names[view.name]
        model = self.models[exact.source]
        columns = [name.casefold() for name in model.schema.names]
        places = [columns.index(key) for key in exact.keys]
        argument = columns.index(exact.argument)
        groups: dict[Row, list[tuple[Any, int]]] = {} if exact.keys else {(): []}
        for row, count in model.rows.values():
            key = tuple(_group_key(row[place]) for place in places)
            groups.setdefault(identity(key), []).append((row[argument], count))
        kind = model.schema.field(exact.argument).type.kind
        wanted: Counter[Row] = Counter()
        for key, pairs in groups.items():
            wanted[(*key, *identity([_reference(exact.function, kind, pairs)]))] += 1
        keep = [names.index(key) for key in exact.keys] + [names.index(exact.column)]
        got: Counter[Row] = Counter()
        for key, count in self.held[view.name].items():
            got[tuple(key[place] for place in keep)] += count
        found = differences(wanted, got)
        assert not found, f"{where}, {exact.column} is not exact:\n{found}"

    def read_back(self, *, check: bool = True) -> None:
        for view in self.views:
            where = f"{self.case.title!r}, view {view.name}"
            snapshot = self.flow.snapshot(view.name).toArrow()
            columns = _columns(snapshot.schema)
            spark = self.columns.get(view.name, columns)
            assert columns == spark, f"{where} has columns {columns}, Spark's are {spark}"
            found = differences(self.held[view.name], bag(_rows(snapshot)))
            assert not found, f"{where}: the snapshot is not the sum of the deltas:\n{found}"
            self._read_changes(view, where)
            self._read_meaning(view, where)
            if check:
                found_by_flow = self.flow.check(view.name)
                assert found_by_flow.equal, f"{where}: the flow's own check finds {found_by_flow}"

    def _read_meaning(self, view: ViewSpec, where: str) -> None:
        """Spark runs the normalised query as it is shown, and gives the view's rows."""
        if view.beyond_spark or self.seen.get(view.name) != self.flow.current_tick:
            return
        table = self.recompute.answer(self.flow.explain(view.name).normalised)
        self._against_spark(view, _rows(table), table.column_names, f"the meaning of {where}")

    def _read_changes(self, view: ViewSpec, where: str) -> None:
        changes = self.flow.changes(view.name).toArrow()
        ticks = changes.column("_tick").to_pylist()
        weights = changes.column("_weight").to_pylist()
        seen: dict[int, Counter[Row]] = {}
        rows = _rows(changes.drop_columns(["_tick", "_weight"]))
        for row, weight, number in zip(rows, weights, ticks, strict=True):
            change = seen.setdefault(number, Counter())
            assert identity(row) not in change, f"{where}: {row} twice in tick {number}"
            change[identity(row)] = weight
        deltas = {number: each for number, each in self.deltas[view.name].items() if each}
        assert seen == deltas, f"{where}: changes() differ from what was watched"


def _columns(schema: pa.Schema) -> list[tuple[str, str]]:
    """Names and types; what may be NULL is not part of a view's definition."""
    return [(each.name, str(each.type).replace(" not null", "")) for each in schema]


def _rows(table: pa.Table) -> list[Row]:
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _group_key(value: Any) -> Any:
    return 0.0 if isinstance(value, float) and value == 0 else value


def _reference(function: str, kind: str, pairs: list[tuple[Any, int]]) -> Any:
    average = function == "AVG"
    if kind == "DECIMAL":
        return exact_reference.decimal_result(pairs, 38, 0, average=average)
    if kind in ("FLOAT", "DOUBLE"):
        return exact_reference.double_sum(pairs, average=average)
    if average:
        return exact_reference.integer_average(pairs)
    return exact_reference.integer_sum(pairs)
