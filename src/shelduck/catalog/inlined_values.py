"""Values of inlined rows as each database keeps them, so that DuckDB reads what was meant.

SQLite holds text but for whole numbers and bytes, PostgreSQL its own types and bytes for text; a
DuckDB file takes text and casts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shelduck.catalog.inlined_tables import SMALL_INTEGERS
from shelduck.model.duckdb_text import TEXT_FORM
from shelduck.model.nested_text import nested_text
from shelduck.model.schema import Field, Kind, Schema
from shelduck.model.types import FLOATS

Stored = int | float | str | bytes | None
Encoder = Callable[[object], Stored]


def encoders(database: str, columns: Schema) -> list[Encoder]:
    """Return, per column, what turns a value of `InlinedBatch.rows` into a parameter."""
    made = _ENCODERS[database]
    return [made(f) for f in columns]


def encoded(functions: Sequence[Encoder], row: Sequence[object]) -> tuple[Stored, ...]:
    """Return the parameters of one row."""
    return tuple(
        None if value is None else encode(value)
        for encode, value in zip(functions, row, strict=True)
    )


def _sqlite(field: Field) -> Encoder:
    if not field.is_leaf:
        return _nested_for_others(field)
    name = str(field.shape)
    if name == "boolean":
        return _number_of_boolean
    if name in SMALL_INTEGERS:
        return _whole
    return _bytes if name == "blob" else str


def _postgresql(field: Field) -> Encoder:
    if not field.is_leaf:
        return _nested_for_others(field)
    name = str(field.shape)
    if name == "boolean":
        return lambda value: bool(_number_of_boolean(value))
    if name in SMALL_INTEGERS:
        return _whole
    if name in FLOATS:
        return lambda value: float(str(value))
    if name in ("varchar", "json"):
        return lambda value: str(value).encode()
    return _bytes if name == "blob" else str


def _duckdb(field: Field) -> Encoder:
    if not field.is_leaf:
        return lambda value: nested_text(field, value)
    return _bytes if str(field.shape) == "blob" else str


def _nested_for_others(field: Field) -> Encoder:
    """Return the encoder of nested values for a database that holds DuckDB's text.

    DuckDB itself writes structs as SQL literals there, which it then misreads; ours are its text.
    """
    mark = TEXT_FORM if field.shape is Kind.STRUCT else ""
    return lambda value: mark + nested_text(field, value)


def _number_of_boolean(value: object) -> int:
    return int(value == "true")


def _whole(value: object) -> int:
    return int(str(value))


def _bytes(value: object) -> bytes:
    assert isinstance(value, bytes)
    return value


_ENCODERS: dict[str, Callable[[Field], Encoder]] = {
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "duckdb": _duckdb,
}
