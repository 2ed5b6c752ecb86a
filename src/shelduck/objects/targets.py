"""The target of a name in a query: a table, a view, or a metadata table such as ``t.files``.

Columns of metadata tables are named as in Iceberg where it has the same, as in Delta for history,
else as in DuckLake.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

from shelduck.catalog.read import metadata_rows as read_metadata
from shelduck.catalog.read import read as catalog_read
from shelduck.catalog.read.overview.table_files import PARTITION_COLUMNS, partition_rows
from shelduck.catalog.read.twins import twins_of
from shelduck.catalog.read.views_and_macros import view as read_view
from shelduck.engine.bridge import Named, engine_for, select_named
from shelduck.engine.session import DataFrame, metadata_frame
from shelduck.engine.types import kind_text
from shelduck.errors import InvalidRequest, NotFound, ShelduckError, Unsupported
from shelduck.lake.branch_names import may_be_twin, name_on_branch, twin_on
from shelduck.lake.lookup import TableHandle, instant, version_at
from shelduck.lake.operation import QueryScope, text_over
from shelduck.lake.pinned_views import pinned_query
from shelduck.lake.results import TableName, table_name
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork
from shelduck.lake.workspace import Workspace
from shelduck.model.tables.table_version import SchemaInfo, TableVersion
from shelduck.model.tables.view import ViewVersion
from shelduck.model.text.names import backticked
from shelduck.text.query.harmless import refuse_harmful
from shelduck.text.query.relations import names_of_queries
from shelduck.text.query.rewriting import sole_query
from shelduck.text.query.translate import spark_query
from shelduck.text.tokens.parts import Query, Relation
from shelduck.write.row_verbs import Reading, read_any

MetadataTable = Callable[[LakeState, TableVersion], DataFrame]
_SNAPSHOTS = {
    "committed_at": "timestamp",
    "snapshot_id": "bigint",
    "parent_id": "bigint",
    "operation": "string",
    "author": "string",
    "message": "string",
    "extra_info": "string",
    "changes": "string",
    "schema_version": "bigint",
}
_HISTORY = {
    "version": "bigint",
    "timestamp": "timestamp",
    "userName": "string",
    "operation": "string",
    "operationParameters": "map",
    "operationMetrics": "map",
    "userMetadata": "string",
}


class MetadataVerbs(TableHandle):
    """The catalog's facts about the table; a transaction's own rows are not included."""

    def files(
        self, *, version: int | None = None, timestamp: str | datetime | None = None
    ) -> DataFrame:
        """Return the data files of the table, one per row, with their deletes.

        ``partition`` maps the keys, written as in DDL, to texts. Rows that the catalog itself keeps
        are in no file.

        Args:
            version: The snapshot to look at; by default the newest.
            timestamp: Instead of ``version``, a time at which the snapshot was the newest.
        """
        return files(self._state, self._version_at(version, timestamp))

    def partitions(
        self, *, version: int | None = None, timestamp: str | datetime | None = None
    ) -> DataFrame:
        """Return one row for each partition with files: how many, their rows and bytes.

        Args:
            version: The snapshot to look at; by default the newest.
            timestamp: Instead of ``version``, a time at which the snapshot was the newest.
        """
        return partitions(self._state, self._version_at(version, timestamp))

    def column_stats(
        self, *, version: int | None = None, timestamp: str | datetime | None = None
    ) -> DataFrame:
        """Return one row for each leaf column, with its statistics.

        Counts are those of the files; bounds, as texts, hold for every row the table ever had.

        Args:
            version: The snapshot to look at; by default the newest.
            timestamp: Instead of ``version``, a time at which the snapshot was the newest.
        """
        return column_stats(self._state, self._version_at(version, timestamp))

    def snapshots(self) -> DataFrame:
        """Return the snapshots that changed the table, oldest first, as a DataFrame."""
        return snapshots(self._state, self._version())

    def _version_at(self, version: int | None, timestamp: str | datetime | None) -> TableVersion:
        if version is None and timestamp is None:
            return self._version()
        return version_at(self._state, self.name, version, timestamp)


def _table_of(columns: Mapping[str, str], rows_of: Callable[..., Iterable[Any]]) -> MetadataTable:
    """Return the metadata table of rows that a connection reads."""

    def read(state: LakeState, table: TableVersion) -> DataFrame:
        with state.store.read() as connection:
            return metadata_frame(state.spark, columns, rows_of(connection, table))

    return read


files = _table_of(read_metadata.FILE_COLUMNS, read_metadata.file_rows)
partitions = _table_of(PARTITION_COLUMNS, partition_rows)
column_stats = _table_of(read_metadata.STATS_COLUMNS, read_metadata.column_stats_rows)


def snapshots(state: LakeState, table: TableVersion) -> DataFrame:
    """Return ``t.snapshots``."""
    changed = state.store.ask(read_metadata.changed_snapshots, table)
    rows = [
        (
            *(s.time, s.id, found.parent, found.operation, s.author, s.commit_message),
            *(s.commit_extra_info, s.changes_made, s.schema_version),
        )
        for found in reversed(changed)
        for s in (found.snapshot,)
    ]
    return metadata_frame(state.spark, _SNAPSHOTS, rows)


def history(state: LakeState, table: TableVersion, limit: int | None = None) -> DataFrame:
    """Return ``t.history`` and DESCRIBE HISTORY, newest first.

    DuckLake keeps no parameters of operations, so they hold its own list of changes. Metrics of
    rows count those in files and in the catalog; they are left out once a compaction or a flush has
    merged rows of several snapshots. There are no metrics for files that compaction has replaced.
    """
    changed = state.store.ask(read_metadata.changed_snapshots, table, limit)
    rows = []
    for found in changed:
        s = found.snapshot
        parameters = {"changes": s.changes_made, "extraInfo": s.commit_extra_info}
        metrics = {
            "numAddedFiles": found.files_added,
            "numOutputRows": found.rows_added,
            "numDeletedRows": found.rows_deleted,
            "numOutputBytes": found.bytes_added,
            "numRemovedFiles": found.files_removed,
        }
        rows.append(
            (
                *(s.id, s.time, s.author, found.operation),
                [(key, text) for key, text in parameters.items() if text is not None],
                [(key, str(number)) for key, number in metrics.items() if number is not None],
                s.commit_message,
            )
        )
    return metadata_frame(state.spark, _HISTORY, rows)


def refs(state: LakeState, table: TableVersion) -> DataFrame:
    """Return ``t.refs``: the table, which Iceberg calls ``main``, its branches and its tags.

    The snapshot of a tag is that with which it began; the others go on.
    """
    columns, now = {"name": "string", "type": "string", "snapshot_id": "bigint"}, table.snapshot.id
    rows: list[tuple[object, ...]] = [("main", "BRANCH", now)]
    with state.store.read() as connection:
        for name, branch, twin in twins_of(connection, table.id, now):
            rows.append((name, "TAG", twin.base) if branch.is_tag else (name, "BRANCH", now))
    return metadata_frame(state.spark, columns, rows)


TABLES: dict[str, MetadataTable] = {
    "files": files,
    "data_files": files,
    "refs": refs,
    "partitions": partitions,
    "column_stats": column_stats,
    "snapshots": snapshots,
    "history": history,
}


ICEBERGS = frozenset(
    "all_data_files all_delete_files all_entries all_files all_manifests delete_files entries"
    " manifests metadata_log_entries position_deletes".split()
)
"""Metadata tables that only Iceberg has."""


_WAY_OUT = (
    "write it in your own query, or connect with trust_views=True if you trust everybody who can"
    " write the catalog"
)


def relation_frame(unit: UnitOfWork, relation: Relation, scope: QueryScope) -> DataFrame:
    """Return the rows that a name in a query refers to.

    Raises NotFound if it refers to nothing in the lake.
    """
    refuse_options(relation)
    version, timestamp = relation.version, relation.timestamp
    if version is None and timestamp is None:
        version = scope.version
    parts = relation.name.parts
    name = table_name(parts, scope.schema)
    is_plain = len(parts) < 3 or unit.state.store.format.nests or may_be_twin(name.name)
    if isinstance(version, str) or (is_plain and unit.state.branch):
        name, version = _on_branch(unit, name, version)
    try:
        if not is_plain:
            raise catalog_read.no_such_schema(unit.state.store.format, name.home, ())
        what = Reading(
            version=version, timestamp=timestamp, rollups=scope.rollups, virtual=relation.virtual
        )
        return read_any(unit, name, what)
    except InvalidRequest:
        if is_plain:
            view = _view_at(unit, name, version, timestamp)
            if view is not None:
                inside = view.snapshot.id if version is not None or timestamp is not None else None
                return view_frame(unit, view, inside, scope.views)
        if len(parts) > 1 and parts[-2].lower() == INFORMATION_SCHEMA:
            told = information_table(unit, parts[-1])
            if told is not None:
                return told
        if len(parts) > 1 and parts[-1].lower() in ICEBERGS:
            _refuse_icebergs(unit, parts, scope)
        if len(parts) < 2 or parts[-1].lower() not in TABLES:
            raise
        found = _metadata(unit, relation, scope, version)
        if found is None:
            raise
        return found


def _on_branch(
    unit: UnitOfWork, name: TableName, version: int | str | None
) -> tuple[TableName, int | None]:
    """Return the table that a name means with ``VERSION AS OF 'branch'``, or in the session."""
    if not isinstance(version, str):
        return name_on_branch(unit.workspace, name, unit.state.branch), version
    found = twin_on(unit.workspace, name, version)
    if found is None:
        raise NotFound(f"table {name} does not exist", about="table")
    return found, None


def _refuse_icebergs(unit: UnitOfWork, parts: tuple[str, ...], scope: QueryScope) -> None:
    """Raise Unsupported for a metadata table of Iceberg of a table of the lake."""
    if unit.workspace.has_table(table_name(parts[:-1], scope.schema)):
        raise Unsupported(
            f"table {'.'.join(parts[:-1])} has no metadata table {parts[-1]!r}: a lake keeps these"
            f" facts in its catalog; use one of {', '.join(TABLES)}"
        )


def refuse_options(relation: Relation, known: Collection[str] = ()) -> None:
    """Raise InvalidRequest for an unknown option of a table in a query."""
    for name in relation.options:
        if name.lower() not in known:
            raise InvalidRequest(
                f"table {relation.name} does not support the option {name!r} in a query; use"
                " VERSION AS OF or TIMESTAMP AS OF, or read FROM table_changes('t', start, end)",
                about="option",
            )


def view_frame(
    unit: UnitOfWork, view: ViewVersion, version: int | None, views: tuple[str, ...]
) -> DataFrame:
    """Return the rows of a view; its tables are read at ``version``, None for the unit's own."""
    made = view.definition
    found = query_frame(unit, view, version, views)
    if not made.column_comments:
        return found.toDF(*made.columns) if made.columns else found
    told = zip(made.columns or found.columns, made.comments_of(found.columns), strict=True)
    named = [
        Named(name, backticked(name), metadata=None if text is None else {"comment": text})
        for name, text in told
    ]
    return select_named(found.toDF(*(column.name for column in named)), named)


