"""What a program says of a table that it reads, beside what the table is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.model.errors import DatalogError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ivm_core.model.schema import Schema

NAMES = {"BIGINT": "number", "INT": "int32", "DOUBLE": "float", "STRING": "symbol"}
"""By the type of a column the type that declares it in a program."""


@dataclass(frozen=True)
class ExpectedColumns:
    """An input relation: the columns that are read of a source or view, by their names."""

    relation: str
    schema: Schema
    declared: str
    """As the program has it."""
    where: str

    def check(self, typed: Mapping[str, Schema], untyped: Mapping[str, Schema]) -> None:
        """`DatalogError` where there is no such relation, or with other columns.

        Of those that are `untyped` only the names of columns are known.
        """
        relations = {**untyped, **typed}
        spelled = {name.casefold(): name for name in relations}
        name = spelled.get(self.relation.casefold())
        if name is None:
            raise DatalogError(
                f"the input {self.relation} is neither a source nor a view of the pipeline",
                where=self.where,
                fix=f"declare a source of that name, or read one of: {', '.join(relations)}",
                rule=self.declared,
            )
        found = relations[name]
        missing = [each.name for each in self.schema if each.name not in found]
        if missing:
            raise self._misfit(
                f"it has no column {missing[0]}",
                f"its columns are {', '.join(found.names)}",
            )
        if name in typed:
            self._check_types(found)

    def _check_types(self, found: Schema) -> None:
        for each in self.schema:
            there = found.field(each.name).type.ddl
            if there != each.type.ddl:
                known = NAMES.get(there)
                cast = f"CAST it AS {each.type.ddl} in a view, and let the program read that"
                raise self._misfit(
                    f"{each.name} is {there} there, and {each.type.ddl} "
                    f"({NAMES[each.type.ddl]}) here",
                    f"declare {each.name} as {known}, or {cast}" if known else cast,
                )

    def _misfit(self, why: str, fix: str) -> DatalogError:
        return DatalogError(
            f"the input {self.relation} is not as the pipeline's {self.relation}: {why}",
            where=self.where,
            fix=fix,
            rule=self.declared,
        )


def check_expected(
    expects: Iterable[ExpectedColumns],
    circle: Iterable[str],
    typed: Mapping[str, Schema],
    untyped: Mapping[str, Schema],
) -> None:
    """Check all that is said of relations outside of the circle that says it; as `check`."""
    own = {name.casefold() for name in circle}
    for each in expects:
        if each.relation.casefold() not in own:
            each.check(typed, untyped)
