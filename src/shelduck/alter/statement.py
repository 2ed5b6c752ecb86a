"""ALTER TABLE and COMMENT ON, also in words of Hive, Iceberg and Databricks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shelduck.alter.clauses import index_behind, read_action, read_drop_index
from shelduck.alter.verb import ShapeVerbs
from shelduck.catalog.running.identity_numbers import reserve_numbers
from shelduck.errors import InvalidRequest, NotFound, Unsupported
from shelduck.jobs import rollup_statement as rollups
from shelduck.jobs import statement as jobs
from shelduck.jobs.jobs import SchemaChangeJob, job_properties
from shelduck.jobs.rollup_statement import begins_rollup_change, mixed_changes
from shelduck.lake.lookup import view_named
from shelduck.lake.operation import Form, Operation, Runner, phrases
from shelduck.lake.results import Result, TableName, Unchanged
from shelduck.lake.unit import UnitOfWork, carry_out
from shelduck.model.changes import schema_change
from shelduck.model.changes.constraining import AddConstraint
from shelduck.model.changes.definition import Definition
from shelduck.model.changes.modify import OrderColumns, TableChange
from shelduck.model.changes.schema_change import SetComment
from shelduck.model.tables.computed import identity_of
from shelduck.model.tables.constraints import ConstraintKind
from shelduck.model.tables.partition import (
    PartitionBy,
    ResetPartitioning,
    SetPartitioning,
    field_name,
    named_keys,
)
from shelduck.model.tables.schema import Path, path_text
from shelduck.model.text.names import backticked, quote_name
from shelduck.text.ddl.column_clauses import Beside, read_columns
from shelduck.text.ddl.partitioning import read_partition_key
from shelduck.text.tokens.arguments import end_alone, not_alone, read_job_properties, take_comment
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.parts import NamedTable, OfAltered, Statement
from shelduck.write.row_verbs import RowVerbs
from shelduck.write.statement import delete_and_update as edits


@dataclass(frozen=True, slots=True)
class AlterTableStatement(OfAltered):
    """ALTER TABLE or COMMENT ON: the changes of one statement, in order.

    ``properties`` are those of the job that it may take, such as its timeout.
    """

    changes: tuple[TableChange, ...]
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RenameTableStatement(OfAltered):
    """ALTER TABLE ... RENAME TO; ``new_name`` may name a schema, which must be the table's own."""

    new_name: NamedTable


@dataclass(frozen=True, slots=True)
class UndropColumn(OfAltered):
    """ALTER TABLE … UNDROP COLUMN."""

    path: Path


@dataclass(frozen=True, slots=True)
class ReplaceColumns(OfAltered):
    """Hive's REPLACE COLUMNS: those of these names stay, others go, and the rest is new."""

    columns: tuple[Definition, ...]


@dataclass(frozen=True, slots=True)
class AlterPartitionFields(OfAltered):
    """Iceberg's ADD, DROP and REPLACE PARTITION FIELD: keys that go, and keys that come.

    ``named`` is the name of the field that goes, which may be Iceberg's, such as ``ts_day``.
    """

    gone: tuple[PartitionBy, ...] = ()
    added: tuple[PartitionBy, ...] = ()
    named: str | None = None


@dataclass(frozen=True, slots=True)
class SyncIdentity(OfAltered):
    """ALTER TABLE … SYNC IDENTITY: the next number of a column is behind those of all rows."""

    column: str


def read_alter(cursor: Cursor) -> Statement:
    """Read the statement behind ``ALTER TABLE``."""
    if_exists = cursor.accept_if("EXISTS")
    name = cursor.table_name()
    for words, read in FORMS:
        if _stands(cursor, words) and (found := read(cursor, name)) is not None:
            return replace(found, if_exists=if_exists) if isinstance(found, OfAltered) else found
    changes = read_action(cursor)
    properties = read_job_properties(cursor, {})
    while cursor.accept(","):
        if begins_rollup_change(cursor):
            raise mixed_changes(cursor)
        if _renames_table(cursor):
            raise not_alone(cursor, "RENAME TO")
        changes += read_action(cursor)
        properties = read_job_properties(cursor, properties)
    return AlterTableStatement(name, tuple(changes), properties, if_exists=if_exists)


def _stands(cursor: Cursor, words: Sequence[str]) -> bool:
    """Tell whether a form of these words stands next."""
    return all(word.islower() or cursor.peek(n).key == word for n, word in enumerate(words))