def query_frame(
    unit: UnitOfWork, view: ViewVersion, version: int | None = None, views: tuple[str, ...] = ()
) -> DataFrame:
    """Return the rows of a view under the names that its query gives to the columns."""
    me = view.full_name.lower()
    if me in views:
        chain = " → ".join([*views[views.index(me) :], me])
        raise InvalidRequest(
            f"view {view.full_name} reads itself: {chain}; change one of these views"
        )
    scope = QueryScope(view.schema.name, version, (*views, me))
    try:
        query = query_of(unit, view, version)
        require_harmless(unit, query)
        found = frame_of(unit, query, scope)
    except ShelduckError as error:
        if views:
            raise
        # Without ``about``: the view itself, which was asked for, does exist.
        raise type(error)(f"view {view.full_name}: {error}") from error
    columns = view.definition.columns
    if columns and len(columns) != len(found.columns):
        raise InvalidRequest(
            f"view {view.full_name} lists {len(columns)} column(s), but its query now has"
            f" {len(found.columns)}; create it again"
        )
    return found


def frame_of(unit: UnitOfWork, query: Query, scope: QueryScope) -> DataFrame:
    """Return the rows of a view's query, which reads only the lake."""
    frames = {r.placeholder: relation_frame(unit, r, scope) for r in query.relations}
    return engine_for(unit.state.spark).query(text_over(query, frames), frames)


