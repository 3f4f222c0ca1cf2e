"""Random queries to a given depth: joins, subqueries, set operations, groups, windows, top-k, WITH.

What Spark refuses to analyse may come out now and then; whoever runs a query counts that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from tests.fuzz.query_tree import (
    Column,
    Combined,
    Derived,
    Exploded,
    Expression,
    From,
    Item,
    Join,
    Query,
    Select,
    Top,
    Value,
    With,
    scope,
)
from tests.fuzz.random_calls import ORDERED
from tests.fuzz.random_subqueries import SubqueryMaker
from tests.fuzz.random_values import Scope, matching

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_ROWS = 400
"""Of the estimate for one FROM: a deep query over cross joins would take minutes."""


class QueryMaker(SubqueryMaker):
    """Makes queries over given relations, the same ones for the same seed."""

    may_raise = False

    def view(self, depth: int) -> Query:
        """A whole view; the only place where an expression that may raise stands."""
        source = self.table()
        value = self.raising(scope(source)) if self.may_raise and self.chance(0.5) else None
        # not over a view or a join: what Spark evaluates below those depends on its optimizer
        if value is not None and source.name.startswith("t"):
            if self.chance(0.3):
                test = self.compared(value, self.literal("INT"))
                return Select(self._items(scope(source), 2), source, where=(test,))
            items = (*self._items(scope(source), 1), Item("r", value))
            return Select(items, source)
        return self.query(depth)

    def query(self, depth: int, kinds: Sequence[str] | None = None) -> Query:
        """A query; with `kinds`, one whose columns have these types."""
        choice = self.random.random()
        if depth > 0 and choice < 0.17:
            return self._combined(depth, kinds)
        if depth > 0 and choice < 0.29:
            return self._top(depth, kinds)
        if depth > 0 and choice < 0.37:
            return self._with(depth, kinds)
        return self._select(depth, kinds)

    def _combined(self, depth: int, kinds: Sequence[str] | None) -> Combined:
        left = self.query(depth - 1, kinds)
        right = self.query(depth - 1, [kind for _, kind in left.columns])
        names = ("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
        return Combined(self.random.choice((*names, "UNION ALL", "EXCEPT ALL")), left, right)

    def _top(self, depth: int, kinds: Sequence[str] | None) -> Query:
        query = self.query(depth - 1, kinds)
        columns = query.columns
        if not self.ties and any(kind not in ORDERED for _, kind in columns):
            return query
        ways = ("", " DESC", " DESC NULLS FIRST", " NULLS LAST")
        count = (
            len(columns)
            if not self.ties or self.chance(0.4)
            else self.random.randint(1, len(columns))
        )
        order = tuple(
            (name, self.random.choice(ways)) for name, _ in self.random.sample(columns, count)
        )
        total = count == len(columns) and all(kind in ORDERED for _, kind in columns)
        offset = self.random.randint(1, 2) if self.chance(0.3) else 0
        return Top(query, order, self.random.randint(1, 5), offset, not total)

    def _with(self, depth: int, kinds: Sequence[str] | None) -> With:
        body = self.query(depth - 1)
        name = f"w{self.alias()}"
        outside = self.tables
        # named twice, so that it is read once or more
        entry = (name, body.columns, 8)
        self.tables = [*outside, entry, entry]
        try:
            return With(name, body, self.query(depth - 1, kinds))
        finally:
            self.tables = outside

    # --- SELECT ---

    def _select(self, depth: int, kinds: Sequence[str] | None) -> Select:
        source = self.from_(depth)
        columns = scope(source)
        where: tuple[Value, ...] = ()
        if self.chance(0.3):
            where = tuple(
                self.condition(columns, depth) for _ in range(self.random.choice((1, 1, 2)))
            )
        choice = self.random.random()
        if kinds is None and choice < 0.4:
            return self._grouped(source, where, depth)
        if kinds is None and choice < 0.6:
            return self._windowed(source, where)
        if kinds is None:
            items = self._items(columns, self.random.randint(1, 4))
            if depth > 0 and self.chance(0.25):
                items = (*items[:3], Item("s", self.scalar(columns, depth)))
        else:
            names = self.names(len(kinds))
            items = tuple(
                Item(name, self.value(columns, kind, 1))
                for name, kind in zip(names, kinds, strict=True)
            )
        return Select(items, source, where=where, is_distinct=self.chance(0.2))

    def _items(self, columns: Scope, count: int) -> tuple[Item, ...]:
        return tuple(
            Item(name, self.value(columns, self.type_of(columns), 2)) for name in self.names(count)
        )

    def _grouped(self, source: From, where: tuple[Value, ...], depth: int) -> Select:
        columns = scope(source)
        count = self.random.choice((0, 1, 1, 1, 2, 2))
        names = self.names(count + self.random.randint(1, 3))
        keys = tuple(Item(name, self._group_key(columns)) for name in names[:count])
        items = [Item(name, self.aggregate(columns)) for name in names[count:]]
        grouping = ""
        if count == 2 and len({key.value.text for key in keys}) == 2 and self.chance(0.35):
            grouping = self.random.choice(("ROLLUP", "CUBE", "GROUPING SETS"))
            if self.chance(0.4):
                key = keys[0].value
                items.append(Item("g", Expression("INT", "CAST(GROUPING({0}) AS INT)", (key,))))
        having: tuple[Value, ...] = ()
        if self.chance(0.2):
            call = self.aggregate(columns)
            other: Value = self.literal(call.type)
            if depth > 0 and self.chance(0.3):
                other = self.scalar((), depth, call.type)
            having = (self.compared(call, other),)
        grouped = f"GROUP BY {grouping}" if grouping else ""
        items[0] = Item(items[0].name, _marked(items[0].value, grouped))
        return Select(tuple(items), source, keys, where, having, grouping=grouping)

    def _group_key(self, columns: Scope) -> Value:
        """Never a literal, which would be a position."""
        key = self.value(columns, self.type_of(columns), 1) if self.chance(0.4) else None
        if key is None or (isinstance(key, Expression) and not key.parts):
            return self.random.choice(columns)
        return key

    def _windowed(self, source: From, where: tuple[Value, ...]) -> Select:
        columns = scope(source)
        names = self.names(self.random.randint(2, 4))
        items = [Item(names[0], self.random.choice(columns))]
        items += [Item(name, self.window(columns)) for name in names[1:]]
        qualify: tuple[Value, ...] = ()
        if self.chance(0.3):
            call = self.window(columns)
            literal = self.literal(call.type)
            qualify = (_marked(self.compared(call, literal), "QUALIFY"),)
        return Select(tuple(items), source, where=where, qualify=qualify)

    # --- FROM ---

    def from_(self, depth: int) -> From:
        """Joined relations, and LATERAL VIEW behind them all."""
        source = self._relation(depth)
        arrays = [column for column in scope(source) if column.type == "ARRAY<INT>"]
        if arrays and self.chance(0.4):
            array = self.random.choice(arrays)
            return Exploded(source, array, self.alias(), "e", self.chance(0.4), 2 * source.rows)
        return source

    def _relation(self, depth: int) -> From:
        choice = self.random.random()
        if depth > 0 and choice < 0.3:
            return Derived(self.query(depth - 1), self.alias(), 12)
        if depth > 0 and choice < 0.72:
            return self._join(depth)
        return self.table()

    def _join(self, depth: int) -> From:
        left, right = self._relation(depth - 1), self._relation(depth - 1)
        # sqlglot loses names in parentheses around a semi join
        while _has_semi_join(right):
            right = right.left
        one, other = scope(left), scope(right)
        if self.chance(0.08):
            lateral = self._lateral(left, depth)
            if lateral is not None:
                return lateral
        kind = self.random.choice(
            ("INNER", "INNER", "INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "CROSS")
        )
        pairs = [(a, b) for a in one for b in other if matching(a.type, b.type)]
        product = left.rows * right.rows
        if kind == "CROSS" or not pairs:
            if product > MOST_ROWS:
                return left
            return Join("CROSS", left, right, (), product)
        a, b = self.random.choice(pairs)
        operator = self.random.choice(("=", "=", "=", "=", "<=>", "<"))
        if operator == "<" and product > MOST_ROWS:
            operator = "="
        on: tuple[Value, ...] = (Expression("BOOLEAN", f"{{0}} {operator} {{1}}", (a, b)),)
        if self.chance(0.2):
            on = (*on, self.predicate((*one, *other), 1))
        rows = left.rows if "LEFT " in kind else min(product, 2 * max(left.rows, right.rows))
        return Join(kind, left, right, on, rows)

    def _lateral(self, left: From, depth: int) -> Join | None:
        outer = scope(left)
        table = self.table()
        inner = scope(table)
        pairs = [(a, b) for a in outer for b in inner if matching(a.type, b.type)]
        if not pairs:
            return None
        a, b = self.random.choice(pairs)
        match = Expression("BOOLEAN", "{0} = {1}", (b, a))
        if self.chance(0.5):
            query: Query = Select((Item("v", self.aggregate(inner)),), table, where=(match,))
        else:
            query = Select(self._items(inner, 2), table, where=(match,))
        kind = self.random.choice(("CROSS", "LEFT"))
        on = (Expression("BOOLEAN", "TRUE"),) if kind == "LEFT" else ()
        right = Derived(query, self.alias(), table.rows)
        return Join(f"{kind} LATERAL", left, right, on, 2 * left.rows)


def _has_semi_join(source: From) -> TypeGuard[Join]:
    if not isinstance(source, Join):
        return False
    is_semi = source.kind in ("LEFT SEMI", "LEFT ANTI")
    return is_semi or _has_semi_join(source.left) or _has_semi_join(source.right)


def _marked(value: Value, construct: str) -> Value:
    """The value, which also counts as this construct."""
    if not construct or isinstance(value, Column):
        return value
    return Expression(value.type, value.shape, value.parts, f"{construct}", value.is_open)