def _renamed(cursor: Cursor, name: NamedTable) -> RenameTableStatement | None:
    if not _renames_table(cursor):
        return None
    cursor.expect("RENAME", "TO")
    new_name = cursor.table_name()
    end_alone(cursor, "RENAME TO")
    return RenameTableStatement(name, new_name)


def _renames_table(cursor: Cursor) -> bool:
    """Tell RENAME TO t from a rename of the column ``to``."""
    renames_column = cursor.peek(2).key == "TO" and cursor.peek(3).may_name
    return cursor.sees("RENAME", "TO") and not renames_column


def _identified(cursor: Cursor, name: NamedTable) -> AlterTableStatement:
    """Read SET IDENTIFIER FIELDS, which is Iceberg's name for a key that nobody enforces."""
    cursor.expect("SET", "IDENTIFIER", "FIELDS")
    fields = tuple(cursor.listed(lambda c: c.name("a column")))
    key = AddConstraint(ConstraintKind.PRIMARY_KEY, "identifier_fields", columns=fields)
    return AlterTableStatement(name, (key,))


def _undropped(cursor: Cursor, name: NamedTable) -> UndropColumn:
    cursor.expect("UNDROP")
    cursor.accept("COLUMN")
    path = cursor.path()
    end_alone(cursor, "UNDROP COLUMN")
    return UndropColumn(name, path)


def _synced(cursor: Cursor, name: NamedTable) -> SyncIdentity:
    cursor.take()
    if cursor.peek(1).key != "SYNC":
        cursor.expect("COLUMN")
    column = cursor.name("a column")
    cursor.expect("SYNC", "IDENTITY")
    return SyncIdentity(name, column)


def _replaced(cursor: Cursor, name: NamedTable) -> ReplaceColumns:
    cursor.expect("REPLACE", "COLUMNS")
    beside = Beside()
    columns = read_columns(cursor, beside)
    if beside.constraints:
        raise cursor.refusal("a constraint in REPLACE COLUMNS", "use ADD CONSTRAINT")
    return ReplaceColumns(name, columns)


def _field(cursor: Cursor, name: NamedTable) -> AlterPartitionFields:
    word = cursor.take().key
    cursor.expect("PARTITION", "FIELD")
    key = read_partition_key(cursor)
    named = key[0].column if len(key) == 1 and word != "ADD" else None
    added = key if word == "ADD" else ()
    if word == "REPLACE":
        cursor.expect("WITH")
        added = read_partition_key(cursor)
    if word != "DROP" and cursor.accept("AS"):
        # A key of a lake has no name of its own.
        cursor.name("a name")
    return AlterPartitionFields(name, () if word == "ADD" else key, added, named)


def read_comment(cursor: Cursor) -> AlterTableStatement:
    """Read the statement behind ``COMMENT ON``.

    The last part behind COLUMN is the column; a nested field's comment is set by ALTER COLUMN.
    """
    what = cursor.accept_any("TABLE", "COLUMN")
    if not what:
        raise cursor.refusal(
            f"COMMENT ON {cursor.peek().text}", "only tables, views and columns have comments"
        )
    column: Path = ()
    if what != "COLUMN":
        name = cursor.table_name()
    else:
        start = cursor.at
        parts = cursor.path("a column with its table")
        if len(parts) < 2:
            raise cursor.failure("a column as table.column or schema.table.column", start)
        name, column = NamedTable(parts[:-1]), parts[-1:]
    return AlterTableStatement(name, (SetComment(column, take_comment(cursor)),))


def _create_index(cursor: Cursor) -> AlterTableStatement:
    if_not_exists = cursor.accept_if("NOT", "EXISTS")
    index = cursor.name("an index")
    cursor.expect("ON")
    cursor.accept("TABLE")
    name = cursor.table_name()
    changes = index_behind(cursor, index, if_not_exists)
    properties = read_job_properties(cursor, {})
    return AlterTableStatement(name, tuple(changes), properties)


def _drop_index(cursor: Cursor) -> AlterTableStatement:
    dropped = read_drop_index(cursor)
    cursor.expect("ON")
    cursor.accept("TABLE")
    name = cursor.table_name()
    return AlterTableStatement(name, (dropped,))


