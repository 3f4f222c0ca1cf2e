"""GROUP BY with COUNT, SUM, AVG, MIN, MAX, and the global aggregate.

    acc(A + ΔA) = acc(A) + acc(ΔA)                   the state, kept for every group before HAVING
    acc(ΔA) = acc(A + ΔA) − acc(A)                   where most of A changes
    Δγ(A) = Σ over groups in ΔA:  − row(acc(A))  + row(acc(A) + acc(ΔA))

The state trace is additive: a tick appends acc(ΔA), a group's state is the sum of its rows. The
group's row exists while its hidden count `_rows` is positive; the global row exists always.

MIN and MAX are monotone, not linear: with only insertions m′ = least(m, ΔA); where a deletion
reaches m, the group is recomputed from all its rows (`extrema_of_keys`). Their old values come
from the node's own output trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from ivm_core.model.names import WEIGHT
from ivm_core.model.schema import Field, Schema
from ivm_core.model.types import BIGINT, BOOLEAN, Nested
from ivm_core.operators.accumulator import AccColumn
from ivm_core.operators.accumulators import accumulator_for
from ivm_core.operators.consolidation import consolidated
from ivm_core.operators.extremes import Extreme, with_one_zero
from ivm_core.operators.formula import formula
from ivm_core.operators.operator import Form
from ivm_core.operators.row_identity import encoded_rows
from ivm_core.operators.sql import column, named, number, relation, select, union_all, weight

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ivm_core.model.types import DataType
    from ivm_core.operators.accumulator import Accumulator
    from ivm_core.operators.formula import Level
    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.nodes import Aggregate

ROWS = "_rows"
SIDE = "_side"
REDONE = "_redone"


def state_name(output: str, form: Form) -> str:
    """The temporary view of a node's state."""
    return f"{output}@state_{form.value}"


def keys_name(output: str) -> str:
    """The temporary view of the keys whose groups are recomputed."""
    return f"{output}@keys"


def redone_name(output: str) -> str:
    """The temporary view of recomputed MIN and MAX values."""
    return f"{output}@redone"


class AggregateOperator:
    """The plain form, for the normalised query; the tick's statements are `AggregateStatements`."""

    def render(self, node: Aggregate, form: Form, rendering: Rendering) -> exp.Query | None:
        """SELECT keys, aggregates GROUP BY keys."""
        if form is not Form.PLAIN:
            raise TypeError("an aggregate's delta needs its state")
        source = rendering.render(node.input, Form.PLAIN)
        if source is None:
            return None
        if rendering.exact and any(call.function in ("SUM", "AVG") for call in node.calls):
            return _exact(node, source, rendering.types(node.input))
        outputs = [named(column(theirs), ours) for ours, theirs in node.keys]
        for call in node.calls:
            argument: exp.Expr = exp.Star()
            if call.argument is not None:
                argument = column(call.argument)
                if rendering.exact and call.function in ("MIN", "MAX"):
                    argument = with_one_zero(argument, rendering.types(node.input)[call.argument])
            function = "COUNT" if call.function == "COUNT_STAR" else call.function
            outputs.append(named(exp.Anonymous(this=function, expressions=[argument]), call.name))
        if not outputs:
            outputs = [named(number(1), "present")]
        query = select(outputs, source)
        keys = [column(theirs) for _, theirs in node.keys]
        return query.group_by(*keys, copy=False) if keys else query


def _exact(node: Aggregate, source: exp.Query, types: Mapping[str, DataType]) -> exp.Query:
    """The whole aggregate through its accumulators: no sum depends on the order of rows."""
    accumulators = tuple(
        accumulator_for(call.function, types.get(call.argument or ""), call.name)
        for call in node.calls
    )
    keys = tuple(Field(ours, types[theirs]) for ours, theirs in node.keys)
    pairs = zip(node.calls, accumulators, strict=True)
    results = tuple(Field(call.name, each.result_type) for call, each in pairs)
    name = f"exact_{node.fingerprint}"
    statements = AggregateStatements(node, name, keys, accumulators, results)
    ones = named(exp.cast(number(1), "BIGINT", dialect="spark"), WEIGHT)
    weighted = select([*(column(each) for each in node.input.columns), ones], source)
    rows = statements.rows(with_old=False, with_redone=False, only_changed=False)
    state = statements.fold_of(weighted, types)
    for table in list(rows.find_all(exp.Table)):
        if table.name == state_name(name, Form.DELTA):
            table.replace(state.subquery("t"))
    return select([column(each.name) for each in (*keys, *results)], rows)


