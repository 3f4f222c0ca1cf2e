"""Random cases: sources, views over them and over each other, and batches that conflict on purpose."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

from tests.fuzz.random_queries import KEY_TYPES, NAMES, QueryMaker, Relation
from tests.sql.case_format import Case, Change, SourceSpec, Tick, ViewSpec
from tests.sql.source_model import SourceModel

if TYPE_CHECKING:
    from tests.sql.bags import Row

VALUES: dict[str, tuple[Any, ...]] = {
    "INT": (0, 1, 2, 3, -1, None),
    "BIGINT": (0, 1, 2, 5_000_000_000, None),
    "STRING": ("a", "b", "ab", "", None),
    "DOUBLE": (0.0, -0.0, 0.5, -2.25, float("nan"), None),
    "DECIMAL(6,2)": (Decimal("0.00"), Decimal("1.50"), Decimal("-0.01"), None),
    "DATE": (date(2024, 1, 31), date(2023, 12, 31), date(1969, 12, 31), None),
    "BOOLEAN": (True, False, None),
}
DEPTH = 3


def random_case(
    seed: int, *, views: int = 5, ticks: int = 4, maker: type[QueryMaker] = QueryMaker
) -> Case:
    """The case of a seed; it is the same on every machine."""
    random = Random(seed)
    case = Case(f"seed {seed}")
    for number in range(random.randint(1, 3)):
        case.sources.append(_source(random, f"t{number}"))
    relations = [
        Relation(source.name, tuple((f.name, f.type.ddl) for f in source.schema))
        for source in case.sources
    ]
    for number in range(views):
        made = maker(random, relations).query(random.randint(1, DEPTH))
        name = f"v{number}"
        case.views.append(ViewSpec(name, made.text))
        if random.random() < 0.4:
            relations.append(Relation(name, made.columns))
    models = {source.name: SourceModel(source) for source in case.sources}
    for number in range(ticks):
        tick = Tick(f"batch {number}")
        for model in models.values():
            # one source stays as it is now and then, so that some views are clean
            if number == 0 or random.random() < 0.75:
                tick.changes += _changes(random, model)
        for change in tick.changes:
            models[change.source].apply(change)
        case.ticks.append(tick)
    return case


def _source(random: Random, name: str) -> SourceSpec:
    types = [random.choice(KEY_TYPES) for _ in range(random.randint(1, 3))]
    types.append(random.choice(("INT", "STRING")))
    names = random.sample(NAMES, len(types))
    columns = [f"{column} {kind}" for column, kind in zip(names, types, strict=True)]
    if random.random() < 0.5:
        return SourceSpec(name, ", ".join(["id INT", *columns]), ("id",))
    return SourceSpec(name, ", ".join(columns))


def _changes(random: Random, model: SourceModel) -> list[Change]:
    return _keyed(random, model) if model.spec.primary_key else _bag(random, model)


def _bag(random: Random, model: SourceModel) -> list[Change]:
    held = list(model.rows.values())
    name = model.spec.name
    deleted: list[tuple[Row, int]] = []
    inserted: list[tuple[Row, int]] = []
    for row, count in held:
        if random.random() < 0.4:
            deleted.append((row, random.randint(1, count)))
            if random.random() < 0.3:
                # what goes comes back, or almost the same row does
                again = row if random.random() < 0.5 else _varied(random, model, row)
                inserted.append((again, random.randint(1, 2)))
    if random.random() < 0.1:
        deleted = list(held)
    for _ in range(random.randint(0 if held else 2, 4)):
        inserted.append((_row(random, model), random.choice((1, 1, 1, 2, 3))))
    if random.random() < 0.4:
        passing = _row(random, model)
        inserted.append((passing, 1))
        deleted.append((passing, 1))
    changes = []
    if inserted:
        changes.append(_change("INSERT INTO", name, inserted))
    if deleted:
        changes.append(_change("DELETE FROM", name, deleted))
    random.shuffle(changes)
    return changes


def _keyed(random: Random, model: SourceModel) -> list[Change]:
    held = [row for row, _ in model.rows.values()]
    name = model.spec.name
    top = max((row[0] for row in held), default=0)
    upserts: list[tuple[Row, int]] = []
    deletes: list[tuple[Row, int]] = []
    for row in held:
        choice = random.random()
        if choice < 0.25:
            deletes.append(((row[0],), 1))
        elif choice < 0.6:
            upserts.append(((row[0], *_varied(random, model, row)[1:]), 1))
    for number in range(random.randint(0 if held else 2, 4)):
        upserts.append(((top + number + 1, *_row(random, model)[1:]), 1))
    changes = []
    if upserts:
        changes.append(_change("UPSERT INTO", name, upserts))
    if deletes:
        changes.append(_change("DELETE KEYS FROM", name, deletes))
    return changes


def _change(verb: str, source: str, rows: list[tuple[Row, int]]) -> Change:
    return Change(verb, source, tuple(row for row, _ in rows), tuple(n for _, n in rows))


def _row(random: Random, model: SourceModel) -> Row:
    return tuple(random.choice(VALUES[each.type.ddl]) for each in model.schema)


def _varied(random: Random, model: SourceModel, row: Row) -> Row:
    """The row with one value replaced."""
    place = random.randrange(len(row))
    value = random.choice(VALUES[model.schema.fields[place].type.ddl])
    return (*row[:place], value, *row[place + 1 :])
