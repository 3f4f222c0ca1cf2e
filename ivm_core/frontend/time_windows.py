"""`window(ts, …)` and `session_window(ts, …)`: rows in windows of time.

    window            each row in every window that its time lies in: a projection, or a generator
                      where windows overlap, so linear
    session_window    rows of a group with no gap between them: window functions over the group

A row without a time lies in no window.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.aggregates import text
from ivm_core.frontend.spelling import folded
from ivm_core.model.errors import Unsupported
from ivm_core.operators.formula import AS_INTERVAL, formula
from ivm_core.operators.sql import column as column_tree
from ivm_core.operators.sql import scalar_of, unchanged
from ivm_core.plan.nodes import Filter, Generate, Node, Project
from ivm_core.plan.partitioned import Windowed

if TYPE_CHECKING:
    from collections.abc import Callable

    from ivm_core.frontend.questions import Questions
    from ivm_core.plan.scalar import Scalar

NAMES = ("window", "session_window")
MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
PART = re.compile(r"(-?\d+)\s+([a-z]+?)s?(?=\s|$)")
KINDS = {
    "timestamp": "TIMESTAMP",
    "date": "TIMESTAMP",
    "string": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP_NTZ",
}
"""What a time of each type is cast to before it is put in windows."""
NUMBER = "UNIX_MICROS(CAST(:at AS TIMESTAMP))"
BEHIND = f"PMOD({NUMBER} - :offset, :slide)"
TIMES = {
    # Spark's own arithmetic on numbers, where it is known of which type the times are
    "TIMESTAMP": f"TIMESTAMP_MICROS({NUMBER} - :behind + :further)",
    "TIMESTAMP_NTZ": f"CAST(TIMESTAMP_MICROS({NUMBER} - :behind + :further) AS TIMESTAMP_NTZ)",
    # of the type of the time itself, for many times the cost
    "": f":at - {AS_INTERVAL.replace(':micros', ':behind - (:further)')}",
}
WRITTEN_OUT = 16
"""Overlapping windows up to which each is an expression of its own, which Spark compiles."""


def with_window_columns(tree: exp.Expr) -> exp.Expr:
    """`window.start` beside GROUP BY window(…) as that call's field."""
    for select in list(tree.find_all(exp.Select)):
        group = select.args.get("group")
        calls = {
            folded(each.name): each
            for each in (group.expressions if group is not None else ())
            if is_time_window(each)
        }
        if not calls:
            continue
        for column in list(select.find_all(exp.Column)):
            first = column.parts[0]
            call = calls.get(folded(first.name))
            if call is None or column.find_ancestor(exp.Select) is not select:
                continue
            replaced: exp.Expr = call.copy()
            for part in column.parts[1:]:
                replaced = exp.Dot(this=replaced, expression=part.copy())
            if len(column.parts) == 1 and column.parent is select:
                replaced = exp.alias_(replaced, exp.to_identifier(first.name))
            column.replace(replaced)
    return tree


def with_times(tree: exp.Expr, questions: Questions) -> exp.Expr:
    """The query with what windows are asked for cast to times, as Spark does it."""
    for call in list(tree.find_all(exp.Anonymous)):
        select = call.find_ancestor(exp.Select)
        if select is None or not is_time_window(call) or not call.expressions:
            continue
        at, *spans = call.expressions
        found = questions.about([at], select)
        kind = KINDS.get(found[0][1].split()[0]) if found else None
        if kind is not None:
            call.set("expressions", [exp.cast(at.copy(), kind, dialect="spark"), *spans])
    return tree


def is_time_window(tree: exp.Expr) -> bool:
    """Whether an expression is a call of one of the two functions."""
    return isinstance(tree, exp.Anonymous) and folded(tree.name) in NAMES


def in_time_windows(
    node: Node, keys: list[exp.Expr], trees: list[exp.Expr], where: str
) -> tuple[Node, Callable[[exp.Expr], exp.Expr]]:
    """The node with a column for each window of time, and how expressions refer to them."""
    calls: dict[str, exp.Expr] = {}
    for tree in (*keys, *trees):
        for each in tree.walk():
            if is_time_window(each):
                calls.setdefault(text(each), each)
    names = {called: f"?time_{number}" for number, called in enumerate(calls, 1)}

    def replace(tree: exp.Expr) -> exp.Expr:
        def one(part: exp.Expr) -> exp.Expr:
            name = names.get(text(part)) if is_time_window(part) else None
            return part if name is None else column_tree(name)

        return tree.transform(one)

    for called, call in calls.items():
        if folded(call.name) == "window":
            node = _in_windows(node, call, names[called], where)
        else:
            others = [replace(key) for key in keys if text(key.unnest()) != called]
            node = _in_sessions(node, call, others, names[called], where)
    return node, replace