def require_harmless(unit: UnitOfWork, query: Query) -> None:
    """Raise Unsupported for a view's query that does more than compute with rows of the lake.

    With ``trust_views`` of `connect` anything goes.
    """
    if unit.state.trust_views:
        return
    refuse_harmful(query.text, _WAY_OUT)
    known = {r.placeholder for r in query.relations} | names_of_queries(query.text)
    for table in engine_for(unit.state.spark).tables_in(query.text):
        if table.lower() not in known:
            raise Unsupported(f"it reads {table}, which is not in the lake; {_WAY_OUT}")


def query_of(unit: UnitOfWork, view: ViewVersion, version: int | None) -> Query:
    """Return the query of a view as Spark understands it, or raise Unsupported.

    That of a pinned view is for the columns which its table has at ``version``, None for now.
    """
    made = view.definition
    text = made.spark_sql or (made.sql if view.dialect == "spark" else None)
    if made.pin is not None:
        text = pinned_query(unit, made.pin, None if version is None else view.snapshot)
    if text is not None:
        query = sole_query(text)
        if query is None:
            raise Unsupported(f"its Spark text is not a query: {text!r}")
        return query
    if view.dialect != "duckdb":
        raise Unsupported(f"it is written in {view.dialect!r}, which Shelduck does not support")
    try:
        return spark_query(made.sql, nests=unit.state.store.format.nests)
    except Unsupported as error:
        raise Unsupported(
            f"{error}; DuckDB created it as {made.sql!r}; read it there, or create it again with"
            " lake.sql('CREATE OR REPLACE VIEW …')"
        ) from error


