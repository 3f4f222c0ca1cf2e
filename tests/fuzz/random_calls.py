"""Random aggregates and window functions."""

from __future__ import annotations

from tests.fuzz.query_tree import Expression, Value
from tests.fuzz.random_values import NUMBERS, Scope, ValueMaker

ORDERED = ("INT", "BIGINT", "STRING", "DATE", "TIMESTAMP", "DECIMAL(6,2)", "BOOLEAN")
"""Types of which equal values have equal bits."""
AFTER_ROUNDING = "round({0} + 0.00013D, 3)"
"""Spark rounds its moments on the way; away from the middle between two results it doesn't show."""
OVER_ALL = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
FRAMES = (
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "ROWS UNBOUNDED PRECEDING",
    OVER_ALL,
)


class CallMaker(ValueMaker):
    """Makes calls over groups and windows, the same ones for the same seed."""

    ties = True
    """Whether results may depend on the order of tied rows, which SQL leaves open."""

    def aggregate(self, columns: Scope) -> Expression:
        call = self._folded(columns) if self.chance(0.6) else self._regrouped(columns)
        while call.is_open and not self.ties:
            call = self._regrouped(columns)
        # FILTER belongs to the aggregate within, so it is part of its shape
        if "{f}" not in call.shape:
            return call
        if not self.chance(0.2):
            return Expression(
                call.type, call.shape.replace("{f}", ""), call.parts, call.construct, call.is_open
            )
        place = len(call.parts)
        shape = call.shape.replace("{f}", f" FILTER (WHERE {{{place}}})")
        parts = (*call.parts, self.predicate(columns, 1))
        return Expression(call.type, shape, parts, f"{call.construct} FILTER", call.is_open)

    def _folded(self, columns: Scope) -> Expression:
        name = self.random.choice(("COUNT(*)", "COUNT", "SUM", "AVG", "MIN", "MAX", "MIN", "MAX"))
        if name == "COUNT(*)":
            return Expression("BIGINT", "COUNT(*){f}", (), name)
        if name in ("SUM", "AVG"):
            kind = self.random.choice(NUMBERS)
            value = self.value(columns, kind, 1)
            if kind == "DECIMAL(6,2)":
                shape = f"CAST({name}({{0}}){{f}} % 1000 AS DECIMAL(6,2))"
                return Expression(kind, shape, (value,), name)
            if name == "AVG":
                return Expression("QUOTIENT", "AVG({0}){f}", (value,), name)
            if kind == "BIGINT":
                return Expression(kind, "(SUM({0}){f} % 1000003)", (value,), name)
            return Expression(
                "BIGINT" if kind == "INT" else kind, f"{name}({{0}}){{f}}", (value,), name
            )
        kind = self.type_of(columns)
        value = self.value(columns, kind, 1)
        if name == "COUNT":
            return Expression("BIGINT", "COUNT({0}){f}", (value,), name)
        # Spark leaves the sign of a zero open
        inner = "{0} + 0.0D" if kind in ("DOUBLE", "QUOTIENT") else "{0}"
        return Expression(kind, f"{name}({inner}){{f}}", (value,), name)

    def _regrouped(self, columns: Scope) -> Expression:
        kind = self.random.choice([*(c.type for c in columns if c.type in ORDERED), "INT"])
        value, number = self.value(columns, kind, 1), self.value(columns, "INT", 1)
        text = self.value(columns, "STRING", 1)
        other = self.value(columns, self.type_of(columns), 0)
        test = self.predicate(columns, 1)
        choices = (
            Expression("BIGINT", "COUNT(DISTINCT {0}){f}", (value,), "COUNT DISTINCT"),
            Expression("BIGINT", "COUNT(DISTINCT {0}, {1}){f}", (value, other), "COUNT DISTINCT 2"),
            Expression("BIGINT", "SUM(DISTINCT {0}){f}", (number,), "SUM DISTINCT"),
            Expression("ARRAY<INT>", "COLLECT_LIST({0}){f}", (number,), "collect_list", True),
            Expression("ARRAY<INT>", "COLLECT_SET({0}){f}", (number,), "collect_set", True),
            Expression("INT", "SIZE(COLLECT_LIST({0}){f})", (value,), "collect_list"),
            Expression("INT", "SIZE(COLLECT_SET({0}){f})", (value,), "collect_set"),
            Expression(
                "STRING", "LISTAGG({0}, ',') WITHIN GROUP (ORDER BY {0}){f}", (text,), "listagg"
            ),
            Expression("BIGINT", "COUNT_IF({0})", (test,), "count_if"),
            Expression("BOOLEAN", "BOOL_OR({0}){f}", (test,), "bool_or"),
            Expression("BOOLEAN", "EVERY({0}){f}", (test,), "every"),
            Expression("QUOTIENT", "MEDIAN({0}){f}", (number,), "median"),
            Expression("QUOTIENT", "PERCENTILE({0}, 0.25){f}", (number,), "percentile"),
            Expression(
                "INT",
                "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY {0}){f}",
                (number,),
                "percentile",
            ),
            Expression("INT", "BIT_XOR({0}){f}", (number,), "bit_xor"),
            Expression(kind, "MIN_BY({0}, {1}){f}", (value, number), "min_by", True),
            Expression(kind, "MAX_BY({0}, {1}){f}", (value, number), "max_by", True),
            Expression(kind, "MODE({0}){f}", (value,), "mode", True),
            Expression(kind, "ANY_VALUE({0}){f}", (value,), "any_value", True),
            Expression("QUOTIENT", AFTER_ROUNDING.format("STDDEV({0}){f}"), (number,), "stddev"),
            Expression("QUOTIENT", AFTER_ROUNDING.format("VAR_POP({0}){f}"), (number,), "var_pop"),
        )
        call = self.random.choice(choices)
        # the normalised query has moments of its own, which Spark can't be asked for
        while self.ties and call.construct in ("stddev", "var_pop"):
            call = self.random.choice(choices)
        return call

    def window(self, columns: Scope) -> Expression:
        call = self._window(columns)
        while call.is_open and not self.ties:
            call = self._window(columns)
        return call

    def _window(self, columns: Scope) -> Expression:
        """A window function; its parts are arguments, partition and order, in this order."""
        arguments: list[Value] = []
        by = [self._key(columns) for _ in range(self.random.choice((0, 1, 1, 1, 2)))]
        order = [self._key(columns) for _ in range(self.random.choice((1, 1, 2)))]
        kind, call, frame, construct, is_open = self._window_call(columns, arguments, order)
        place = len(arguments)
        words = []
        if by:
            listed = ", ".join(f"{{{place + i}}}" for i in range(len(by)))
            words.append(f"PARTITION BY {listed}")
        place += len(by)
        if order:
            ways = [
                self.random.choice(("", " DESC", " NULLS LAST", " DESC NULLS FIRST")) for _ in order
            ]
            if frame.startswith("RANGE"):
                ways = [self.random.choice(("", " DESC"))]
            listed = ", ".join(f"{{{place + i}}}{way}" for i, way in enumerate(ways))
            words.append(f"ORDER BY {listed}")
        if frame:
            words.append(frame)
        parts = (*arguments, *by, *order)
        shape = f"{call} OVER ({' '.join(words)})"
        return Expression(
            kind, shape, parts, construct if by else f"{construct}, all rows", is_open
        )

    def _key(self, columns: Scope) -> Value:
        return (
            self.random.choice(columns)
            if self.chance(0.85)
            else self.value(columns, self.type_of(columns), 1)
        )

    def _window_call(
        self, columns: Scope, arguments: list[Value], order: list[Value]
    ) -> tuple[str, str, str, str, bool]:
        """Type, call, frame, construct, whether ties matter; fills in arguments."""
        name = self.random.choice(
            (
                "RANK",
                "DENSE_RANK",
                "ROW_NUMBER",
                "NTILE",
                "PERCENT_RANK",
                "CUME_DIST",
                "LAG",
                "LEAD",
            )
            + ("FIRST_VALUE", "LAST_VALUE", "NTH_VALUE", "COUNT", "SUM", "MAX", "MIN", "AVG") * 2
            + ("WHOLE", "WHOLE", "RANGE")
        )
        construct = f"{name} OVER"
        if name in ("RANK", "DENSE_RANK"):
            return "INT", f"{name}()", "", construct, False
        if name in ("PERCENT_RANK", "CUME_DIST"):
            return "QUOTIENT", f"{name}()", "", construct, False
        if name in ("ROW_NUMBER", "NTILE"):
            argument = "3" if name == "NTILE" else ""
            return "INT", f"{name}({argument})", "", construct, True
        if name == "RANGE":
            arguments.append(self.value(columns, "INT", 1))
            order[:] = [self.value(columns, "INT", 1)]
            ends = self.random.choice(
                ("1 PRECEDING AND 1 FOLLOWING", "2 PRECEDING AND CURRENT ROW")
            )
            return "BIGINT", "SUM({0})", f"RANGE BETWEEN {ends}", "RANGE frame", False
        if name in ("LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE"):
            kind = self.type_of(columns)
            arguments.append(self.value(columns, kind, 1))
            frame = ""
            if name in ("FIRST_VALUE", "LAST_VALUE", "NTH_VALUE") and self.chance(0.5):
                frame = self.random.choice(FRAMES)
            more = (
                ", 2"
                if name == "NTH_VALUE" or (name in ("LAG", "LEAD") and self.chance(0.3))
                else ""
            )
            return kind, f"{name}({{0}}{more})", frame, construct, True
        kind = "INT" if name != "MAX" and name != "MIN" else self.type_of(columns)
        value = self.value(columns, kind, 1)
        arguments.append(value)
        inner = "{0} + 0.0D" if kind in ("DOUBLE", "QUOTIENT") else "{0}"
        if name == "WHOLE":
            order.clear()
            return "BIGINT", f"SUM({inner})", "", "SUM OVER whole partition", False
        frame = self.random.choice(FRAMES) if self.chance(0.4) else ""
        if frame == OVER_ALL:
            frame = self.random.choice(FRAMES[:-1])
        given = {"COUNT": "BIGINT", "SUM": "BIGINT", "AVG": "QUOTIENT"}.get(name, kind)
        return (
            given,
            f"{name}({inner})",
            frame,
            f"{construct}{' ROWS' if frame else ''}",
            bool(frame),
        )