def _in_windows(node: Node, call: exp.Expr, name: str, where: str) -> Node:
    at, *spans = call.expressions
    length = _micros(spans[0] if spans else None, call, where)
    slide = _micros(spans[1], call, where) if len(spans) > 1 else length
    offset = _micros(spans[2], call, where) if len(spans) > 2 else 0
    if length <= 0 or slide <= 0:
        raise _refusal(call, where, "its length is not positive")
    at_once = -(-length // slide)
    behind = formula(BEHIND, at=at, offset=offset, slide=slide)
    there = Filter(node, scalar_of(at.copy().is_(exp.null()).not_()))

    time = TIMES[_kind(at)]
    one = f"NAMED_STRUCT('start', {time}, 'end', {time.replace(':further', ':further + :length')})"
    parts = {"at": at, "behind": behind, "length": length}
    if at_once == 1:
        window = scalar_of(formula(one, further=0, **parts))
        return Project(there, (*unchanged(node.columns), (name, window)))
    if at_once <= WRITTEN_OUT:
        each = [formula(one, further=-number * slide, **parts) for number in range(at_once)]
        windows: exp.Expr = exp.Anonymous(this="ARRAY", expressions=each)
    else:
        every = f"TRANSFORM(SEQUENCE(0, :last), i -> {one.replace(':further', '(-i * :slide)')})"
        windows = formula(every, last=at_once - 1, slide=slide, **parts)
    within = formula(":window.end > :at", window=column_tree(name), at=at)
    called = exp.Anonymous(this="EXPLODE", expressions=[windows])
    return Filter(Generate(there, scalar_of(called), False, (name,)), scalar_of(within))


def _kind(at: exp.Expr) -> str:
    """The type of a time that was cast to it; none where it isn't known."""
    if not isinstance(at, exp.Cast):
        return ""
    kind = at.to.sql(dialect="spark").upper()
    return kind if kind in TIMES else ""


def _in_sessions(node: Node, call: exp.Expr, keys: list[exp.Expr], name: str, where: str) -> Node:
    """Sessions: a row begins one when it lies behind the end of all rows before it."""
    at, *spans = call.expressions
    gap = _micros(spans[0] if spans else None, call, where)
    if gap <= 0:
        raise _refusal(call, where, "its gap is not positive")
    outputs: dict[str, Scalar] = dict(unchanged(node.columns))
    partition: list[str] = []
    for number, key in enumerate(keys, 1):
        bare = key.unnest()
        own = bare.name if isinstance(bare, exp.Column) else f"{name}.key_{number}"
        outputs.setdefault(own, scalar_of(bare))
        partition.append(own)
    starts, ends = f"{name}.at", f"{name}.until"
    until = formula(f":at + {AS_INTERVAL}", at=at, micros=gap)
    # a date that is added to is a time, as it is for Spark
    begin = formula(":at + MAKE_DT_INTERVAL(0, 0, 0, 0)", at=at)
    outputs |= {starts: scalar_of(begin), ends: scalar_of(until)}
    rows = Filter(
        Project(node, tuple(outputs.items())),
        scalar_of(column_tree(starts).is_(exp.null()).not_()),
    )
    reach, number_of = f"{name}.reach", f"{name}.number"

    def over(call: str, order: str, frame: str = "", *, by: tuple[str, ...] = ()) -> exp.Expr:
        parts = ", ".join(f":{'k' * (i + 1)}" for i in range(len((*partition, *by))))
        partitioned = f"PARTITION BY {parts}" if parts else ""
        columns = {"k" * (i + 1): column_tree(each) for i, each in enumerate((*partition, *by))}
        return formula(
            f"{call} OVER ({partitioned} {order} {frame})",
            starts=column_tree(starts),
            ends=column_tree(ends),
            reach=column_tree(reach),
            **columns,
        )

    before = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    so_far = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    is_new = "SUM(CASE WHEN :starts <= :reach THEN 0 ELSE 1 END)"
    calls = (
        (reach, over("MAX(:ends)", "ORDER BY :starts", before)),
        (number_of, over(is_new, "ORDER BY :starts", so_far)),
        (f"{name}.first", over("MIN(:starts)", "", by=(number_of,))),
        (f"{name}.last", over("MAX(:ends)", "", by=(number_of,))),
    )
    scalars = tuple((each, scalar_of(tree)) for each, tree in calls)
    windowed = Windowed(rows, tuple(dict.fromkeys(partition)), scalars)
    session = formula(
        "NAMED_STRUCT('start', :first, 'end', :last)",
        first=column_tree(f"{name}.first"),
        last=column_tree(f"{name}.last"),
    )
    return Project(windowed, (*unchanged(node.columns), (name, scalar_of(session))))


def _micros(tree: exp.Expr | None, call: exp.Expr, where: str) -> int:
    """The microseconds of '1 hour 30 minutes'."""
    if isinstance(tree, exp.Interval):
        unit = tree.args.get("unit")
        written = f"{tree.this.name} {unit.name if unit is not None else ''}"
    elif isinstance(tree, exp.Literal) and tree.is_string:
        written = tree.name
    else:
        raise _refusal(call, where, "a length that is not written as text, like '5 minutes'")
    written = written.strip().lower().removeprefix("interval ").strip()
    parts = PART.findall(written)
    if not parts or PART.sub("", written).strip() or any(u not in MICROSECONDS for _, u in parts):
        raise _refusal(call, where, f"{written!r} has no fixed length")
    return sum(int(count) * MICROSECONDS[unit] for count, unit in parts)


def _refusal(call: exp.Expr, where: str, reason: str) -> Unsupported:
    return Unsupported(
        call.sql(dialect="spark"),
        position=where,
        reason=reason,
        rewrite="window(ts, '1 hour'), window(ts, '1 hour', '15 minutes'), "
        "session_window(ts, '5 minutes')",
    )