def alter_table(runner: Runner, statement: AlterTableStatement) -> Result:
    """ALTER TABLE and COMMENT ON: all changes in one snapshot; waits for a job if one is needed.

    ``PROPERTIES ("wait" = "false")`` leaves the job to a worker.
    """
    name = runner.name(statement.name)
    timeout, waits = job_properties(statement.properties) if statement.properties else (None, True)
    try:
        table = runner.verbs(ShapeVerbs, statement.name)
        done = table.alter(*statement.changes, timeout=timeout, wait=waits)
    except NotFound:
        comments = [
            (change.path[0], change.comment)
            for change in statement.changes
            if isinstance(change, SetComment) and len(change.path) == 1
        ]
        is_for_view = len(comments) == len(statement.changes)
        if not is_for_view or runner.view().workspace.view(name) is None:
            raise
        return comment_columns(runner, name, comments)
    return Unchanged(done.look().base) if isinstance(done, SchemaChangeJob) else done


def comment_columns(
    runner: Runner, name: TableName, comments: Sequence[tuple[str, str | None]]
) -> Result:
    """COMMENT ON COLUMN of a view: by the name that it shows, or that its query gives."""
    require_column_comments(runner, f"comment on columns of view {name}")

    def stage(unit: UnitOfWork) -> None:
        view = view_named(unit, name)
        columns = runner.sources.view(unit, view).columns
        shown = [c.lower() for c in view.definition.columns]
        inside = [c.lower() for c in columns]
        for column, text in comments:
            known = shown if column.lower() in shown else inside
            if column.lower() not in known:
                listed = view.definition.columns or columns
                raise NotFound.named("column", column, listed, where=str(name))
            found = columns[known.index(column.lower())]
            require_single(columns, found, name)
            unit.workspace.comment_view(view, found, text)

    return carry_out(runner.state, runner.unit, stage)


def require_column_comments(runner: Runner, what: str) -> None:
    """Raise Unsupported if the lake cannot keep comments on columns of views."""
    known = runner.state.store.format
    if known.view_column_tag is None:
        told = known.lacking("comments on columns of views")
        raise Unsupported(f"cannot {what}: {told}; set a comment on the view instead")


def require_single(columns: Sequence[str], column: str, view: TableName) -> None:
    """Raise Unsupported if a comment on a column of a query would be one on several."""
    if [c.lower() for c in columns].count(column.lower()) > 1:
        raise Unsupported(
            f"cannot comment on a column of view {view}: its query has several columns {column!r},"
            " and comments go by these names; give them different names in the query"
        )


def rename_table(runner: Runner, statement: RenameTableStatement) -> Result:
    """ALTER TABLE … RENAME TO, inside one schema."""
    old = runner.name(statement.name)
    new = runner.name(statement.new_name, default=old.home)
    if new.home.lower() != old.home.lower():
        raise Unsupported(
            f"cannot rename {old} to {new}: DuckLake cannot move a table to another schema; use"
            " CREATE TABLE … AS SELECT there, and drop this table"
        )
    return runner.verbs(ShapeVerbs, statement.name).rename(new.name)


def undrop_column(runner: Runner, statement: UndropColumn) -> Result:
    """ALTER TABLE … UNDROP COLUMN."""
    return runner.verbs(ShapeVerbs, statement.name).undrop_column(path_text(statement.path))


def replace_columns(runner: Runner, statement: ReplaceColumns) -> Result:
    """ALTER TABLE … REPLACE COLUMNS, as the changes of single columns that it stands for."""
    table = runner.version(statement.name)
    known = {field.name.lower(): field for field in table.columns}
    wanted = {column.name.lower(): column for column in statement.columns}
    if len(wanted) < len(statement.columns):
        raise InvalidRequest(f"REPLACE COLUMNS of {table.full_name} names a column twice")
    changes: list[TableChange] = []
    for key, column in wanted.items():
        field = known.get(key)
        if field is None:
            path = (column.name,)
            added = schema_change.AddColumn(
                path, column.type, column.default, column.nullable, column.comment
            )
            changes.append(added)
            continue
        if field.type != column.type:
            changes.append(schema_change.ChangeType((field.name,), column.type))
        if field.nullable and not column.nullable:
            changes.append(schema_change.SetNullable((field.name,), nullable=False))
        if column.default is not None:
            changes.append(schema_change.SetDefault((field.name,), column.default))
        if column.comment is not None:
            changes.append(schema_change.SetComment((field.name,), column.comment))
    gone = [field for key, field in known.items() if key not in wanted]
    changes += [schema_change.DropColumn((field.name,)) for field in gone]
    kept = [key for key in known if key in wanted]
    if [*kept, *(key for key in wanted if key not in known)] != list(wanted):
        changes.append(OrderColumns(tuple(c.name for c in statement.columns)))
    if not changes:
        return Unchanged(table.snapshot.id)
    done = runner.verbs(ShapeVerbs, statement.name).alter(*changes)
    return Unchanged(done.look().base) if isinstance(done, SchemaChangeJob) else done


