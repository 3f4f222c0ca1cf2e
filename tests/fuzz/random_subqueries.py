"""Random subqueries: EXISTS, IN and the value of a query, asked of the rows around them or not."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from tests.fuzz.query_tree import Derived, Expression, From, Item, Query, Select, Value, scope
from tests.fuzz.random_calls import CallMaker
from tests.fuzz.random_values import Scope, matching

if TYPE_CHECKING:
    from collections.abc import Sequence


class SubqueryMaker(CallMaker):
    """Makes conditions and values that ask another query."""

    @abstractmethod
    def query(self, depth: int, kinds: Sequence[str] | None = None) -> Query:
        """A query; with `kinds`, one whose columns have these types."""

    def condition(self, columns: Scope, depth: int) -> Value:
        """A predicate of WHERE, which may ask another query."""
        if depth <= 0 or not self.chance(0.4):
            return self.predicate(columns, 2)
        if self.chance(0.25):
            value = self.value(columns, self.type_of(columns), 0)
            if value.type != "ARRAY<INT>":
                return self.compared(value, self.scalar(columns, depth, value.type))
        asked = self._exists(columns, depth) if self.chance(0.5) else self._in(columns, depth)
        if self.chance(0.15):
            other = self.predicate(columns, 0)
            return Expression("BOOLEAN", "({0} OR {1})", (asked, other), "subquery under OR")
        return asked

    def _exists(self, columns: Scope, depth: int) -> Value:
        inner = self._asked(depth)
        where, how = self._correlation(columns, scope(inner.source))
        if self.chance(0.5):
            where = (*where, self.predicate((*scope(inner.source), *columns), 1))
        query = Select(inner.items, inner.source, where=where)
        negation = "NOT " if self.chance(0.4) else ""
        return Expression(
            "BOOLEAN", f"{negation}EXISTS ({{0}})", (query,), f"{negation}EXISTS, {how}"
        )

    def _in(self, columns: Scope, depth: int) -> Value:
        value = self.random.choice(columns)
        negation = "NOT " if self.chance(0.4) else ""
        if self.chance(0.3):
            whole = self.query(depth - 1, [value.type])
            parts = (value, whole)
            return Expression(
                "BOOLEAN", f"{{0}} {negation}IN ({{1}})", parts, f"{negation}IN query"
            )
        inner = self._asked(depth)
        where, how = (), "uncorrelated"
        if self.chance(0.3):
            where, how = self._correlation(columns, scope(inner.source))
        item = Item("i", self.value(scope(inner.source), value.type, 0))
        query = Select((item,), inner.source, where=where)
        return Expression(
            "BOOLEAN", f"{{0}} {negation}IN ({{1}})", (value, query), f"{negation}IN, {how}"
        )

    def scalar(self, columns: Scope, depth: int, kind: str | None = None) -> Value:
        """The value of a query with one row; of the type `kind`, if that matters."""
        inner = self._asked(depth)
        where, how = (), "uncorrelated"
        if columns and self.chance(0.6):
            where, how = self._correlation(columns, scope(inner.source))
        call = self.aggregate(scope(inner.source))
        for _ in range(10):
            if kind is None or call.type == kind:
                break
            call = self.aggregate(scope(inner.source))
        if kind is not None and call.type != kind:
            value = self.value(scope(inner.source), kind, 0)
            inside = "{0} + 0.0D" if kind in ("DOUBLE", "QUOTIENT") else "{0}"
            call = Expression(kind, f"MAX({inside})", (value,), "MAX")
        query = Select((Item("v", call),), inner.source, where=where)
        return Expression(call.type, "({0})", (query,), f"scalar subquery, {how}")

    def _asked(self, depth: int) -> Select:
        """What a subquery reads, as a SELECT still without conditions."""
        source: From = self.table()
        if depth > 1 and self.chance(0.25):
            source = Derived(self.query(depth - 2), self.alias(), 12)
        return Select((Item("o", Expression("INT", "1")),), source)

    def _correlation(self, outer: Scope, inner: Scope) -> tuple[tuple[Value, ...], str]:
        pairs = [(a, b) for a in outer for b in inner if matching(a.type, b.type)]
        if not pairs:
            return (), "uncorrelated"
        a, b = self.random.choice(pairs)
        if self.chance(0.15):
            operator = self.random.choice(("<", ">=", "<>"))
            return (Expression("BOOLEAN", f"{{0}} {operator} {{1}}", (b, a)),), "by inequality"
        return (Expression("BOOLEAN", "{0} = {1}", (b, a)),), "correlated"
