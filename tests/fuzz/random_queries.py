"""Random SELECTs from the supported grammar, typed so that Spark accepts them.

Expressions can't raise on any row, and every DOUBLE is a short dyadic fraction, so that Spark's own
sums of them are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

NAMES = ("a", "b", "c", "d", "n", "m", "k", "x")
KEY_TYPES = ("INT", "STRING", "BIGINT", "DATE", "DOUBLE", "DECIMAL(6,2)", "BOOLEAN")
LITERALS = {
    "INT": ("0", "1", "2", "-1"),
    "BIGINT": ("0L", "3L", "5000000000L"),
    "STRING": ("'a'", "'b'", "''", "'ab'"),
    "DOUBLE": ("0.5D", "0.0D", "-2.25D"),
    "DECIMAL(6,2)": ("CAST(1.50 AS DECIMAL(6,2))", "CAST(0 AS DECIMAL(6,2))"),
    "DATE": ("DATE '2024-01-31'", "DATE '2023-12-31'"),
    "BOOLEAN": ("TRUE", "FALSE"),
}


@dataclass(frozen=True)
class Column:
    """A column that an expression may name."""

    text: str
    type: str


@dataclass(frozen=True)
class Relation:
    """Something to select from: its text, and its columns' names and types."""

    text: str
    columns: tuple[tuple[str, str], ...]


