"""Which changes of others conflict with mine: the complete matrix, a cell for every ordered pair.

Rows are what another commit did after mine began; columns are what mine does. The cells are
DuckLake's, so that our commits conflict with DuckDB's as two commits of DuckDB do. They are
stricter if DuckLake's rules would allow a broken table: a rename of a table that was dropped, a
rename to a name that a view took, and NOT NULL with rows that were not checked. Two changes that
delete or rewrite rows of one table conflict only if they touch the same data file. The log does not
say which files they touch, so the commit compares the deletes of each file with the deletes at the
time when the change was made.

A rename is logged as ``created_table``, so only its new name is visible here. The commit checks in
the catalog whether a table still has its name.

As in DuckLake, an append conflicts with another commit's delete; an append outside a transaction is
then staged again (docs/decisions/0031). Two cells are less strict than in DuckLake: rows can be
deleted after an ALTER, which does not move them, and if new rows say for which columns they were
written, the commit fits them to the columns after the ALTER (docs/decisions/0031).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from shelduck.model.changes.change import (
    AlterTable,
    AppendFiles,
    Change,
    CreateSchema,
    CreateTable,
    CreateView,
    DeleteRows,
    DropSchema,
    DropTable,
    DropView,
    Entry,
    FlushInlined,
    InlineRows,
    RenameTable,
    RenameView,
    RewriteFiles,
    Verb,
)
from shelduck.model.changes.definition import CommentViewColumns, CreateMacro, DropMacro
from shelduck.model.changes.problem import RepairCatalog
from shelduck.model.tables.schema import SnapshotId
from shelduck.model.tables.twin import FollowSource, MarkBranch, ShareFiles, TakeFiles
from shelduck.model.tables.view import MacroKind
from shelduck.model.text.names import INSIDE


class ConflictRule(Enum):
    """When a pair of changes is a conflict, by the letter in the matrix."""

    NEVER = "."
    SAME_NAME = "n"
    """The other took the name that mine gives."""
    SAME_SCHEMA = "s"
    """Both touch one schema: by id, or because the other put something into it."""
    SAME_TABLE = "t"
    EITHER_TABLE = "w"
    """Mine is about two tables, and the other touches one of them."""
    SAME_VIEW = "v"
    SAME_MACRO = "m"
    """Both create a macro of one name and kind, or drop one macro."""
    CHECKED_TABLE = "r"
    """The other added rows to a table whose rows were checked for mine (NOT NULL)."""
    SAME_FILE = "f"
    """Both touch one data file: what is there is compared inside the commit."""
    BROUGHT_BACK = "b"
    """Mine shows a column again, and the other rewrote files without it."""
    SAME_COLUMNS = "c"
    """The columns changed, and mine does not say for which ones it was written."""


_TABLE, _VIEW = "{c.table.full_name} (id {c.table.id})", "{c.view.full_name} (id {c.view.id})"
# What each kind of change does, in words; the order is that of the columns of the matrix.
_WORDS: dict[type[Change], str] = {
    CreateSchema: "create schema {c.schema.text!r}",
    DropSchema: "drop schema {c.schema.text!r}",
    CreateTable: "create table {c.schema.text}.{c.name}",
    DropTable: f"drop table {_TABLE}",
    RenameTable: f"rename table {_TABLE} to {{c.new_name}}",
    AlterTable: f"alter table {_TABLE}",
    AppendFiles: "append to table {c.table}",
    InlineRows: "append to table {c.table}",
    DeleteRows: f"change rows of table {_TABLE}",
    RewriteFiles: f"rewrite files of table {_TABLE}",
    CreateView: "create view {c.schema.text}.{c.name}",
    DropView: f"drop view {_VIEW}",
    RenameView: f"rename view {_VIEW} to {{c.new_name}}",
    FlushInlined: f"flush table {_TABLE}",
    CreateMacro: "create macro {c.macro.full_name}",
    DropMacro: "drop macro {c.macro.full_name} (id {c.macro.id})",
    RepairCatalog: "repair the catalog",
    CommentViewColumns: f"comment on columns of view {_VIEW}",
    ShareFiles: "share the files of {c.source.full_name} (id {c.source.id})",
    MarkBranch: "make branch {c.schema.text}",
    TakeFiles: f"merge {{c.twin.full_name}} into {_TABLE}",
    FollowSource: f"give {_TABLE} the rows of its source",
}

# A dropped schema names its tables one by one, so only changes without a table id check the schema.
# Tables and views share one namespace; macros have a separate one.
# fmt: off
_CELLS: dict[Verb, str] = {
    # mine, in the order above:  create schema
    #                            | drop schema
    #                            | | create table
    #                            | | | drop table
    #                            | | | | rename table
    #                            | | | | | alter table
    #                            | | | | | | append files
    #                            | | | | | | | inline rows
    #                            | | | | | | | | delete rows
    #                            | | | | | | | | | rewrite files
    #                            | | | | | | | | | | create view
    #                            | | | | | | | | | | | drop view
    #                            | | | | | | | | | | | | rename view
    #                            | | | | | | | | | | | | | flush inlined
    #                            | | | | | | | | | | | | | | create macro
    #                            | | | | | | | | | | | | | | | drop macro
    #                            | | | | | | | | | | | | | | | | repair catalog
    #                            | | | | | | | | | | | | | | | | | comment on columns of views
    #                            | | | | | | | | | | | | | | | | | | share files
    #                            | | | | | | | | | | | | | | | | | | | mark branch
    #                            | | | | | | | | | | | | | | | | | | | | take files
    # other:                     | | | | | | | | | | | | | | | | | | | | | follow source
    Verb.DROPPED_SCHEMA:        "s s s . s . . . . . s . s . s . . . . . . .",
    Verb.DROPPED_TABLE:         ". . . t t t t t t t . . . t . . . . . . w t",
    Verb.DROPPED_VIEW:          ". . . . . . . . . . . v v . . . . v . . . .",
    Verb.CREATED_SCHEMA:        "n s . . . . . . . . . . . . . . . . . . . .",
    Verb.CREATED_TABLE:         ". s n . n . . . . . n . n . . . . . . . . .",
    Verb.CREATED_VIEW:          ". s n . n . . . . . n . n . . . . . . . . .",
    Verb.CREATED_SCALAR_MACRO:  ". s . . . . . . . . . . . . m . . . . . . .",
    Verb.CREATED_TABLE_MACRO:   ". s . . . . . . . . . . . . m . . . . . . .",
    Verb.DROPPED_SCALAR_MACRO:  ". . . . . . . . . . . . . . . m . . . . . .",
    Verb.DROPPED_TABLE_MACRO:   ". . . . . . . . . . . . . . . m . . . . . .",
    Verb.INSERTED_INTO_TABLE:   ". . . . . r . . t . . . . . . . . . . . w .",
    Verb.DELETED_FROM_TABLE:    ". . . . . . t t f f . . . f . . . . . . w .",
    Verb.ALTERED_TABLE:         ". . . . . t c c . . . . . t . . . . . . w .",
    Verb.ALTERED_VIEW:          ". . . . . . . . . . . . . . . . . v . . . .",
    Verb.INLINED_INSERT:        ". . . . . r . . t . . . . . . . . . . . w .",
    Verb.INLINED_DELETE:        ". . . . . . t t f f . . . f . . . . . . w .",
    Verb.INLINE_FLUSH:          ". . . . . b . . f f . . . f . . . . . . w .",
    Verb.MERGE_ADJACENT:        ". . . . . b . . f f . . . f . . . . . . w .",
    Verb.REWRITE_DELETE:        ". . . . . b . . f f . . . f . . . . . . w .",
    Verb.COMPACTED_TABLE:       ". . . . . b . . f f . . . f . . . . . . w .",
}
# fmt: on

MATRIX: dict[tuple[type[Change], Verb], ConflictRule] = {
    (mine, other): ConflictRule(letter)
    for other, letters in _CELLS.items()
    for mine, letter in zip(_WORDS, letters.split(), strict=True)
}

_INSIDE = (ConflictRule.NEVER, ConflictRule.SAME_FILE)


def is_compared_inside(change: Change) -> bool:
    """Return whether a commit finds every conflict with a change in the catalog itself.

    It then needs no log. A table that was dropped is noticed by its rows.
    """
    cells = ((other, MATRIX[type(change), other]) for other in Verb)
    return all(rule in _INSIDE for other, rule in cells if other is not Verb.DROPPED_TABLE)


def find_conflict(mine: Sequence[Change], others: Sequence[tuple[SnapshotId, Entry]]) -> str | None:
    """Return a message that names the first pair of changes that conflict, or None.

    ``others`` are the entries of every snapshot after the one on which ``mine`` was made.
    """
    for snapshot, entry in others:
        for change in mine:
            rule = MATRIX[type(change), entry.verb]
            if _MATCHES[rule](change, entry):
                return (
                    f"cannot {describe(change)}: another writer committed {entry} in snapshot"
                    f" {snapshot}"
                )
    return None


def describe(change: Change) -> str:
    """Return the change in a few words, to follow "cannot"."""
    return _WORDS[type(change)].format(c=change)


# Each of these is called only for the changes that have its letter in the matrix.


def _is_same_name(mine: Any, other: Entry) -> bool:
    if isinstance(mine, CreateSchema):
        return _are_names((mine.schema.name,), other)
    about = _about(mine)
    return _are_names((about.schema.name, getattr(mine, "new_name", about.name)), other)


def _is_same_schema(mine: Any, other: Entry) -> bool:
    if isinstance(mine, CreateSchema):
        return other.id is not None and other.id == mine.schema.parent
    schema = _about(mine).schema
    around = INSIDE.join(other.parts[:-1])
    return bool(other.id == schema.id or around.lower() == schema.name.lower())


def _about(mine: Any) -> Any:
    """Return the table, the view or the macro that a change is about, or a new one's change."""
    found = (getattr(mine, name, None) for name in ("table", "view", "macro"))
    return next((each for each in found if each is not None), mine)