@dataclass(frozen=True)
class AggregateStatements:
    """The statements of one aggregate node."""

    node: Aggregate
    output: str
    """Name of the node's relation."""
    keys: tuple[Field, ...]
    """Group keys as they are stored, in the order of the node's keys."""
    accumulators: tuple[Accumulator, ...]
    results: tuple[Field, ...]
    """Columns of the values, one an accumulator."""

    @property
    def is_extremal(self) -> bool:
        """Whether MIN or MAX is among the aggregates."""
        return any(isinstance(each, Extreme) for each in self.accumulators)

    @property
    def _extrema(self) -> list[tuple[Extreme, Field]]:
        pairs = zip(self.accumulators, self.results, strict=True)
        return [(each, result) for each, result in pairs if isinstance(each, Extreme)]

    @property
    def _bins(self) -> list[AccColumn]:
        return [each for accumulator in self.accumulators for each in accumulator.bins]

    @property
    def _sums(self) -> list[AccColumn]:
        found = [each for accumulator in self.accumulators for each in accumulator.columns]
        return [each for each in found if each.rule == "sum"]

    @property
    def state_schema(self) -> Schema:
        """Columns of the state trace."""
        fields = [*self.keys, *(Field(each.name, each.type) for each in self._bins)]
        fields.append(Field(ROWS, BIGINT))
        for accumulator in self.accumulators:
            fields += [Field(each.name, each.type) for each in accumulator.columns]
            if isinstance(accumulator, Extreme):
                fields.append(Field(accumulator.named("gone"), accumulator.argument_type))
        return Schema(tuple(fields), internal=True)

    @property
    def keys_schema(self) -> Schema:
        """Columns of affected keys; a global aggregate has one group of no columns."""
        fields = self.keys or (Field("present", BOOLEAN),)
        return Schema(fields, internal=True)

    @property
    def redone_schema(self) -> Schema:
        """Columns of recomputed extremes."""
        fields = (*self.keys, *(result for _, result in self._extrema))
        return Schema(fields, internal=True)

    @property
    def gone_columns(self) -> list[str]:
        """Columns of the folded change that say which extremes were deleted."""
        return [extreme.named("gone") for extreme, _ in self._extrema]

    def fold(
        self, form: Form, rendering: Rendering, types: Mapping[str, DataType]
    ) -> exp.Query | None:
        """acc(ΔA), or acc(A′) for the first hydration: one row a group (and bin)."""
        source = rendering.render(self.node.input, form)
        return None if source is None else self.fold_of(source, types)

    def fold_of(self, source: exp.Query, types: Mapping[str, DataType]) -> exp.Query:
        """Fold the rows of a weighted query with the columns of the node's input."""
        if self.is_extremal:
            # MIN over rows that cancel out would see what is not there
            source = consolidated(source, types)
        keys = zip(self.keys, self.node.keys, strict=True)
        outputs = [named(column(theirs), stored.name) for stored, (_, theirs) in keys]
        arguments = {call.argument for call in self.node.calls if call.argument is not None}
        outputs += [named(column(name), f"@{name}") for name in sorted(arguments)]
        query: exp.Query = select([*outputs, weight()], source)
        prepared = [
            accumulator.prepare(None if call.argument is None else column(f"@{call.argument}"))
            for accumulator, call in zip(self.accumulators, self.node.calls, strict=True)
        ]
        query = _levelled(query, prepared)
        groups = [column(each.name) for each in self.keys]
        groups += [column(each.name) for each in self._bins]
        totals = [named(_or_zero(exp.Sum(this=weight())), ROWS)]
        for accumulator in self.accumulators:
            totals += [named(tree, name) for name, tree in accumulator.fold]
            if isinstance(accumulator, Extreme):
                totals += [named(tree, name) for name, tree in accumulator.deleted]
        query = select([*groups, *totals], query)
        return query.group_by(*[g.copy() for g in groups], copy=False) if groups else query

    @property
    def is_refoldable(self) -> bool:
        """Whether the state before can be taken from that of all rows: it is all sums."""
        columns = [each for accumulator in self.accumulators for each in accumulator.columns]
        return not self.is_extremal and len(self._sums) == len(columns)

    def refold(self, rendering: Rendering, types: Mapping[str, DataType]) -> exp.Query | None:
        """acc(ΔA) = acc(A′) − acc(A), from all rows that there are now and the state before."""
        now = self.fold(Form.NEW, rendering, types)
        if now is None:
            return None
        groups = [*(each.name for each in self.keys), *(each.name for each in self._bins)]
        sums = [ROWS, *(each.name for each in self._sums)]
        gone = [named(exp.Neg(this=column(name)), name) for name in sums]
        before = select(
            [*(column(name) for name in groups), *gone], relation(state_name(self.output, Form.OLD))
        )
        after = select([column(name) for name in (*groups, *sums)], now)
        totals = [named(_total(name), name) for name in sums]
        query = select([*(column(name) for name in groups), *totals], union_all([after, before]))
        if groups:
            query = query.group_by(*(column(name) for name in groups), copy=False)
        changed = [exp.NEQ(this=column(name), expression=number(0)) for name in sums]
        return select([exp.Star()], query).where(exp.or_(*changed), copy=False)

    def rows(self, *, with_old: bool, with_redone: bool, only_changed: bool) -> exp.Query:
        """Δγ: the old row of every changed group with −1, the new one with +1, not yet netted.

        `with_old` is false for the first hydration; `only_changed` leaves out groups of the old
        state that the change doesn't touch, for when the whole state is bound.
        """
        sides = exp.Array(expressions=[number(-1), number(1)]) if with_old else None
        parts = [self._contribution(state_name(self.output, Form.DELTA), None)]
        if with_old:
            old = state_name(self.output, Form.OLD)
            parts.append(self._contribution(old, sides, only_changed=only_changed))
        if not self.keys:
            parts += [self._nothing(side) for side in ((-1, 1) if with_old else (1,))]
        if self.is_extremal and with_old:
            parts.append(self._old_extrema(only_changed=only_changed))
        if with_redone:
            parts.append(self._redone())
        query = union_all(parts)
        if self._bins:
            query = self._summed(query, [*self._group_names, *(b.name for b in self._bins)])
        query = self._collapsed(query)
        if self.keys:
            positive = exp.GT(this=column(ROWS), expression=number(0))
            query = select([exp.Star()], query).where(positive, copy=False)
        finals = [accumulator.finalise(column) for accumulator in self.accumulators]
        query = _levelled(query, [final.levels for final in finals])
        outputs: list[exp.Expr] = [column(each.name) for each in self.keys]
        outputs += [
            named(final.value, result.name)
            for final, result in zip(finals, self.results, strict=True)
        ]
        if not outputs:
            outputs = [named(exp.true(), "present")]
        side = exp.cast(column(SIDE), "BIGINT", dialect="spark")
        return select([*outputs, named(side, WEIGHT)], query)

    def folded_state(self, rows: pa.Table) -> pa.Table:
        """State rows of one group and bin as one, on the driver; groups that are gone leave none.

        What only the tick itself needs (MIN and MAX of its insertions and deletions) is dropped.
        """
        groups = [each.name for each in self.keys] + [each.name for each in self._bins]
        sums = [ROWS, *(each.name for each in self._sums)]
        schema = rows.schema
        table = _summed_groups(rows, self.keys, groups, sums)
        present = pc.scalar(False)
        for name in sums:
            present = present | (pc.field(name) != pa.scalar(0).cast(schema.field(name).type))
        table = table.filter(present)
        columns = [
            table.column(each.name).cast(each.type)
            if each.name in table.column_names
            else pa.nulls(table.num_rows, each.type)
            for each in schema
        ]
        return pa.table(columns, schema=schema)

    def changed_extrema(self) -> exp.Query:
        """Keys of groups where a deletion reaches the old MIN or MAX."""
        tests = []
        for extreme, result in self._extrema:
            gone = column(extreme.named("gone"), "d")
            tests.append(extreme.is_reached(column(result.name, "o"), gone))
        changed = relation(state_name(self.output, Form.DELTA)).as_("d", quoted=True)
        old = self._old_rows().subquery("o", copy=False)
        query = select(
            [column(each.name, "d") for each in self.keys] or [named(exp.true(), "present")],
            changed,
        )
        query = query.join(old, on=self._same_keys("d", "o"), join_type="INNER", copy=False)
        return query.where(exp.or_(*tests), copy=False).distinct(copy=False)

    def extrema_of_keys(
        self, rendering: Rendering, types: Mapping[str, DataType]
    ) -> exp.Query | None:
        """MIN and MAX of the recomputed groups, from all their rows."""
        source = rendering.render(self.node.input, Form.NEW)
        if source is None:
            return None
        names = zip(self.keys, self.node.keys, strict=True)
        on = [
            exp.NullSafeEQ(this=column(theirs, "b"), expression=column(stored.name, "k"))
            for stored, (_, theirs) in names
        ]
        body = consolidated(source, types).subquery("b", copy=False)
        outputs: list[exp.Expr] = [column(each.name, "k") for each in self.keys]
        query = select([], body)
        if on:
            query = query.join(
                relation(keys_name(self.output)).as_("k", quoted=True),
                on=exp.and_(*on),
                join_type="INNER",
                copy=False,
            )
        for accumulator, call, result in zip(
            self.accumulators, self.node.calls, self.results, strict=True
        ):
            if isinstance(accumulator, Extreme) and call.argument is not None:
                argument = accumulator.prepare(column(call.argument, "b"))[0][0][1]
                outputs.append(named(_extreme(accumulator, argument), result.name))
        query = query.select(*outputs, copy=False)
        groups = [column(each.name, "k") for each in self.keys]
        return query.group_by(*groups, copy=False) if groups else query

    @property
    def _group_names(self) -> list[str]:
        return [*(each.name for each in self.keys), SIDE]

    def _contribution(
        self, name: str, sides: exp.Expr | None, *, only_changed: bool = False
    ) -> exp.Query:
        """Rows of a state; the old state counts on both sides, the change on the new one."""
        side = number(1) if sides is None else exp.Explode(this=sides)
        plain: list[exp.Expr] = [column(each.name) for each in self.keys]
        plain += [column(each.name) for each in self._bins]
        plain += [column(ROWS), *(column(each.name) for each in self._sums)]
        if sides is None:
            plain += [
                named(column(extreme.named("m")), result.name) for extreme, result in self._extrema
            ]
        else:
            plain += self._no_extrema()
        source: exp.Expr = relation(name)
        if only_changed:
            source = self._only_changed(select([exp.Star()], source))
        return select([*plain, self._not_redone(), named(side, SIDE)], source)

    def _only_changed(self, query: exp.Query) -> exp.Query:
        if not self.keys:
            return query
        changed = select(
            [column(each.name) for each in self.keys],
            relation(state_name(self.output, Form.DELTA)),
        ).distinct(copy=False)
        return select([exp.Star()], query.subquery("s", copy=False)).join(
            changed.subquery("c", copy=False),
            on=self._same_keys("s", "c"),
            join_type="LEFT SEMI",
            copy=False,
        )

    def _same_keys(self, one: str, other: str) -> exp.Expr:
        if not self.keys:
            return exp.true()
        return exp.and_(
            *[
                exp.NullSafeEQ(this=column(each.name, one), expression=column(each.name, other))
                for each in self.keys
            ]
        )

    def _nothing(self, side: int) -> exp.Query:
        """The state of a global aggregate over no rows."""
        rows = AccColumn(ROWS, BIGINT)
        outputs = [named(_zero(each.type), each.name) for each in [*self._bins, rows, *self._sums]]
        outputs += [*self._no_extrema(), self._not_redone()]
        return select([*outputs, named(number(side), SIDE)], None)

    def _no_extrema(self) -> list[exp.Expr]:
        return [
            named(exp.cast(exp.null(), result.type.ddl, dialect="spark"), result.name)
            for _, result in self._extrema
        ]

    @staticmethod
    def _not_redone() -> exp.Expr:
        return named(number(0), REDONE)

    def _old_rows(self) -> exp.Query:
        """The node's own rows before the tick, netted."""
        fields = [*self.keys, *(result for _, result in self._extrema)]
        source = select(
            [*(column(each.name) for each in fields), weight()], relation(f"{self.output}@old")
        )
        return consolidated(source, {each.name: each.type for each in fields})

    def _old_extrema(self, *, only_changed: bool) -> exp.Query:
        outputs: list[exp.Expr] = [column(each.name) for each in self.keys]
        outputs += [named(_zero(each.type), each.name) for each in self._bins]
        outputs += [named(_zero(BIGINT), ROWS)]
        outputs += [named(_zero(each.type), each.name) for each in self._sums]
        outputs += [column(result.name) for _, result in self._extrema]
        side = exp.Explode(this=exp.Array(expressions=[number(-1), number(1)]))
        source = self._old_rows()
        if only_changed:
            source = self._only_changed(source)
        return select([*outputs, self._not_redone(), named(side, SIDE)], source)

    def _redone(self) -> exp.Query:
        """Recomputed values, and a mark that the old one no longer counts."""
        outputs: list[exp.Expr] = [column(each.name) for each in self.keys]
        outputs += [named(_zero(each.type), each.name) for each in self._bins]
        outputs += [named(_zero(BIGINT), ROWS)]
        outputs += [named(_zero(each.type), each.name) for each in self._sums]
        outputs += [column(result.name) for _, result in self._extrema]
        outputs += [named(number(1), REDONE), named(number(1), SIDE)]
        return select(outputs, relation(redone_name(self.output)))

    def _summed(self, query: exp.Query, groups: Sequence[str]) -> exp.Query:
        """Totals per group and bin; a group that is redone keeps that mark and its values apart."""
        outputs: list[exp.Expr] = [column(name) for name in groups]
        outputs += [named(_total(name), name) for name in [ROWS, *(s.name for s in self._sums)]]
        for extreme, result in self._extrema:
            outputs.append(named(_extreme(extreme, column(result.name)), result.name))
        outputs.append(column(REDONE))
        keys = [column(name) for name in [*groups, REDONE]]
        return select(outputs, query).group_by(*keys, copy=False)

    def _collapsed(self, query: exp.Query) -> exp.Select:
        outputs: list[exp.Expr] = [column(name) for name in self._group_names]
        outputs.append(named(_total(ROWS), ROWS))
        for accumulator in self.accumulators:
            outputs += [named(tree, name) for name, tree in accumulator.collapse]
        for extreme, result in self._extrema:
            value = column(result.name)
            again = exp.EQ(this=column(REDONE), expression=number(1))
            redone = _extreme(extreme, exp.case().when(again, value.copy()))
            is_redone = exp.EQ(this=exp.Max(this=column(REDONE)), expression=number(1))
            chosen = exp.case().when(is_redone, redone).else_(_extreme(extreme, value))
            outputs.append(named(chosen, extreme.named("m")))
        groups = [column(name) for name in self._group_names]
        return select(outputs, query).group_by(*groups, copy=False)


