"""Whose footers can be trusted: writers differ in what they say about NaN.

For Spark, NaN is greater than every number. If a writer leaves NaN out of its bounds, as pyarrow
does, a row group looks as if it held nothing greater than its bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shelduck.model.files.data_file import DataFile
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import is_write_directory
from shelduck.model.types.data_types import FLOATS
from shelduck.planning.resolve import Node

_WRITE_LENGTH = 36


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
