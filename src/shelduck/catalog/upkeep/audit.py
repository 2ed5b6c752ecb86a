"""A look at every row of a catalog: what reads of a table do not see, because they choose rows."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Table,
    and_,
    exists,
    func,
    not_,
    or_,
    select,
    text,
)
from sqlalchemy import table as sql_table

from shelduck.catalog.commit.kinds.repairs import equal_rows, low_counters
from shelduck.catalog.commit.schedule import directory_by_table, table_directories
from shelduck.catalog.databases.known import Misnamed, dialect_of, misnamed_tables
from shelduck.catalog.read.inlined_rows import source_of
from shelduck.catalog.read.queries import present_tables
from shelduck.catalog.read.views_and_macros import resolve
from shelduck.catalog.schema import own_tables
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.ducklake import tables
from shelduck.ducklake.checked import RESTORE, BrokenValue, is_broken, row_text
from shelduck.ducklake.format import format_of
from shelduck.ducklake.rules import MOST
from shelduck.errors import CorruptLake
from shelduck.model.changes.change import parse_entries
from shelduck.model.changes.problem import Problem

_REPAIR = "run shelduck check --repair"
_SHOWN = 20
"""How many rows with one fault are listed."""


@dataclass(frozen=True, slots=True)
class _Reference:
    """A column whose values are ids of rows of other tables."""

    column: Column[int]
    targets: tuple[Column[int], ...]


def _references() -> tuple[_Reference, ...]:
    t = tables
    table, file, macro = t.table.c.table_id, t.data_file.c.data_file_id, t.macro.c.macro_id
    schema = t.schema.c.schema_id
    of_table = (
        *(t.column, t.column_tag, t.data_file, t.delete_file, t.partition_info, t.sort_info),
        *(t.table_stats, t.table_column_stats, t.inlined_data_tables, t.file_column_stats),
    )
    of_file = (t.delete_file, t.file_column_stats, t.file_partition_value)
    objects = (table, schema, t.view.c.view_id, macro)
    return (
        *(_Reference(one.c.table_id, (table,)) for one in of_table),
        *(_Reference(one.c.data_file_id, (file,)) for one in of_file),
        *(_Reference(one.c.schema_id, (schema,)) for one in (t.table, t.view, t.macro)),
        _Reference(t.tag.c.object_id, objects),
        _Reference(t.macro_impl.c.macro_id, (macro,)),
        _Reference(t.macro_parameters.c.macro_id, (macro,)),
        _Reference(t.data_file.c.partition_id, (t.partition_info.c.partition_id,)),
        _Reference(t.data_file.c.mapping_id, (t.column_mapping.c.mapping_id,)),
        _Reference(t.name_mapping.c.mapping_id, (t.column_mapping.c.mapping_id,)),
        _Reference(t.sort_expression.c.sort_id, (t.sort_info.c.sort_id,)),
        _Reference(t.partition_column.c.partition_id, (t.partition_info.c.partition_id,)),
    )


_REFERENCES = _references()
# Tables without a primary key, and what tells their rows apart.
_ONLY_ONES: tuple[tuple[Table, tuple[str, ...]], ...] = (
    (tables.metadata, ("key", "scope", "scope_id")),
    (tables.table_stats, ("table_id",)),
    (tables.table_column_stats, ("table_id", "column_id")),
    (tables.file_column_stats, ("data_file_id", "column_id")),
    (tables.file_partition_value, ("data_file_id", "partition_key_index")),
    (tables.inlined_data_tables, ("table_id", "schema_version")),
    (tables.column_mapping, ("mapping_id",)),
    (tables.name_mapping, ("mapping_id", "column_id")),
    (tables.schema_versions, ("table_id", "schema_version")),
    (tables.macro_impl, ("macro_id", "impl_id")),
    (tables.macro_parameters, ("macro_id", "impl_id", "column_id")),
    (tables.files_scheduled_for_deletion, ("path",)),
)
_KEYS = (
    (tables.partition_column, "partition_id", "partition_key_index"),
    (tables.sort_expression, "sort_id", "sort_key_index"),
)
_IDENTITIES: tuple[tuple[Table, tuple[str, ...]], ...] = (
    (tables.schema, ("schema_id",)),
    (tables.table, ("table_id",)),
    (tables.view, ("view_id",)),
    (tables.macro, ("macro_id",)),
    (tables.column, ("table_id", "column_id")),
    (tables.partition_info, ("table_id",)),
    (tables.sort_info, ("table_id",)),
    (tables.tag, ("object_id", "key")),
    (tables.column_tag, ("table_id", "column_id", "key")),
)
# In versions of DuckLake that have them.
_TAGS = ("ducklake_view_column_tag", ("view_id", "column_name", "key"))


def audit_rows(connection: Connection, *, every: bool = False) -> list[Problem]:
    """Return what is wrong in the rows of a catalog, in all snapshots.

    With ``every``, all rows that a repair mends are listed, otherwise the first ones. A few
    statements for each table of the catalog; all rows are read.
    """
    ducklake = list(format_of(connection).metadata.tables.values())
    sources = [*ducklake, *own_tables.OWN.tables.values()]
    present = present_tables(connection, [source.name for source in sources])
    missing = [t.name for t in ducklake if t.name not in present]
    if missing:
        remedy = "restore the catalog from a backup"
        return [Problem("", "table", name, "the table is missing", remedy) for name in missing]
    found = [p for source in sources if source.name in present for p in _values(connection, source)]
    if found:
        # Statements that compare values need numbers where numbers belong.
        return found
    found += _equal(connection, None if every else _SHOWN)
    checks = (
        *(_intervals, _versions, _twice, _dangling, _homeless),
        *(_unregistered, _inlined, _numbers, _logs),
    )
    return found + [problem for check in checks for problem in check(connection)]


def _values(connection: Connection, source: Table) -> Iterator[Problem]:
    """Return one problem for each column with a wrong value."""
    try:
        for _ in connection.execute(select(source)):
            pass
    except BrokenValue:
        for column in source.c:
            try:
                for _ in connection.execute(select(column)):
                    pass
            except BrokenValue as error:
                error.locate(connection)
                wrong, _, remedy = str(error).partition("; ")
                yield Problem("", "value", f"{source.name}.{column.name}", wrong, remedy)


def _equal(connection: Connection, most: int | None) -> Iterator[Problem]:
    """Find rows that are equal in every column; the other checks take them for one."""
    for equal in equal_rows(connection, most):
        wrong = f"there are {equal.count} rows"
        yield _problem("row", equal.source, equal.row, wrong, "keeps one of the equal rows")


def _intervals(connection: Connection) -> Iterator[Problem]:
    newest = select(func.max(tables.snapshot.c.snapshot_id)).scalar_subquery()
    every = format_of(connection).metadata.tables.values()
    for source in (each for each in every if "end_snapshot" in each.c):
        c = source.c
        beyond = or_(c.begin_snapshot > newest, c.end_snapshot > newest)
        for row in _rows(connection, source, or_(is_broken(source), beyond)):
            wrong = f"it goes from snapshot {row['begin_snapshot']} to {row['end_snapshot']}"
            yield _problem("interval", source, row, wrong)


def _versions(connection: Connection) -> Iterator[Problem]:
    """Find objects with two rows for one snapshot."""
    version, identities = format_of(connection), list(_IDENTITIES)
    if version.has(_TAGS[0], _TAGS[1][0]):
        identities.append((version.table(_TAGS[0]), _TAGS[1]))
    for source, names in identities:
        c = _distinct(source)
        begins = func.lead(c["begin_snapshot"]).over(
            partition_by=[c[n] for n in names], order_by=(c["begin_snapshot"], c["end_snapshot"])
        )
        known = select(*c.values(), begins.label("next_begins")).subquery()
        end, after = known.c.end_snapshot, known.c.next_begins
        twice = and_(after.is_not(None), or_(end.is_(None), end > after))
        query = select(known).where(twice).limit(_SHOWN)
        for row in connection.execute(query).mappings():
            wrong = f"another row has the same {', '.join(names)} in the same snapshots"
            yield _problem("interval", source, dict(row), wrong)


def _twice(connection: Connection) -> Iterator[Problem]:
    """Find rows that must be the only one of their kind."""
    for source, names in _ONLY_ONES:
        own = _distinct(source)
        keys = [own[n] for n in names]
        count = func.count().label("rows")
        query = select(*keys, count).group_by(*keys).having(func.count() > 1).limit(_SHOWN)
        for row in connection.execute(query).mappings():
            yield _problem("row", source, dict(row), f"there are {row['rows']} rows")
    for source, owner, place in _KEYS:
        own = _distinct(source)
        number, last = own[owner], func.max(own[place])
        gaps = select(number).group_by(number).having(last != func.count() - 1).limit(_SHOWN)
        for row in connection.execute(gaps).mappings():
            yield _problem("row", source, dict(row), f"{place} does not count from 0 on")


def _dangling(connection: Connection) -> Iterator[Problem]:
    for reference in _REFERENCES:
        column = reference.column
        known = or_(*(exists().where(target == column) for target in reference.targets))
        for row in _rows(connection, column.table, and_(column.is_not(None), not_(known))):
            wrong = f"{column.name} {row[column.name]} does not exist"
            yield _problem("reference", column.table, row, wrong)


def _homeless(connection: Connection) -> Iterator[Problem]:
    """Find schemas in schemas that do not exist or that are inside each other, and lost tags."""
    known = format_of(connection)
    if known.nests:
        source = known.table(tables.schema)
        lost = source.c.schema_id.not_in(select(known.schemas.c.schema_id))
        for row in _rows(connection, source, lost):
            wrong = f"parent_schema_id {row['parent_schema_id']} leads to no schema of the lake"
            yield _problem("reference", source, row, wrong)
    tag = known.view_column_tag
    if tag is not None:
        views = select(tables.view.c.view_id)
        for row in _rows(connection, tag, tag.c.view_id.not_in(views)):
            yield _problem("reference", tag, row, f"view_id {row['view_id']} does not exist")


def _misnamed(found: Misnamed, version: str) -> Problem:
    """Tell of a table of inlined rows whose columns have the names of another DuckLake."""
    wrong = f"its columns {', '.join(found.names)} do not have the names of DuckLake {version}"
    if found.taken is None:
        return Problem("", "names", found.table, wrong, _REPAIR, "renames its columns")
    wrong += f", and a column has the name {found.taken}"
    return Problem("", "names", found.table, wrong, RESTORE)


def _numbers(connection: Connection) -> Iterator[Problem]:
    """Find counters that would give an id or a row id a second time."""
    if connection.execute(select(tables.snapshot.c.snapshot_id).limit(1)).first() is None:
        yield Problem("", "number", "ducklake_snapshot", "the lake has no snapshot", RESTORE)
        return
    for low in low_counters(connection):
        name = "ducklake_snapshot (the newest)"
        if low.table is not None:
            name = f"ducklake_table_stats (table_id {low.table})"
        wrong = f"{low.name} is {low.now}, and ids up to {low.wanted - 1} are in use"
        repair = f"raises it to {low.wanted}" if low.is_mendable else ""
        yield Problem("", "number", name, wrong, RESTORE, repair)
    yield from _early(connection)


def _unregistered(connection: Connection) -> Iterator[Problem]:
    """Find tables of inlined rows that hold rows, and that no row registers."""
    names = set(connection.execute(text(dialect_of(connection).tables)).scalars())
    registered = connection.execute(select(tables.inlined_data_tables.c.table_name)).scalars()
    for name in sorted(names - set(registered)):
        if re.fullmatch(r"ducklake_inlined_data_\d+_\d+", name):
            count = connection.execute(select(func.count()).select_from(sql_table(name))).scalar()
            if count:
                wrong = f"it has {count} row(s), and ducklake_inlined_data_tables has no row of it"
                yield Problem("", "reference", name, wrong, RESTORE)


def _inlined(connection: Connection) -> Iterator[Problem]:
    """Find tables of inlined rows that cannot be read, and rows that end before they begin."""
    misnamed = {found.table: found for found in misnamed_tables(connection)}
    for found in misnamed.values():
        yield _misnamed(found, format_of(connection).version)
    newest = select(func.max(tables.snapshot.c.snapshot_id)).scalar_subquery()
    registered = connection.execute(select(tables.inlined_data_tables.c.table_name)).scalars()
    for name in sorted(present_tables(connection, {*registered} - {*misnamed})):
        source = source_of(connection, name)
        number, begin, end = source.c.row_id, source.c.begin_snapshot, source.c.end_snapshot
        lost = or_(is_broken(source), begin > newest, end > newest)
        lost = or_(lost, number.is_(None), number < 0, number > MOST)
        for row in connection.execute(select(source).where(lost).limit(_SHOWN)):
            wrong = f"the row with row_id {row[0]!r} goes from snapshot {row[1]!r} to {row[2]!r}"
            yield Problem("", "interval", name, wrong, RESTORE)


def _early(connection: Connection) -> Iterator[Problem]:
    """Find rows of a table that begin before the table, and columns that it never had."""
    table, column, stats = tables.table.c, tables.column.c, tables.file_column_stats.c
    for source in (tables.data_file, tables.delete_file, tables.column):
        made = select(func.min(table.begin_snapshot)).where(table.table_id == source.c.table_id)
        before = source.c.begin_snapshot < made.scalar_subquery()
        for row in _rows(connection, source, before):
            yield _problem("interval", source, row, "it begins before its table")
    known = exists().where(column.table_id == stats.table_id, column.column_id == stats.column_id)
    for row in _rows(connection, tables.file_column_stats, not_(known)):
        yield _problem("reference", tables.file_column_stats, row, "its table has no such column")


def _logs(connection: Connection) -> Iterator[Problem]:
    c = tables.snapshot_changes.c
    told = exists().where(c.snapshot_id == tables.snapshot.c.snapshot_id)
    for row in _rows(connection, tables.snapshot, not_(told)):
        yield _problem("log", tables.snapshot, row, "ducklake_snapshot_changes has no row of it")
    for number, made in connection.execute(select(c.snapshot_id, c.changes_made)):
        try:
            parse_entries(made)
        except CorruptLake as error:
            name = f"ducklake_snapshot_changes (snapshot_id {number})"
            yield Problem("", "log", name, str(error), RESTORE)


def _distinct(source: Table) -> Mapping[str, ColumnElement[Any]]:
    """Return the columns of a table without rows that are equal to others."""
    columns = select(source).distinct().subquery().c
    return {column.name: column for column in columns}


def _rows(
    connection: Connection, source: FromClause, condition: ColumnElement[bool]
) -> list[dict[str, object]]:
    query = select(source).where(condition).limit(_SHOWN)
    return [dict(row) for row in connection.execute(query).mappings()]


def _problem(
    kind: str, source: Table, row: Mapping[str, object], wrong: str, repair: str = ""
) -> Problem:
    return Problem("", kind, f"{source.name} ({row_text(row)})", wrong, RESTORE, repair)


def older_files(connection: Connection, lake: LakeInfo) -> dict[int, list[tuple[str, int]]]:
    """Return path and size of files of older snapshots, by table id, of dropped tables too."""
    by_table = directory_by_table(table_directories(connection, lake))
    found: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for source in (tables.data_file, tables.delete_file):
        c = source.c
        columns = (c.table_id, c.path, c.path_is_relative, c.file_size_bytes)
        query = select(*columns).where(c.end_snapshot.is_not(None))
        for number, path, relative, size in connection.execute(query):
            found[number].append((resolve(by_table.get(number, ""), path, relative), size))
    return found
