"""Which defaults a column can have."""

from __future__ import annotations

from dataclasses import replace

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.tables.schema import NO_DEFAULT, Default, Field, Kind, Path, path_text
from shelduck.model.types.literals import canonical_text, fitted


def with_default(column: Field, default: Default | None, table: str) -> Field:
    """Return a new column with its default, checked; a literal is also the initial default."""
    if default is None:
        return column
    checked = checked_default(default, column, (column.name,), table)
    initial = checked.text if checked.literal else None
    return replace(column, default=checked, initial_default=initial)


def checked_default(default: Default, column: Field, path: Path, table: str) -> Default:
    """Return a default as it is stored, or raise InvalidRequest or Unsupported."""
    if not column.is_leaf:
        raise Unsupported(
            f"cannot set a default for {path_text(path)} of {table}, which is {column.type}:"
            " DuckLake supports no defaults for structs, lists and maps; set the default of a"
            " field of the struct, or leave it NULL"
        )
    if not default.literal:
        return default
    assert not isinstance(column.shape, Kind)
    if default.text == NO_DEFAULT:
        raise Unsupported(
            f"the text {NO_DEFAULT!r} cannot be the default of {path_text(path)} of {table}:"
            " DuckLake writes it for columns without a default"
        )
    try:
        return Default(canonical_text(column.shape, fitted(column.shape, default.text)))
    except InvalidRequest as error:
        raise InvalidRequest(
            f"cannot set the default {default.text!r} of {path_text(path)} of {table}: {error}"
        ) from error
