"""A Datalog program as it is written: frozen nodes, each with its place in the text."""

from __future__ import annotations

from dataclasses import dataclass, field

from ivm_core.model.errors import position


@dataclass(frozen=True)
class Place:
    """Line and column in the program's text, from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return position(self.line, self.column)


NOWHERE = Place(0, 0)


@dataclass(frozen=True)
class Variable:
    """A name that stands for a value."""

    name: str
    place: Place = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Wildcard:
    """`_`: any value."""

    place: Place = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return "_"


@dataclass(frozen=True)
class Constant:
    """A literal: a whole number, a float, a text; `is_unsigned` for one written as `1u`."""

    value: int | float | str
    place: Place = field(default=NOWHERE, compare=False)
    is_unsigned: bool = False

    def __str__(self) -> str:
        if isinstance(self.value, str):
            escaped = self.value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            return f'"{escaped}"'
        return f"{self.value}u" if self.is_unsigned else str(self.value)


@dataclass(frozen=True)
class Call:
    """A functor of expressions; operators are functors called `+`, `-`, … and `neg`."""

    functor: str
    arguments: tuple[Expression, ...]
    place: Place = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        shown = [str(each) for each in self.arguments]
        if self.functor == "neg":
            return f"-{shown[0]}"
        if not self.functor[0].isalpha():
            return f"({f' {self.functor} '.join(shown)})"
        return f"{self.functor}({', '.join(shown)})"


@dataclass(frozen=True)
class HeadAggregate:
    """`min(d + w)` in a head; `count()` has no operand."""

    function: str
    operand: Expression | None
    place: Place = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"{self.function}({'' if self.operand is None else self.operand})"


@dataclass(frozen=True)
class BodyAggregate:
    """`min v : { a(_, v) }` in a body."""

    function: str
    operand: Expression | None
    body: Formula
    place: Place = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        of = "" if self.operand is None else f" {self.operand}"
        return f"{self.function}{of} : {{ {self.body} }}"


Expression = Variable | Wildcard | Constant | Call | HeadAggregate | BodyAggregate


@dataclass(frozen=True)
class Atom:
    """A relation of arguments."""

    relation: str
    arguments: tuple[Expression, ...]
    place: Place = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"{self.relation}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class Comparison:
    """Two expressions and what is said of them: `=`, `!=`, `<`, `<=`, `>`, `>=`."""

    operator: str
    left: Expression
    right: Expression
    place: Place = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True)
class Negation:
    """`!` and a formula."""

    formula: Formula
    place: Place = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"!{self.formula}"


@dataclass(frozen=True)
class Conjunction:
    """Formulas that all hold."""

    parts: tuple[Formula, ...]

    def __str__(self) -> str:
        return ", ".join(f"({p})" if isinstance(p, Disjunction) else str(p) for p in self.parts)


@dataclass(frozen=True)
class Disjunction:
    """Formulas of which one holds."""

    parts: tuple[Formula, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.parts))


Formula = Atom | Comparison | Negation | Conjunction | Disjunction


@dataclass(frozen=True)
class Rule:
    """Heads that hold where the body does; a fact has no body. `text` is as it was written."""

    heads: tuple[Atom, ...]
    body: Formula | None
    text: str
    place: Place


@dataclass(frozen=True)
class Declaration:
    """`.decl`: a relation's name, and the names and types of its columns."""

    name: str
    columns: tuple[tuple[str, str, Place], ...]
    place: Place
    text: str


@dataclass(frozen=True)
class TypeName:
    """`.type`: another name for a type."""

    name: str
    of: str
    place: Place


@dataclass(frozen=True)
class Mention:
    """A relation in `.input` or `.output`."""

    relation: str
    place: Place


@dataclass(frozen=True)
class Source:
    """A whole program as it is written."""

    declarations: tuple[Declaration, ...] = ()
    types: tuple[TypeName, ...] = ()
    inputs: tuple[Mention, ...] = ()
    outputs: tuple[Mention, ...] = ()
    rules: tuple[Rule, ...] = ()
