"""Scalar expressions as the plan sees them: identity, columns read, an opaque tree."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Scalar:
    """A deterministic expression over the columns of one relation.

    `sql` is the canonical text and the identity; `tree` belongs to the front end and to the
    operators that render it, the plan never looks inside.
    """

    sql: str
    columns: frozenset[str]
    tree: object = field(compare=False, repr=False)
    is_column: bool = False

    @property
    def column(self) -> str:
        """The one column that this expression is; only for `is_column`."""
        if not self.is_column:
            raise ValueError(f"{self.sql} is not a bare column")
        return next(iter(self.columns))
