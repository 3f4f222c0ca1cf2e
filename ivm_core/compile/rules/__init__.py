"""Rewrites that keep a plan's meaning, one file a rule, applied in the order of `RULES`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.compile.rules.factor_disjunctions import factor_disjunctions
from ivm_core.compile.rules.flatten_joins import flatten_joins
from ivm_core.compile.rules.merge_projects import merge_projects
from ivm_core.compile.rules.place_conditions import place_conditions
from ivm_core.compile.rules.prune_columns import prune_columns
from ivm_core.compile.rules.split_conjunctions import split_conjunctions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ivm_core.model.schema import Schema
    from ivm_core.plan.nodes import Node

RULES: tuple[Callable[[Node, Mapping[str, Schema]], Node], ...] = (
    merge_projects,
    # what alternatives share becomes a conjunct, which is then split off
    factor_disjunctions,
    split_conjunctions,
    # flattened joins take conditions from all levels, so flattening comes before placing
    flatten_joins,
    place_conditions,
    # joins that had conditions between them
    flatten_joins,
    # pruning last: it wants to see every column that the others still use
    prune_columns,
    merge_projects,
)


def optimise(plan: Node, catalog: Mapping[str, Schema]) -> Node:
    """Apply every rule once, in order."""
    for rule in RULES:
        plan = rule(plan, catalog)
    return plan
