"""The actions of ALTER TABLE, as changes of columns and of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.changes.definition import Definition
from shelduck.model.changes.modify import ModifyColumn, OrderColumns, RewriteOlderFiles, TableChange
from shelduck.model.changes.schema_change import (
    AddColumn,
    ChangeType,
    DropColumn,
    DuplicateKeys,
    MoveColumn,
    RenameColumn,
    SetComment,
    SetDefault,
    SetNullable,
)
from shelduck.model.changes.storing import AddIndex, DropIndex, SetEncoding
from shelduck.model.tables.column_storage import encoding_named, stored_properties
from shelduck.model.tables.partition import (
    ResetPartitioning,
    ResetSorting,
    SetPartitioning,
    SetSorting,
)
from shelduck.model.tables.properties import SetProperties, refuse_doris
from shelduck.model.tables.schema import Path
from shelduck.text.ddl.column_clauses import (
    CONSTRAINTS,
    Beside,
    read_constraint_change,
    read_definition,
    refuse_option,
    take_constraint,
    take_conversion,
    take_default,
    take_position,
)
from shelduck.text.ddl.partitioning import read_partition_keys
from shelduck.text.ddl.sorting import read_order_of_files, read_sort_keys
from shelduck.text.tokens.arguments import (
    begins_property_change,
    read_properties,
    read_property_change,
)
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind

_ACTIONS = ("ADD", "DROP", "RENAME", "ALTER", "CHANGE", "MODIFY")
_OTHER_ACTIONS = {
    "SET": "use SET PARTITIONED BY, SET SORTED BY or SET TBLPROPERTIES",
    "UNSET": "use UNSET TBLPROPERTIES",
    "RESET": "use RESET PARTITIONED BY or RESET SORTED BY",
    **dict.fromkeys(("PARTITION", "PARTITIONED"), "use SET PARTITIONED BY (...)"),
    **dict.fromkeys(("SORT", "SORTED"), "use SET SORTED BY (...)"),
}
_LAYOUTS = ("PARTITIONED", "SORTED")
_NOT_COLUMNS = dict.fromkeys(("PARTITION", "FEATURE"), "only columns can be changed")
_NOT_COLUMNS |= {"ROLLUP": "use ADD ROLLUP or DROP ROLLUP"}
_BEHIND = {
    "SET": ("NOT", "DEFAULT", "TYPE", "DATA", "ENCODING", "COMPRESSION"),
    "DROP": ("NOT", "DEFAULT"),
    "FIRST": (",", "PROPERTIES"),
}
_EXPECTED = {
    "SET": "TYPE, DEFAULT or NOT NULL",
    "DROP": "DEFAULT or NOT NULL",
    "FIRST": "the end of the statement",
    "COMMENT": "the comment as a string",
}


def _table_action(cursor: Cursor) -> list[TableChange]:
    """Read what changes the table as a whole; nothing where a column follows."""
    if _begins_arrangement(cursor):
        changed = _arrangement(cursor)
        return [changed, RewriteOlderFiles()] if cursor.accept("REWRITE") else [changed]
    if begins_property_change(cursor):
        return [read_property_change(cursor)]
    if cursor.sees("SET", "("):
        # Doris' own properties: those of clusters change nothing, others are refused.
        cursor.expect("SET")
        given = read_properties(cursor)
        refuse_doris(given, "a table")
        return [SetProperties(stored_properties(given))]
    if _begins_order(cursor):
        return [_order(cursor)]
    if _begins_index(cursor):
        return _index(cursor)
    if cursor.peek(1).key in CONSTRAINTS and (constraint := read_constraint_change(cursor)):
        return [constraint]
    if cursor.sees("CLUSTER", "BY") or cursor.sees("WRITE"):
        return [read_order_of_files(cursor)]
    return [RewriteOlderFiles()] if cursor.accept("REWRITE") else []


def read_action(cursor: Cursor) -> list[TableChange]:
    """Take one action of ALTER TABLE, which may be several changes."""
    if found := _table_action(cursor):
        return found
    if not (word := cursor.accept_any(*_ACTIONS)):
        other = cursor.peek().key
        if other in _OTHER_ACTIONS:
            raise cursor.refusal(f"ALTER TABLE ... {other}", _OTHER_ACTIONS[other])
        raise cursor.failure(
            "one of ADD, DROP, RENAME, ALTER, CHANGE, MODIFY, ORDER BY, REWRITE, VALIDATE"
            " CONSTRAINT, UNDO JOB, UNDROP"
        )
    what = cursor.peek().key
    if word != "ALTER" and what in _NOT_COLUMNS and cursor.peek(1).key != "TO":
        raise cursor.refusal(
            f"ALTER TABLE ... {word} {what}",
            f"{_NOT_COLUMNS[what]}; for a column with that name, write COLUMN before the name",
        )
    if word == "ADD":
        return _add(cursor)
    if word == "DROP":
        return _drop(cursor)
    if word == "RENAME":
        return _rename(cursor)
    if word == "MODIFY":
        return [_modify(cursor)]
    return _change(cursor) if word == "CHANGE" else _alter_columns(cursor)


def _begins_arrangement(cursor: Cursor, ahead: int = 0) -> bool:
    word, what, by = (cursor.peek(ahead + n).key for n in range(3))
    return word in ("SET", "RESET") and what in _LAYOUTS and by == "BY"


def _arrangement(cursor: Cursor) -> TableChange:
    """Read what new files are partitioned or sorted by."""
    sets = cursor.accept_any("SET", "RESET") == "SET"
    what = cursor.accept_any(*_LAYOUTS)
    cursor.expect("BY")
    if what == "PARTITIONED":
        return SetPartitioning(read_partition_keys(cursor)) if sets else ResetPartitioning()
    return SetSorting(read_sort_keys(cursor)) if sets else ResetSorting()


def _begins_index(cursor: Cursor) -> bool:
    """Tell ADD INDEX i (…) and DROP INDEX i from a column that is called so."""
    named = cursor.peek(2)
    if cursor.sees("ADD", "INDEX"):
        return named.key == "IF" or (cursor.peek(3).key == "(" and cursor.peek(4).may_name)
    return cursor.sees("DROP", "INDEX") and named.may_name and named.key != "FROM"


def _index(cursor: Cursor) -> list[TableChange]:
    if cursor.accept("DROP", "INDEX"):
        return [read_drop_index(cursor)]
    cursor.expect("ADD", "INDEX")
    if_not_exists = cursor.accept_if("NOT", "EXISTS")
    return index_behind(cursor, cursor.name("an index"), if_not_exists)


def index_behind(cursor: Cursor, name: str, if_not_exists: bool) -> list[TableChange]:
    """Take the columns and the kind behind the name of a new index, which a job builds.

    Raises Unsupported for a kind that Parquet files do not have.
    """
    columns = cursor.in_brackets(lambda c: c.path("a column"))
    if not cursor.accept("USING", "BLOOMFILTER"):
        what = cursor.peek(1).text if cursor.sees("USING") else "without USING BLOOMFILTER"
        raise cursor.refusal(
            f"an index {what}",
            "use USING BLOOMFILTER for equal values, or SET SORTED BY for ranges",
        )
    if cursor.accept("COMMENT"):
        cursor.string("the comment as a string")
    return [AddIndex(name, columns, if_not_exists), RewriteOlderFiles()]


def read_drop_index(cursor: Cursor) -> DropIndex:
    """Take the name of an index that goes."""
    if_exists = cursor.accept_if("EXISTS")
    return DropIndex(cursor.name("an index"), if_exists)


def _add(cursor: Cursor) -> list[TableChange]:
    cursor.accept_any("COLUMN", "COLUMNS")
    if_not_exists = cursor.accept_if("NOT", "EXISTS")
    bracket = cursor.accept("(")
    beside = Beside()
    found = [read_definition(cursor, beside)]
    while _goes_on(cursor, bracket, lambda c: read_definition(c, Beside())):
        if not (bracket and take_constraint(cursor, beside.constraints)):
            found.append(read_definition(cursor, beside))
    if bracket:
        cursor.expect(")")
    rollup = _rollup(cursor, "TO", several=len(found) > 1 and not bracket)
    added = [AddColumn(**_parts(f), if_not_exists=if_not_exists, rollup=rollup) for f in found]
    return [*added, *beside.constraints]


def _rollup(cursor: Cursor, word: str, *, several: bool = False) -> str | None:
    """Take the rollup behind ``word``, which behind ``several`` columns could mean the last one."""
    if several and cursor.sees(word):
        raise cursor.failure(
            "',' or the end of the statement (write the columns of a rollup in brackets)"
        )
    return cursor.name("a rollup") if cursor.accept(word) else None


def _parts(found: Definition) -> dict[str, Any]:
    return {f.name: getattr(found, f.name) for f in fields(found)}


def _drop(cursor: Cursor) -> list[TableChange]:
    cursor.accept_any("COLUMN", "COLUMNS")
    if_exists = cursor.accept_if("EXISTS")
    bracket = cursor.accept("(")
    paths = [cursor.path()]
    while _goes_on(cursor, bracket, Cursor.path):
        paths.append(cursor.path())
    if bracket:
        cursor.expect(")")
    rollup = _rollup(cursor, "FROM", several=len(paths) > 1 and not bracket)
    cascade = cursor.accept_any("CASCADE", "RESTRICT") == "CASCADE"
    return [DropColumn(path, if_exists, rollup, cascade) for path in paths]


def _goes_on(cursor: Cursor, bracket: bool, item: Callable[[Cursor], object]) -> bool:
    """Take the comma when the same action has one more column behind it, which ``item`` reads.

    The next action goes before a column of its name; what Spark reads as such a column is refused.
    """
    if not cursor.sees(","):
        return False
    begins_action = (
        cursor.peek(1).key in _ACTIONS
        or _begins_arrangement(cursor, 1)
        or begins_property_change(cursor, 1)
        or _begins_order(cursor, 1)
        or (cursor.peek(1).key == "VALIDATE" and cursor.peek(2).key == "CONSTRAINT")
        or (cursor.peek(1).key == "REWRITE" and not cursor.peek(2).may_name)
    )
    if begins_action and not bracket:
        # Beside other changes than those of the layout, REWRITE itself is refused.
        if cursor.peek(1).key != "REWRITE":
            _refuse_item(cursor, item)
        return False
    cursor.expect(",")
    return True


def _refuse_item(cursor: Cursor, item: Callable[[Cursor], object]) -> None:
    comma = cursor.at
    word = cursor.peek(1)
    cursor.expect(",")
    try:
        item(cursor)
        is_item = cursor.sees(",") or cursor.peek().kind is TokenKind.END
    except (InvalidRequest, Unsupported):
        is_item = False
    cursor.at = comma
    if is_item:
        cursor.at += 2
        raise cursor.failure(
            f"COLUMN behind {word.key} (or, if {word.text} is a column, quotes around it)"
        )


def _rename(cursor: Cursor) -> list[TableChange]:
    cursor.accept("COLUMN")
    path = cursor.path()
    # Doris may leave it out.
    cursor.accept("TO")
    start, new = cursor.at, cursor.path("the new name")
    if len(new) > 1:
        raise cursor.failure(
            "the new name without the path of its struct (quote a name that contains a dot)", start
        )
    return [RenameColumn(path, new[0])]


def _change(cursor: Cursor) -> list[TableChange]:
    """Read CHANGE: as ALTER COLUMN, as in Spark, or Hive's old name, new name, type and the rest.

    The words of ALTER COLUMN are not new names; in Hive's form only the old name itself is.
    """
    start = cursor.at
    cursor.accept("COLUMN")
    path = cursor.path()
    same_name = cursor.peek().key == path[-1].upper()
    if begins_detail(cursor, or_name=same_name):
        cursor.at = start
        return _alter_columns(cursor)
    new_name = cursor.name("the column's name a second time")
    changes: list[TableChange] = [ChangeType(path, cursor.type())]
    changes += read_details(cursor, path)
    if new_name != path[-1]:
        changes.append(RenameColumn(path, new_name))
    return changes


def _modify(cursor: Cursor) -> TableChange:
    """Read Doris' MODIFY, which says the whole column again, or its comment alone."""
    if cursor.accept("COMMENT"):
        return SetComment((), cursor.string("the comment as a string"))
    cursor.accept("COLUMN")
    start = cursor.at
    path = cursor.path()
    if cursor.accept("COMMENT"):
        return SetComment(path, cursor.string("the comment as a string"))
    cursor.at = start
    found = read_definition(cursor)
    return ModifyColumn(**_parts(found), rollup=_rollup(cursor, "FROM"))


