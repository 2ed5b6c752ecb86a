"""Whose statistics can be trusted: writers differ in what they say about NaN and wide decimals.

For Spark, NaN is greater than every number. If a writer leaves NaN out of its bounds, as pyarrow
does, a row group looks as if it held nothing greater than its bounds. In the catalog, DuckDB 1.5
says of NaN only what is true of a file's last row group, and it has mixed up the bounds of wide
decimals of several row groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shelduck.model.files.data_file import DataFile
from shelduck.model.files.resolve import Node
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import is_write_directory
from shelduck.model.types.data_types import FLOATS, Decimal, Leaf

_WRITE_LENGTH = 36
_SAFE_DIGITS = 18


def untrusted_columns(
    table: TableVersion, nodes: Iterable[Node], files: Iterable[DataFile]
) -> tuple[str, ...]:
    """Return the float columns that are read, if some file is not known to be Shelduck's.

    The name of a write shows this: only Shelduck ends it with the digits of the table's uuid.
    """
    floats = [n.name for n in nodes if n.is_read and n.name is not None and _holds_float(n)]
    if not floats or all(is_own(table, file.path) for file in files):
        return ()
    return tuple(floats)


def needs_own_bounds(written: Leaf) -> bool:
    """Return whether bounds of a type are certain to be right only if Shelduck wrote them."""
    return isinstance(written, Decimal) and written.precision > _SAFE_DIGITS


def is_trusted(table: TableVersion | None, path: str, written: Leaf) -> bool:
    """Return whether the catalog is certain to be right about values of a type in a file.

    If it is not, it may be wrong about NaN, and about the bounds of decimals.
    """
    if str(written) not in FLOATS and not needs_own_bounds(written):
        return True
    return table is not None and is_own(table, path)


def is_own(table: TableVersion, path: str) -> bool:
    """Return whether the path of a data file shows that Shelduck wrote it for this table."""
    if not path.startswith(table.path):
        return False
    below = path[len(table.path) :]
    starts = (below, below.rpartition("/")[2])
    return any(is_write_directory(start[:_WRITE_LENGTH], table.uuid) for start in starts)


def _holds_float(node: Node) -> bool:
    return any(str(leaf.read) in FLOATS for leaf in _leaves(node))


def _leaves(node: Node) -> Iterator[Node]:
    if node.read is not None:
        yield node
    for child in node.children:
        yield from _leaves(child)
