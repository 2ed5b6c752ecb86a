"""Facts about a whole lake for maintenance, in a few statements: counts, never single files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.read.overview.lake_tables import RowsInCatalog, kept_rows, with_schemas
from shelduck.catalog.read.overview.table_files import with_values
from shelduck.catalog.read.queries import live, present_tables, total
from shelduck.catalog.read.read import read_settings
from shelduck.catalog.running.job_rows import tables_at_work
from shelduck.catalog.running.writers import last_finished
from shelduck.catalog.schema import own_tables
from shelduck.ducklake import tables
from shelduck.ducklake.checked import or_null
from shelduck.ducklake.format import schemas_of
from shelduck.model.files.compaction import MIN_FILES
from shelduck.model.files.lake_facts import (
    FULL,
    LAYOUTS,
    TIERS,
    LakeFacts,
    LayoutFiles,
    TableFacts,
    Tier,
)
from shelduck.model.tables.options import OptionSetting, Scope, TableOptions, table_options
from shelduck.model.tables.schema import TableId

_t = tables.table.c
_file, _delete, _value = tables.data_file.c, tables.delete_file.c, tables.file_partition_value.c
_own, _snapshot = own_tables.file_layout.c, tables.snapshot.c
_waits = tables.files_scheduled_for_deletion.c


def lake_facts(connection: sa.Connection, now: datetime, searches: str) -> LakeFacts:
    """Return what is known of a lake apart from its tables; up to five statements.

    ``searches`` is the subject under which a search for orphans is noted.
    """
    options = table_options(read_settings(connection))
    expired = scheduled = 0
    if options.expire_older_than is not None:
        expired = _expired(connection, options.expire_older_than.before(now))
    if options.delete_older_than is not None:
        scheduled = _scheduled(connection, options.delete_older_than.before(now))
    return LakeFacts(expired, scheduled, last_finished(connection, searches))


def table_facts(connection: sa.Connection, only: TableId | None = None) -> list[TableFacts]:
    """Return what is known of the tables of the newest snapshot, or of one of them.

    Ten statements, and two for each two hundred tables; none for each file.
    """
    changing = tables_at_work(connection)
    known = _named(connection, read_settings(connection), only)
    kept = kept_rows(connection, [table.id for table in known])
    files = _files(connection, known, only)
    layouts = _layouts(connection, only)
    found = [
        _with_files(table, kept[table.id], files.get(table.id), layouts.get(table.id, ()))
        for table in known
    ]
    return [replace(table, is_changing=table.id in changing) for table in found]


def _expired(connection: sa.Connection, before: datetime) -> int:
    newest = sa.select(sa.func.max(_snapshot.snapshot_id)).scalar_subquery()
    old = sa.and_(_snapshot.snapshot_time < before, _snapshot.snapshot_id < newest)
    return connection.execute(sa.select(sa.func.count()).where(old)).scalar() or 0


def _scheduled(connection: sa.Connection, before: datetime) -> int:
    # A cleanup leaves the other ones alone: the lake did not write them.
    ours = sa.and_(_waits.schedule_start < before, _waits.path_is_relative == sa.true())
    return connection.execute(sa.select(sa.func.count()).where(ours)).scalar() or 0


def _named(
    connection: sa.Connection, settings: Sequence[OptionSetting], only: TableId | None
) -> list[TableFacts]:
    schemas = schemas_of(connection)
    query = with_schemas(schemas, None).add_columns(schemas.c.schema_id)
    if only is not None:
        query = query.where(_t.table_id == only)
    owned: dict[tuple[Scope, int | None], list[OptionSetting]] = defaultdict(list)
    for setting in settings:
        owned[setting.scope, setting.scope_id].append(setting)
    of_lake = owned[Scope.LAKE, None]
    defaults = table_options(of_lake)
    found = []
    for number, schema, name, schema_id in connection.execute(query):
        own = owned.get((Scope.SCHEMA, schema_id), []) + owned.get((Scope.TABLE, number), [])
        options = defaults
        if own:
            options = table_options([*of_lake, *own], schema_id=schema_id, table_id=number)
        found.append(TableFacts(TableId(number), schema, name, options))
    return found


def _with_files(
    table: TableFacts,
    kept: RowsInCatalog,
    files: sa.RowMapping | None,
    layouts: Sequence[LayoutFiles],
) -> TableFacts:
    found = replace(table, kept=kept.versions, kept_deletes=kept.deleted, layouts=tuple(layouts))
    if files is None:
        return found
    target = table.options.target_file_size
    small, with_deletes = (
        tuple(
            Tier(
                target // part, *(files[f"{what}_{kind}{n}"] for what in ("full", "files", "bytes"))
            )
            for n, part in enumerate(TIERS)
        )
        for kind in ("clean", "dead")
    )
    return replace(
        found,
        small=small,
        small_with_deletes=with_deletes,
        worn=files["worn"],
        worn_bytes=files["worn_bytes"],
    )


def _files(
    connection: sa.Connection, known: Sequence[TableFacts], only: TableId | None
) -> dict[int, sa.RowMapping]:
    """Return the counts of files of each table that has any; two statements.

    Files count by partition first: only those of one partition are combined.
    """
    keys = _value.partition_key_index
    of_table = [] if only is None else [_value.table_id == only]
    last = connection.execute(sa.select(or_null(sa.func.max(keys))).where(*of_table)).scalar()
    width = 0 if last is None else last + 1
    groups = _groups(_each_file(known, width, only), width)
    rows = connection.execute(_tables(groups)).mappings()
    return {row["table_id"]: row for row in rows}


def _each_file(known: Sequence[TableFacts], width: int, only: TableId | None) -> sa.Subquery:
    """Return the live files that are small or have deletes, with what their tables want."""
    source = tables.data_file.outerjoin(
        tables.delete_file,
        sa.and_(_delete.data_file_id == _file.data_file_id, live(tables.delete_file)),
    )
    source, values = with_values(source, range(width))
    target = _option(known, lambda options: float(options.target_file_size))
    is_small = _file.file_size_bytes * float(TIERS[-1]) < target
    query = sa.select(
        _file.table_id,
        _file.partition_id,
        *(v.c.partition_value.label(f"value{n}") for n, v in enumerate(values)),
        _file.file_size_bytes.label("size"),
        sa.func.coalesce(_file.record_count, 0).label("records"),
        sa.func.coalesce(_delete.delete_count, 0).label("dead"),
        target.label("target"),
        _option(known, lambda options: options.rewrite_delete_threshold).label("threshold"),
    )
    if only is not None:
        query = query.where(_file.table_id == only)
    chosen = sa.or_(is_small, _delete.data_file_id.is_not(None))
    return query.select_from(source).where(live(tables.data_file), chosen).subquery()


def _option(
    known: Sequence[TableFacts], read: Callable[[TableOptions], float]
) -> sa.ColumnElement[float]:
    """Return the value of an option for the table of a file."""
    by_value: dict[float, list[int]] = defaultdict(list)
    for table in known:
        by_value[read(table.options)].append(table.id)
    values = sorted(by_value, key=lambda value: len(by_value[value]))
    usual = values.pop() if values else 0.0
    # The ids are part of the text, because a statement can have few parameters.
    chosen = [(_file.table_id.in_(_literals(by_value[value])), _number(value)) for value in values]
    return sa.case(*chosen, else_=_number(usual)) if chosen else _number(usual)


def _literals(ids: Sequence[int]) -> sa.BindParameter[Any]:
    return sa.bindparam(
        None, ids, sa.BigInteger(), expanding=True, literal_execute=True, unique=True
    )


def _number(value: float) -> sa.ColumnElement[float]:
    return sa.literal(value, sa.Float())


def _groups(each: sa.Subquery, width: int) -> sa.Subquery:
    """Return the files of each partition, counted for each tier together with smaller ones."""
    c = each.c
    groups = [c.table_id, c.partition_id, *(c[f"value{n}"] for n in range(width))]
    is_worn = sa.and_(c.dead > 0, c.dead >= c.threshold * c.records)
    counts = [_sum(is_worn, 1).label("worn"), _sum(is_worn, c.size).label("worn_bytes")]
    for kind, matches in (("clean", c.dead == 0), ("dead", c.dead > 0)):
        for n, part in enumerate(TIERS):
            is_small = sa.and_(matches, c.size * float(part) < c.target)
            counts.append(_sum(is_small, 1).label(f"files_{kind}{n}"))
            counts.append(_sum(is_small, c.size).label(f"bytes_{kind}{n}"))
    return sa.select(c.table_id, *counts).group_by(*groups).subquery()


def _tables(groups: sa.Subquery) -> sa.Select[Any]:
    c = groups.c
    counts = [_sum(sa.true(), c[name]).label(name) for name in ("worn", "worn_bytes")]
    for kind in ("clean", "dead"):
        for n in range(len(TIERS)):
            files, size = c[f"files_{kind}{n}"], c[f"bytes_{kind}{n}"]
            smaller = c[f"files_{kind}{n - 1}"] if n else 0
            counts.append(_sum(files - smaller >= FULL, 1).label(f"full_{kind}{n}"))
            counts.append(_sum(files >= MIN_FILES, files).label(f"files_{kind}{n}"))
            counts.append(_sum(files >= MIN_FILES, size).label(f"bytes_{kind}{n}"))
    return sa.select(
        sa.type_coerce(c.table_id, sa.BigInteger()).label("table_id"), *counts
    ).group_by(c.table_id)


def _sum(which: sa.ColumnElement[bool], what: Any) -> sa.ColumnElement[Any]:
    return total(sa.case((which, what), else_=0))


def _layouts(connection: sa.Connection, only: TableId | None) -> dict[int, list[LayoutFiles]]:
    """Return the layouts of tables that have too many; two statements."""
    found: dict[int, list[LayoutFiles]] = defaultdict(list)
    if not present_tables(connection, [own_tables.file_layout.name]):
        return found
    joined = tables.data_file.join(own_tables.file_layout, _own.data_file_id == _file.data_file_id)
    where = [live(tables.data_file)]
    if only is not None:
        where.append(_file.table_id == only)
    many = sa.func.count(_own.layout_id.distinct()) > LAYOUTS
    chosen = sa.select(_file.table_id).select_from(joined).where(*where)
    chosen = chosen.group_by(_file.table_id).having(many)
    query = (
        sa.select(
            _file.table_id,
            _own.layout_id,
            total(sa.literal(1)).label("files"),
            total(_file.file_size_bytes).label("bytes"),
            sa.func.max(_file.data_file_id).label("newest"),
        )
        .select_from(joined)
        .where(*where, _file.table_id.in_(chosen))
        .group_by(_file.table_id, _own.layout_id)
    )
    for row in connection.execute(query):
        found[row.table_id].append(LayoutFiles(row.layout_id, row.files, row.bytes, row.newest))
    return found


def files_of_layouts(
    connection: sa.Connection, table: TableId, layouts: Iterable[int]
) -> list[tuple[int, int]]:
    """Return the live files of a table that have one of these layouts, with their bytes.

    Oldest first; one statement.
    """
    query = (
        sa.select(_file.data_file_id, _file.file_size_bytes)
        .join(own_tables.file_layout, _own.data_file_id == _file.data_file_id)
        .where(
            _file.table_id == table,
            live(tables.data_file),
            _own.layout_id.in_(_literals([*layouts])),
        )
        .order_by(_file.data_file_id)
    )
    return [(number, size) for number, size in connection.execute(query)]
