"""Values that Spark holds and other readers of a lake do not.

Spark's texts are any bytes, and its dates and timestamps go further back than DuckDB's. DuckDB
cannot read a file with such a value. So no write takes them: the writer of files checks each value
(``HeldValues.java``, or `shelduck.engine.rows.unheld` without the bridge), and rows that stay in
the catalog are checked before.

Infinity is a value of both: it is the number as which DuckDB stores it.
"""

from __future__ import annotations

from collections.abc import Iterable

from shelduck.model.tables.schema import Field, Path, path_text
from shelduck.model.tables.table_version import TableVersion, is_shadow
from shelduck.model.types import temporal
from shelduck.model.types.data_types import Leaf

LEAST_DATE = -temporal.INFINITE_DATE
"""The first day since 1970 that every reader has: infinity in the past."""
LEAST_MOMENT = -9_223_372_022_400_000_000
"""The first microsecond since 1970 that every reader has, apart from infinity in the past."""
INFINITE_PAST = -(2**63 - 1)
MOST_SHOWN = 32
"""Of how many bytes of a text a message tells."""
_REPLACED = "\ufffd"
_BEFORE_CHRIST = "(BC)"


def told_of(table: TableVersion, field_id: int, value: str) -> str:
    """Return what is wrong with a value of a field: hexadecimal text, or a number of a moment."""
    path = _path_of(table.columns, field_id, table)
    column = path_text(path)
    place = f"column {column} of {table.full_name} cannot hold"
    field = table.columns.by_id(field_id)
    assert field is not None
    if not is_moment(field.leaf):
        return (
            f"{place} the text {value}, which is not UTF-8: other readers could not read the"
            f" table; write make_valid_utf8({path_text(path[:1])}), or use a BINARY column"
        )
    first, shown = (_moment(field.leaf, n) for n in (_first(field.leaf), int(value)))
    return (
        f"{place} {shown}, which other readers do not have: the first {field.leaf} is {first};"
        " write a later one, or NULL"
    )


def may_be_unheld(value: object) -> bool:
    """Return whether a value of `InlinedBatch.rows` may be one; then Spark must look at it.

    When Python gets rows from Spark, U+FFFD stands for bytes that are not text.
    """
    if isinstance(value, str):
        return _REPLACED in value or value.find(_BEFORE_CHRIST) > 0
    if isinstance(value, dict):
        return any(map(may_be_unheld, value.values()))
    return isinstance(value, list | tuple) and any(map(may_be_unheld, value))


def is_moment(leaf: Leaf) -> bool:
    """Return whether the values of a type are dates or timestamps in microseconds."""
    return str(leaf) in ("date", *temporal.MICROSECONDS)


def _first(leaf: Leaf) -> int:
    return LEAST_DATE + 1 if str(leaf) == "date" else LEAST_MOMENT


def _moment(leaf: Leaf, number: int) -> str:
    date = str(leaf) == "date"
    return temporal.date_text(number) if date else temporal.timestamp_text(number, leaf)


def _path_of(fields: Iterable[Field], field_id: int, table: TableVersion) -> Path:
    """Return the names on the way to a field; a column of a job has the name that it will have."""
    for field in fields:
        if any(below.id == field_id for below in field.walk()):
            made = table.first_names.get(field.id, field.name)
            name = made if is_shadow(field) else field.name
            rest = () if field.id == field_id else _path_of(field.children, field_id, table)
            return (name, *rest)
    raise AssertionError(f"{table.full_name} has no field {field_id}")
