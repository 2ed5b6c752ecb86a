"""Table functions of a lake in a FROM list: ``snapshots()``, ``table_changes('t', 1)`` and kin.

The names are DuckLake's. DuckDB writes ``lake.snapshots()`` and ``ducklake_snapshots('lake')``;
both are read, and so is the name alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shelduck.errors import InvalidRequest
from shelduck.sql.tokens.arguments import DUCKLAKE, read_call
from shelduck.sql.tokens.cursor import Cursor
from shelduck.sql.tokens.lexer import tokenize
from shelduck.sql.tokens.parts import Call, TableName

_OF_LAKE = frozenset(
    "snapshots table_info options settings current_snapshot last_committed_snapshot".split()
)
_OF_TABLE = frozenset("table_changes table_insertions table_deletions list_files".split())
# DuckDB's form of these names the schema before the table: ducklake_table_changes('l', 's', 't').
_WITH_SCHEMA = _OF_TABLE - {"list_files"}


def is_function(parts: Sequence[str]) -> bool:
    """Tell whether a name is that of a table function of a lake."""
    name = parts[-1].lower()
    return name.removeprefix(DUCKLAKE) in _OF_LAKE | _OF_TABLE and len(parts) < 4


def read_function(cursor: Cursor, parts: Sequence[str]) -> tuple[Call, TableName | None]:
    """Take the arguments of a table function; return its call and the table that it is about.

    The table is no argument of the call. Raises InvalidRequest for arguments that are no literals,
    and for a table that is not named by a string.
    """
    at = cursor.at
    call = read_call(cursor, parts, "function")
    if call.procedure not in _OF_TABLE:
        return call, None
    prefixed = parts[-1].lower().startswith(DUCKLAKE)
    given = call.positional
    ahead = prefixed and call.procedure in _WITH_SCHEMA
    schema = given[0] if ahead and given else None
    written = given[ahead] if len(given) > ahead else None
    behind = cursor.at
    # The strings stand behind the bracket, each with a comma.
    cursor.at = at + 1 + 2 * (prefixed + ahead)
    if not isinstance(written, str) or not isinstance(schema, str | None):
        raise cursor.failure("the table's name as a string")
    table = TableName((schema, written)) if schema is not None else _named(cursor, written)
    cursor.at = behind
    call = replace(call, positional=given[ahead + 1 :])
    # DuckDB's own form has DuckDB's columns.
    name = f"{DUCKLAKE}{call.procedure}" if prefixed else call.procedure
    return replace(call, procedure=name), table


def _named(cursor: Cursor, written: str) -> TableName:
    try:
        inside = Cursor(written, tokenize(written))
        name = inside.table_name()
        inside.end()
    except InvalidRequest:
        raise cursor.failure("the name of a table, such as 'schema.table'") from None
    return name
