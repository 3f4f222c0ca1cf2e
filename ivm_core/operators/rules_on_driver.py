"""Rules of a recursion on the driver's rows, without a statement.

A statement costs some tens of milliseconds, and a fixpoint takes one an iteration. Rules made of
joins by equal columns, of columns, integers and comparisons mean the same in Arrow as in Spark, so
they are evaluated where their rows are. Anything else is `OnlySpark`, also what turns out to be
so in the middle: a sum that overflows is told by the statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.model.names import WEIGHT
from ivm_core.operators.accumulator import OnlySpark
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.netting import are_flat, stacked
from ivm_core.operators.pairs_on_driver import joined, kept, with_keys_alike
from ivm_core.operators.row_sets import of_keys
from ivm_core.operators.scalars_on_driver import literal_of, values_of
from ivm_core.operators.sql import equality_sides, is_null_safe
from ivm_core.plan.nodes import (
    Constant,
    Filter,
    Join,
    Listed,
    Match,
    Negated,
    Node,
    Project,
    Scan,
    UnionAll,
)
from ivm_core.plan.recursion import BAG, MIN, SET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ivm_core.model.schema import Schema
    from ivm_core.plan.recursion import Rules


def derived_on_driver(
    rules: Rules,
    plans: Sequence[Node],
    tables: Mapping[str, pa.Table],
    schema: Schema,
    *,
    folded: bool = True,
) -> pa.Table:
    """What the plans derive from plain rows of relations, each row once, or the extremes.

    Of a bag the relations have weights, and so has what is derived.
    """
    if not are_flat(schema):
        raise OnlySpark
    is_bag = rules.fold == BAG
    wanted = arrow_schema(schema, weight=is_bag)
    names = [*rules.columns, *([WEIGHT] if is_bag else [])]
    parts = [_Derivation(tables, is_bag).rows(plan).select(names).cast(wanted) for plan in plans]
    whole = stacked(*parts)
    if is_bag or not whole.num_rows:
        return whole
    if not folded or rules.fold == SET:
        return whole.group_by(list(rules.columns), use_threads=False).aggregate([])
    return _extremes(rules, whole).cast(wanted)


def derivable_on_driver(
    rules: Rules,
    tables: Mapping[str, pa.Table],
    wanted: pa.Table,
    schema: Schema,
    *,
    by_key: bool,
) -> pa.Table:
    """What the rules derive of wanted rows, or for wanted keys."""
    names = rules.keys if by_key else rules.columns
    found = derived_on_driver(rules, rules.branches, tables, schema, folded=by_key)
    return of_keys(found, wanted, schema.select(names))


def _extremes(rules: Rules, rows: pa.Table) -> pa.Table:
    call = "min" if rules.fold == MIN else "max"
    value, keys = rules.value, list(rules.keys)
    grouped = rows.group_by(keys, use_threads=False).aggregate([(value, call)])
    grouped = grouped.rename_columns([*keys, value])
    return grouped.select(list(rules.columns))


class _Derivation:
    """The rows of trees over rows of relations; with a weight each where these count."""

    def __init__(self, tables: Mapping[str, pa.Table], is_weighted: bool) -> None:
        self._tables = tables
        self._weight = [WEIGHT] if is_weighted else []

    def rows(self, node: Node) -> pa.Table:
        """The columns of a node, and the weight."""
        names = [*node.columns, *self._weight]
        if isinstance(node, Scan):
            found = self._tables[node.relation].select([*node.fields, *self._weight])
            return found.rename_columns(names)
        if isinstance(node, Constant):
            one = [pa.array([True]), *(pa.array([1], pa.int64()) for _ in self._weight)]
            return pa.table(one, names=names)
        if isinstance(node, Listed):
            return self._listed(node).rename_columns(names)
        if isinstance(node, Project):
            return self._projected(node, self.rows(node.input))
        if isinstance(node, Filter):
            return kept(self.rows(node.input), node.predicate)
        if isinstance(node, UnionAll):
            return stacked(*(self.rows(each).rename_columns(names) for each in node.branches))
        if isinstance(node, Join):
            return joined(node, [self.rows(each) for each in node.parts])
        if isinstance(node, Match) and not self._weight:
            return _matched(node, self.rows(node.left), self.rows(node.right))
        if isinstance(node, Negated) and self._weight:
            found = self.rows(node.input)
            gone = pc.negate_checked(found.column(WEIGHT))
            return found.set_column(found.column_names.index(WEIGHT), WEIGHT, gone)
        raise OnlySpark

    def _listed(self, node: Listed) -> pa.Table:
        columns = [
            pa.chunked_array([pa.array([literal_of(row[place]) for row in node.rows])])
            for place in range(len(node.names))
        ]
        columns += [pa.repeat(pa.scalar(1, pa.int64()), len(node.rows)) for _ in self._weight]
        return pa.table(columns, names=[*node.names, *self._weight])

    def _projected(self, node: Project, rows: pa.Table) -> pa.Table:
        if not node.outputs:
            raise OnlySpark
        arrays = [values_of(scalar, rows) for _, scalar in node.outputs]
        for (_, scalar), found in zip(node.outputs, arrays, strict=True):
            if pa.types.is_decimal(found.type) and not scalar.is_column:
                raise OnlySpark("decimals that a rule makes may have to be rounded")
        arrays += [rows.column(name) for name in self._weight]
        return pa.table(arrays, names=[*node.columns, *self._weight])


def _matched(node: Match, ours: pa.Table, theirs: pa.Table) -> pa.Table:
    """SEMI and ANTI by equal columns; conditions on the right side alone are looked at first."""
    if node.kind not in ("SEMI", "ANTI"):
        raise OnlySpark
    keys = []
    for condition in node.conditions:
        if condition.columns <= set(node.right.columns):
            theirs = kept(theirs, condition)
            continue
        sides = equality_sides(condition)
        if sides is None or is_null_safe(condition) or not all(side.is_column for side in sides):
            raise OnlySpark
        mine, other = sides if sides[0].column in node.left.columns else sides[::-1]
        if mine.column not in node.left.columns or other.column not in node.right.columns:
            raise OnlySpark
        keys.append((mine.column, other.column))
    if not keys:
        raise OnlySpark
    left, right = with_keys_alike(
        [ours.column(mine) for mine, _ in keys], [theirs.column(other) for _, other in keys]
    )
    names = [f"?{number}" for number in range(len(keys))]
    for name, values in zip(names, left, strict=True):
        ours = ours.append_column(name, values)
    kind = "left semi" if node.kind == "SEMI" else "left anti"
    found = ours.join(pa.table(right, names=names), names, join_type=kind, use_threads=False)
    return found.select(list(node.columns))
