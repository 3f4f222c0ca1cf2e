"""Recursion: the least fixpoint of the rules of a component.

    R = F(R, L)        R the component's views, L what they read besides; F grows with R

From nothing, or from what is known (semi-naive): only rows that are new can derive new ones.
    N₀ = F(∅, L)       Nᵢ₊₁ = ∂F(Nᵢ; Rᵢ, L) − Rᵢ       Rᵢ₊₁ = Rᵢ + Nᵢ₊₁
∂F(N; R, L) is the sum of F's terms: each rule with one of its reads replaced by N, the others as
they are. For MIN and MAX, `− Rᵢ` keeps the rows that are better than what their group has.

A change of L (delete and rederive):
    1. D₀ = rows with a derivation that ΔL takes away, among all that there were;
       Dᵢ₊₁ = ∂F(Dᵢ; R, L) − Dᵢ                all that may stand on them
    2. R′ = R − D                               what is left has derivations without them
    3. N₀ = (D ⋉ F(R′, L + ΔL)) ∪ rows that ΔL gives;  then semi-naive from R′
Counting derivations instead would be wrong in cycles, where rows would hold each other up. For
UNION ALL, where rows are counted and no cycle ends, F is linear in R, and the change is a sum:
    ΔR = Σᵢ Sⁱ(F(R, L + ΔL) − F(R, L))          S the part of F that reads R, over L + ΔL

Here is how rules and terms are rendered. The loop is the engine's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.model.types import FLOAT_KINDS, has_float
from ivm_core.operators.extremes import with_one_zero
from ivm_core.operators.formula import formula
from ivm_core.operators.operator import Form
from ivm_core.operators.sql import column, named, relation, select, tree_of, union_all
from ivm_core.plan.nodes import Project
from ivm_core.plan.recursion import BAG, MAX, MIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ivm_core.model.schema import Schema
    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.nodes import Node
    from ivm_core.plan.recursion import Rules

NAN = (
    "the recursion of {view} adds up to NaN, which is in no order with what a {fold} has found: "
    "infinite values of both signs were added, or a NaN was given"
)
WANTED = "?wanted"
"""The relation of the rows of which derivations are looked for."""
KNOWN = "?known"
"""The relation of what is known of the groups of some rows."""
FOUND = "?found"
"""The relation of rows that may be better than what is known."""


class FixpointStatements:
    """The statements of one view of a component."""

    def __init__(self, rules: Rules, rendering: Rendering, schema: Schema) -> None:
        """`rendering` renders the trees of rules, of which `schema` are the columns."""
        self.rules = rules
        self._schema = schema
        self._rendering = rendering

    @property
    def form(self) -> Form:
        """How the relations of rules are read: as plain rows, or with weights that are counted."""
        return Form.OLD if self.rules.fold == BAG else Form.PLAIN

    def derived(self, plans: Sequence[Node], *, folded: bool = True) -> exp.Query | None:
        """All rows that the plans derive, put together as the view does it.

        Without `folded` every row is there once, also those that an extreme leaves out.
        """
        queries = [self._rendered(plan) for plan in plans]
        present = [query for query in queries if query is not None]
        if not present:
            return None
        return self._together(union_all(present), folded=folded)

    def derivable(self, *, by_key: bool) -> exp.Query | None:
        """What the rules derive of wanted rows, or for wanted keys."""
        queries = [self._rendered(plan) for plan in self.rules.branches]
        present = [query for query in queries if query is not None]
        if not present:
            return None
        names = self.rules.keys if by_key else self.rules.columns
        found = select(
            [column(name, "p0") for name in self.rules.columns],
            union_all(present).subquery("p0", copy=False),
        )
        if names:
            found = found.join(
                relation(WANTED).as_("p1"),
                on=_same(names, "p0", "p1"),
                join_type="LEFT SEMI",
                copy=False,
            )
        return self._together(found, folded=by_key)

    def better(self) -> exp.Query:
        """The found rows that beat what is known of their group, or whose group is not known."""
        rules = self.rules
        flag = named(exp.true(), KNOWN)
        known = select([*(column(name) for name in rules.columns), flag], relation(KNOWN))
        ours, theirs = column(rules.value, "p0"), column(rules.value, "p1")
        beats = (exp.LT if rules.fold == MIN else exp.GT)(this=ours, expression=theirs)
        is_first = exp.Is(this=theirs.copy(), expression=exp.null())
        has_value = exp.Not(this=exp.Is(this=ours.copy(), expression=exp.null()))
        is_new = exp.Is(this=column(KNOWN, "p1"), expression=exp.null())
        return (
            select([column(name, "p0") for name in rules.columns], relation(FOUND).as_("p0"))
            .join(
                known.subquery("p1", copy=False),
                on=_same(rules.keys, "p0", "p1"),
                join_type="LEFT OUTER",
                copy=False,
            )
            .where(exp.or_(is_new, beats, exp.and_(is_first, has_value)), copy=False)
        )

    def _rendered(self, plan: Node) -> exp.Query | None:
        query = self._rendering.render(plan, self.form)
        if query is None or not self._can_give_nan(plan):
            return query
        rules = self.rules
        kind = self._schema.field(rules.value).type.ddl
        value = formula(
            f"NANVL(:x, CAST(RAISE_ERROR(:told) AS {kind}))",
            x=column(rules.value),
            told=exp.Literal.string(NAN.format(view=rules.view, fold=rules.fold)),
        )
        return select(
            [named(value, n) if n == rules.value else column(n) for n in rules.columns], query
        )

    def _can_give_nan(self, plan: Node) -> bool:
        """Whether a rule adds to an extreme that may be infinite: inf − inf has no order."""
        rules = self.rules
        if not rules.value or self._schema.field(rules.value).type.kind not in FLOAT_KINDS:
            return False
        if not any(name.partition("?")[0] in rules.component for name in plan.relations):
            return False
        sums = (
            tree_of(scalar).find(exp.Add, exp.Sub)
            for node in plan.walk()
            if isinstance(node, Project)
            for _, scalar in node.outputs
        )
        return any(found is not None for found in sums)

    def _together(self, query: exp.Query, *, folded: bool) -> exp.Query:
        rules = self.rules
        if rules.fold == BAG:
            return query
        if folded and rules.fold in (MIN, MAX):
            call = exp.Min if rules.fold == MIN else exp.Max
            outputs = [
                named(call(this=column(name)), name) if name == rules.value else column(name)
                for name in rules.columns
            ]
            grouped = select(outputs, self._with_one_zero(query))
            keys = [column(name) for name in rules.keys]
            # no row, no group: what is derived from nothing is nothing
            some = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
            return grouped.group_by(*keys, copy=False) if keys else grouped.having(some, copy=False)
        outputs = [column(name) for name in rules.columns]
        return select(outputs, self._with_one_zero(query)).distinct(copy=False)

    def _with_one_zero(self, query: exp.Query) -> exp.Query:
        """Rows of which the ones that GROUP BY takes for equal have the same bits.

        Spark does it too, but not where it sees that a statement has only one row.
        """
        if not any(has_float(each.type) for each in self._schema):
            return query
        outputs = []
        for name in self.rules.columns:
            value = with_one_zero(column(name), self._schema.field(name).type)
            outputs.append(named(value, name))
        return select(outputs, query)


def _same(names: Sequence[str], ours: str, theirs: str) -> exp.Expr:
    pairs = [
        exp.NullSafeEQ(this=column(name, ours), expression=column(name, theirs)) for name in names
    ]
    return exp.and_(*pairs) if pairs else exp.true()
