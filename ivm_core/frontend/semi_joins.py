"""LEFT SEMI and LEFT ANTI JOIN, as the conditions that they are.

    a LEFT SEMI JOIN b ON c   =   a WHERE EXISTS (SELECT 1 FROM b WHERE c)

so that `*` and names see the left side alone, as in Spark. Before a RIGHT or FULL JOIN, which would
bring rows of its own to that condition, it remains a join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.outer import relations
from ivm_core.frontend.spelling import folded
from ivm_core.model.errors import Unsupported
from ivm_core.operators.sql import column

if TYPE_CHECKING:
    from collections.abc import Callable


def with_exists(
    tree: exp.Expr, columns_of: Callable[[exp.Expr], list[str]], where: str
) -> exp.Expr:
    """The query with such joins among its conditions."""
    for join in tree.find_all(exp.Join):
        if join.kind in ("SEMI", "ANTI") and not isinstance(join.parent, exp.Select):
            raise _refusal("a SEMI or ANTI JOIN in parentheses", where)
    for select in list(tree.find_all(exp.Select)):
        joins = select.args.get("joins") or []
        found = [join for join in joins if join.kind in ("SEMI", "ANTI")]
        if not found:
            continue
        following = joins[joins.index(found[0]) :]
        if any(join.side in ("RIGHT", "FULL") for join in following):
            if any(_used(join) for join in found):
                raise _refusal("a SEMI or ANTI JOIN with USING before a RIGHT or FULL JOIN", where)
            continue
        for number, join in enumerate(found, 1):
            before = relations(select)[: joins.index(join) + 1]
            inner = _condition(join, before, columns_of, number)
            _put_first(select, _used(join))
            exists: exp.Expr = exp.Exists(this=inner)
            select.where(exists if join.kind == "SEMI" else exists.not_(), copy=False)
        select.set("joins", [join for join in joins if join not in found])
    return tree


def _used(join: exp.Join) -> list[str]:
    return [each.name for each in join.args.get("using") or ()]


def _put_first(select: exp.Select, names: list[str]) -> None:
    """A star begins with the shared columns."""
    items: list[exp.Expr] = []
    for item in select.expressions:
        if isinstance(item, exp.Star) and names:
            columns = [exp.to_identifier(name, quoted=True) for name in names]
            items += [exp.column(each.copy()) for each in columns]
            item.set("except_", [*(item.args.get("except_") or ()), *columns])
        items.append(item)
    select.set("expressions", items)


def _condition(
    join: exp.Join,
    before: list[exp.Expr],
    columns_of: Callable[[exp.Expr], list[str]],
    number: int,
) -> exp.Select:
    """What EXISTS asks for: the joined rows that match."""
    using = _used(join)
    if not using:
        inner = exp.select("1").from_(join.this.copy())
        on = join.args.get("on")
        return inner if on is None else inner.where(on.copy())
    alias = exp.to_identifier(f"?joined_{number}", quoted=True)
    whole = exp.Select(expressions=[exp.Star()]).from_(join.this.copy())
    inner = exp.select("1").from_(exp.Subquery(this=whole, alias=exp.TableAlias(this=alias)))
    owners: dict[str, str] = {}
    if len(before) > 1:
        # the first that has a column owns it
        for each in reversed(before):
            owners |= dict.fromkeys(map(folded, columns_of(each)), each.alias_or_name)
    for name in using:
        owner = owners.get(folded(name), before[0].alias_or_name)
        same = exp.EQ(this=column(name, owner), expression=column(name, alias.name))
        inner = inner.where(same)
    return inner


def _refusal(construct: str, where: str) -> Unsupported:
    return Unsupported(
        construct,
        position=where,
        reason="it is read as a condition of WHERE, which comes after all joins",
        rewrite="write it as WHERE [NOT] EXISTS (…) in a derived table",
    )
