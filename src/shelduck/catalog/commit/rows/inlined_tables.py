"""Tables for inlined rows: if a table has one, it needs a new one whenever its columns change.

DuckDB inserts small batches by position into the newest registered one. If the columns changed
without a new one, its inserts would fail or, worse, leave rows that nobody can read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import CreateTable

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.kept_places import LIMIT, write_setting
from shelduck.catalog.commit.opening import TableWork
from shelduck.catalog.databases.dialect import Dialect, Stored
from shelduck.catalog.databases.known import DIALECTS, dialect_of
from shelduck.catalog.read import queries
from shelduck.catalog.read.inlined_rows import require_inlined_tables, tables_with_rows
from shelduck.catalog.read.queries import IDS, OF_TABLE, chunks
from shelduck.catalog.read.together import OF_CONVERTED, OF_TABLES, Questions
from shelduck.ducklake import tables
from shelduck.ducklake.checked import BIGINT, or_null
from shelduck.ducklake.descriptions import begin_under, rows_at, schema_of
from shelduck.ducklake.format import Format
from shelduck.errors import Conflict, InvalidRequest, Unsupported
from shelduck.model.changes.change import Entry, Verb
from shelduck.model.files.fitted import InlinedBatch
from shelduck.model.tables.options import OptionSetting, Scope
from shelduck.model.tables.schema import FieldChange, Schema, TableId
from shelduck.model.text.names import double_quoted

_c = tables.inlined_data_tables.c
_snapshot, _version = tables.snapshot.c, tables.schema_versions.c
_is_recorded = (
    sa.exists()
    .where(_version.table_id == _c.table_id, _version.schema_version == _c.schema_version)
    .correlate(tables.inlined_data_tables)
)
_of_newest = (
    sa.select(
        _c.table_id,
        sa.func.max(_c.schema_version).label("schema_version"),
        sa.func.count().label("listed"),
    )
    .where(_c.table_id.in_(OF_TABLES))
    .group_by(_c.table_id)
    .subquery()
)
_versions = (
    sa.select(_version.table_id, _version.schema_version)
    .where(_version.table_id.in_(OF_TABLES))
    .distinct()
    .subquery()
)
_altered = (
    sa.select(
        _versions.c.table_id, or_null(sa.func.max(_versions.c.schema_version)).label("altered")
    )
    .group_by(_versions.c.table_id)
    .subquery()
)
# Each ALTER registers one, so only those that matter: the newest, and those without a version.
# The joins group all versions once. A subquery for each row would take quadratic time.
_REGISTERED = (
    sa.select(
        *(_c.table_id, _c.table_name, _c.schema_version, _of_newest.c.listed),
        _versions.c.table_id.is_not(None).label("is_recorded"),
        _altered.c.altered,
    )
    .outerjoin_from(
        tables.inlined_data_tables,
        _versions,
        sa.and_(
            _versions.c.table_id == _c.table_id, _versions.c.schema_version == _c.schema_version
        ),
    )
    .outerjoin(_of_newest, _of_newest.c.table_id == _c.table_id)
    .outerjoin(_altered, _altered.c.table_id == _c.table_id)
    .where(
        _c.table_id.in_(OF_TABLES),
        sa.or_(_versions.c.table_id.is_(None), _c.schema_version == _of_newest.c.schema_version),
    )
)
ASK_INLINED: Questions = (("inlined", _REGISTERED),)
ASK_OF_CONVERTED: Questions = (
    (
        "inlined_of_converted",
        sa.select(_c.table_id, _c.table_name).where(_c.table_id.in_(OF_CONVERTED)),
    ),
)

# DuckDB 1.5.5 makes a table for inlined rows on demand and writes no row of schema_versions for it.
# It reads such rows only until a newer table is registered, and then not at all.
_RECORD_VERSIONS = sa.insert(tables.schema_versions).from_select(
    ["begin_snapshot", "schema_version", "table_id"],
    sa.select(sa.func.min(_snapshot.snapshot_id), _c.schema_version, _c.table_id)
    .where(_c.table_id.in_(IDS), _snapshot.schema_version == _c.schema_version, ~_is_recorded)
    .group_by(_c.schema_version, _c.table_id),
)
_NAMES = sa.select(_c.table_name).where(_c.table_id == OF_TABLE)
_AT_ONCE = 500
# An ALTER looks for empty ones each time that a table has so many more.
_MOST_LISTED = 8


def add_inlined_table(draft: Draft, table: TableId, columns: Schema) -> str | None:
    """Make and register a table for inlined rows with the current columns of a table.

    Two statements; returns its name. If the table can have none, an option stops DuckDB from
    inlining (one statement), and the result is None.
    """
    if not can_inline(draft.connection.dialect.name, draft.format, columns):
        option = {"key": "data_inlining_row_limit", "value": "0", "scope": "table"}
        draft.insert(tables.metadata, [option | {"scope_id": table}])
        return None
    return _make(draft, table, columns)


def _make(draft: Draft, table: TableId, columns: Schema) -> str:
    """Make and register a table for inlined rows that the database can have."""
    name = f"ducklake_inlined_data_{table}_{draft.next_schema_version}"
    create = inlined_table_text(dialect_of(draft.connection), draft.format, name, columns)
    row = {"table_id": table, "table_name": name, "schema_version": draft.next_schema_version}
    with draft.store.pipelined(draft.connection):
        # SQLAlchemy would make a compiler for each text, which takes longer than the database.
        draft.connection.exec_driver_sql(create, execution_options={"no_parameters": True})
        draft.insert(tables.inlined_data_tables, [row])
    return name


def rows_in(rows: sa.TableClause, told: int = 1) -> sa.Select[Any]:
    """Ask for one row, ``told``, if a table of inlined rows has rows that no snapshot has ended."""
    return sa.select(sa.cast(told, BIGINT)).where(
        sa.exists().select_from(rows).where(rows.c.end_snapshot.is_(None))
    )


def renew_inlined_tables(draft: Draft, works: Sequence[TableWork]) -> None:
    """Make a table for inlined rows if DuckDB would otherwise keep using one with the old columns.

    No statement if no table has any; otherwise two for each table that has one. Every eighth time,
    empty ones that are replaced go: two statements more, and in a DuckDB file one for each.
    """
    changed = {w.id: w for w in works if needs_another(w)}
    if not changed:
        return
    found = [row for row in draft.opening.answers["inlined"] if row.table_id in changed]
    if not all(row.is_recorded for row in found):
        ids = {row.table_id for row in found}
        draft.connection.execute(_RECORD_VERSIONS, {"ids": sorted(ids)})
    for number in dict.fromkeys(row.table_id for row in found):
        work = changed[number]
        assert work.columns is not None
        if can_inline(draft.connection.dialect.name, draft.format, work.columns):
            _make(draft, work.id, work.columns)
        elif name := draft.format.reserved(work.columns.names):
            _stop_inlining(draft, work, name)
    if full := {row.table_id for row in found if row.listed % _MOST_LISTED == 0}:
        forget_empty_tables(draft.connection, full)


def forget_empty_tables(connection: sa.Connection, of: Collection[int] | None = None) -> None:
    """Take empty tables that others replaced off the list; a few statements.

    Whoever looks for rows asks each listed one. A session of DuckDB may still ask for one that it
    found in the list, so such a table is dropped later, where others can use the lake meanwhile.
    """
    empty = empty_tables(connection, of)
    for some in chunks(empty):
        connection.execute(sa.delete(tables.inlined_data_tables).where(_c.table_name.in_(some)))
    for name in empty if dialect_of(connection).drops_at_once else ():
        connection.execute(sa.text(f"DROP TABLE {name}"))


def empty_tables(connection: sa.Connection, of: Collection[int] | None = None) -> list[str]:
    """Return the empty tables that others replaced, those of some tables or all; two statements.

    Raises CorruptLake for a listed table whose name is not one of DuckLake's.
    """
    newest = sa.select(_c.table_id, sa.func.max(_c.schema_version).label("newest"))
    last = newest.group_by(_c.table_id).subquery()
    query = sa.select(_c.table_id, _c.table_name).join_from(
        tables.inlined_data_tables, last, last.c.table_id == _c.table_id
    )
    if of is not None:
        query = query.where(_c.table_id.in_(sorted(of)))
    names = []
    for table, name in connection.execute(query.where(_c.schema_version < last.c.newest)):
        require_inlined_tables(table, [name])
        names.append(name)
    return sorted({*names} - tables_with_rows(connection, names, lambda _: ()))


def needs_another(work: TableWork) -> bool:
    """Return whether a change of a table requires another table for its inlined rows."""
    made = work.altered
    # DuckDB makes one for new partition keys too.
    return made is not None and (made.partition is not None or any(map(_is_other, made.changed)))


def newest_inlined_table(draft: Draft, table: TableId, columns: Schema) -> str | None:
    """Return the table into which rows with these columns go, None if there is none.

    Two statements if the table was altered since: if DuckDB inlines nothing, its ALTER makes no
    table for inlined rows. One more if this commit alters or makes the table.
    """
    connection = draft.connection
    rows = draft.rows_about("inlined", _REGISTERED, [table])
    if not rows:
        return None
    found = max(rows, key=lambda row: row.schema_version)
    if found.altered is not None and found.altered > found.schema_version:
        begins = connection.execute(queries.schema_versions_of(table)).all()
        begin = begin_under(begins, found.schema_version)
        if begin is None:
            return None
        versions = connection.execute(queries.column_versions(table)).all()
        if any(map(_is_other, schema_of(rows_at(versions, begin), str(table)).changes(columns))):
            return None
    return str(found.table_name)


def _is_other(change: FieldChange) -> bool:
    """Return whether rows in the catalog are other ones with a field as it is afterwards."""
    if change.before is None or change.after is None:
        return True
    (old, parent), (new, _) = change.before, change.after
    is_moved = parent is None and old.order != new.order
    return is_moved or (old.name, old.shape) != (new.name, new.shape)


def _stop_inlining(draft: Draft, work: TableWork, name: str) -> None:
    """Let nobody inline rows into a table that gets a column of a reserved name.

    Four statements, and one for each of its tables of inlined rows. Raises InvalidRequest if one of
    these has rows, for which DuckLake uses the name.
    """
    names = draft.connection.execute(_NAMES, {"of_table": work.id}).scalars().all()
    if any(
        draft.connection.execute(rows_in(draft.format.inlined(known))).first() for known in names
    ):
        raise InvalidRequest(
            f"{work.name} cannot have a column {name!r}: DuckLake uses the name for the rows of"
            f" this table that are in the catalog; choose another, or CALL"
            f" flush_inlined_data('{work.name}') first"
        )
    write_setting(draft.connection, OptionSetting(LIMIT, "0", Scope.TABLE, work.id))


def write_inlined_rows(
    draft: Draft, table: TableId, batch: InlinedBatch, first_row_id: int
) -> None:
    """Write rows into their table in the catalog; new rows get the ids from ``first_row_id`` on.

    One statement, three more if there is no such table yet. Statistics do not change.
    """
    name = newest_inlined_table(draft, table, batch.columns)
    if name is None:
        name = add_inlined_table(draft, table, batch.columns)
        if name is None:
            raise Unsupported(f"table {table} has columns of which the catalog can keep no rows")
        # Open DuckDB sessions look for such tables only if the schema version grows.
        draft.has_schema_change = True
        draft.note_version(table)
    dialect = dialect_of(draft.connection)
    encoders = [dialect.inlined_value(f) for f in batch.columns]
    next_id = first_row_id
    rows: list[tuple[Stored, ...]] = []
    for number, row in enumerate(batch.rows):
        known = batch.row_ids[number] if batch.row_ids else None
        is_new = known is None or known < 0
        row_id = next_id if is_new else known
        next_id += is_new
        values = zip(encoders, row, strict=True)
        stored = (None if value is None else encode(value) for encode, value in values)
        rows.append((row_id, draft.id, None, *stored))
    # As text: building a statement for a table that is used once would cost more than running it.
    draft.connection.exec_driver_sql(
        _insertion(dialect, draft.format, name, batch.columns.names), rows
    )
    draft.entries.append(Entry(Verb.INLINED_INSERT, table))
    draft.has_stats_change = True


def end_inlined_rows(
    draft: Draft, table: TableId, row_ids: Collection[int], table_name: str
) -> None:
    """End live inlined rows of a table, each exactly once.

    Raises Conflict if one of them no longer exists. Two statements for each schema version that
    still has rows, and one more.
    """
    if not row_ids:
        return
    wanted = sorted(set(row_ids))
    ended = 0
    names = [name for name, _ in draft.connection.execute(queries.inlined_tables(table))]
    for name in names:
        for ids in chunks(wanted, _AT_ONCE):
            part = {"ids": ids, "ended": draft.id}
            ended += draft.connection.execute(_ending(draft.format.inlined(name)), part).rowcount
    if ended != len(wanted):
        raise Conflict(
            f"cannot change {len(wanted)} row(s) of table {table_name} that the catalog keeps:"
            f" another commit changed or flushed some, {ended} are still there; read the table"
            " again and repeat the change"
        )
    draft.entries.append(Entry(Verb.INLINED_DELETE, table))


def write_inlined_deletes(
    draft: Draft, table: TableId, positions: Mapping[int, Iterable[int]]
) -> None:
    """Delete rows of data files by position, in the catalog instead of a delete file.

    ``positions`` are by data file id. At most two statements.
    """
    name = queries.inlined_delete_table(table)
    rows = [
        {"file_id": number, "row_id": position, "begin_snapshot": draft.id}
        for number, found in positions.items()
        for position in sorted(set(found))
    ]
    if not rows:
        return
    known = sa.Table(name, sa.MetaData(), *(sa.Column(c, BIGINT) for c in rows[0]))
    if name not in draft.opening.present:
        draft.connection.execute(CreateTable(known))
        draft.opening.present.add(name)
    draft.connection.execute(known.insert(), rows)
    draft.entries.append(Entry(Verb.INLINED_DELETE, table))


def _insertion(dialect: Dialect, of: Format, name: str, columns: Iterable[str]) -> str:
    quote = dialect.in_driver_text
    names = [*of.system_columns, *(quote(c) for c in columns)]
    marks = ", ".join([dialect.parameter_mark] * len(names))
    return f"INSERT INTO {quote(name)} ({', '.join(names)}) VALUES ({marks})"


def _ending(rows: sa.TableClause) -> sa.Update:
    ended = sa.bindparam("ended", type_=BIGINT)
    return (
        sa.update(rows)
        .where(rows.c.row_id.in_(IDS), rows.c.end_snapshot.is_(None))
        # A row that this commit itself writes under the same id stays.
        .where(rows.c.begin_snapshot < ended)
        .values(end_snapshot=ended)
    )


def can_inline(database: str, of: Format, columns: Schema) -> bool:
    """Return whether a lake of this format in such a database can have inlined rows.

    DuckDB does not inline values of some types. A name may be one of the table's own names, or too
    long for PostgreSQL, which would truncate it.
    """
    dialect = DIALECTS[database]
    if len(columns.fields) > dialect.most_columns:
        return False
    if any(str(f.shape) in dialect.never_inlined for f in columns.walk()):
        return False
    is_short = all(len(name.encode()) <= dialect.longest_name for name in columns.names)
    return is_short and of.reserved(columns.names) is None


def inlined_table_text(dialect: Dialect, of: Format, name: str, columns: Schema) -> str:
    """Return the statement that creates a table for inlined rows, for a driver, no parameters."""
    every = [
        *(f"{own} BIGINT" for own in of.system_columns),
        *(f"{double_quoted(f.name)} {dialect.inlined_type(f)}" for f in columns),
    ]
    # Not with SQLAlchemy's columns: there may be a thousand, and it takes longer than the database.
    return f"CREATE TABLE {name} ({', '.join(every)})"
