"""Tables for inlined rows: a table that has one needs another whenever its columns change.

DuckDB inserts small batches by position into the newest one that is registered. Were the columns
changed and that table not, its inserts would fail or, worse, leave rows that nobody can read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Column, Connection, MetaData, Table, bindparam, exists, func, insert, select
from sqlalchemy.schema import CreateTable
from sqlalchemy.sql.elements import quoted_name
from sqlalchemy.types import UserDefinedType

from shelduck.catalog import queries, tables
from shelduck.catalog.column_rows import begin_under, rows_at, schema_of
from shelduck.catalog.draft import Draft
from shelduck.catalog.work import TableWork
from shelduck.errors import InvalidRequest
from shelduck.model.schema import Field, FieldId, Kind, Schema, TableId
from shelduck.model.types import Decimal, Leaf

SYSTEM_COLUMNS = ("row_id", "begin_snapshot", "end_snapshot")
_RESERVED = "_ducklake_internal_"

_c = tables.inlined_data_tables.c
_snapshot, _version = tables.snapshot.c, tables.schema_versions.c
_is_recorded = (
    exists()
    .where(_version.table_id == _c.table_id, _version.schema_version == _c.schema_version)
    .correlate(tables.inlined_data_tables)
)
_REGISTERED = select(_c.table_id, _c.table_name, _c.schema_version, _is_recorded).where(
    _c.table_id.in_(bindparam("ids", expanding=True))
)
_NEWEST = (
    select(
        _c.table_name,
        _c.schema_version,
        select(func.max(_version.schema_version))
        .where(_version.table_id == _c.table_id)
        .scalar_subquery()
        .label("altered"),
    )
    .where(_c.table_id == bindparam("of_table"))
    .order_by(_c.schema_version.desc())
    .limit(1)
)
_REGISTER = insert(tables.inlined_data_tables)

# DuckDB 1.5.5 makes a table for inlined rows on demand and forgets its row of schema_versions. It
# reads such rows only until a newer table is registered, and then not at all.
_RECORD_VERSIONS = insert(tables.schema_versions).from_select(
    ["begin_snapshot", "schema_version", "table_id"],
    select(func.min(_snapshot.snapshot_id), _c.schema_version, _c.table_id)
    .where(
        _c.table_id.in_(bindparam("ids", expanding=True)),
        _snapshot.schema_version == _c.schema_version,
        ~_is_recorded,
    )
    .group_by(_c.schema_version, _c.table_id),
)
_INSERT_OPTION = insert(tables.metadata)


def add_inlined_table(draft: Draft, table: TableId, columns: Schema) -> str | None:
    """Make and register a table for the inlined rows of a table as its columns are now.

    Two statements; returns its name. A table that can have none is told to DuckDB as one without
    inlining (one statement), and the answer is None.
    """
    made = _columns(draft.connection.dialect.name, columns)
    if made is None:
        option = {"key": "data_inlining_row_limit", "value": "0", "scope": "table"}
        draft.connection.execute(_INSERT_OPTION, option | {"scope_id": table})
        return None
    name = f"ducklake_inlined_data_{table}_{draft.next_schema_version}"
    draft.connection.execute(CreateTable(Table(name, MetaData(), *made)))
    row = {"table_id": table, "table_name": name, "schema_version": draft.next_schema_version}
    draft.connection.execute(_REGISTER, row)
    return name


def renew_inlined_tables(draft: Draft, works: Sequence[TableWork]) -> None:
    """Make a table for inlined rows where DuckDB would go on using one with the former columns.

    One statement when no table has any; else one more than two for each that has.
    """
    changed = {w.id: w for w in works if needs_another(w)}
    if not changed:
        return
    found = draft.connection.execute(_REGISTERED, {"ids": list(changed)}).all()
    if not all(is_recorded for *_, is_recorded in found):
        ids = {number for number, *_ in found}
        draft.connection.execute(_RECORD_VERSIONS, {"ids": sorted(ids)})
    for number in dict.fromkeys(row.table_id for row in found):
        work = changed[number]
        assert work.columns is not None
        _refuse_reserved(work, work.columns)
        if _columns(draft.connection.dialect.name, work.columns) is not None:
            add_inlined_table(draft, work.id, work.columns)


def needs_another(work: TableWork) -> bool:
    """Tell whether a change of a table asks for another table for its inlined rows."""
    if work.old is None or work.columns is None:
        return False
    old, new = work.old.columns, work.columns
    # DuckDB makes one for new partition keys too.
    return old.names != new.names or _differ(old, new) or work.partition is not None


def newest_inlined_table(connection: Connection, table: TableId, columns: Schema) -> str | None:
    """Return the table that rows with these columns go to, None when there is none.

    One statement, and two more where the table was altered since: a DuckDB that inlines nothing
    makes no table for inlined rows when it alters one.
    """
    found = connection.execute(_NEWEST, {"of_table": table}).one_or_none()
    if found is None:
        return None
    if found.altered is not None and found.altered > found.schema_version:
        begins = connection.execute(queries.schema_versions_of(table)).all()
        begin = begin_under(begins, found.schema_version)
        if begin is None:
            return None
        versions = connection.execute(queries.column_versions(table)).all()
        if _differ(schema_of(rows_at(versions, begin), str(table)), columns):
            return None
    return str(found.table_name)


def can_inline(database: str, columns: Schema) -> bool:
    """Tell whether a kind of database takes inlined rows with these columns."""
    return _columns(database, columns) is not None


def _differ(old: Schema, new: Schema) -> bool:
    # By ids too: another column may have the name and the type of one that is gone.
    def told(columns: Schema) -> list[tuple[FieldId, str, Leaf | Kind]]:
        return [(f.id, f.name, f.shape) for f in columns.walk()]

    return sorted(told(old), key=repr) != sorted(told(new), key=repr)


def _is_reserved(name: str) -> bool:
    return name.lower() in SYSTEM_COLUMNS or name.lower().startswith(_RESERVED)


def _refuse_reserved(work: TableWork, columns: Schema) -> None:
    for name in columns.names:
        if _is_reserved(name):
            raise InvalidRequest(
                f"{work.name} cannot have a column {name!r}: DuckLake uses the name for the rows"
                " of this table that are in the catalog; choose another"
            )


class _Native(UserDefinedType[Any]):
    """A column type by its text."""

    cache_ok = True

    def __init__(self, text: str) -> None:
        self.text = text

    def get_col_spec(self, **_options: Any) -> str:
        return self.text


def _columns(database: str, columns: Schema) -> list[Column[Any]] | None:
    """Return the columns of a table for inlined rows, None where there can be none.

    DuckDB inlines no values of some types; a name may be one of the table's own, or too long for
    PostgreSQL, which would cut it.
    """
    if any(str(f.shape) in _NOT_INLINED[database] for f in columns.walk()):
        return None
    if any(_is_reserved(n) or len(n.encode()) > _LONGEST_NAME[database] for n in columns.names):
        return None
    if len(columns.fields) > _MOST_COLUMNS[database]:
        return None
    native = _NATIVE[database]
    return [
        *(Column(name, _Native("BIGINT")) for name in SYSTEM_COLUMNS),
        # Quoted always: SQLAlchemy does not know every word that a database reserves.
        *(Column(quoted_name(f.name, quote=True), _Native(native(f))) for f in columns),
    ]


_NOT_INLINED = {
    "sqlite": {"geometry", "variant"},
    "postgresql": {"geometry", "variant"},
    "duckdb": {"geometry"},
}

_LONGEST_NAME = {"sqlite": 1 << 30, "postgresql": 63, "duckdb": 1 << 30}
_MOST_COLUMNS = {"sqlite": 1900, "postgresql": 1500, "duckdb": 1 << 30}
SMALL_INTEGERS = "boolean int8 int16 int32 int64 uint8 uint16 uint32".split()


def _sqlite(f: Field) -> str:
    if str(f.shape) == "blob":
        return "BLOB"
    return "BIGINT" if str(f.shape) in SMALL_INTEGERS else "VARCHAR"


_POSTGRESQL = {
    "boolean": "BOOLEAN",
    "int8": "SMALLINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "INTEGER",
    "uint16": "INTEGER",
    "uint32": "BIGINT",
    "float32": "REAL",
    "float64": "DOUBLE PRECISION",
    "time": "TIME",
    "timetz": "TIME WITH TIME ZONE",
    "interval": "INTERVAL",
    "uuid": "UUID",
    "varchar": "BYTEA",
    "json": "BYTEA",
    "blob": "BYTEA",
}


def _postgresql(f: Field) -> str:
    if isinstance(f.shape, Decimal):
        return f"NUMERIC({f.shape.precision},{f.shape.scale})"
    return _POSTGRESQL.get(str(f.shape), "VARCHAR")


_DUCKDB = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "int128": "HUGEINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "uint128": "UHUGEINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "timetz": "TIME WITH TIME ZONE",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
}


def _duckdb(f: Field) -> str:
    if f.shape is Kind.LIST:
        return f"{_duckdb(f.children[0])}[]"
    if f.shape is Kind.MAP:
        return f"MAP({_duckdb(f.children[0])}, {_duckdb(f.children[1])})"
    if f.shape is Kind.STRUCT:
        members = (f'"{c.name.replace(chr(34), chr(34) * 2)}" {_duckdb(c)}' for c in f.children)
        return f"STRUCT({', '.join(members)})"
    return _DUCKDB.get(str(f.shape), str(f.shape).upper())


_NATIVE: dict[str, Callable[[Field], str]] = {
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "duckdb": _duckdb,
}
