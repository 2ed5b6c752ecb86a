"""SQLite: text, except for integers and bytes."""

from __future__ import annotations

from sqlalchemy.dialects.sqlite import insert

from shelduck.catalog.dialects.dialect import SMALL_INTEGERS, UNLIMITED, Dialect, Encoder, as_it_is
from shelduck.catalog.dialects.values import binary, marked_nested, number_of_boolean, whole
from shelduck.model.tables.schema import Field
from shelduck.model.text.quoting import double_quoted

_KEPT_PLACES = """
CREATE TRIGGER IF NOT EXISTS shelduck_kept_places AFTER INSERT ON ducklake_column
WHEN NEW.column_order = NEW.column_id
BEGIN
  UPDATE ducklake_column SET column_order = coalesce((
      SELECT before.column_order FROM ducklake_column before
      WHERE before.table_id = NEW.table_id AND before.column_id = NEW.column_id
        AND before.begin_snapshot < NEW.begin_snapshot
      ORDER BY before.begin_snapshot DESC LIMIT 1), column_order)
  WHERE rowid = NEW.rowid;
END
"""


def _type(field: Field) -> str:
    if str(field.shape) == "blob":
        return "BLOB"
    return "BIGINT" if str(field.shape) in SMALL_INTEGERS else "VARCHAR"


def _value(field: Field) -> Encoder:
    if not field.is_leaf:
        return marked_nested(field)
    name = str(field.shape)
    if name == "boolean":
        return number_of_boolean
    if name in SMALL_INTEGERS:
        return whole
    return binary if name == "blob" else str


SQLITE = Dialect(
    name="sqlite",
    tables="SELECT name FROM sqlite_master WHERE type = 'table'",
    indexes="SELECT name FROM sqlite_master WHERE type = 'index'",
    columns=(
        "SELECT m.name AS table_name, p.name AS name, p.type AS kind FROM sqlite_master m"
        " JOIN pragma_table_info(m.name) p WHERE m.type = 'table'"
        " AND substr(m.name, 1, 9) = 'ducklake_' ORDER BY m.name, p.cid"
    ),
    insert=insert,
    # The quickest test by far; a number beyond 64 bits is unknown.
    whole_number=(
        "CASE WHEN CAST(CAST({0} AS INTEGER) AS TEXT) = {0} THEN CAST({0} AS INTEGER) END"
    ),
    indexes_bounds=True,
    first_rows="{0} LIMIT {1}",
    parameter_mark="?",
    in_driver_text=double_quoted,
    kept_places=_KEPT_PLACES,
    inlined_type=_type,
    inlined_value=_value,
    older_value=as_it_is,
    never_inlined=frozenset({"geometry", "variant"}),
    longest_name=UNLIMITED,
    most_columns=1900,
    read_as_text=lambda _: False,
    has_literal_structs=True,
    has_variants=False,
    knows_columns=False,
    before_reading=None,
    drops_at_once=True,
    row_address="rowid",
)
