"""Keeping the order of columns when DuckDB alters them.

If DuckDB 1.5.5 alters a column, it writes the column's id as its order. If the column was moved
before, or replaced a converted one, this is another position. The table for inlined rows that
DuckDB makes then has the columns in the old order, and its small inserts put values into the wrong
columns.

SQLite and PostgreSQL have a trigger against this: a new version of a column gets the order of the
version before. A DuckDB file has no triggers. But nobody has it open while Shelduck changes it, and
whoever opens it later reads the option that stops DuckDB from inlining rows of such a table.
"""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.read.queries import IDS, OF_TABLE
from shelduck.catalog.read.together import OF_TABLES, Questions
from shelduck.ducklake import tables
from shelduck.ducklake.checked import TEXT
from shelduck.model.tables.options import OptionSetting, Scope
from shelduck.model.tables.schema import FieldChange, Schema, TableId

LIMIT = "data_inlining_row_limit"
HELD = "shelduck_inlining_row_limit"
"""The option's value while Shelduck's value replaces it, empty if none was set."""

_c, _column = tables.metadata.c, tables.column.c
_MINE = (_c.scope == Scope.TABLE.value, _c.scope_id == OF_TABLE)
_FIND = sa.select(_c.value).where(_c.key == sa.bindparam("wanted"), *_MINE)
_RENAME = sa.update(tables.metadata).where(_c.key == sa.bindparam("was"), *_MINE)
_RENAME = _RENAME.values(key=sa.bindparam("now", type_=TEXT))
_REMOVE = sa.delete(tables.metadata).where(_c.key == sa.bindparam("gone"), *_MINE)
_OPTIONS = sa.select(_c.scope_id.label("table_id"), _c.key, _c.value).where(
    _c.scope == Scope.TABLE.value, _c.scope_id.in_(OF_TABLES), _c.key.in_([LIMIT, HELD])
)
_INSERT = sa.insert(tables.metadata)
_UPDATE = sa.update(tables.metadata).values(value=sa.bindparam("new", type_=TEXT))
ASK_PLACES: Questions = (("places", _OPTIONS),)
_PUT_BACK = (
    sa.update(tables.column)
    .where(
        _column.table_id == OF_TABLE,
        _column.column_id.in_(IDS),
        _column.begin_snapshot == sa.bindparam("begun"),
    )
    .values(column_order=_column.column_id)
)


def keep_places(draft: Draft, table: TableId, columns: Schema, *, is_renewed: bool) -> None:
    """Ensure that DuckDB does not change the order of a table's columns.

    ``is_renewed``: the table has a new table for inlined rows. No statement if columns are in the
    order of their ids, otherwise one (in a DuckDB file up to three).
    """
    is_moved = bool(columns.index.moved)
    trigger = dialect_of(draft.connection).kept_places
    if trigger is None:
        if is_moved:
            _hold(draft, table)
        elif is_renewed:
            _release(draft, table)
    elif is_moved:
        draft.connection.execute(sa.text(trigger))


def put_back(draft: Draft, table: TableId, changed: Iterable[FieldChange], last: int) -> None:
    """Give columns that return to the position of their id this order, despite the trigger.

    ``changed`` are those that were just written; ``last`` is the last id that the table used
    before.
    """
    ids = [
        c.after.field.id
        for c in changed
        if c.after is not None
        and c.after.field.order == c.after.field.id <= last
        and (c.before is None or c.before.field.order != c.after.field.order)
    ]
    if ids:
        draft.connection.execute(_PUT_BACK, {"of_table": table, "ids": ids, "begun": draft.id})


def write_setting(connection: sa.Connection, setting: OptionSetting) -> None:
    """Set an option, as DuckDB does: at most three statements, and no snapshot."""
    name = _name_to_set(connection, setting)
    same_scope = _c.scope.is_not_distinct_from(setting.scope.value)
    same_owner = _c.scope_id.is_not_distinct_from(setting.scope_id)
    known = _UPDATE.where(_c.key == name, same_scope, same_owner)
    if connection.execute(known, {"new": setting.value}).rowcount == 0:
        connection.execute(
            _INSERT,
            {
                "key": name,
                "value": setting.value,
                "scope": setting.scope.value,
                "scope_id": setting.scope_id,
            },
        )


def _name_to_set(connection: sa.Connection, setting: OptionSetting) -> str:
    """Return the name under which the catalog stores an option that somebody sets.

    One statement if the option may be held in a DuckDB file.
    """
    if dialect_of(connection).kept_places or setting.scope is not Scope.TABLE:
        return setting.name
    if setting.name != LIMIT:
        return setting.name
    assert setting.scope_id is not None
    found = connection.execute(_FIND, {"wanted": HELD, "of_table": setting.scope_id})
    return LIMIT if found.first() is None else HELD


def _hold(draft: Draft, table: TableId) -> None:
    known = _known(draft, table)
    if HELD in known:
        return
    row = {"scope": Scope.TABLE.value, "scope_id": table}
    rows = [row | {"key": LIMIT, "value": "0"}]
    if LIMIT in known:
        draft.connection.execute(_RENAME, {"of_table": table, "was": LIMIT, "now": HELD})
    else:
        rows.append(row | {"key": HELD, "value": ""})
    draft.insert(tables.metadata, rows)


def _release(draft: Draft, table: TableId) -> None:
    known = _known(draft, table)
    if HELD not in known:
        return
    connection, of_table = draft.connection, {"of_table": table}
    # If somebody set the option in DuckDB in the meantime, that value is intended.
    if known.get(LIMIT) == "0":
        connection.execute(_REMOVE, of_table | {"gone": LIMIT})
        if known[HELD]:
            connection.execute(_RENAME, of_table | {"was": HELD, "now": LIMIT})
    connection.execute(_REMOVE, of_table | {"gone": HELD})


def _known(draft: Draft, table: TableId) -> dict[str, str]:
    """Return both options of a table; one statement if this commit makes it."""
    return {row.key: row.value for row in draft.rows_about("places", _OPTIONS, [table])}
