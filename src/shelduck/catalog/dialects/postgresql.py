"""PostgreSQL: its own types, and bytes for text."""

from __future__ import annotations

from sqlalchemy.dialects.postgresql import insert

from shelduck.catalog.dialects.dialect import SMALL_INTEGERS, Dialect, Encoder
from shelduck.catalog.dialects.values import binary, marked_nested, number_of_boolean, whole
from shelduck.model.tables.schema import Field
from shelduck.model.text.quoting import double_quoted
from shelduck.model.types.data_types import FLOATS, Decimal

# DuckDB qualifies the tables with their schema and has another search path, so the trigger uses the
# schema of its own table.
_KEPT_PLACES = """
DO $install$ BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_trigger
             WHERE tgrelid = 'ducklake_column'::regclass AND tgname = 'shelduck_kept_places') THEN
    RETURN;
  END IF;
  CREATE OR REPLACE FUNCTION shelduck_kept_places() RETURNS trigger LANGUAGE plpgsql AS $keep$
    DECLARE kept bigint;
    BEGIN
      EXECUTE 'SELECT column_order FROM ' || TG_RELID::regclass ||
        ' WHERE table_id = $1 AND column_id = $2 AND begin_snapshot < $3'
        ' ORDER BY begin_snapshot DESC LIMIT 1'
        INTO kept USING NEW.table_id, NEW.column_id, NEW.begin_snapshot;
      NEW.column_order = coalesce(kept, NEW.column_order);
      RETURN NEW;
    END $keep$;
  CREATE TRIGGER shelduck_kept_places BEFORE INSERT ON ducklake_column
    FOR EACH ROW WHEN (NEW.column_order = NEW.column_id) EXECUTE FUNCTION shelduck_kept_places();
END $install$
"""

_HERE = "relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = current_schema())"
_RELATIONS = f"SELECT relname AS name FROM pg_catalog.pg_class WHERE {_HERE}"
_TYPES = {
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
    "null": "INTEGER",
}
_TEXTS = frozenset({"varchar", "text", "json", "jsonb"})
# What DuckLake 0.3 used, where later versions use another type.
_OLDER_TYPES = {
    "varchar": _TEXTS,
    "json": _TEXTS,
    "date": frozenset({"date"}),
    "timestamp": frozenset({"timestamp"}),
    "timestamptz": frozenset({"timestamptz"}),
}
# Values that the driver would change: an interval loses its months, a time its form. DuckLake 0.3
# kept dates and timestamps as such, of which the driver refuses those outside of Python's years.
_READ_AS_TEXT = frozenset(
    {"time", "timetz", "interval", "uuid", "date", "timestamp", "timestamptz"}
)


def _type(field: Field) -> str:
    if isinstance(field.shape, Decimal):
        return f"NUMERIC({field.shape.precision},{field.shape.scale})"
    return _TYPES.get(str(field.shape), "VARCHAR")


def _value(field: Field) -> Encoder:
    if not field.is_leaf:
        return marked_nested(field)
    name = str(field.shape)
    if name == "boolean":
        return lambda value: bool(number_of_boolean(value))
    if name in SMALL_INTEGERS:
        return whole
    if name in FLOATS:
        return lambda value: float(str(value))
    if name in ("varchar", "json"):
        return lambda value: str(value).encode()
    return binary if name == "blob" else str


def _older_value(field: Field, kind: str) -> str | None:
    """Return text as bytes, and times as the text of DuckDB; the session is in UTC and ISO."""
    if kind not in _OLDER_TYPES.get(str(field.shape), ()):
        return None
    value = f"CAST({double_quoted(field.name)} AS text)"
    if str(field.shape) in ("varchar", "json"):
        return f"convert_to({value}, 'UTF8')"
    return f"regexp_replace({value}, '^([0-9]+-[0-9]+-[0-9]+)(.*) BC$', '\\1 (BC)\\2')"


POSTGRESQL = Dialect(
    name="postgresql",
    tables=f"{_RELATIONS} AND relkind IN ('r', 'p')",
    indexes=f"{_RELATIONS} AND relkind IN ('i', 'I')",
    columns=(
        "SELECT c.relname AS table_name, a.attname AS name, t.typname AS kind"
        " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid"
        " AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_catalog.pg_type t ON t.oid = a.atttypid"
        f" WHERE {_HERE} AND c.relkind IN ('r', 'p') AND starts_with(c.relname, 'ducklake_')"
        " ORDER BY c.relname, a.attnum"
    ),
    insert=insert,
    whole_number="CASE WHEN {0} ~ '^-?[0-9]+$' THEN CAST({0} AS NUMERIC) END",
    indexes_bounds=False,
    # With LIMIT beside WHERE, the planner expects to be done soon, and reads in one process.
    first_rows="WITH found AS MATERIALIZED ({0}) SELECT * FROM found LIMIT {1}",
    parameter_mark="%s",
    # psycopg takes a per cent sign in the text of a statement for the start of a parameter.
    in_driver_text=lambda name: double_quoted(name).replace("%", "%%"),
    kept_places=_KEPT_PLACES,
    inlined_type=_type,
    inlined_value=_value,
    older_value=_older_value,
    never_inlined=frozenset({"geometry", "variant"}),
    longest_name=63,
    most_columns=1500,
    read_as_text=lambda field: str(field.shape) in _READ_AS_TEXT,
    has_literal_structs=True,
    has_variants=False,
    knows_columns=True,
    before_reading=None,
    drops_at_once=False,
    row_address="ctid",
)
