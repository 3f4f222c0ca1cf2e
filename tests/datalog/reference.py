"""Datalog by the book, over Python sets: what sessions and batch mode are compared with.

It shares the parser with the product and nothing else: nested loops, every rule again and again
until nothing new comes, stratum by stratum. Slow, and easy to believe.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ivm_core.frontend.datalog.parsing import parse_program
from ivm_core.frontend.datalog.syntax import (
    Atom,
    BodyAggregate,
    Call,
    Comparison,
    Conjunction,
    Constant,
    Disjunction,
    HeadAggregate,
    Negation,
    Variable,
    Wildcard,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ivm_core.frontend.datalog.syntax import Rule

Env = dict[str, Any]
Facts = dict[str, set[tuple[Any, ...]]]
MOST = 2**63 - 1
BETTER = {"min": min, "max": max}


def evaluate(program: str, facts: Mapping[str, Iterable[tuple[Any, ...]]]) -> Facts:
    """Every relation of a program over given facts."""
    source = parse_program(program)
    floats = {
        (each.name, place)
        for each in source.declarations
        for place, (_, kind, _) in enumerate(each.columns)
        if kind == "float"
    }
    known: Facts = {each.name: set(facts.get(each.name, ())) for each in source.declarations}
    levels = _levels(source.rules, list(known))
    for level in sorted(set(levels.values())):
        rules = [
            (rule, head)
            for rule in source.rules
            for head in rule.heads
            if levels[head.relation] == level
        ]
        _complete(rules, known, floats)
    return known


def _levels(rules: Iterable[Rule], names: list[str]) -> dict[str, int]:
    """Numbers such that what is denied or summed up has a lower one than what needs it."""
    levels = dict.fromkeys(names, 0)
    changed = True
    while changed:
        changed = False
        for rule in rules:
            for head in rule.heads:
                sums = any(
                    isinstance(each, HeadAggregate) and each.function not in BETTER
                    for each in head.arguments
                )
                for name, strict in _reads(rule.body):
                    least = levels[name] + (strict or sums)
                    if levels[head.relation] < least:
                        levels[head.relation] = least
                        changed = True
                        assert least <= len(names), "no strata"
    return levels


def _reads(part: Any, strict: bool = False) -> Iterator[tuple[str, bool]]:
    if isinstance(part, Atom):
        if part.relation not in ("contains", "match"):
            yield part.relation, strict
        for each in part.arguments:
            yield from _reads(each, strict)
    elif isinstance(part, Negation):
        yield from _reads(part.formula, True)
    elif isinstance(part, BodyAggregate):
        yield from _reads(part.body, True)
    elif isinstance(part, Conjunction | Disjunction):
        for each in part.parts:
            yield from _reads(each, strict)
    elif isinstance(part, Comparison):
        yield from _reads(part.left, strict)
        yield from _reads(part.right, strict)
    elif isinstance(part, Call):
        for each in part.arguments:
            yield from _reads(each, strict)


def _complete(rules: list[tuple[Rule, Atom]], known: Facts, floats: set[tuple[str, int]]) -> None:
    folded: dict[str, dict[int, str]] = {}
    for _, head in rules:
        for place, each in enumerate(head.arguments):
            if isinstance(each, HeadAggregate):
                folded.setdefault(head.relation, {})[place] = each.function
    given = {head.relation: set(known[head.relation]) for _, head in rules}
    while True:
        ways: dict[str, list[tuple[Any, ...]]] = {name: list(rows) for name, rows in given.items()}
        for rule, head in rules:
            world = _World(rule, head, known)
            for env in world.solutions():
                row = tuple(
                    _as(world.head_value(each, env), (head.relation, place) in floats)
                    for place, each in enumerate(head.arguments)
                )
                ways[head.relation].append(row)
        found = {name: _folded(rows, folded.get(name, {})) for name, rows in ways.items()}
        if all(found[name] == known[name] for name in found):
            return
        known.update(found)


def _as(value: Any, is_float: bool) -> Any:
    return float(value) + 0.0 if is_float else value


def _folded(rows: list[tuple[Any, ...]], places: dict[int, str]) -> set[tuple[Any, ...]]:
    if not places:
        return set(rows)
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in rows:
        groups.setdefault(tuple(v for i, v in enumerate(row) if i not in places), []).append(row)
    return {
        tuple(
            _aggregate(places[i], [row[i] for row in group]) if i in places else value
            for i, value in enumerate(group[0])
        )
        for group in groups.values()
    }


def _aggregate(function: str, values: list[Any]) -> Any:
    if function == "count":
        return len(values)
    if function in BETTER:
        return BETTER[function](values)
    total = sum(map(Fraction, values))
    if function == "mean":
        return float(total / len(values))
    return float(total) if any(isinstance(v, float) for v in values) else _whole(int(total))


def _whole(value: int) -> int:
    if not -MOST - 1 <= value <= MOST:
        raise OverflowError(value)
    return value


class _World:
    """One rule over what is known."""

    def __init__(self, rule: Rule, head: Atom, known: Facts) -> None:
        self._rule = rule
        self._known = known
        self._outside = set(_outside(rule.body)) | {
            name for each in head.arguments for name in _names(each)
        }

    def solutions(self) -> Iterator[Env]:
        yield from [{}] if self._rule.body is None else self._solve([self._rule.body], {})

    def head_value(self, part: Any, env: Env) -> Any:
        if isinstance(part, HeadAggregate):
            return 1 if part.operand is None else self._value(part.operand, env)
        return self._value(part, env)

    def _solve(self, parts: list[Any], env: Env) -> Iterator[Env]:
        """All ways to make formulas hold, taking first what is ready."""
        parts = [each for p in parts for each in (p.parts if isinstance(p, Conjunction) else [p])]
        if any(isinstance(each, Conjunction) for each in parts):
            yield from self._solve(parts, env)
            return
        if not parts:
            yield env
            return
        for place, part in enumerate(parts):
            rest = parts[:place] + parts[place + 1 :]
            if isinstance(part, Disjunction):
                for way in part.parts:
                    yield from self._solve([way, *rest], env)
                return
            if isinstance(part, Negation) and not isinstance(part.formula, Atom):
                yield from self._solve([_denied(part.formula), *rest], env)
                return
            ways = self._ways(part, env)
            if ways is not None:
                for way in ways:
                    yield from self._solve(rest, way)
                return
        raise AssertionError(f"nothing of {parts} is ready")

    def _ways(self, part: Any, env: Env) -> list[Env] | None:
        """Environments in which a literal holds; None where it has to wait."""
        if isinstance(part, Negation):
            if not all(self._is_ready(each, env) for each in part.formula.arguments):
                return None
            return [] if self._ways(part.formula, env) else [env]
        if isinstance(part, Comparison):
            return self._compared(part, env)
        if part.relation in ("contains", "match") and part.relation not in self._known:
            if not all(self._is_ready(each, env) for each in part.arguments):
                return None
            one, text = (self._value(each, env) for each in part.arguments)
            holds = one in text if part.relation == "contains" else re.fullmatch(one, text)
            return [env] if holds else []
        waits = [
            each
            for each in part.arguments
            if not isinstance(each, Variable | Wildcard) and not self._is_ready(each, env)
        ]
        if waits:
            return None
        found = []
        for row in self._known[part.relation]:
            way = self._matched(part, row, env)
            if way is not None:
                found.append(way)
        return found

    def _matched(self, atom: Atom, row: tuple[Any, ...], env: Env) -> Env | None:
        way = dict(env)
        for argument, value in zip(atom.arguments, row, strict=True):
            if isinstance(argument, Wildcard):
                continue
            if isinstance(argument, Variable) and argument.name not in way:
                way[argument.name] = value
            elif self._value(argument, way) != value:
                return None
        return way

    def _compared(self, part: Comparison, env: Env) -> list[Env] | None:
        left, right = (self._is_ready(side, env) for side in (part.left, part.right))
        if part.operator == "=" and left != right:
            one, other = (part.right, part.left) if left else (part.left, part.right)
            if isinstance(one, Variable):
                return [{**env, one.name: self._value(other, env)}] if self._has(other, env) else []
        if not (left and right):
            return None
        if not (self._has(part.left, env) and self._has(part.right, env)):
            return []
        a, b = self._value(part.left, env), self._value(part.right, env)
        holds = {
            "=": a == b,
            "!=": a != b,
            "<": a < b,
            "<=": a <= b,
            ">": a > b,
            ">=": a >= b,
        }[part.operator]
        return [env] if holds else []

    def _is_ready(self, part: Any, env: Env) -> bool:
        if isinstance(part, BodyAggregate):
            inner = {*_names(part.body), *_names(part.operand)}
            return all(name in env for name in inner & self._outside)
        if isinstance(part, Call):
            return all(self._is_ready(each, env) for each in part.arguments)
        return not isinstance(part, Variable) or part.name in env

    def _has(self, part: Any, env: Env) -> bool:
        """Whether an expression has a value: the least of nothing has none."""
        if isinstance(part, BodyAggregate) and part.function not in ("count", "sum"):
            return bool(self._inner(part, env))
        if isinstance(part, Call):
            return all(self._has(each, env) for each in part.arguments)
        return True

    def _inner(self, part: BodyAggregate, env: Env) -> list[Env]:
        names = {*_names(part.body), *_names(part.operand)} & self._outside
        return list(self._solve([part.body], {name: env[name] for name in names}))

    def _value(self, part: Any, env: Env) -> Any:
        if isinstance(part, Constant):
            return part.value
        if isinstance(part, Variable):
            return env[part.name]
        if isinstance(part, BodyAggregate):
            ways = self._inner(part, env)
            if part.operand is None or (part.function == "sum" and not ways):
                return len(ways)
            return _aggregate(part.function, [self._value(part.operand, way) for way in ways])
        values = [self._value(each, env) for each in part.arguments]
        return _functor(part.functor, values)


def _functor(name: str, values: list[Any]) -> Any:
    first = values[0]
    if name in BETTER:
        return BETTER[name](values)
    if name == "cat":
        return "".join(values)
    if name == "strlen":
        return len(first)
    if name == "substr":
        _, start, length = values
        return first[start : start + length] if start >= 0 and length >= 0 else ""
    if name in ("to_number", "ftoi", "utoi"):
        return int(first)
    if name in ("to_float", "itof", "utof"):
        return float(first)
    if name == "to_string":
        return str(first)
    if name == "neg":
        return -first
    second = values[1]
    if name in ("/", "%") and isinstance(first, int):
        quotient = abs(first) // abs(second) * (1 if (first < 0) == (second < 0) else -1)
        return _whole(quotient) if name == "/" else first - second * quotient
    result = {
        "+": lambda: first + second,
        "-": lambda: first - second,
        "*": lambda: first * second,
        "/": lambda: first / second,
        "^": lambda: math.pow(first, second),
        "band": lambda: first & second,
        "bor": lambda: first | second,
        "bxor": lambda: first ^ second,
    }[name]()
    return _whole(result) if isinstance(result, int) else result


def _denied(part: Any) -> Any:
    if isinstance(part, Negation):
        return part.formula
    if isinstance(part, Comparison):
        opposite = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
        return Comparison(opposite[part.operator], part.left, part.right)
    other = Disjunction if isinstance(part, Conjunction) else Conjunction
    return other(tuple(Negation(each) for each in part.parts))


def _names(part: Any) -> Iterator[str]:
    if isinstance(part, Variable):
        yield part.name
    elif isinstance(part, Atom | Call):
        for each in part.arguments:
            yield from _names(each)
    elif isinstance(part, Comparison):
        yield from (*_names(part.left), *_names(part.right))
    elif isinstance(part, Negation):
        yield from _names(part.formula)
    elif isinstance(part, Conjunction | Disjunction):
        for each in part.parts:
            yield from _names(each)
    elif isinstance(part, HeadAggregate):
        yield from _names(part.operand)
    elif isinstance(part, BodyAggregate):
        yield from (*_names(part.body), *_names(part.operand))


def _outside(part: Any) -> Iterator[str]:
    """Variables that stand outside of aggregates."""
    if isinstance(part, BodyAggregate):
        return
    if isinstance(part, Atom | Call):
        for each in part.arguments:
            yield from _outside(each)
    elif isinstance(part, Comparison):
        yield from (*_outside(part.left), *_outside(part.right))
    elif isinstance(part, Negation):
        yield from _outside(part.formula)
    elif isinstance(part, Conjunction | Disjunction):
        for each in part.parts:
            yield from _outside(each)
    else:
        yield from _names(part)