class QueryMaker:
    """Makes queries over given relations, the same ones for the same seed."""

    def __init__(self, random: Random, relations: list[Relation]) -> None:
        self.random = random
        self.relations = relations

    # --- queries ---

    def query(self, depth: int) -> Relation:
        """A SELECT, or a UNION of two with the same types."""
        first = self.select(depth)
        if self._chance(0.2):
            types = [kind for _, kind in first.columns]
            scope, source = self._source(depth - 1)
            items = ", ".join(self.expression(scope, kind, 1) for kind in types)
            where = f" WHERE {self.predicate(scope, 1)}" if self._chance(0.5) else ""
            union = "UNION ALL" if self._chance(0.7) else "UNION"
            return Relation(
                f"{first.text} {union} SELECT {items} FROM {source}{where}", first.columns
            )
        return first

    def select(self, depth: int) -> Relation:
        scope, source = self._source(depth)
        where = f" WHERE {self.predicate(scope, 2)}" if self._chance(0.5) else ""
        if self._chance(0.5):
            return self._grouped(scope, f"{source}{where}")
        distinct = "DISTINCT " if self._chance(0.25) else ""
        columns = self._names(self.random.randint(1, 4))
        items = []
        outputs = []
        for name in columns:
            kind = self._type_in(scope)
            items.append(f"{self.expression(scope, kind, 2)} AS {name}")
            outputs.append((name, kind))
        text = f"SELECT {distinct}{', '.join(items)} FROM {source}{where}"
        return Relation(text, tuple(outputs))

    def _grouped(self, scope: list[Column], source: str) -> Relation:
        count = self.random.choice((0, 1, 1, 1, 2))
        names = self._names(count + self.random.randint(1, 3))
        keys, items, outputs = [], [], []
        for number, name in enumerate(names[:count], 1):
            kind = self._type_in(scope)
            key = (
                self.expression(scope, kind, 1) if self._chance(0.4) else self._column(scope, kind)
            )
            items.append(f"{key} AS {name}")
            outputs.append((name, kind))
            # a literal would be taken for the position of an output column
            plain = self._is_literal(key) or self._chance(0.2)
            keys.append(str(number) if plain else key)
        for name in names[count:]:
            call, kind = self._aggregate(scope)
            items.append(f"{call} AS {name}")
            outputs.append((name, kind))
        text = f"SELECT {', '.join(items)} FROM {source}"
        if keys:
            text += f" GROUP BY {', '.join(keys)}"
        if self._chance(0.3):
            call, kind = self._aggregate(scope)
            test = f"{call} IS NOT NULL" if self._chance(0.3) else self._compared(call, kind)
            text += f" HAVING {test}"
        return Relation(text, tuple(outputs))

    def _aggregate(self, scope: list[Column]) -> tuple[str, str]:
        function = self.random.choice(("COUNT", "SUM", "AVG", "MIN", "MAX", "MIN", "MAX", "STAR"))
        where = f" FILTER (WHERE {self.predicate(scope, 1)})" if self._chance(0.2) else ""
        if function == "STAR":
            return f"COUNT(*){where}", "BIGINT"
        kind = self._type_in(scope)
        if function in ("SUM", "AVG"):
            kind = self.random.choice(("INT", "DOUBLE", "DECIMAL(6,2)"))
        argument = self.expression(scope, kind, 1)
        if function == "COUNT":
            return f"COUNT({argument}){where}", "BIGINT"
        if function in ("MIN", "MAX"):
            # the sign of a zero is left open by Spark
            argument = f"{argument} + 0.0D" if kind == "DOUBLE" else argument
            return f"{function}({argument}){where}", kind
        call = f"{function}({argument}){where}"
        if kind == "DECIMAL(6,2)":
            return f"CAST({call} % 1000 AS DECIMAL(6,2))", "DECIMAL(6,2)"
        if function == "SUM":
            return call, "BIGINT" if kind == "INT" else "DOUBLE"
        return f"floor({call} * 4) / 4", "DOUBLE"

    def _source(self, depth: int) -> tuple[list[Column], str]:
        """FROM with one to three relations, and the columns that it brings."""
        count = self.random.choice((1, 1, 1, 2, 2, 3)) if depth > 0 else 1
        scope: list[Column] = []
        text = ""
        for number in range(count):
            relation = self._relation(depth)
            alias = f"r{number}"
            own = [Column(f"{alias}.{name}", kind) for name, kind in relation.columns]
            if number == 0:
                text = f"{relation.text} AS {alias}"
            else:
                condition = self._join_condition(scope, own)
                if condition is None:
                    text += f" CROSS JOIN {relation.text} AS {alias}"
                else:
                    text += f" JOIN {relation.text} AS {alias} ON {condition}"
            scope += own
        return scope, text

    def _relation(self, depth: int) -> Relation:
        if depth > 1 and self._chance(0.35):
            inner = self.query(depth - 1)
            return Relation(f"({inner.text})", inner.columns)
        return self.random.choice(self.relations)

    def _join_condition(self, left: list[Column], right: list[Column]) -> str | None:
        pairs = [(a, b) for a in left for b in right if _is_comparable(a.type, b.type)]
        if not pairs or self._chance(0.05):
            return None
        one, other = self.random.choice(pairs)
        operator = self.random.choice(("=", "=", "=", "=", "<=>", "<"))
        condition = f"{one.text} {operator} {other.text}"
        if self._chance(0.3):
            condition += f" AND {self.predicate(left + right, 1)}"
        return condition

    # --- expressions ---

    def expression(self, scope: list[Column], kind: str, depth: int) -> str:
        if depth <= 0 or self._chance(0.5):
            return self._column(scope, kind) if self._chance(0.85) else self._literal(kind)

        def inner(of: str) -> str:
            return self.expression(scope, of, depth - 1)

        if self._chance(0.15):
            return f"CASE WHEN {self.predicate(scope, depth - 1)} THEN {inner(kind)} ELSE {inner(kind)} END"
        if self._chance(0.15):
            return f"coalesce({inner(kind)}, {self._literal(kind)})"
        if kind == "INT":
            return self.random.choice(
                (
                    f"({inner('INT')}) % 3",
                    f"length({inner('STRING')})",
                    f"abs({inner('INT')})",
                    f"if({inner('BOOLEAN')}, 1, {inner('INT')})",
                    f"month({inner('DATE')})",
                )
            )
        if kind == "BIGINT":
            return f"CAST({inner('INT')} AS BIGINT)"
        if kind == "STRING":
            return self.random.choice(
                (
                    f"upper({inner('STRING')})",
                    f"substring({inner('STRING')}, 1, 1)",
                    f"CAST({inner('INT')} AS STRING)",
                    f"concat({inner('STRING')}, '_')",
                )
            )
        if kind == "DOUBLE":
            return f"CAST({inner('INT')} AS DOUBLE) / 4"
        if kind == "DATE":
            return f"date_add({inner('DATE')}, 1)"
        if kind == "BOOLEAN":
            return f"({self.predicate(scope, depth - 1)})"
        return self._column(scope, kind)

    def predicate(self, scope: list[Column], depth: int) -> str:
        if depth > 0 and self._chance(0.3):
            one, other = self.predicate(scope, depth - 1), self.predicate(scope, depth - 1)
            return self.random.choice(
                (f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})")
            )
        kind = self._type_in(scope)
        value = self.expression(scope, kind, min(depth, 1))
        choice = self.random.random()
        if choice < 0.2:
            return f"{value} IS {'NOT ' if self._chance(0.5) else ''}NULL"
        if choice < 0.35:
            return f"{value} IN ({self._literal(kind)}, {self._literal(kind)})"
        if choice < 0.45:
            return f"{value} <=> {self.expression(scope, kind, 0)}"
        if choice < 0.55 and kind == "STRING":
            return f"{value} LIKE 'a%'"
        if choice < 0.7:
            return f"{value} {self._operator()} {self.expression(scope, kind, 0)}"
        return self._compared(value, kind)

    def _compared(self, value: str, kind: str) -> str:
        return f"{value} {self._operator()} {self._literal(kind)}"

    def _operator(self) -> str:
        return self.random.choice(("=", "<>", "<", ">", "<=", ">="))

    def _column(self, scope: list[Column], kind: str) -> str:
        found = [column.text for column in scope if column.type == kind]
        return self.random.choice(found) if found else self._literal(kind)

    def _literal(self, kind: str) -> str:
        return self.random.choice(LITERALS[kind])

    def _is_literal(self, text: str) -> bool:
        return any(text in literals for literals in LITERALS.values())

    def _type_in(self, scope: list[Column]) -> str:
        return self.random.choice([column.type for column in scope])

    def _names(self, count: int) -> list[str]:
        return self.random.sample(NAMES, count)

    def _chance(self, share: float) -> bool:
        return self.random.random() < share


def _is_comparable(one: str, other: str) -> bool:
    integers = ("INT", "BIGINT")
    return one == other or (one in integers and other in integers)
