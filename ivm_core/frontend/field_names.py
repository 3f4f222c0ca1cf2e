"""Names of a struct's fields, written out before anything else takes the place of an expression.

    struct(max(x), k)      struct(max(x) AS col1, k AS k)
    arrays_zip(a, f(b))    transform(arrays_zip(coalesce(a), coalesce(f(b))),
                                     zipped -> named_struct('a', zipped.`0`, '1', zipped.`1`))

Spark takes them from the text of the arguments: a column's name, or a number. In a plan aggregates,
window functions, subqueries and columns of USING are columns with names of their own.
"""

from __future__ import annotations

from sqlglot import exp

from ivm_core.frontend.spelling import folded

ZIPPED = "zipped"
AS_THEY_ARE = (exp.Alias, exp.Star, exp.Identifier, exp.Dot)
"""Arguments that have a name, or that Spark gives one whatever the plan makes of them."""


def with_field_names(tree: exp.Expr) -> exp.Expr:
    """The query with such names written out."""
    for call in list(tree.find_all(exp.Anonymous)):
        kind = folded(call.name)
        if kind == "struct":
            numbered = enumerate(call.expressions, 1)
            call.set("expressions", [_named(each, f"col{number}") for number, each in numbered])
        elif kind == "arrays_zip" and call.expressions:
            call.replace(_zipped(call))
    return tree


def _named(argument: exp.Expr, otherwise: str) -> exp.Expr:
    bare = argument.unnest()
    if isinstance(bare, AS_THEY_ARE) or argument.is_star:
        return argument
    if isinstance(bare, exp.Column):
        if bare.table:
            return argument  # a column, or a field: told apart when names are looked up
        otherwise = bare.name
    return exp.Alias(this=argument, alias=exp.to_identifier(otherwise, quoted=True))


def _zipped(call: exp.Anonymous) -> exp.Expr:
    """The zipped arrays, by number, with their fields renamed element by element."""
    element = exp.to_identifier(ZIPPED, quoted=True)
    fields: list[exp.Expr] = []
    arrays: list[exp.Expr] = []
    for number, argument in enumerate(call.expressions):
        bare = argument.unnest()
        has_name = isinstance(bare, exp.Column | exp.Dot | exp.Identifier)
        fields.append(exp.Literal.string(bare.name if has_name else str(number)))
        place = exp.to_identifier(str(number), quoted=True)
        fields.append(exp.Dot(this=element.copy(), expression=place))
        arrays.append(exp.Anonymous(this="COALESCE", expressions=[argument]))
    body = exp.Anonymous(this="NAMED_STRUCT", expressions=fields)
    renamed = exp.Lambda(this=body, expressions=[element])
    zipped = exp.Anonymous(this=call.name, expressions=arrays)
    return exp.Anonymous(this="TRANSFORM", expressions=[zipped, renamed])