def _summed_groups(
    rows: pa.Table, keys: tuple[Field, ...], groups: list[str], sums: list[str]
) -> pa.Table:
    """Sums by group; Arrow groups by no array or struct, so those go by their encoding."""
    totals = [(name, "sum") for name in sums]
    nested = [each for each in keys if isinstance(each.type, Nested)]
    if not nested:
        table = rows.group_by(groups).aggregate(totals)
        return table.rename_columns([*groups, *sums])
    plain = [name for name in groups if name not in {each.name for each in nested}]
    identity = pa.array(encoded_rows(rows, Schema(tuple(nested), internal=True)), pa.binary())
    marked = rows.append_column("@identity", identity)
    marked = marked.append_column("@place", pa.array(range(rows.num_rows), pa.int64()))
    table = marked.group_by([*plain, "@identity"]).aggregate([*totals, ("@place", "min")])
    table = table.rename_columns([*plain, "@identity", *sums, "@place"])
    for each in nested:
        table = table.append_column(each.name, rows.column(each.name).take(table["@place"]))
    return table.select([*groups, *sums])


def _levelled(query: exp.Query, stacks: Sequence[Sequence[Level]]) -> exp.Query:
    """Stack projections: level n of all is one SELECT over level n − 1."""
    depth = max((len(stack) for stack in stacks), default=0)
    for level in range(depth):
        added = [
            named(tree, name)
            for stack in stacks
            if level < len(stack)
            for name, tree in stack[level]
        ]
        if added:
            query = select([exp.Star(), *added], query)
    return query


def _extreme(extreme: Extreme, tree: exp.Expr) -> exp.Expr:
    return formula(f"{extreme.function}(:x)", x=tree)


def _total(name: str) -> exp.Expr:
    return exp.Sum(this=column(name))


def _or_zero(tree: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=tree, expressions=[_zero(BIGINT)])


def _zero(data_type: DataType) -> exp.Expr:
    return exp.cast(number(0), data_type.ddl, dialect="spark")
