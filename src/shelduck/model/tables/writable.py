"""Whether Spark can write files with the values of a type: one answer for all writers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shelduck.errors import Unsupported
from shelduck.model.tables.schema import Field, Path, path_text
from shelduck.model.types.data_types import DataType, Leaf, List, Map, Primitive, Struct
from shelduck.model.types.promotions import NOT_WRITTEN

_MOST_TOLD = 3


def is_writable(leaf: Leaf) -> bool:
    """Return whether Spark can store the type so that every DuckLake reader can read it."""
    return str(leaf) not in NOT_WRITTEN


def unwritable_parts(data_type: DataType, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield the parts of a type whose values Spark cannot write, and why."""
    match data_type:
        case Primitive():
            if str(data_type) == "null":
                yield path, "Spark writes no VOID; give the column a type (ALTER COLUMN … TYPE)"
            elif not is_writable(data_type):
                yield path, f"Spark has no data type that preserves the values of {data_type}"
        case Struct(members):
            for member in members:
                yield from unwritable_parts(member.type, (*path, member.name))
        case List(element):
            yield from unwritable_parts(element, (*path, "element"))
        case Map(key, value):
            if _holds_map(key):
                yield (*path, "key"), "Spark does not support maps in the keys of a map"
            yield from unwritable_parts(key, (*path, "key"))
            yield from unwritable_parts(value, (*path, "value"))
        case _:
            pass


def why_not_written(columns: Iterable[Field], table: str) -> str | None:
    """Return why files of these columns cannot be written, naming columns; None if they can."""
    found = [part for f in columns for part in unwritable_parts(f.type, (f.name,))]
    if not found:
        return None
    told = "; ".join(f"{path_text(path)}: {reason}" for path, reason in found[:_MOST_TOLD])
    more = f"; and {len(found) - _MOST_TOLD} more" if len(found) > _MOST_TOLD else ""
    return (
        f"Shelduck cannot write files of {table}: {told}{more}; drop the column, or write to this"
        " table with DuckDB"
    )


def require_writable(columns: Iterable[Field], table: str, what: str) -> None:
    """Raise Unsupported, saying ``what`` it is for, if files of the columns cannot be written."""
    why = why_not_written(columns, table)
    if why is not None:
        raise Unsupported(f"{what}: {why}")


def _holds_map(data_type: DataType) -> bool:
    match data_type:
        case Map():
            return True
        case List(element):
            return _holds_map(element)
        case Struct(members):
            return any(_holds_map(m.type) for m in members)
        case _:
            return False
