"""Random sources, and batches for them that conflict on purpose.

One row is inserted and deleted in the same tick; rows change in a column that others join by; a
group empties and its rows come back later; NULLs and duplicates are everywhere.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tests.fuzz.random_values import NAMES
from tests.sql.bags import identity
from tests.sql.case_format import Change, SourceSpec, Tick

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from tests.sql.bags import Row
    from tests.sql.source_model import SourceModel

VALUES: dict[str, tuple[Any, ...]] = {
    "INT": (0, 1, 1, 1, 2, 2, -1, None),
    "BIGINT": (0, 1, 1, 2, 5_000_000_000, None),
    "STRING": ("a", "a", "b", "ab", "", "1", None),
    "DOUBLE": (0.0, -0.0, 0.5, -2.25, 1.0, float("nan"), None),
    "DECIMAL(6,2)": (Decimal("0.00"), Decimal("1.50"), Decimal("1.00"), Decimal("-0.01"), None),
    "DATE": (date(2024, 1, 31), date(2024, 2, 1), date(1969, 12, 31), None),
    "TIMESTAMP": (
        datetime(2024, 1, 31, tzinfo=UTC),
        datetime(2024, 1, 31, 12, 30, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC),
        None,
    ),
    "BOOLEAN": (True, False, None),
    "ARRAY<INT>": ([1, 2], [1], [], [None, 0], None),
}
COLUMN_TYPES = ("INT", "INT", "STRING", "STRING", *VALUES)
MOST_ROWS = 10
"""Above that, a tick deletes more than it inserts."""


def random_source(random: Random, name: str) -> SourceSpec:
    types = [random.choice(COLUMN_TYPES) for _ in range(random.randint(1, 3))]
    types.append(random.choice(("INT", "STRING")))
    names = random.sample(NAMES, len(types))
    columns = [f"{column} {kind}" for column, kind in zip(names, types, strict=True)]
    if random.random() < 0.5:
        return SourceSpec(name, ", ".join(["id INT", *columns]), ("id",))
    return SourceSpec(name, ", ".join(columns))


class Batches:
    """The changes of one tick after the other, given what the sources hold by then."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._gone: dict[str, list[Row]] = {}

    def tick(self, number: int, models: Mapping[str, SourceModel]) -> Tick:
        tick = Tick(f"batch {number}")
        for model in models.values():
            # one source stays as it is now and then, so that some views are clean
            if number == 1 or self._chance(0.75):
                tick.changes += self._changes(model)
        return tick

    def _changes(self, model: SourceModel) -> list[Change]:
        return self._keyed(model) if model.spec.primary_key else self._bag(model)

    def _bag(self, model: SourceModel) -> list[Change]:
        random = self._random
        name = model.spec.name
        held = list(model.rows.values())
        deleted: list[tuple[Row, int]] = []
        inserted: list[tuple[Row, int]] = []
        share = 0.6 if sum(count for _, count in held) > MOST_ROWS else 0.25
        emptied = self._group(model) if self._chance(0.25) else set()
        for row, count in held:
            if identity(row) in emptied:
                deleted.append((row, count))
            elif self._chance(share):
                deleted.append((row, random.randint(1, count)))
                if self._chance(0.3):
                    # what goes comes back at once, or almost the same row does
                    again = row if self._chance(0.5) else self._varied(model, row)
                    inserted.append((again, random.randint(1, 2)))
        gone = self._gone.setdefault(name, [])
        if gone and self._chance(0.4):
            inserted += [(row, 1) for row in random.sample(gone, min(2, len(gone)))]
        gone += [row for row, _ in deleted]
        for _ in range(random.randint(*((0, 4) if held else (4, 7)))):
            inserted.append((self._row(model), random.choice((1, 1, 1, 2, 3))))
        if self._chance(0.3):
            passing = self._row(model)
            inserted.append((passing, 1))
            deleted.append((passing, 1))
        changes = []
        if inserted:
            changes.append(_change("INSERT INTO", name, inserted))
        if deleted:
            changes.append(_change("DELETE FROM", name, deleted))
        random.shuffle(changes)
        return changes

    def _keyed(self, model: SourceModel) -> list[Change]:
        random = self._random
        name = model.spec.name
        held = [row for row, _ in model.rows.values()]
        top = max((row[0] for row in held), default=0)
        upserts: list[tuple[Row, int]] = []
        deletes: list[tuple[Row, int]] = []
        share = 0.45 if len(held) > MOST_ROWS else 0.2
        emptied = self._group(model) if self._chance(0.25) else set()
        for row in held:
            choice = random.random()
            if identity(row) in emptied or choice < share:
                deletes.append(((row[0],), 1))
                self._gone.setdefault(name, []).append(row)
            elif choice < share + 0.3:
                upserts.append(((row[0], *self._varied(model, row)[1:]), 1))
        for number in range(random.randint(*((0, 4) if held else (4, 7)))):
            gone = self._gone.get(name)
            row = random.choice(gone) if gone and self._chance(0.3) else self._row(model)
            upserts.append(((top + number + 1, *row[1:]), 1))
        changes = []
        if upserts:
            changes.append(_change("UPSERT INTO", name, upserts))
        if deletes:
            changes.append(_change("DELETE KEYS FROM", name, deletes))
        return changes

    def _group(self, model: SourceModel) -> set[Row]:
        """The identities of all rows that share a value in some column."""
        if not model.rows:
            return set()
        place = self._random.randrange(len(model.schema.fields))
        rows = [row for row, _ in model.rows.values()]
        value = identity([self._random.choice(rows)[place]])
        return {identity(row) for row in rows if identity([row[place]]) == value}

    def _row(self, model: SourceModel) -> Row:
        return tuple(self._random.choice(VALUES[each.type.ddl]) for each in model.schema)

    def _varied(self, model: SourceModel, row: Row) -> Row:
        """The row with one value replaced."""
        place = self._random.randrange(len(row))
        value = self._random.choice(VALUES[model.schema.fields[place].type.ddl])
        return (*row[:place], value, *row[place + 1 :])

    def _chance(self, share: float) -> bool:
        return self._random.random() < share


def _change(verb: str, source: str, rows: list[tuple[Row, int]]) -> Change:
    return Change(verb, source, tuple(row for row, _ in rows), tuple(n for _, n in rows))
