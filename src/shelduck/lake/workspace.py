"""The lake as one transaction sees it: its base snapshot and its own staged changes.

Several changes of one table are reduced to what a commit must contain: one CreateTable,
RenameTable, AlterTable or DropTable, and the files that were appended.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any

from shelduck.catalog.read import read, views_and_macros
from shelduck.catalog.read.read import Connection
from shelduck.errors import AlreadyExists, InvalidRequest, NotFound, Unsupported
from shelduck.lake import staged_objects as staged
from shelduck.lake.branch_names import refuse_tag, twin_named
from shelduck.lake.evolution.arrangement import NO_ARRANGEMENT, Arrangement
from shelduck.lake.followed_views import StagedTables, after_tables, follow_made
from shelduck.lake.results import TableName
from shelduck.lake.staged_objects import StagedMacro, StagedSchema, StagedTable, StagedView
from shelduck.lake.state import Base, LakeState
from shelduck.model.changes.change import (
    AlterTable,
    Change,
    DropSchema,
    FlushInlined,
    RewriteFiles,
    RowChange,
)
from shelduck.model.changes.staged_rows import StagedRows
from shelduck.model.tables.column_storage import COLUMN_STORAGE, refuse_filters
from shelduck.model.tables.lengths import with_lengths
from shelduck.model.tables.schema import FieldId, Schema, SchemaId, SnapshotId, TableId
from shelduck.model.tables.table_version import DEFAULT_SCHEMA, SchemaInfo, Snapshot, TableVersion
from shelduck.model.tables.twin import (
    TWIN,
    FollowSource,
    MarkBranch,
    ShareFiles,
    TakeFiles,
    refuse_tagged,
)
from shelduck.model.tables.view import (
    MacroBody,
    MacroKind,
    MacroVersion,
    ViewDefinition,
    ViewVersion,
)
from shelduck.model.text.names import (
    WRITE_DIGITS,
    directory,
    schema_names,
    schema_word,
    shown_schema,
    split_name,
)


class Workspace:
    """Names resolved to versions, and staged changes, over one base snapshot."""

    def __init__(self, state: LakeState) -> None:
        self._state = state
        self._base = Base(state)
        self._schemas: dict[int, StagedSchema] = {}
        self._tables: dict[TableId, StagedTable] = {}
        self._views: dict[int, StagedView] = {}
        self._macros: dict[int, StagedMacro] = {}
        self._sharing: list[ShareFiles | MarkBranch | TakeFiles | FollowSource] = []
        self._provisional = 0

    @property
    def base(self) -> Snapshot:
        """The snapshot that reads see, and since which other commits can conflict."""
        return self._base.snapshot

    def reading(self) -> AbstractContextManager[Connection]:
        """Open a connection to read the catalog; the first one determines the base.

        All calls of the workspace inside share the connection.
        """
        return self._base.reading()

    def schemas(self) -> list[SchemaInfo]:
        """Return the schemas as this transaction left them, its new ones last."""
        with self.reading() as connection:
            known = read.schemas(connection, self.base, self._state.info)
        return staged.over(self._schemas, known)

    def schema(self, word: str) -> SchemaInfo:
        """Return a schema by its name as one word, in any case, or raise NotFound."""
        return read.schema_named(self.schemas(), word, self._state.store.format)

    def _home(self, word: str) -> SchemaInfo:
        """Return a schema in which something is made; Unsupported for another one's tag."""
        known = self.schemas()
        found = read.schema_named(known, word, self._state.store.format)
        with self.reading() as connection:
            refuse_tag(connection, self.base, known, found, self._sharing)
        return found

    def word_of(self, text: str) -> str:
        """Return the word of the schema ``a.b``: b in a if there is one, else a name with a dot."""
        if shown_schema(text) != text:
            with suppress(InvalidRequest):
                return self.schema(schema_word(split_name(text))).name
        return text

    def table_names(self, schema: SchemaInfo) -> list[str]:
        """Return the names of a schema's tables as this transaction left them, sorted."""
        with self.reading() as connection:
            present = read.table_names(connection, self.base, schema)
        return staged.names_in(self._tables, schema, present)

    def table(self, name: TableName) -> TableVersion:
        """Return a table as this transaction left it, or raise NotFound."""
        work = staged.called(self._tables, name)
        if work is not None:
            return work.current
        if self._has_made_schema(name.home):
            raise self._no_table(name)
        try:
            found = self._base.table(name)
        except NotFound:
            twin = twin_named(self, name, self._state.current.schema)
            if twin is None:
                raise
            return self.table(twin)
        work_here = self._tables.get(found.id)
        if work_here is not None:
            known = [] if work_here.dropped else [work_here.current.full_name]
            raise NotFound.named("table", str(name), known)
        return found

    def _no_table(self, name: TableName) -> NotFound:
        schema = self.schema(name.home)
        known = [str(TableName(schema.name, n)) for n in self.table_names(schema)]
        return NotFound.named("table", str(name), known)

    def _has_made_schema(self, word: str) -> bool:
        works = self._schemas.values()
        made = [w.current.name.lower() for w in works if w.original is None and not w.dropped]
        return word.lower() in made

    def find_table(self, name: TableName) -> TableVersion | None:
        """Return what `table` does, None if there is no such table."""
        with suppress(NotFound):
            return self.table(name)
        return None

    def has_table(self, name: TableName) -> bool:
        """Return whether there is a table of this name."""
        return self.find_table(name) is not None

    def table_of(self, number: TableId) -> TableVersion | None:
        """Return a table by its id as this transaction left it, None if it is gone."""
        work = self._tables.get(number)
        if work is not None:
            return None if work.dropped else work.current
        with self.reading() as connection:
            return read.table_by_id(connection, number, self.base, self._state.info)

    def view(self, name: TableName) -> ViewVersion | None:
        """Return a view as this transaction left it, None if there is none."""
        work = staged.called(self._views, name)
        if work is not None:
            return work.current
        with self.reading() as connection:
            known = views_and_macros.view(
                connection, self.base, name.home, name.name, self._state.info
            )
            if known is None or known.id in self._views:
                return None
            tables = StagedTables.of(self._tables.values(), self._base.table)
            return after_tables(connection, tables, known, self.schemas()) if tables.now else known

    def _follow(self, before: TableVersion, after: TableVersion) -> None:
        """Change the views that this unit has made as one of their tables changes."""
        made = [work for work in self._views.values() if work.original is None]
        follow_made(made, before, after, self.table, self.schemas())

    def view_names(self, schema: SchemaInfo) -> list[str]:
        """Return the names of a schema's views as this transaction left them, sorted."""
        with self.reading() as connection:
            present = views_and_macros.view_names(connection, self.base, schema)
        return staged.names_in(self._views, schema, present)

    def create_view(self, name: TableName, definition: ViewDefinition) -> None:
        """Stage a new view."""
        _require_name("view", name.name)
        schema = self._home(name.home)
        self._require_free(name)
        made = ViewVersion(
            id=self._new_id(),
            uuid=str(uuid.uuid4()),
            schema=schema,
            name=name.name,
            definition=definition,
            snapshot=self.base,
            begin_snapshot=SnapshotId(self.base.id + 1),
        )
        self._views[made.id] = StagedView(None, made)

    def drop_view(self, view: ViewVersion) -> None:
        """Stage the drop of a view."""
        self._view_work(view).dropped = True

    def rename_view(self, view: ViewVersion, new_name: str) -> None:
        """Stage another name in the same schema."""
        _require_name("view", new_name)
        self._home(view.schema.name)
        if new_name.lower() != view.name.lower():
            self._require_free(TableName(view.schema.name, new_name))
        work = self._view_work(view)
        work.current = replace(work.current, name=new_name)

    def comment_view(self, view: ViewVersion, column: str, text: str | None) -> None:
        """Stage a comment on a column of a view, by the name that its query gives the column."""
        self._home(view.schema.name)
        self._view_work(view).comment(column, text)

    def _view_work(self, view: ViewVersion) -> StagedView:
        return self._views.setdefault(view.id, StagedView(view, view))

    def macros(self) -> list[MacroVersion]:
        """Return all macros as this transaction left them."""
        with self.reading() as connection:
            present = views_and_macros.macros(connection, self.base, self._state.info)
        return staged.over(self._macros, present)

    def create_macro(self, name: TableName, kind: MacroKind, bodies: tuple[MacroBody, ...]) -> None:
        """Stage a new macro; the commit finds one that has the name."""
        _require_name("macro", name.name)
        schema = self._home(name.home)
        begins = SnapshotId(self.base.id + 1)
        made = MacroVersion(self._new_id(), schema, name.name, kind, bodies, begins)
        self._macros[made.id] = StagedMacro(None, made)

    def drop_macro(self, macro: MacroVersion) -> None:
        """Stage the drop of a macro."""
        self._macros.setdefault(macro.id, StagedMacro(macro, macro)).dropped = True

    def _require_free(self, name: TableName) -> None:
        self._refuse_table(name)
        if self.view(name) is not None:
            raise AlreadyExists(f"view {name} already exists", about="view")

    def _refuse_table(self, name: TableName) -> None:
        # The commit finds views of this name; not looking here saves a query for every new table.
        if staged.called(self._views, name) is not None:
            raise AlreadyExists(f"view {name} already exists", about="view")
        with suppress(NotFound):
            # Not a twin that the name means, too.
            if self.table(name).name.lower() == name.name.lower():
                raise AlreadyExists(f"table {name} already exists", about="table")

    def share(self, change: ShareFiles | MarkBranch | TakeFiles | FollowSource) -> None:
        """Stage what a branch is, or that a table gets files of another one.

        Nobody may read rows of a new table that does before the commit.
        """
        if isinstance(change, TakeFiles):
            refuse_tagged(change.table)
        self._sharing.append(change)

    def create_schema(
        self, word: str, *, if_not_exists: bool, beside: SchemaInfo | None = None
    ) -> None:
        """Stage a new schema; those around it must exist.

        Its files go to the directory of the schema ``beside``, or to one of its own.
        """
        *around, own = schema_names(word)
        _require_name("schema", own)
        if around and not self._state.store.format.nests:
            raise Unsupported(f"cannot create schema {shown_schema(word)}: {read.NO_NESTING}")
        parent = self.schema(schema_word(around)) if around else None
        if any(s.name.lower() == word.lower() for s in self.schemas()):
            if not if_not_exists:
                raise AlreadyExists(f"schema {shown_schema(word)!r} already exists", about="schema")
            return
        unique = str(uuid.uuid4())
        if parent is not None:
            word = schema_word([*schema_names(parent.name), own])
        path = self._state.info.data_path + directory(word, unique)
        path = path if beside is None else beside.path
        inside = None if parent is None else parent.id
        made = SchemaInfo(SchemaId(self._new_id()), word, path, inside)
        self._schemas[made.id] = StagedSchema(None, made, uuid=unique)

    def drop_schema(self, word: str, *, if_exists: bool, cascade: bool) -> None:
        """Stage the drop of a schema and, with ``cascade``, of all that it contains."""
        try:
            found = self.schema(word)
        except NotFound:
            if if_exists:
                return
            raise
        if found.name.lower() == DEFAULT_SCHEMA:
            raise InvalidRequest(
                f"cannot drop schema {found.text!r}: readers look there for names without a schema,"
                " and DuckDB cannot USE a lake without it; drop its tables instead"
            )
        schemas = [s for s in self.schemas() if s.parent == found.id]
        inside, views = self.table_names(found), self.view_names(found)
        macros = [m for m in self.macros() if m.schema.id == found.id]
        names = [*(s.own_name for s in schemas), *inside, *views, *(m.name for m in macros)]
        if names and not cascade:
            parts = (("schema", schemas), ("table", inside), ("view", views), ("macro", macros))
            holds = " and ".join(f"{len([*of])} {what}(s)" for what, of in parts if of)
            raise InvalidRequest(
                f"cannot drop schema {found.text!r}: it contains {holds}, such as"
                f" {names[0]!r}; drop them first, or use CASCADE"
            )
        for schema in schemas:
            self.drop_schema(schema.name, if_exists=False, cascade=True)
        for table in inside:
            self.drop_table(self.table(TableName(found.name, table)))
        for text in views:
            view = self.view(TableName(found.name, text))
            assert view is not None
            self.drop_view(view)
        for macro in macros:
            self.drop_macro(macro)
        self._schemas.setdefault(found.id, StagedSchema(found, found)).dropped = True

    def create_table(
        self,
        name: TableName,
        columns: Schema,
        comments: Mapping[FieldId | None, str] | None = None,
        *,
        arrangement: Arrangement = NO_ARRANGEMENT,
        properties: Mapping[str, str] | None = None,
        unique: str | None = None,
        beside: TableVersion | None = None,
    ) -> TableVersion:
        """Stage a new table and return it under a provisional id.

        ``unique`` is its UUID; by default a random one. Its files go to the directory of the table
        ``beside``, or to one of its own. Both then have the digits by which `remove_orphans` knows
        whose a write is: one of them may go first.
        """
        _require_name("table", name.name)
        schema = self._home(name.home)
        self._refuse_table(name)
        self._state.store.format.require(str(name), columns.names, arrangement.partition)
        unique = unique or str(uuid.uuid4())
        if beside is not None:
            unique = unique[:-WRITE_DIGITS] + beside.uuid[-WRITE_DIGITS:]
        path = schema.path + directory(name.name, unique)
        made = TableVersion(
            id=TableId(self._new_id()),
            uuid=unique,
            schema=schema,
            name=name.name,
            path=path if beside is None else beside.path,
            columns=columns,
            snapshot=self.base,
            begin_snapshot=SnapshotId(self.base.id + 1),
            max_column_id=max(f.id for f in columns.walk()),
            first_names={f.id: f.name for f in columns.walk()},
            comments=dict(comments or {}),
            partition_id=self._new_id() if arrangement.partition else None,
            partition=arrangement.partition,
            sort=arrangement.sort_texts,
            properties=with_lengths(properties or {}, columns),
        )
        with self.reading() as connection:
            made = replace(made, options=read.read_table_options(connection, made))
        if COLUMN_STORAGE in made.properties and made.options.encrypted:
            refuse_filters(made.properties, {}, str(name))
        self._tables[made.id] = StagedTable(None, made)
        return made

    def drop_table(self, table: TableVersion, *, undo: bool = False) -> None:
        """Stage the drop of a table, or undo that."""
        self._work(table, keeps_rows=True).dropped = not undo

    def rename_table(self, table: TableVersion, new_name: str) -> None:
        """Stage another name in the same schema."""
        _require_name("table", new_name)
        wanted = TableName(table.schema.name, new_name)
        if new_name.lower() != table.name.lower():
            self._refuse_table(wanted)
        work = self._work(table)
        before, work.current = work.current, replace(work.current, name=new_name)
        if self._views:
            self._follow(before, work.current)

    def alter_table(self, change: AlterTable) -> None:
        """Stage new columns, comments, properties, partition keys and sort order."""
        work = self._work(change.table)
        before, partition = work.current, change.partition or ()
        known = self._state.store.format
        known.require(before.full_name, change.new_names, partition)
        if change.partition is not None:
            old = work.original
            is_back = old is not None and old.partition == change.partition
            number = old.partition_id if old is not None and is_back else None
            if number is None and change.partition:
                # Files that are written in the transaction refer to it.
                number = self._new_id()
            change = replace(change, partition_id=number)
        work.alter(change)
        if self._views:
            self._follow(before, work.current)

    def _new_id(self) -> int:
        """Return the provisional id of a new object."""
        self._provisional -= 1
        return self._provisional

    def stage_rows(self, table: TableVersion, change: RowChange) -> None:
        """Stage rows that were written or deleted."""
        keeps_rows = isinstance(change, FlushInlined | RewriteFiles)
        self._work(table, keeps_rows=keeps_rows).rows.stage(change)

    def alters(self, table: TableVersion) -> bool:
        """Return whether the transaction changed the columns of a table that existed before."""
        work = self._tables.get(table.id)
        return work is not None and work.altered is not None and bool(work.altered.changed)

    def staged_rows(self, table: TableVersion) -> StagedRows | None:
        """Return what the transaction did to the rows of a table, None if nothing."""
        work = self._tables.get(table.id)
        return None if work is None else work.rows

    def savepoint(self) -> Callable[[], None]:
        """Return a function that resets all that is staged to its current state."""
        tables, schemas = staged.copied(self._tables), staged.copied(self._schemas)
        views, macros = staged.copied(self._views), staged.copied(self._macros)
        sharing = list(self._sharing)

        def undo() -> None:
            self._tables, self._schemas, self._views, self._macros = tables, schemas, views, macros
            self._sharing = sharing

        return undo

    def directories(self) -> dict[TableId, str]:
        """Return the directories of the tables that the commit changes."""
        return {number: work.current.path for number, work in self._tables.items()}

    def published(self) -> set[str]:
        """Return the absolute paths of all files that the commit will reference."""
        return {
            work.current.path + path
            for work in self._tables.values()
            if not work.dropped
            for path in work.rows.paths()
        }

    def changes(self) -> list[Change]:
        """Return everything that a commit must contain, schemas first."""
        works: list[staged.StagedObject[Any]] = [*self._tables.values(), *self._views.values()]
        works += self._macros.values()
        schemas = [change for work in self._schemas.values() for change in work.changes()]
        dropped = [change for change in schemas if isinstance(change, DropSchema)]
        created = [change for change in schemas if not isinstance(change, DropSchema)]
        of_objects = [change for work in works for change in work.changes()]
        return [*created, *of_objects, *self._sharing, *dropped]

    def _work(self, table: TableVersion, *, keeps_rows: bool = False) -> StagedTable:
        """Return the work on a table; Unsupported for other rows or columns of one of a tag."""
        if TWIN in table.properties and not keeps_rows:
            refuse_tagged(table)
        return self._tables.setdefault(table.id, StagedTable(table, table))


def _require_name(kind: str, name: str) -> None:
    if not name:
        raise InvalidRequest(f"a {kind} needs a name")
