"""Random typed expressions and predicates, subqueries among them.

None can raise on any row, apart from those asked for with `may_raise`, and every DOUBLE that is
added up is a short dyadic fraction, so that Spark's own sums are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.fuzz.query_tree import Column, Expression, Table, Value
from tests.fuzz.tree_walks import LITERALS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

NAMES = ("a", "b", "c", "d", "n", "m", "k", "x")
NUMBERS = ("INT", "BIGINT", "DOUBLE", "DECIMAL(6,2)")
Scope = tuple[Column, ...]

ROUND_ABOUT: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "INT": (
        ("({0}) % 3", ("INT",)),
        ("CAST({0} % 100 AS INT)", ("BIGINT",)),
        ("length({0})", ("STRING",)),
        ("abs({0})", ("INT",)),
        ("if({0}, 1, {1})", ("BOOLEAN", "INT")),
        ("month({0})", ("DATE",)),
        ("hour({0})", ("TIMESTAMP",)),
        ("size({0})", ("ARRAY<INT>",)),
        ("get({0}, 0)", ("ARRAY<INT>",)),
        ("try_cast({0} AS INT)", ("STRING",)),
        ("({0} + {1}) % 5", ("INT", "INT")),
        ("nullif({0}, {1})", ("INT", "INT")),
    ),
    "BIGINT": (("CAST({0} AS BIGINT)", ("INT",)), ("({0} + {1}) % 1000003", ("BIGINT", "INT"))),
    "STRING": (
        ("upper({0})", ("STRING",)),
        ("substring({0}, 1, 1)", ("STRING",)),
        ("CAST({0} AS STRING)", ("INT",)),
        ("CAST({0} AS STRING)", ("DATE",)),
        ("concat({0}, '_', {1})", ("STRING", "STRING")),
        ("coalesce({0}, CAST({1} AS STRING))", ("STRING", "BOOLEAN")),
    ),
    "DOUBLE": (
        ("CAST({0} AS DOUBLE) / 4", ("INT",)),
        ("-({0})", ("DOUBLE",)),
        ("CAST({0} % 8 AS DOUBLE)", ("BIGINT",)),
        ("{0} / if({1} = 0, 1, 2)", ("DOUBLE", "INT")),
    ),
    "DECIMAL(6,2)": (
        ("CAST(({0} + {1}) % 100 AS DECIMAL(6,2))", ("DECIMAL(6,2)", "DECIMAL(6,2)")),
        ("CAST({0} % 1000 AS DECIMAL(6,2))", ("INT",)),
    ),
    "DATE": (("date_add({0}, 1)", ("DATE",)), ("CAST({0} AS DATE)", ("TIMESTAMP",))),
    "TIMESTAMP": (
        ("date_trunc('HOUR', {0})", ("TIMESTAMP",)),
        ("CAST({0} AS TIMESTAMP)", ("DATE",)),
        ("{0} + INTERVAL '1' HOUR", ("TIMESTAMP",)),
    ),
    "ARRAY<INT>": (
        ("array({0}, {1})", ("INT", "INT")),
        ("sort_array({0})", ("ARRAY<INT>",)),
        ("transform({0}, e -> e + 1)", ("ARRAY<INT>",)),
    ),
}
RAISING = (
    ("INT", "CAST({0} / ({1} + 1) AS INT)", ("INT", "INT"), "unguarded division"),
    ("INT", "CAST(if({0} = 'ab', {0}, '1') AS INT)", ("STRING",), "unguarded cast"),
    ("INT", "{0} % ({1} + 1)", ("INT", "INT"), "unguarded remainder"),
)
"""For some rows only, so that a story also has ticks that succeed."""


LIKES = ("{0} LIKE 'a%'", "{0} NOT LIKE 'a%'", "{0} NOT LIKE '%b'", "{0} NOT ILIKE '_'")
"""The negation is a part of these, for those who read the statement."""


class ValueMaker:
    """Makes values over the columns of a scope, the same ones for the same seed."""

    def __init__(self, random: Random, tables: list[tuple[str, Any, int]]) -> None:
        self.random = random
        self.tables = tables
        self.count = 0

    def value(self, columns: Scope, kind: str, depth: int) -> Value:
        if depth <= 0 or kind == "QUOTIENT" or self.chance(0.5):
            return self.column(columns, kind)
        if self.chance(0.12):
            parts = (
                self.predicate(columns, depth - 1),
                self.value(columns, kind, depth - 1),
                self.value(columns, kind, depth - 1),
            )
            return Expression(kind, "CASE WHEN {0} THEN {1} ELSE {2} END", parts, "CASE")
        if self.chance(0.12):
            parts = (self.value(columns, kind, depth - 1), self.literal(kind))
            return Expression(kind, "coalesce({0}, {1})", parts, "coalesce")
        if kind == "BOOLEAN":
            return Expression(kind, "({0})", (self.predicate(columns, depth - 1),))
        shape, kinds = self.random.choice(ROUND_ABOUT[kind])
        return self.filled(columns, kind, shape, kinds, depth - 1)

    def filled(
        self, columns: Scope, kind: str, shape: str, kinds: Sequence[str], depth: int
    ) -> Expression:
        return Expression(kind, shape, tuple(self.value(columns, each, depth) for each in kinds))

    def raising(self, columns: Scope) -> Expression | None:
        """An expression that raises for some rows, if there are columns for one."""
        held = {column.type for column in columns}
        known = [each for each in RAISING if held.issuperset(each[2])]
        if not known:
            return None
        kind, shape, kinds, construct = self.random.choice(known)
        of = {each: [column for column in columns if column.type == each] for each in kinds}
        return Expression(
            kind, shape, tuple(self.random.choice(of[each]) for each in kinds), construct
        )

    def column(self, columns: Scope, kind: str) -> Value:
        found = [column for column in columns if column.type == kind]
        return self.random.choice(found) if found and self.chance(0.9) else self.literal(kind)

    def literal(self, kind: str) -> Expression:
        return Expression(kind, self.random.choice(LITERALS[kind]))

    # --- predicates ---

    def predicate(self, columns: Scope, depth: int) -> Value:
        if depth > 0 and self.chance(0.3):
            one, other = self.predicate(columns, depth - 1), self.predicate(columns, depth - 1)
            shape = self.random.choice(("({0} AND {1})", "({0} OR {1})", "NOT ({0})"))
            return Expression("BOOLEAN", shape, (one, other) if "{1}" in shape else (one,))
        kind = self.type_of(columns)
        value = self.value(columns, kind, min(depth, 1))
        choice = self.random.random()
        if choice < 0.2:
            return self._test("({0}) IS NOT NULL" if self.chance(0.75) else "({0}) IS NULL", value)
        if choice < 0.35 and not kind.startswith("ARRAY"):
            shape = self.random.choice(("{0} IN ({1}, {2})", "{0} NOT IN ({1}, {2})"))
            return self._test(shape, value, self.literal(kind), self.literal(kind))
        if choice < 0.45:
            return self._test("({0}) <=> ({1})", value, self.value(columns, kind, 0))
        if choice < 0.55 and kind == "STRING":
            return self._test(self.random.choice(LIKES), value)
        if choice < 0.55 and kind == "ARRAY<INT>":
            return self._test("array_contains({0}, {1})", value, self.value(columns, "INT", 0))
        other = self.value(columns, kind, 0) if choice < 0.75 else self.literal(kind)
        return self.compared(value, other)

    def compared(self, value: Value, other: Value) -> Expression:
        operator = self.random.choice(("=", "<>", "<>", "<", ">", "<=", ">=", ">="))
        if value == other:
            operator = "<="
        return self._test(f"({{0}}) {operator} ({{1}})", value, other)

    def _test(self, shape: str, *parts: Value) -> Expression:
        return Expression("BOOLEAN", shape, parts)

    # --- small matters ---

    def type_of(self, columns: Scope) -> str:
        return self.random.choice(columns).type if columns else "INT"

    def names(self, count: int) -> list[str]:
        return self.random.sample(NAMES, count)

    def alias(self) -> str:
        self.count += 1
        return f"r{self.count}"

    def table(self) -> Table:
        name, columns, rows = self.random.choice(self.tables)
        return Table(name, self.alias(), columns, rows)

    def chance(self, share: float) -> bool:
        return self.random.random() < share


def matching(one: str, other: str) -> bool:
    """Whether columns of these types can be compared as they are."""
    integers = ("INT", "BIGINT")
    doubles = ("DOUBLE", "QUOTIENT")
    return (
        one == other
        or (one in integers and other in integers)
        or (one in doubles and other in doubles)
    )
