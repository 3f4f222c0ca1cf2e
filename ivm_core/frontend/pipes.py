"""The pipe `|>`: each operator is a SELECT over what stands before it.

    FROM t |> WHERE x > 1 |> AGGREGATE COUNT(*) AS n GROUP BY k
    SELECT k, COUNT(*) AS n FROM (SELECT * FROM t WHERE x > 1) AS t GROUP BY k

An operator goes into the SELECT before it where that says the same, so that the names of relations
stay visible as long as they do in Spark.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

CUT = ("limit", "offset", "order", "distinct", "group", "having", "qualify", "with_", "with")
"""What a SELECT does after its select list, or must stay in front of it."""


OPERATORS = {
    "WHERE": "where",
    "SELECT": "select",
    "EXTEND": "extend",
    "SET": "set",
    "DROP": "drop",
    "AS": "as",
    "ORDER BY": "order",
    "LIMIT": "limit",
    "OFFSET": "limit",
    "AGGREGATE": "aggregate",
    "PIVOT": "pivot",
    "UNPIVOT": "pivot",
}
"""The words that an operator begins with, and the method that reads it."""


class PipeParser(SparkParser):
    """Spark's parser, with the operators of pipes."""

    def _parse_pipe_syntax_query(self, query: exp.Query) -> exp.Query | None:
        while isinstance(query, exp.Subquery) and [*filter(query.args.get, query.args)] == ["this"]:
            query = query.this
        while self._match(TokenType.PIPE_GT):
            word = " ".join(self._curr.text.upper().split())
            if word not in OPERATORS:
                query = self._joined_or_combined(query, word)
            else:
                self._advance()
                query = getattr(self, f"_pipe_{OPERATORS[word]}")(query)
        return query

    def _joined_or_combined(self, query: exp.Query, word: str) -> exp.Query:
        if word in ("UNION", "EXCEPT", "INTERSECT", "MINUS"):
            return self._combined(query)
        over = _over(query, ("where",))
        join = self._parse_join()
        if join is None:
            self.raise_error(f"the pipe operator {word} is not known")
            return query
        return over.join(join, copy=False)

    def _combined(self, query: exp.Query) -> exp.Query:
        found = self._parse_set_operations(exp.Subquery(this=query))
        if not isinstance(found, exp.SetOperation):
            self.raise_error("a query is expected after the set operation")
            return query
        return _selected(found)

    def _pipe_where(self, query: exp.Query) -> exp.Query:
        return _over(query).where(self._parse_disjunction(), copy=False)

    def _pipe_select(self, query: exp.Query) -> exp.Query:
        over = _over(query)
        over.set("distinct", exp.Distinct() if self._match(TokenType.DISTINCT) else None)
        over.set("expressions", self._parse_expressions())
        return over

    def _pipe_extend(self, query: exp.Query) -> exp.Query:
        over = _over(query)
        over.set("expressions", [exp.Star(), *self._parse_expressions()])
        return over

    def _pipe_set(self, query: exp.Query) -> exp.Query:
        for change in self._parse_csv(self._parse_assignment):
            query = _over(query)
            if not isinstance(change, exp.EQ):
                self.raise_error("SET column = value is expected")
                return query
            changed = exp.alias_(change.expression, exp.to_identifier(change.this.name))
            query.set("expressions", [exp.Star(replace=[changed])])
        return query

    def _pipe_drop(self, query: exp.Query) -> exp.Query:
        over = _over(query)
        dropped = self._parse_csv(self._parse_id_var)
        over.set("expressions", [exp.Star(except_=dropped)])
        return over

    def _pipe_as(self, query: exp.Query) -> exp.Query:
        return _selected(query, self._parse_id_var())

    def _pipe_order(self, query: exp.Query) -> exp.Query:
        ordered = self._parse_csv(self._parse_ordered)
        over = _over(query, ("limit", "offset"))
        over.set("order", exp.Order(expressions=ordered))
        return over

    def _pipe_limit(self, query: exp.Query) -> exp.Query:
        self._retreat(self._index - 1)
        limit, offset = self._parse_limit(), self._parse_offset()
        if query.args.get("limit") or query.args.get("offset"):
            query = _selected(query)
        query.set("limit", limit)
        query.set("offset", offset)
        return query

    def _pipe_aggregate(self, query: exp.Query) -> exp.Query:
        over = _over(query)
        has_items = not self._match(TokenType.GROUP_BY, advance=False)
        items = self._parse_expressions() if has_items else []
        keys = self._parse_expressions() if self._match(TokenType.GROUP_BY) else []
        if any(isinstance(key.unalias(), exp.Literal) for key in keys):
            self.raise_error("GROUP BY of positions in a pipe is not known; name the columns")
        over.set("expressions", [*keys, *items])
        if keys:
            grouped = [key.unalias().copy() for key in keys]
            over.set("group", exp.Group(expressions=grouped))
        return over

    def _pipe_pivot(self, query: exp.Query) -> exp.Query:
        self._retreat(self._index - 1)
        pivots = self._parse_pivots()
        derived = _parenthesised(query)
        derived.set("pivots", pivots)
        return exp.Select(expressions=[exp.Star()]).from_(derived, copy=False)


def _over(query: exp.Query, more: tuple[str, ...] = ()) -> exp.Select:
    """A SELECT of all columns of a query, into which the next operator can be put."""
    is_cut = any(query.args.get(key) for key in (*CUT, *more))
    if isinstance(query, exp.Select) and [*map(str, query.expressions)] == ["*"] and not is_cut:
        return query
    return _selected(query)


def _selected(query: exp.Query, alias: exp.Expr | None = None) -> exp.Select:
    """`SELECT * FROM (query) AS alias`; its common table expressions stay in front."""
    common = query.args.get("with_")
    query.set("with_", None)
    made = exp.Select(expressions=[exp.Star()]).from_(_parenthesised(query, alias), copy=False)
    made.set("with_", common)
    return made


def _parenthesised(query: exp.Query, alias: exp.Expr | None = None) -> exp.Subquery:
    """The query in parentheses, under the name of what it reads alone."""
    if alias is None and isinstance(query, exp.Select) and not query.args.get("joins"):
        start = query.args.get("from_")
        name = start.this.alias_or_name if start is not None else ""
        alias = exp.to_identifier(name, quoted=True) if name else None
    named = None if alias is None else exp.TableAlias(this=alias)
    return exp.Subquery(this=query, alias=named)
