"""Random SELECTs from the whole grammar: outer joins, subqueries, set operations, windows, LIMIT.

As in `random_queries`, Spark's own answer is never left open: window functions are those that give
peers the same value, and a LIMIT is ordered by every column.
"""

from __future__ import annotations

from tests.fuzz.random_queries import Column, QueryMaker, Relation

EXACT = ("INT", "BIGINT", "STRING", "DATE", "DECIMAL(6,2)", "BOOLEAN")
"""Types of which equal values have equal bits."""


class WideQueryMaker(QueryMaker):
    """Makes queries over given relations, the same ones for the same seed."""

    def query(self, depth: int) -> Relation:
        made = self._nested(depth)
        if self._chance(0.15) and all(kind in EXACT for _, kind in made.columns):
            order = ", ".join(
                f"{name}{self.random.choice(('', ' DESC', ' DESC NULLS FIRST'))}"
                for name, _ in self.random.sample(made.columns, len(made.columns))
            )
            offset = f" OFFSET {self.random.randint(1, 2)}" if self._chance(0.3) else ""
            limit = f"ORDER BY {order} LIMIT {self.random.randint(1, 4)}{offset}"
            return Relation(f"SELECT * FROM ({made.text}) {limit}", made.columns)
        return made

    def _nested(self, depth: int) -> Relation:
        first = self.select(depth)
        if not self._chance(0.25):
            return first
        types = [kind for _, kind in first.columns]
        scope, source = self._source(depth - 1)
        items = ", ".join(self.expression(scope, kind, 1) for kind in types)
        where = f" WHERE {self.predicate(scope, 1)}" if self._chance(0.5) else ""
        kinds = ["UNION ALL", "UNION ALL", "UNION"]
        if all(kind in EXACT for kind in types):
            kinds += ["INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]
        operation = self.random.choice(kinds)
        return Relation(
            f"{first.text} {operation} SELECT {items} FROM {source}{where}", first.columns
        )

    def select(self, depth: int) -> Relation:
        if self._chance(0.25):
            return self._windowed(depth)
        return super().select(depth)

    def _windowed(self, depth: int) -> Relation:
        scope, source = self._source(depth)
        where = f" WHERE {self.predicate(scope, 1)}" if self._chance(0.4) else ""
        names = self._names(self.random.randint(2, 4))
        items, outputs = [], []
        for name in names[:1]:
            column = self.random.choice(scope)
            items.append(f"{column.text} AS {name}")
            outputs.append((name, column.type))
        for name in names[1:]:
            call, kind = self._window(scope)
            items.append(f"{call} AS {name}")
            outputs.append((name, kind))
        text = f"SELECT {', '.join(items)} FROM {source}{where}"
        if self._chance(0.3):
            call, _ = self._window(scope)
            text += f" QUALIFY {call} <= 2"
        return Relation(text, tuple(outputs))

    def _window(self, scope: list[Column]) -> tuple[str, str]:
        by = f"PARTITION BY {self.random.choice(scope).text}" if self._chance(0.8) else ""
        order = f"ORDER BY {self.random.choice(scope).text}{' DESC' if self._chance(0.4) else ''}"
        choice = self.random.choice(("RANK()", "DENSE_RANK()", "COUNT(*)", "SUM", "MAX", "WHOLE"))
        if choice in ("RANK()", "DENSE_RANK()"):
            return f"{choice} OVER ({by} {order})", "INT"
        if choice == "COUNT(*)":
            return f"COUNT(*) OVER ({by} {order})", "BIGINT"
        value = self.expression(scope, "INT", 1)
        if choice == "WHOLE":
            return f"SUM({value}) OVER ({by})", "BIGINT"
        kind = "BIGINT" if choice == "SUM" else "INT"
        return f"{choice}({value}) OVER ({by} {order})", kind

    def _aggregate(self, scope: list[Column]) -> tuple[str, str]:
        if not self._chance(0.35):
            return super()._aggregate(scope)
        where = f" FILTER (WHERE {self.predicate(scope, 1)})" if self._chance(0.2) else ""
        kind = self.random.choice([*(c.type for c in scope if c.type in EXACT), "INT"])
        value = self.expression(scope, kind, 1)
        return self.random.choice(
            (
                (f"COUNT(DISTINCT {value}){where}", "BIGINT"),
                (f"SIZE(COLLECT_LIST({value}){where})", "INT"),
                (f"SIZE(COLLECT_SET({value}){where})", "INT"),
                (f"COUNT_IF({self.predicate(scope, 1)})", "BIGINT"),
                (f"BOOL_OR({self.predicate(scope, 1)}){where}", "BOOLEAN"),
                (f"MEDIAN({self.expression(scope, 'INT', 1)}){where}", "DOUBLE"),
                (f"BIT_XOR({self.expression(scope, 'INT', 1)}){where}", "INT"),
            )
        )

    def _source(self, depth: int) -> tuple[list[Column], str]:
        if depth <= 0 or not self._chance(0.3):
            return super()._source(depth)
        relations = [self._relation(depth), self._relation(depth)]
        sides = [
            [Column(f"r{number}.{name}", kind) for name, kind in relation.columns]
            for number, relation in enumerate(relations)
        ]
        condition = self._join_condition(*sides) or "1 = 1"
        kind = self.random.choice(("LEFT", "RIGHT", "FULL"))
        text = f"{relations[0].text} AS r0 {kind} JOIN {relations[1].text} AS r1 ON {condition}"
        return [*sides[0], *sides[1]], text

    def predicate(self, scope: list[Column], depth: int) -> str:
        outer = [column for column in scope if column.type in EXACT]
        if depth < 2 or not outer or not self._chance(0.35):
            return super().predicate(scope, depth)
        relation = self.random.choice(self.relations)
        inner = [Column(f"s.{name}", kind) for name, kind in relation.columns]
        column = self.random.choice(outer)
        own = [each.text for each in inner if each.type == column.type]
        negation = "NOT " if self._chance(0.4) else ""
        test = QueryMaker.predicate(self, inner, 0)
        if not own:
            return f"{negation}EXISTS (SELECT 1 FROM {relation.text} AS s WHERE {test})"
        match = self.random.choice(own)
        if self._chance(0.5):
            subquery = f"SELECT {match} FROM {relation.text} AS s WHERE {test}"
            return f"{column.text} {negation}IN ({subquery})"
        return (
            f"{negation}EXISTS (SELECT 1 FROM {relation.text} AS s "
            f"WHERE {match} = {column.text} AND {test})"
        )