def _is_same_table(mine: Any, other: Entry) -> bool:
    return bool(getattr(mine.table, "id", mine.table) == other.id)


def _is_same_macro(mine: Any, other: Entry) -> bool:
    macro = mine.macro
    if isinstance(mine, DropMacro):
        return bool(macro.id == other.id)
    is_table = macro.kind is MacroKind.TABLE
    same_kind = is_table == (other.verb is Verb.CREATED_TABLE_MACRO)
    return same_kind and _are_names((macro.schema.name, macro.name), other)


def _is_without_columns(mine: Any, other: Entry) -> bool:
    if not _is_same_table(mine, other):
        return False
    seen = {f.id for f in mine.table.columns.walk()}
    last = mine.table.max_column_id
    return any(f.id <= last and f.id not in seen for f in mine.columns.walk())


def _are_names(names: Sequence[str], other: Entry) -> bool:
    return [n.lower() for n in names] == [n.lower() for n in other.names]


_MATCHES: dict[ConflictRule, Callable[[Any, Entry], bool]] = {
    ConflictRule.NEVER: lambda _mine, _other: False,
    ConflictRule.SAME_NAME: _is_same_name,
    ConflictRule.SAME_SCHEMA: _is_same_schema,
    ConflictRule.SAME_TABLE: _is_same_table,
    ConflictRule.SAME_VIEW: lambda mine, other: bool(mine.view.id == other.id),
    ConflictRule.SAME_MACRO: _is_same_macro,
    ConflictRule.CHECKED_TABLE: lambda mine, other: (
        bool(mine.excludes_inserts) and _is_same_table(mine, other)
    ),
    ConflictRule.SAME_FILE: lambda _mine, _other: False,
    ConflictRule.BROUGHT_BACK: _is_without_columns,
    ConflictRule.EITHER_TABLE: lambda mine, other: other.id in (mine.table.id, mine.twin.id),
    ConflictRule.SAME_COLUMNS: lambda mine, other: (
        mine.planned is None and _is_same_table(mine, other)
    ),
}