def _begins_order(cursor: Cursor, ahead: int = 0) -> bool:
    """Tell ORDER BY (…) from a column that is called so."""
    words = tuple(cursor.peek(ahead + n).key for n in range(3))
    return words == ("ORDER", "BY", "(")


def _order(cursor: Cursor) -> OrderColumns:
    cursor.expect("ORDER", "BY")
    names = cursor.in_brackets(lambda c: c.name("a column"))
    return OrderColumns(names, _rollup(cursor, "FROM"))


def _alter_columns(cursor: Cursor) -> list[TableChange]:
    cursor.accept_any("COLUMN", "COLUMNS")
    changes = _alter_column(cursor)
    while _goes_on(cursor, False, _alter_column):
        changes += _alter_column(cursor)
    return changes


def _alter_column(cursor: Cursor) -> list[TableChange]:
    path = cursor.path()
    if not (changes := read_details(cursor, path)):
        raise cursor.failure("TYPE, SET, DROP, COMMENT, FIRST or AFTER")
    return changes


def begins_detail(cursor: Cursor, *, or_name: bool) -> bool:
    """Return whether a detail of a column begins here, not a name that looks like its first word.

    Raises InvalidRequest for a word of this module that can only be a name, unless ``or_name``.
    """
    word, behind = cursor.peek().key, cursor.peek(1)
    if word in ("TYPE", "AFTER"):
        return True
    if word not in _EXPECTED:
        return False
    fits = {"COMMENT": behind.kind is TokenKind.STRING, "FIRST": behind.kind is TokenKind.END}
    if fits.get(word) or behind.key in _BEHIND.get(word, ()):
        return True
    if or_name:
        return False
    cursor.take()
    raise cursor.failure(f"{_EXPECTED[word]} (put a name that is also a keyword in quotes)")


