"""Rows and deletes that a commit keeps in the catalog itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sqlalchemy import Column, MetaData, Table, TableClause, Update, bindparam, update
from sqlalchemy.schema import CreateTable

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.rows.inlined_tables import add_inlined_table, newest_inlined_table
from shelduck.catalog.databases.dialect import Dialect, Stored
from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.read import queries
from shelduck.catalog.read.queries import chunks
from shelduck.ducklake.column_types import BIGINT
from shelduck.ducklake.format import Format
from shelduck.errors import Conflict, Unsupported
from shelduck.model.changes.change import Entry, Verb
from shelduck.model.files.inlined import InlinedBatch
from shelduck.model.tables.schema import TableId

_AT_ONCE = 500


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
    known = Table(name, MetaData(), *(Column(c, BIGINT) for c in rows[0]))
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


def _ending(rows: TableClause) -> Update:
    ended = bindparam("ended", type_=BIGINT)
    return (
        update(rows)
        .where(rows.c.row_id.in_(bindparam("ids", expanding=True)), rows.c.end_snapshot.is_(None))
        # A row that this commit itself writes under the same id stays.
        .where(rows.c.begin_snapshot < ended)
        .values(end_snapshot=ended)
    )
