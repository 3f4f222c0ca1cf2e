"""LEFT SEMI and LEFT ANTI JOIN, as the conditions that they are.

    a LEFT SEMI JOIN b ON c   =   a WHERE EXISTS (SELECT 1 FROM b WHERE c)

so that `*` and names see the left side alone, as in Spark.
"""

from __future__ import annotations

from sqlglot import exp

from ivm_core.model.errors import Unsupported


def with_exists(tree: exp.Expr, where: str) -> exp.Expr:
    """The query with such joins among its conditions."""
    for select in list(tree.find_all(exp.Select)):
        joins = select.args.get("joins") or []
        found = [join for join in joins if join.kind in ("SEMI", "ANTI")]
        if not found:
            continue
        following = joins[joins.index(found[0]) :]
        if any(join.side in ("RIGHT", "FULL") for join in following):
            raise _refusal("a SEMI or ANTI JOIN before a RIGHT or FULL JOIN", where)
        if any(join.args.get("using") for join in found):
            raise _refusal("a SEMI or ANTI JOIN with USING", where)
        select.set("joins", [join for join in joins if join not in found])
        for join in found:
            inner = exp.select("1").from_(join.this.copy())
            if join.args.get("on") is not None:
                inner = inner.where(join.args["on"].copy())
            exists: exp.Expr = exp.Exists(this=inner)
            select.where(exists if join.kind == "SEMI" else exists.not_(), copy=False)
    return tree


def _refusal(construct: str, where: str) -> Unsupported:
    return Unsupported(
        construct,
        position=where,
        reason="it is read as a condition of WHERE, which comes after all joins",
        rewrite="write it as WHERE [NOT] EXISTS (…) in a derived table",
    )
