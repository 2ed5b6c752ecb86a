"""Ways to change the lake of `tests.support.contested`: ours as changes, DuckDB's as statements."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shelduck.catalog.read import queries, read
from shelduck.catalog.read.views_and_macros import macros, view
from shelduck.ducklake import tables
from shelduck.model.changes.change import (
    AlterTable,
    AppendFiles,
    CreateView,
    DeleteRows,
    DropSchema,
    DropTable,
    DropView,
    FileDeletes,
    FlushedRows,
    FlushInlined,
    InlineRows,
    MergedDeletes,
    RenameTable,
    RenameView,
    RewriteFiles,
    RewrittenFile,
)
from shelduck.model.changes.definition import CreateMacro, DropMacro
from shelduck.model.changes.problem import RepairCatalog
from shelduck.model.changes.schema_change import AddColumn, SetComment, SetNullable
from shelduck.model.files.data_file import deletes_seen
from shelduck.model.files.fitted import InlinedBatch
from shelduck.model.tables.table_version import PartitionColumn
from shelduck.model.tables.view import (
    MacroBody,
    MacroKind,
    MacroParameter,
    MacroVersion,
    ViewDefinition,
)
from shelduck.model.types.data_types import parse_type
from tests.support.contested import Effect, effect
from tests.support.files import write_delete_file, write_file, write_with_lineage
from tests.support.lake import altered, created, new_schema_info

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.lake import Lake

# Where the row ids of a file begin, and its positions that a delete file names already.
_STARTS = {"A": 0, "B": 3, "C": 6, "D": 9}
_DEAD = {"C": (1,)}


@dataclass(frozen=True)
class Contender:
    """One way to change the lake: ``make`` returns the changes, on the lake as it is then.

    ``says`` is how a refusal of it begins.
    """

    says: str
    make: Callable[[Lake], list[Any]]
    effect: Effect = field(default_factory=Effect)


def _create_schema(lake):
    return [new_schema_info(lake, "fresh")]


def _drop_schema(lake):
    return [DropSchema(lake.schema("empty"))]


def _drop_schema_with_table(lake):
    return [DropTable(lake.table("s", "side")), DropSchema(lake.schema("side"))]


def _create_table(schema):
    return lambda lake: [created(lake.schema(schema), "fresh", id="bigint")]


def _drop_table(lake):
    return [DropTable(lake.table("t"))]


def _rename_table(name, schema="main", to="fresh"):
    return lambda lake: [RenameTable(lake.table(name, schema), to)]


def _alter(change):
    return lambda lake: [altered(lake.table("t"), change)]


def _partition(lake):
    table = lake.table("t")
    keys = (PartitionColumn(table.columns.fields[0].id, "identity"),)
    return [AlterTable(table, table.columns, partition=keys, partition_id=-7)]


def _sort(lake):
    table = lake.table("t")
    return [AlterTable(table, table.columns, sort=("id ASC NULLS FIRST",))]


def _append(number):
    def make(lake):
        table = lake.table("t")
        bounds = {1: (str(number), str(number), 0)}
        return [AppendFiles(table.id, (write_file(table, [{"id": number}], bounds),))]

    return make


def _inline(number):
    def make(lake):
        table = lake.table("t")
        return [InlineRows(table.id, InlinedBatch(table.columns, ((str(number),),)))]

    return make


def _delete(data_file, *positions, inlined=False):
    """Delete positions of a file that is told by the place at which it was written: A is 0."""

    def make(lake):
        table, file = lake.table("t"), _file(lake, data_file)
        seen = deletes_seen(file)
        every = [*_DEAD.get(data_file, ()), *positions]
        if inlined:
            dead = FileDeletes(file.id, seen, positions=positions)
        else:
            dead = FileDeletes(file.id, seen, write_delete_file(table, file.path, every))
        return [DeleteRows(table, (dead,))]

    return make


def _end_file(data_file):
    def make(lake):
        file = _file(lake, data_file)
        return [DeleteRows(lake.table("t"), (FileDeletes(file.id, deletes_seen(file)),))]

    return make


def _delete_inlined(row_id):
    return lambda lake: [DeleteRows(lake.table("t"), inlined=(row_id,))]


def _insert_what_is_missing(number):
    def make(lake):
        return [DeleteRows(lake.table("t")), *_append(number)(lake)]

    return make


def _update(data_file, position, number):
    """Give a row another value; it keeps its id in the new file."""

    def make(lake):
        table, file = lake.table("t"), _file(lake, data_file)
        new = write_with_lineage(table, [number], [file.row_id_start + position])
        return [*_delete(data_file, position)(lake), AppendFiles(table.id, (new,))]

    return make


def _merge(lake):
    table, sources = lake.table("t"), [_file(lake, "A"), _file(lake, "B")]
    new = write_with_lineage(
        table,
        [1, 2, 3, 4, 5, 6],
        [f.row_id_start + n for f in sources for n in range(3)],
        [f.begin_snapshot for f in sources for _ in range(3)],
    )
    rewritten = tuple(RewrittenFile(f.id, deletes_seen(f)) for f in sources)
    return [RewriteFiles(table, rewritten, (new,), keeps_history=True)]


def _rewrite(data_file, values, positions):
    def make(lake):
        table, file = lake.table("t"), _file(lake, data_file)
        new = write_with_lineage(table, values, [file.row_id_start + n for n in positions])
        source = RewrittenFile(file.id, deletes_seen(file))
        return [RewriteFiles(table, (source,), (new,), keeps_history=False)]

    return make


def _flush(lake):
    """10 and 11 into a file, and the dead 13 of D into a delete file."""
    table, file = lake.table("t"), _file(lake, "D")
    with lake.store.read() as connection:
        [name] = connection.execute(queries.inlined_tables(table.id)).scalars()
        kept = read.inlined_rows(connection, table)[0]
    new = write_with_lineage(table, [10, 11], kept.row_ids, kept.begin_snapshots)
    # It died in the snapshot before the one that inlined them.
    dead = write_delete_file(table, file.path, [1], [kept.begin_snapshots[0] - 1])
    merged = MergedDeletes(file.id, deletes_seen(file), dead, ())
    return [FlushInlined(table, (FlushedRows(name, 2),), (new,), (merged,))]


def _view(lake, name="w"):
    with lake.store.read() as connection:
        return view(connection, read.snapshot(connection), "main", name, lake.info)


def _new_view(lake, schema, name):
    definition = ViewDefinition("SELECT 2 AS two")
    return CreateView(-3, lake.schema(schema), name, str(uuid.uuid4()), definition)


def _create_view(schema):
    return lambda lake: [_new_view(lake, schema, "fresh")]


def _drop_view(lake):
    return [DropView(_view(lake))]


def _replace_view(lake):
    return [DropView(_view(lake)), _new_view(lake, "main", "w")]


def _rename_view(to):
    return lambda lake: [RenameView(_view(lake), to)]


def _create_macro(schema, kind=MacroKind.SCALAR):
    text = "SELECT a" if kind is MacroKind.TABLE else "a"

    def make(lake):
        body = MacroBody((MacroParameter("a"),), text)
        return [CreateMacro(MacroVersion(-4, lake.schema(schema), "fresh", kind, (body,), None))]

    return make


def _drop_macro(name):
    def make(lake):
        with lake.store.read() as connection:
            known = macros(connection, read.snapshot(connection), lake.info)
        return [DropMacro(next(m for m in known if m.name == name))]

    return make


def _file(lake, name):
    return next(f for f in lake.files("t") if f.row_id_start == _STARTS[name])


_NEW = {"new": {"main.fresh"}}

OURS: dict[str, Contender] = {
    "create schema": Contender("create schema 'fresh'", _create_schema, effect(new={"fresh"})),
    "drop schema": Contender("drop schema 'empty'", _drop_schema, effect(gone={"empty"})),
    "drop schema side": Contender(
        "drop ", _drop_schema_with_table, effect(gone={"side", "side.s"})
    ),
    "create table": Contender("create table main.fresh", _create_table("main"), effect(**_NEW)),
    "create table in empty": Contender(
        "create table empty.fresh", _create_table("empty"), effect(new={"empty.fresh"})
    ),
    "drop table": Contender("drop table main.t", _drop_table, effect(gone={"main.t"}, t="")),
    "rename table": Contender(
        "rename table main.t", _rename_table("t"), effect(gone={"main.t"}, t="main.fresh", **_NEW)
    ),
    "rename table to else": Contender(
        "rename table main.t",
        _rename_table("t", to="else"),
        effect(gone={"main.t"}, new={"main.else"}, t="main.else"),
    ),
    "rename side.s": Contender(
        "rename table side.s",
        _rename_table("s", "side"),
        effect(gone={"side.s"}, new={"side.fresh"}),
    ),
    "add column": Contender(
        "alter table main.t",
        _alter(AddColumn(("more",), parse_type("int"))),
        effect(columns={"more"}),
    ),
    "comment": Contender("alter table main.t", _alter(SetComment((), "seen"))),
    "set not null": Contender("alter table main.t", _alter(SetNullable(("id",), nullable=False))),
    "partition": Contender("alter table main.t", _partition),
    "sort": Contender("alter table main.t", _sort),
    "append": Contender("append to table", _append(20), effect(adds={20})),
    "inline": Contender("append to table", _inline(21), effect(adds={21})),
    "append another": Contender("append to table", _append(30), effect(adds={30})),
    "inline another": Contender("append to table", _inline(31), effect(adds={31})),
    "delete from A": Contender("change rows of", _delete("A", 0), effect(removes={1})),
    "delete position of A": Contender(
        "change rows of", _delete("A", 0, inlined=True), effect(removes={1})
    ),
    "delete more from A": Contender("change rows of", _delete("A", 1), effect(removes={2})),
    "delete from B": Contender("change rows of", _delete("B", 1), effect(removes={5})),
    "delete position of B": Contender(
        "change rows of", _delete("B", 1, inlined=True), effect(removes={5})
    ),
    "delete from C": Contender("change rows of", _delete("C", 2), effect(removes={9})),
    "delete from D": Contender("change rows of", _delete("D", 0), effect(removes={12})),
    "delete position of D": Contender(
        "change rows of", _delete("D", 0, inlined=True), effect(removes={12})
    ),
    "end A": Contender("change rows of", _end_file("A"), effect(removes={1, 2, 3})),
    "delete inlined": Contender("change ", _delete_inlined(11), effect(removes={10})),
    "delete other inlined": Contender("change ", _delete_inlined(12), effect(removes={11})),
    "merge that inserts": Contender("", _insert_what_is_missing(22), effect(adds={22})),
    "update": Contender("", _update("A", 0, 101), effect(adds={101}, removes={1})),
    "update in B": Contender("", _update("B", 2, 106), effect(adds={106}, removes={6})),
    "merge files": Contender("rewrite files of table main.t", _merge),
    "rewrite C": Contender("rewrite files of table main.t", _rewrite("C", [7, 9], [0, 2])),
    "rewrite D": Contender("rewrite files of table main.t", _rewrite("D", [12], [0])),
    "flush": Contender("flush ", _flush),
    "create view": Contender("create view main.fresh", _create_view("main"), effect(**_NEW)),
    "create view in empty": Contender(
        "create view empty.fresh", _create_view("empty"), effect(new={"empty.fresh"})
    ),
    "drop view": Contender("drop view main.w", _drop_view, effect(gone={"main.w"})),
    "replace view": Contender("drop view main.w", _replace_view),
    "rename view": Contender(
        "rename view main.w", _rename_view("fresh"), effect(gone={"main.w"}, **_NEW)
    ),
    "rename view to else": Contender(
        "rename view main.w", _rename_view("else"), effect(gone={"main.w"}, new={"main.else"})
    ),
    "create macro": Contender(
        "create macro main.fresh", _create_macro("main"), effect(new={"main.fresh()"})
    ),
    "create macro in empty": Contender(
        "create macro empty.fresh", _create_macro("empty"), effect(new={"empty.fresh()"})
    ),
    "create table macro": Contender(
        "create macro main.fresh",
        _create_macro("main", MacroKind.TABLE),
        effect(new={"main.fresh()"}),
    ),
    "drop macro": Contender("drop macro main.f", _drop_macro("f"), effect(gone={"main.f()"})),
    "drop table macro": Contender("drop macro main.g", _drop_macro("g"), effect(gone={"main.g()"})),
    "repair": Contender("repair the catalog", lambda _: [RepairCatalog()], effect()),
}

# DuckDB's statements, how many rows it inlines meanwhile, and what they do.
THEIRS: dict[str, tuple[str, int, Effect]] = {
    name: (statement, inline, OURS[same].effect)
    for name, statement, inline, same in [
        ("drop schema", "DROP SCHEMA empty", 0, "drop schema"),
        ("drop schema side", "DROP SCHEMA side CASCADE", 0, "drop schema side"),
        ("drop table", "DROP TABLE t", 0, "drop table"),
        ("drop view", "DROP VIEW w", 0, "drop view"),
        ("create schema", "CREATE SCHEMA fresh", 0, "create schema"),
        ("create table", "CREATE TABLE FRESH (id BIGINT)", 0, "create table"),
        (
            "create table in empty",
            "CREATE TABLE empty.fresh (id BIGINT)",
            0,
            "create table in empty",
        ),
        ("rename table to else", 'ALTER TABLE t RENAME TO "else"', 0, "rename table to else"),
        ("rename table", "ALTER TABLE t RENAME TO fresh", 0, "rename table"),
        ("create view", "CREATE VIEW fresh AS SELECT 3 AS three", 0, "create view"),
        ("create view in empty", "CREATE VIEW empty.fresh AS SELECT 3", 0, "create view in empty"),
        ("rename view to else", 'ALTER VIEW w RENAME TO "else"', 0, "rename view to else"),
        ("replace view", "CREATE OR REPLACE VIEW w AS SELECT 3 AS three", 0, "replace view"),
        ("comment on view", "COMMENT ON VIEW w IS 'seen'", 0, "replace view"),
        ("insert", "INSERT INTO t VALUES (30)", 0, "append another"),
        ("delete more from A", "DELETE FROM t WHERE id = 2", 0, "delete more from A"),
        ("delete from B", "DELETE FROM t WHERE id = 5", 0, "delete from B"),
        ("delete from C", "DELETE FROM t WHERE id = 9", 0, "delete from C"),
        ("delete from D", "DELETE FROM t WHERE id = 12", 0, "delete from D"),
        ("end A", "DELETE FROM t WHERE id <= 3", 0, "end A"),
        ("update in B", "UPDATE t SET id = 106 WHERE id = 6", 0, "update in B"),
        ("add column", "ALTER TABLE t ADD COLUMN more INTEGER", 0, "add column"),
        ("comment", "COMMENT ON TABLE t IS 'seen'", 0, "comment"),
        ("partition", "ALTER TABLE t SET PARTITIONED BY (id)", 0, "partition"),
        ("sort", "ALTER TABLE t SET SORTED BY (id)", 0, "sort"),
        ("insert inlined", "INSERT INTO t VALUES (31)", 10, "inline another"),
        ("delete position of A", "DELETE FROM t WHERE id = 1", 10, "delete position of A"),
        ("delete position of B", "DELETE FROM t WHERE id = 5", 10, "delete position of B"),
        ("delete position of D", "DELETE FROM t WHERE id = 12", 10, "delete position of D"),
        ("delete inlined", "DELETE FROM t WHERE id = 10", 10, "delete inlined"),
        ("flush", "CALL ducklake_flush_inlined_data('lake')", 10, "merge files"),
        ("merge files", "CALL ducklake_merge_adjacent_files('lake')", 0, "merge files"),
        (
            "rewrite C and D",
            "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.3)",
            0,
            "rewrite C",
        ),
    ]
} | {
    "create macro": ("CREATE MACRO fresh(a) AS a", 0, effect(new={"main.fresh()"})),
    "create macro in empty": ("CREATE MACRO empty.fresh(a) AS a", 0, effect(new={"empty.fresh()"})),
    "create table macro": (
        "CREATE MACRO fresh(a) AS TABLE SELECT a",
        0,
        effect(new={"main.fresh()"}),
    ),
    "create table macro in empty": (
        "CREATE MACRO empty.fresh(a) AS TABLE SELECT a",
        0,
        effect(new={"empty.fresh()"}),
    ),
    "drop macro": ("DROP MACRO f", 0, effect(gone={"main.f()"})),
    "drop table macro": ("DROP MACRO TABLE g", 0, effect(gone={"main.g()"})),
}


def compact_by_hand(lake):
    """A in another data file, logged with a verb that readers accept and nobody writes any more."""
    file, head = _file(lake, "A"), lake.head()
    own = ("data_file_id", "begin_snapshot", "end_snapshot")
    kept = ", ".join(c.name for c in tables.data_file.columns if c.name not in own)
    new = head.id + 1
    copied = (
        f"INSERT INTO ducklake_data_file (data_file_id, begin_snapshot, {kept})"
        f" SELECT {head.next_file_id}, {new}, {kept} FROM ducklake_data_file"
        f" WHERE data_file_id = {file.id}"
    )
    ended = f"UPDATE ducklake_data_file SET end_snapshot = {new} WHERE data_file_id = {file.id}"
    snapshot = (
        f"INSERT INTO ducklake_snapshot SELECT {new}, snapshot_time, schema_version,"
        " next_catalog_id, next_file_id + 1 FROM ducklake_snapshot"
        f" WHERE snapshot_id = {head.id}"
    )
    logged = (
        "INSERT INTO ducklake_snapshot_changes (snapshot_id, changes_made)"
        f" VALUES ({new}, 'compacted_table:{lake.table('t').id}')"
    )
    with lake.store.write() as connection:
        for statement in (copied, ended, snapshot, logged):
            connection.exec_driver_sql(statement)
