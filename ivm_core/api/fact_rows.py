"""Facts as a session gives them: like lists of tuples, read when they are first looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from ivm_core.model.errors import InternalError, UnknownName
from ivm_core.model.names import WEIGHT, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ivm_core.engine.summary import StepSummary

Fact = tuple[Any, ...]
R = TypeVar("R")
SHOWN = 20


class FactRows(Sequence[R], Generic[R]):
    """Rows in ascending order, as a list would have them; `.df` for more than the driver holds."""

    def __init__(self, load: Callable[[], list[R]], frame: Callable[[], DataFrame]) -> None:
        """`load` and `frame` are called when rows are asked for, `load` once."""
        self._load = load
        self._frame = frame
        self._rows: list[R] | None = None

    @property
    def df(self) -> DataFrame:
        """The same rows as a Spark DataFrame."""
        return self._frame()

    @property
    def _loaded(self) -> list[R]:
        if self._rows is None:
            self._rows = self._load()
        return self._rows

    def __len__(self) -> int:
        return len(self._loaded)

    def __iter__(self) -> Iterator[R]:
        return iter(self._loaded)

    @overload
    def __getitem__(self, index: int) -> R: ...

    @overload
    def __getitem__(self, index: slice) -> list[R]: ...

    def __getitem__(self, index: int | slice) -> R | list[R]:
        return self._loaded[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence) and not isinstance(other, str):
            return self._loaded == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        more = len(self._loaded) - SHOWN
        listed = ", ".join(map(repr, self._loaded[:SHOWN]))
        return f"[{listed}, … {more} more]" if more > 0 else f"[{listed}]"


class ByRelation(Mapping[str, FactRows[R]], Generic[R]):
    """Rows by output relation; asking for another one is `UnknownOutput`."""

    def __init__(self, rows: Mapping[str, FactRows[R]]) -> None:
        """The rows of every output relation."""
        self._rows_of = dict(rows)

    def __getitem__(self, relation: str) -> FactRows[R]:
        found = self._rows_of.get(relation) if isinstance(relation, str) else None
        if found is None:
            there = ", ".join(self._rows_of) or "none"
            raise UnknownOutput(
                f"{relation!r} is no output relation",
                fix=f"{did_you_mean(relation, self._rows_of)}there are: {there}; "
                "name others with .output",
            )
        return found

    def __contains__(self, relation: object) -> bool:
        return isinstance(relation, str) and relation in self._rows_of

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows_of)

    def __len__(self) -> int:
        return len(self._rows_of)

    def __repr__(self) -> str:
        return repr(self._rows_of)


class StepDelta(ByRelation[tuple[Fact, int]]):
    """What a step changed, by output relation: `{"tc": [((1, 3), 1), …]}`.

    Every output relation is there, with no rows where nothing changed. A weight is +1 or −1.
    """

    def __init__(
        self,
        rows: Mapping[str, FactRows[tuple[Fact, int]]],
        epoch: int,
        ignored: Mapping[str, int],
        summary: StepSummary | None,
    ) -> None:
        """Use `Session.step`."""
        super().__init__(rows)
        self.epoch = epoch
        """The session's epoch after the step."""
        self.ignored = dict(ignored)
        """By input relation: operations that changed nothing."""
        self.summary = summary
        """What the tick tells of itself."""

    def __repr__(self) -> str:
        return repr({name: rows for name, rows in self._rows_of.items() if len(rows)})


class UnknownOutput(UnknownName, KeyError):
    """A relation that is no output of the program."""

    __str__ = UnknownName.__str__


def facts_in(table: pa.Table) -> list[Fact]:
    """The rows of a table without weights, in ascending order."""
    columns = [column.to_pylist() for column in table.columns]
    return sorted(zip(*columns, strict=True))


def changes_in(table: pa.Table, relation: str) -> list[tuple[Fact, int]]:
    """The rows of a weighted table with their weights, in ascending order."""
    weights = table.column(WEIGHT).to_pylist()
    if not {1, -1}.issuperset(weights):
        raise InternalError(f"a fact of {relation} has the weight {max(weights, key=abs)}")
    columns = [table.column(n).to_pylist() for n in table.column_names if n != WEIGHT]
    return sorted(zip(zip(*columns, strict=True), weights, strict=True))
