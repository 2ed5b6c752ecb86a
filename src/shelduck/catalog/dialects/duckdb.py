"""DuckDB files: its own types, which it casts from text."""

from __future__ import annotations

from sqlalchemy.dialects.postgresql import insert

from shelduck.catalog.dialects.dialect import UNLIMITED, Dialect, Encoder, as_it_is
from shelduck.catalog.dialects.values import binary
from shelduck.model.files.nested_text import nested_text
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.text.quoting import double_quoted
from shelduck.model.types.spellings import DUCKDB_NUMBERS

_HERE = "database_name = current_database() AND schema_name = current_schema()"
_TYPES = DUCKDB_NUMBERS | {
    "timetz": "TIME WITH TIME ZONE",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "null": "INTEGER",
}


def _type(field: Field) -> str:
    if field.shape is Kind.LIST:
        return f"{_type(field.children[0])}[]"
    if field.shape is Kind.MAP:
        return f"MAP({_type(field.children[0])}, {_type(field.children[1])})"
    if field.shape is Kind.STRUCT:
        members = (f"{double_quoted(c.name)} {_type(c)}" for c in field.children)
        return f"STRUCT({', '.join(members)})"
    return _TYPES.get(str(field.shape), str(field.shape).upper())


def _value(field: Field) -> Encoder:
    if not field.is_leaf:
        return lambda value: nested_text(field, value)
    return binary if str(field.shape) == "blob" else str


DUCKDB = Dialect(
    name="duckdb",
    tables=f"SELECT table_name AS name FROM duckdb_tables() WHERE {_HERE}",
    indexes=f"SELECT index_name AS name FROM duckdb_indexes() WHERE {_HERE}",
    columns=(
        "SELECT table_name, column_name AS name, data_type AS kind FROM duckdb_columns()"
        f" WHERE {_HERE} AND starts_with(table_name, 'ducklake_') ORDER BY table_name, column_index"
    ),
    insert=insert,
    whole_number=("CASE WHEN regexp_full_match({0}, '-?[0-9]+') THEN TRY_CAST({0} AS HUGEINT) END"),
    indexes_bounds=False,
    first_rows="{0} LIMIT {1}",
    parameter_mark="?",
    in_driver_text=double_quoted,
    kept_places=None,
    inlined_type=_type,
    inlined_value=_value,
    never_inlined=frozenset({"geometry", "timestamptz_ns", "variant"}),
    older_value=as_it_is,
    longest_name=UNLIMITED,
    most_columns=UNLIMITED,
    read_as_text=lambda field: str(field.shape) != "blob",
    has_literal_structs=False,
    has_variants=True,
    knows_columns=True,
    # The text of a timestamp is in the time zone of the session.
    before_reading="SET TimeZone = 'UTC'",
    drops_at_once=True,
    row_address="rowid",
)
