"""What excludes what, written out: DuckLake's own rules, and ours where they are others.

What another writer does stands with the verbs that it logs, and with all of mine that it excludes:
mine begins before it and commits after it. The rest of mine lands.
"""

from __future__ import annotations

# Words for several changes of mine.
_DELETES = "delete from A|delete position of A|delete inlined|delete position of D"
_CHOSEN = f"{_DELETES}|merge that inserts|update"
_ADDED = "append|inline|merge that inserts|update"
_ALTERS = "add column|set not null|partition"
_OF_A = "delete from A|delete position of A|update|merge files"
_NAME = "create table|rename table|create view|rename view"
_IN_EMPTY = "drop schema|create table in empty|create view in empty"
_OF_VIEW = "drop view|replace view|rename view"
_REWRITES = "merge files|rewrite C|rewrite D|flush"
# Mine say nothing of the columns that their rows were written for.
_BESIDE_ALTER = f"{_ALTERS}|{_ADDED}|flush"
_OF_D = "delete position of D|rewrite D|flush"

MINE = tuple(
    f"create schema|drop schema|create table|create table in empty|drop table|rename table"
    f"|rename side.s|{_ALTERS}|append|inline|{_CHOSEN}|{_REWRITES}|create view"
    f"|create view in empty|{_OF_VIEW}|create macro|create macro in empty"
    f"|drop macro|repair".split("|")
)

Facts = dict[str, tuple[str, str]]

OF_OURS: Facts = {
    "drop schema": ("dropped_schema", f"{_IN_EMPTY}|create macro in empty"),
    "drop schema side": ("dropped_schema dropped_table", "rename side.s"),
    "drop table": (
        "dropped_table",
        f"drop table|rename table|{_ALTERS}|append|inline|{_CHOSEN}|{_REWRITES}",
    ),
    "drop view": ("dropped_view", _OF_VIEW),
    "create schema": ("created_schema", "create schema"),
    "create table": ("created_table", _NAME),
    "create table in empty": ("created_table", _IN_EMPTY),
    # Not in the log as what it is: seen in the catalog.
    "rename table to else": ("created_table", "rename table"),
    "rename table": ("created_table", _NAME),
    "create view": ("created_view", _NAME),
    "create view in empty": ("created_view", _IN_EMPTY),
    "rename view to else": ("created_view", _OF_VIEW),
    "rename view": ("created_view", f"{_NAME}|{_OF_VIEW}"),
    "replace view": ("dropped_view created_view", _OF_VIEW),
    "create macro": ("created_scalar_macro", "create macro"),
    "create macro in empty": ("created_scalar_macro", "drop schema|create macro in empty"),
    "create table macro": ("created_table_macro", ""),
    "drop macro": ("dropped_scalar_macro", "drop macro"),
    "drop table macro": ("dropped_table_macro", ""),
    "append another": ("inserted_into_table", f"set not null|{_CHOSEN}"),
    "delete more from A": ("deleted_from_table", f"{_ADDED}|{_OF_A}"),
    "delete from B": ("deleted_from_table", f"{_ADDED}|merge files"),
    "delete from C": ("deleted_from_table", f"{_ADDED}|rewrite C"),
    "delete from D": ("deleted_from_table", f"{_ADDED}|{_OF_D}"),
    "end A": ("deleted_from_table", f"{_ADDED}|{_OF_A}"),
    "update in B": (
        "inserted_into_table deleted_from_table",
        f"set not null|{_ADDED}|{_CHOSEN}|merge files",
    ),
    "add column": ("altered_table", _BESIDE_ALTER),
    "comment": ("altered_table", _BESIDE_ALTER),
    "partition": ("altered_table", _BESIDE_ALTER),
    "sort": ("altered_table", _BESIDE_ALTER),
    "inline another": ("inlined_insert", f"set not null|{_CHOSEN}"),
    "delete position of A": ("deleted_from_table inlined_delete", f"{_ADDED}|{_OF_A}"),
    "delete position of B": ("deleted_from_table inlined_delete", f"{_ADDED}|merge files"),
    "delete position of D": ("deleted_from_table inlined_delete", f"{_ADDED}|{_OF_D}"),
    "delete inlined": ("inlined_delete", f"{_ADDED}|delete inlined|flush"),
    "delete other inlined": ("inlined_delete", f"{_ADDED}|flush"),
    # DuckDB's deletes of positions give way to a flush only.
    "merge files": ("inline_flush merge_adjacent", _OF_A),
    "rewrite C": ("inline_flush rewrite_delete", "rewrite C"),
    "rewrite D": ("inline_flush rewrite_delete", _OF_D),
    "flush": ("deleted_from_table inline_flush", f"{_ADDED}|delete inlined|{_OF_D}"),
}
OF_DUCKDB: Facts = {
    "drop schema": OF_OURS["drop schema"],
    "drop schema side": OF_OURS["drop schema side"],
    "drop table": OF_OURS["drop table"],
    "drop view": OF_OURS["drop view"],
    "create schema": OF_OURS["create schema"],
    "create table": OF_OURS["create table"],
    "create table in empty": OF_OURS["create table in empty"],
    "rename table to else": OF_OURS["rename table to else"],
    "rename table": OF_OURS["rename table"],
    "create view": OF_OURS["create view"],
    "create view in empty": OF_OURS["create view in empty"],
    "rename view to else": OF_OURS["rename view to else"],
    "replace view": OF_OURS["replace view"],
    "comment on view": ("altered_view", ""),
    "create macro": OF_OURS["create macro"],
    "create macro in empty": OF_OURS["create macro in empty"],
    "create table macro": OF_OURS["create table macro"],
    "create table macro in empty": ("created_table_macro", "drop schema"),
    "drop macro": OF_OURS["drop macro"],
    "drop table macro": OF_OURS["drop table macro"],
    "insert": OF_OURS["append another"],
    "delete more from A": OF_OURS["delete more from A"],
    "delete from B": OF_OURS["delete from B"],
    "delete from C": OF_OURS["delete from C"],
    "delete from D": OF_OURS["delete from D"],
    "end A": OF_OURS["end A"],
    "update in B": OF_OURS["update in B"],
    "add column": OF_OURS["add column"],
    "comment": OF_OURS["comment"],
    "partition": OF_OURS["partition"],
    "sort": OF_OURS["sort"],
    "insert inlined": OF_OURS["inline another"],
    "delete position of A": ("inlined_delete", OF_OURS["delete position of A"][1]),
    "delete position of B": ("inlined_delete", OF_OURS["delete position of B"][1]),
    "delete position of D": ("inlined_delete", OF_OURS["delete position of D"][1]),
    "delete inlined": OF_OURS["delete inlined"],
    "flush": OF_OURS["flush"],
    "merge files": ("merge_adjacent", _OF_A),
    "rewrite C and D": ("rewrite_delete", f"rewrite C|{_OF_D}"),
}
# A verb of older writers: A in another data file, and nothing else.
BY_HAND = {"compact A": ("compacted_table", _OF_A)}

BY_WRITER = {"us": OF_OURS, "duckdb": OF_DUCKDB, "hand": BY_HAND}

_OF_ROWS = ("insert", "delete", "altered_table", "inline", "flush", "merge", "rewrite")


def is_of_rows(facts: tuple[str, str]) -> bool:
    """Tell whether rows, files or columns are changed, and no name."""
    return any(word in facts[0].split()[0] for word in _OF_ROWS)