def alter_partition_fields(runner: Runner, statement: AlterPartitionFields) -> Result:
    """Iceberg's ADD, DROP and REPLACE PARTITION FIELD: the keys of new files."""
    table = runner.version(statement.name)
    known = named_keys(table.partition, table.columns)
    gone = set(statement.gone)
    if gone and not gone <= set(known):
        gone = {key for key in known if field_name(key) == (statement.named or "").lower()}
    if statement.gone and not gone:
        told = ", ".join(map(str, known)) or "none"
        raise NotFound(
            f"table {table.full_name} has no partition field"
            f" {statement.named or ', '.join(map(str, statement.gone))}; its keys are {told}",
            about="partition",
        )
    at = min((known.index(key) for key in gone), default=len(known))
    kept = [key for key in known if key not in gone]
    keys = (*kept[:at], *(key for key in statement.added if key not in kept), *kept[at:])
    change = SetPartitioning(keys) if keys else ResetPartitioning()
    done = runner.verbs(ShapeVerbs, statement.name).alter(change)
    assert not isinstance(done, SchemaChangeJob)
    return done


def sync_identity(runner: Runner, statement: SyncIdentity) -> Result:
    """ALTER TABLE … SYNC IDENTITY: read the rows, and reserve the numbers that they have."""
    table = runner.version(statement.name)
    field = table.columns.get((statement.column,), table.full_name)
    found = identity_of(table)
    if found is None or found[0].id != field.id:
        raise InvalidRequest(
            f"column {quote_name(field.name)} of {table.full_name} is not an identity; declare one"
            " with the table, as GENERATED BY DEFAULT AS IDENTITY"
        )
    column = backticked(field.name)
    rows = runner.verbs(RowVerbs, statement.name).read()
    ends = rows.selectExpr(f"min({column})", f"max({column})")
    numbers = [end for end in ends.collect()[0] if end is not None]
    reserve_numbers(runner.state.store, table, 0, numbers)
    return Unchanged(table.snapshot.id)


OPERATIONS = (
    Operation(
        *("ALTER TABLE", AlterTableStatement, alter_table, read_alter),
        also={"COMMENT ON": read_comment, "CREATE INDEX": _create_index, "DROP INDEX": _drop_index},
        forms={"SET IDENTIFIER FIELDS": _identified},
    ),
    Operation("RENAME TABLE", RenameTableStatement, rename_table, forms={"RENAME TO": _renamed}),
    Operation(
        *("UNDROP COLUMN", UndropColumn, undrop_column),
        forms={"UNDROP": _undropped},
        only_lakes=True,
    ),
    Operation(
        *("REPLACE COLUMNS", ReplaceColumns, replace_columns),
        forms={"REPLACE COLUMNS": _replaced},
        only_lakes=True,
    ),
    Operation(
        *("ALTER PARTITION FIELDS", AlterPartitionFields, alter_partition_fields),
        forms={"ADD|DROP|REPLACE PARTITION FIELD": _field},
        only_lakes=True,
    ),
    Operation(
        *("SYNC IDENTITY", SyncIdentity, sync_identity),
        forms={"ALTER|CHANGE [COLUMN] c SYNC IDENTITY": _synced},
        only_lakes=True,
    ),
)
FORMS: list[tuple[tuple[str, ...], Form]] = []
"""The words behind the table of ALTER TABLE, and what reads them; the first ones that stand win."""


def add_forms(operations: Iterable[Operation]) -> None:
    """Let ALTER TABLE know the forms of operations, also of those in layers above."""
    for operation in operations:
        for pattern, read in operation.forms.items():
            FORMS.extend((words, read) for words in phrases(pattern))


add_forms(OPERATIONS + jobs.OPERATIONS + rollups.OPERATIONS + edits.OPERATIONS)