def _view_at(
    unit: UnitOfWork, name: TableName, version: int | None, timestamp: str | None
) -> ViewVersion | None:
    if version is None and timestamp is None:
        return unit.workspace.view(name)
    when = None if timestamp is None else instant(timestamp, unit.state.time_zone)
    with unit.state.store.read() as connection:
        at = catalog_read.snapshot(connection, version=version, timestamp=when)
        return read_view(connection, at, name.home, name.name, unit.state.info)


def _metadata(
    unit: UnitOfWork, relation: Relation, scope: QueryScope, version: int | None
) -> DataFrame | None:
    """Return a metadata table as the unit sees it, or as of a snapshot.

    None if the name before it is not a table.
    """
    (*owner, kind), timestamp = relation.name.parts, relation.timestamp
    name = table_name(tuple(owner), scope.schema)
    if unit.state.branch:
        name = name_on_branch(unit.workspace, name, unit.state.branch)
    try:
        if version is None and timestamp is None:
            found = unit.workspace.table(name)
        else:
            found = version_at(unit.state, name, version, timestamp)
        return TABLES[kind.lower()](unit.state, found)
    except NotFound:
        return None


INFORMATION_SCHEMA = "information_schema"
T = TypeVar("T")
Rows = Iterator[tuple[object, ...]]


def information_table(unit: UnitOfWork, name: str) -> DataFrame | None:
    """Return one of these tables as a unit sees the lake, None for a name that is none of them."""
    found = _TABLES.get(name.lower())
    if found is None:
        return None
    columns, rows = found
    return metadata_frame(unit.state.spark, columns, rows(unit))


def _schemata(unit: UnitOfWork) -> Rows:
    for schema in unit.workspace.schemas():
        yield (schema.text,)


def _tables(unit: UnitOfWork) -> Rows:
    for schema, name, table in _each(unit, Workspace.table_names, Workspace.table):
        yield schema, name, "MANAGED", _comment(table)
    for schema, name, view in _each(unit, Workspace.view_names, Workspace.view):
        yield schema, name, "VIEW", _comment(view)


def _views(unit: UnitOfWork) -> Rows:
    for schema, name, view in _each(unit, Workspace.view_names, Workspace.view):
        made = view.definition if isinstance(view, ViewVersion) else None
        yield schema, name, made and (made.spark_sql or made.sql), _comment(view)


def _columns(unit: UnitOfWork) -> Rows:
    for schema, name, table in _each(unit, Workspace.table_names, Workspace.table):
        if not isinstance(table, TableVersion):
            yield schema, name, *(None,) * 6, _comment(table)
            continue
        for place, field in enumerate(table.columns, 1):
            kind = kind_text(field.type)
            yield (
                *(schema, name, field.name, place),
                None if field.default is None else field.default.text,
                "YES" if field.nullable else "NO",
                *(kind.partition("(")[0].partition("<")[0].upper(), kind),
                table.comments.get(field.id),
            )


def _each(
    unit: UnitOfWork,
    names: Callable[[Workspace, SchemaInfo], list[str]],
    get: Callable[[Workspace, TableName], T | None],
) -> Iterator[tuple[str, str, T | ShelduckError | None]]:
    """Yield the tables or views of all schemas; the error of one hides no others."""
    for schema in unit.workspace.schemas():
        for name in names(unit.workspace, schema):
            try:
                yield schema.text, name, get(unit.workspace, TableName(schema.name, name))
            except ShelduckError as error:
                yield schema.text, name, error


def _comment(found: TableVersion | ViewVersion | ShelduckError | None) -> str | None:
    if isinstance(found, TableVersion):
        return found.comments.get(None)
    if isinstance(found, ViewVersion):
        return found.definition.comment
    return None if found is None else f"cannot be read: {found}"


_NAMED = {"table_schema": "string", "table_name": "string"}
_TABLES: dict[str, tuple[dict[str, str], Callable[[UnitOfWork], Rows]]] = {
    "schemata": ({"schema_name": "string"}, _schemata),
    "tables": (_NAMED | {"table_type": "string", "comment": "string"}, _tables),
    "views": (_NAMED | {"view_definition": "string", "comment": "string"}, _views),
    "columns": (
        {
            **_NAMED,
            "column_name": "string",
            "ordinal_position": "bigint",
            "column_default": "string",
            "is_nullable": "string",
            "data_type": "string",
            "full_data_type": "string",
            "comment": "string",
        },
        _columns,
    ),
}
