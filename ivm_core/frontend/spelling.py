"""Names as they are compared and as they were written.

Spark compares names without regard to case and keeps the case in which they were written;
sqlglot turns all of them to lower case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Mapping

WRITTEN = "written"


def folded(name: str) -> str:
    """The name as it is compared: in lower case, as sqlglot makes it."""
    return name.lower()


def plan_alias(alias: str) -> str:
    """The alias as the plan has it: a dot of its own can't be taken for the one behind it."""
    return alias.replace("~", "~~").replace(".", "~.")


def plan_column(alias: str, name: str) -> str:
    """The plan's name of a column of an aliased relation."""
    return f"{plan_alias(alias)}.{folded(name)}"


def remember_spelling(tree: exp.Expr) -> None:
    """Note how every name is written, before it is turned to lower case."""
    for identifier in tree.find_all(exp.Identifier):
        identifier.meta[WRITTEN] = identifier.this
    for alias in tree.find_all(exp.TableAlias):
        columns = alias.args.get("columns") or ()
        if columns and alias.parent is not None:
            alias.parent.meta[WRITTEN] = [column.name for column in columns]


def column_list(relation: exp.Expr) -> list[str]:
    """The names in `relation AS alias(a, b)`, as written; none without such a list."""
    return list(relation.meta.get(WRITTEN) or ())


def as_written(tree: exp.Expr | None) -> str | None:
    """The spelling of the name that a tree ends in; None where it has none."""
    while isinstance(tree, exp.Cast | exp.Paren | exp.Dot | exp.Column | exp.Alias):
        tree = tree.expression if isinstance(tree, exp.Dot) else tree.this
    if not isinstance(tree, exp.Identifier):
        return None
    written = tree.meta.get(WRITTEN)
    return written if isinstance(written, str) else None


def output_name(item: exp.Expr, spelled: Mapping[str, str]) -> str:
    """The name of an output column: of its alias, else of its column, else as it was declared.

    `spelled` has the declared names of the columns that a star stands for, by `alias.column`.
    """
    name = item.alias_or_name
    bare = item.unalias()
    for written in (as_written(item.args.get("alias")), as_written(bare)):
        if written is not None and folded(written) == folded(name):
            return written
    if isinstance(bare, exp.Column):
        declared = spelled.get(plan_column(bare.table, bare.name), name)
        return declared if folded(declared) == folded(name) else name
    return name