def read_details(cursor: Cursor, path: Path) -> list[TableChange]:
    """Take all that is said of the column at a path, which may be nothing."""
    changes: list[TableChange] = []
    while cursor.peek().kind is TokenKind.WORD and not cursor.sees("PROPERTIES", "("):
        changes.append(_detail(cursor, path))
    return changes


def _detail(cursor: Cursor, path: Path) -> TableChange:
    if cursor.accept("SET"):
        return _set(cursor, path)
    if cursor.accept("TYPE"):
        return _type_change(cursor, path)
    if cursor.accept("DROP"):
        if cursor.accept("DEFAULT"):
            return SetDefault(path, None)
        _expect_not_null(cursor, "DEFAULT or NOT NULL")
        return SetNullable(path, nullable=True)
    if cursor.accept("COMMENT"):
        return SetComment(path, cursor.string("the comment as a string"))
    word = cursor.accept_any("FIRST", "AFTER")
    if not word:
        refuse_option(cursor)
        raise cursor.failure("TYPE, SET, DROP, COMMENT, FIRST or AFTER")
    return MoveColumn(path, take_position(cursor, word))


def _set(cursor: Cursor, path: Path) -> TableChange:
    """Read what SET gives a column."""
    if cursor.accept("DEFAULT"):
        return SetDefault(path, take_default(cursor))
    if cursor.sees("COMPRESSION"):
        raise cursor.refusal(
            "SET COMPRESSION of a column",
            "use CALL set_option('parquet_compression', 'zstd', table_name => 't')",
        )
    if cursor.accept("ENCODING"):
        [word] = cursor.in_brackets(lambda c: c.name("an encoding"))
        return SetEncoding(path, encoding_named(word))
    if cursor.sees("DATA") or cursor.sees("TYPE"):
        cursor.accept("DATA")
        cursor.expect("TYPE")
        return _type_change(cursor, path)
    _expect_not_null(cursor, "TYPE, DEFAULT or NOT NULL")
    return SetNullable(path, nullable=False)


def _expect_not_null(cursor: Cursor, expected: str) -> None:
    if not cursor.accept("NOT"):
        raise cursor.failure(expected)
    cursor.expect("NULL")


def _type_change(cursor: Cursor, path: Path) -> ChangeType:
    """Read the type, how values are converted to it, and what becomes of keys that meet."""
    kind = cursor.type()
    how = ChangeType(path, kind, *take_conversion(cursor))
    if not cursor.accept("ON", "DUPLICATE", "KEYS"):
        return how
    if cursor.accept("REFUSE"):
        return replace(how, on_duplicate_keys=DuplicateKeys.REFUSE)
    if not cursor.accept("KEEP", "NEWEST"):
        raise cursor.failure("REFUSE or KEEP NEWEST")
    return replace(how, on_duplicate_keys=DuplicateKeys.KEEP_NEWEST)
