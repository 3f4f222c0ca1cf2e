"""Adding columns to a source: rows that are there have NULL in them, views stay as they are.

One entry in the tick log, no tick. Files are left alone: a column that a file was written without
is NULL when it is read. A followed table that has gained columns has them in the flow as well, from
the tick on that reads it next.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from ivm_core.compile.stages import scans
from ivm_core.engine.breaking import OTHER_TIES, breaks
from ivm_core.engine.definitions import DELTA, FED
from ivm_core.engine.gears import StoredRows
from ivm_core.engine.layout import ticked, weighted
from ivm_core.engine.relations import LOCAL_ROWS
from ivm_core.model.digest import Digest
from ivm_core.model.errors import DefinitionConflict, IvmError, UserError
from ivm_core.model.names import WEIGHT
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.row_identity import digest_aggregates, digest_from_limbs, digest_of
from ivm_core.operators.sql import text_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from ivm_core.engine.core import Engine
    from ivm_core.engine.definitions import SourceDefinition
    from ivm_core.model.schema import Schema


def widen_source(engine: Engine, name: str, schema: Schema) -> tuple[str, ...]:
    """Give a source these columns, all of its own among them; returns the names of the new ones."""
    engine.begin_writing()
    source = engine.history.sources[engine.catalog.source_name(name)]
    where = f"source {source.name}"
    if source.kind != FED:
        raise UserError(
            f"{source.name} follows a Delta table, whose columns are its own",
            where=where,
            fix="add them to the table: the next tick that reads it takes them",
        )
    added = tuple(each for each in schema.names if source.schema.find(each) is None)
    _refuse_narrower(engine, source, schema)
    if not added:
        return ()
    _refuse_required(source, schema, added)
    readers = _readers_over(engine, source, schema)
    wider = replace(source, schema=schema)
    digest = _digest(engine, source, schema)
    engine.append("columns", {"source": wider.body, "state_digest": digest.hex, **readers})
    return added


def set_options(engine: Engine, name: str, options: Mapping[str, Any]) -> None:
    """Let a fed source treat batches that come again otherwise, from the next tick on."""
    engine.begin_writing()
    source = engine.history.sources[engine.catalog.source_name(name)]
    if source.kind != FED:
        raise UserError(
            "a followed table has versions, not batches",
            where=f"source {source.name}",
            fix="leave dedup out: no version is read twice",
        )
    altered = replace(source, options=dict(options))
    if altered != source:
        digest = engine.history.source_digests.get(source.name) or Digest.zero().hex
        engine.append("columns", {"source": altered.body, "state_digest": digest})


def widen_followed(engine: Engine, needed: Collection[str], *, only_unread: bool) -> None:
    """Take the columns that followed tables have gained, before a tick reads them.

    `DefinitionConflict` where a view that reads a needed table would change; another table is
    left as it is, and read up to its new columns.
    """
    for source in list(engine.history.sources.values()):
        if source.kind != DELTA or (only_unread and source.name in engine.history.pins):
            continue
        schema = _gained(engine, source)
        if schema is None:
            continue
        try:
            readers = _readers_over(engine, source, schema)
        except DefinitionConflict:
            if source.name in needed:
                raise
        else:
            wider = replace(source, schema=schema)
            engine.append("columns", {"source": wider.body, "state_digest": "", **readers})


def _gained(engine: Engine, source: SourceDefinition) -> Schema | None:
    """The columns of a followed table, if it has gained some and nothing else has changed."""
    try:
        table = engine.followed.table(source.name)
        head, pin = table.head(), engine.history.pins.get(source.name)
        now = table.own_schema(head.version)
        if now.ddl == source.schema.ddl or (pin and pin["table_id"] != head.table_id):
            return None
        is_wider = all(now.find(each.name) == each for each in source.schema)
        if is_wider and pin is not None:
            is_wider = bool(table.added_columns(int(pin["version"]), head.version))
    except IvmError:
        return None  # whoever reads the table is told
    return now if is_wider and len(now.names) > len(source.schema.names) else None


def _readers_over(
    engine: Engine, source: SourceDefinition, schema: Schema
) -> dict[str, list[dict[str, Any]]]:
    """What goes on over the columns that a source had, as the tick log stores it.

    `DefinitionConflict` for views that would change with the new ones in more than their ties.
    """
    readers = engine.catalog.readers(source.name)
    with engine.catalog.drafting(columns={source.name: schema}):
        reasons = {view: breaks(engine, view) for view in readers}
    broken = {view: each for view, each in reasons.items() if each not in ("", OTHER_TIES)}
    if broken:
        raise DefinitionConflict(
            "the new columns change views: "
            + "; ".join(f"{view}, because {reason}" for view, reason in broken.items()),
            where=f"source {source.name}",
            fix="name the columns that they read, with flow.alter_view, and add the new ones "
            "to them afterwards",
            stored=source.schema.ddl,
            given=schema.ddl,
        )
    history, had = engine.history, source.schema.ddl
    views = [history.views[view] for view, reason in reasons.items() if reason]
    nodes = [
        node
        for node in history.shared.values()
        if source.name in engine.catalog.program(node.name).reads
    ]
    found = {
        "views": [replace(each, over={source.name: had, **each.over}).body for each in views],
        "shared": [replace(each, over={source.name: had, **each.over}).body for each in nodes],
    }
    return {kind: bodies for kind, bodies in found.items() if bodies}


def _refuse_narrower(engine: Engine, source: SourceDefinition, schema: Schema) -> None:
    """DefinitionConflict for columns that would go or change, with the rows and views they have."""
    lost = []
    for each in source.schema:
        found = schema.find(each.name)
        if found is None or found != each:
            lost.append(each.name)
    if not lost:
        return
    views = [
        view
        for view in engine.catalog.readers(source.name)
        if any(
            scan.relation == source.name and set(scan.fields) & set(lost)
            for scan in scans(engine.catalog.program(view).plan)
        )
    ]
    rows = engine.history.source_rows.get(source.name, 0)
    read = f"; views that read them: {', '.join(views)}" if views else ""
    raise DefinitionConflict(
        f"{', '.join(lost)} would go or change, and {rows} stored rows have them{read}",
        where=f"source {source.name}",
        fix="keep every column with its name and type, and add others beside them",
        stored=source.schema.ddl,
        given=schema.ddl,
    )


def _refuse_required(source: SourceDefinition, schema: Schema, added: tuple[str, ...]) -> None:
    """UserError for new columns that the rows which are there could not have."""
    required = [name for name in added if not schema.field(name).nullable]
    if required:
        raise UserError(
            f"{', '.join(required)} would be NULL in the rows that are there, and is NOT NULL",
            where=f"source {source.name}",
            fix="leave NOT NULL out for new columns",
        )


def _digest(engine: Engine, source: SourceDefinition, schema: Schema) -> Digest:
    """The digest of the source's rows, each with NULL in what it doesn't have."""
    committed = engine.history.committed
    trace = engine.layout.source_rows(source.name, source.schema, source.primary_key)
    if trace.rows_estimate(committed) <= LOCAL_ROWS:
        table = trace.read(committed, columns=[*source.schema.names, WEIGHT])
        for each in arrow_schema(schema):
            if each.name not in table.column_names:
                table = table.append_column(each.name, pa.nulls(table.num_rows, each.type))
        return digest_of(table, schema)
    rows = StoredRows(trace.uris(committed), ticked(weighted(schema)), at=committed.newest)
    limbs = [F.expr(text_of(tree)).alias(name) for name, tree in digest_aggregates(schema)]
    found = engine.gears.read(rows).agg(*limbs).first()
    return digest_from_limbs({} if found is None else found.asDict())
