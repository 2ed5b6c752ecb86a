"""The answers of a catalog in the user's session: the tables of a lake, and writes into them."""

from __future__ import annotations

import copy
import itertools
import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise

from shelduck.alter.statement import AlterTableStatement
from shelduck.doors.attached.attached_table import (
    AttachedTable,
    by_name,
    land_as_told,
    merge_as_told,
    write_as_told,
    write_schema,
)
from shelduck.doors.lake import Lake, Transaction
from shelduck.doors.sql.parse import parse
from shelduck.engine.bridge.codec import field_rows, rows_of
from shelduck.engine.bridge.lake_catalog import ON, given, held_frames
from shelduck.engine.session import DataFrame, SparkSession, StructType
from shelduck.errors import InvalidRequest, NotFound, Unsupported
from shelduck.lake.branch_names import name_on_branch
from shelduck.lake.evolution.arrangement import arrangement_of, new_arrangement
from shelduck.lake.operation import QueryScope
from shelduck.lake.results import TableName
from shelduck.lake.spark_options import OVERWRITE_SCHEMA, refuse_format, refuse_made
from shelduck.lake.unit import UnitOfWork, carry_out, view_of
from shelduck.lake.workspace import Workspace
from shelduck.model.tables.partition import IDENTITY, named_keys, parse_sort_key
from shelduck.model.tables.schema import path_text
from shelduck.model.tables.table_version import DEFAULT_SCHEMA, TableVersion
from shelduck.model.text.intervals import whole_number
from shelduck.model.text.names import quote_name, quote_text, schema_names, shown_schema
from shelduck.objects.catalog_verbs import CatalogVerbs, Table
from shelduck.objects.targets import relation_frame
from shelduck.text.ddl.partitioning import partition_keys
from shelduck.text.ddl.sorting import columns_of, is_column, sort_keys
from shelduck.text.tokens.parts import NamedTable, Relation

Rows = Iterable[tuple[str, ...]]
Ways = tuple[Callable[[], None], Callable[[], None]]
_GRACE = 60.0
"""Seconds that a hidden view outlives its successor: a query may be about to read it."""


@dataclass(frozen=True, slots=True)
class _HiddenView:
    """A view that reads a table at one snapshot; ``made`` by `time.monotonic`."""

    snapshot: int
    name: str
    schema: str
    ids: str
    made: float


# Tables that statements make, by token: a Connect server of Spark 4.0 asks one session to make the
# table, and another one to write the rows.
_staged: dict[str, tuple[Transaction, TableName, Ways | None]] = {}


class AttachedLake:
    """One lake under one name in one session; ``is_shared`` if another session closes it.

    ``asked`` is what somebody asked for who may ask again.
    """

    asked: tuple[object, ...] | None = None

    def __init__(self, lake: Lake, spark: SparkSession, *, is_shared: bool = False) -> None:
        self.lake = lake
        self.is_shared = is_shared
        self.state = lake._state  # noqa: SLF001 - the lake's other half
        self.spark = spark
        self.database = str(spark.conf.get("spark.sql.globalTempDatabase", "global_temp"))
        self._verbs = CatalogVerbs(self.state, None)
        self._views: dict[tuple[str, ...], list[_HiddenView]] = {}
        self._numbers = itertools.count()
        self._unique = uuid.uuid4().hex[:8]
        self._lock = threading.Lock()
        self._pinned: dict[str, UnitOfWork] = {}

    def answer(self, request: list[str], rows: DataFrame | None) -> Rows:
        """Answer what `LakeCatalog` asks."""
        asks, what, namespace, name, *more = request
        query, _, branch = asks.partition(ON)
        if branch and name and what != "load":
            meant = self._name(namespace, name, branch)
            namespace, name = meant.home, meant.name
        if what in ("create", "replace", "create or replace", "overwrite"):
            return [(self._stage(what, self._name(namespace, name), *more),)]
        match what:
            case "load":
                return [self._load(query, branch, namespace, name, *more)]
            case "sql":
                # A statement of a script.
                return [given(self.spark, self.spark.sql(more[0]))]
            case "schema":
                return [self._schema(self._table(namespace, name))]
            case "write":
                assert rows is not None
                staged, *told = more
                target, named = self._table(namespace, name), self._named(namespace, name)
                ways = None
                if staged:
                    transaction, wanted, ways = _staged[staged]
                    target = transaction.table(str(wanted))
                write_as_told(target, named, rows, told, is_made=bool(staged), ways=ways)
            case "merge":
                assert rows is not None
                catalog, *told = more
                merge_as_told(self._named(namespace, name, catalog), rows, told)
            case "sink":
                self._table(namespace, name).columns  # noqa: B018 - a view has none
                land_as_told(self._named(namespace, name), rows, more)
            case "alter":
                self._alter(self._table(namespace, name), more)
            case "commit" | "abort":
                transaction, *_ = _staged.pop(more[0])
                getattr(transaction, "commit" if what == "commit" else "rollback")()
            case _:
                return self._about_names(what, namespace, name, more)
        return ()

    @contextmanager
    def pinned(self, query: str) -> Iterator[None]:
        """Load everything for a query from one snapshot."""
        self._pinned[query] = UnitOfWork(copy.copy(self.state))
        try:
            yield
        finally:
            del self._pinned[query]

    def close(self) -> None:
        """Drop the hidden views, and close the lake unless it is another session's."""
        with self._lock:
            for found in self._views.values():
                for hidden in found:
                    self.spark.catalog.dropGlobalTempView(hidden.name)
            self._views.clear()
        if not self.is_shared:
            self.lake.close()

    def _about_names(self, what: str, namespace: str, name: str, more: list[str]) -> Rows:
        match what:
            case "schemas":
                found = view_of(self.state, None).workspace.schemas()
                around = next((s.id for s in found if s.name.lower() == namespace.lower()), None)
                if namespace and around is None:
                    return []
                return [(s.own_name,) for s in found if s.parent == around]
            case "schema exists":
                known = view_of(self.state, None).workspace.schemas()
                return [("yes",) for s in known if s.name.lower() == namespace.lower()]
            case "tables":
                unit = view_of(self.state, None).workspace
                schema = unit.schema(unit.word_of(shown_schema(namespace or DEFAULT_SCHEMA)))
                return [(n,) for n in sorted((*unit.table_names(schema), *unit.view_names(schema)))]
            case "keys":
                workspace = view_of(self.state, None).workspace
                table = workspace.find_table(self._name(namespace, name))
                if table is None:
                    return []
                return [(key,) for key in _keys(table)] or _clustered(table)
            case "exists":
                return [("yes",)] if self._exists(namespace, name) else []
            case "drop":
                self._verbs.drop_table(str(self._name(namespace, name)))
                return [("yes",)]
            case "rename":
                _, renamed = more
                self._table(namespace, name).rename(renamed)
            case "create schema":
                self._do(partial(Workspace.create_schema, word=namespace, if_not_exists=False))
            case "drop schema" | "drop schema cascade":
                cascade = what.endswith("cascade")
                drop = partial(Workspace.drop_schema, word=namespace, if_exists=False)
                self._do(partial(drop, cascade=cascade))
            case _:
                raise InvalidRequest(f"the catalog does not support the request {what!r}")
        return ()

    def _do(self, stage: Callable[[Workspace], None]) -> None:
        carry_out(self.state, None, lambda unit: stage(unit.workspace))

    def _exists(self, namespace: str, name: str) -> bool:
        unit = view_of(self.state, None)
        wanted = self._name(namespace, name)
        return unit.workspace.has_table(wanted) or unit.workspace.view(wanted) is not None

    def _load(self, query: str, branch: str, *table: str) -> tuple[str, str, str, str]:
        """Return a view that reads the table at one snapshot: database, name, schema, ids."""
        namespace, name, how, when = table
        unit = self._pinned.get(query) or UnitOfWork(copy.copy(self.state))
        unit.state.branch = branch
        key = (namespace.lower(), name.lower(), how, when, branch)
        snapshot = unit.workspace.base.id
        with self._lock:
            known = self._views.get(key, [])
            if known and known[-1].snapshot == snapshot:
                return self.database, known[-1].name, known[-1].schema, known[-1].ids
        frame = relation_frame(unit, _relation(namespace, name, how, when), _SCOPE)
        hidden = f"__shelduck_{self._unique}_{next(self._numbers)}"
        with held_frames():
            frame.createGlobalTempView(hidden)
        schema, ids = frame.schema.json(), _ids(unit, self._name(namespace, name, branch))
        now = time.monotonic()
        with self._lock:
            found = self._views.setdefault(key, [])
            found.append(_HiddenView(snapshot, hidden, schema, ids, now))
            # A view is out of use some time after its successor was made.
            outdated = [v for v, newer in pairwise(found) if newer.made < now - _GRACE]
            del found[: len(outdated)]
        for view in outdated:
            self.spark.catalog.dropGlobalTempView(view.name)
        return self.database, hidden, schema, ids

    def _stage(self, how: str, name: TableName, schema: str, keys: str, *told: str) -> str:
        """Create a table in its own transaction; return the token of the transaction.

        One that is overwritten is made by the write, if that asks for other columns.
        """
        given = by_name(told)
        properties = kept_properties(given, name)
        transaction = self.lake.transaction()
        text, token = str(name), uuid.uuid4().hex
        workspace = transaction._open_unit.workspace  # noqa: SLF001
        is_there = workspace.has_table(name)
        if how == "replace" and not is_there:
            raise NotFound(f"table {text} does not exist", about="table")
        # Spark gives CLUSTER BY as a transform.
        clustered = re.fullmatch(r"cluster_by\((.*)\)", keys)
        partitioned, sorted_by = (keys, "") if clustered is None else ("", clustered[1])
        by = partitioned.split(", ") if partitioned else ()
        sorts = sorted_by.split(", ") if sorted_by else ()

        def make() -> None:
            if is_there and how != "create":
                transaction.drop_table(text)
            transaction.create_table(
                text,
                StructType.fromJson(json.loads(schema)),
                comment=given.get("comment") or None,
                partitioned_by=by,
                sorted_by=sorts,
                properties=properties,
            )

        ways = None
        if how == "overwrite" and is_there:
            # The options come with the rows.
            ways = partial(_require_arranged, workspace.table(name), by, sorts), make
        else:
            make()
        _staged[token] = transaction, name, ways
        return token

    def _alter(self, table: Table, changes: Sequence[str]) -> None:
        """Change a table as Spark's `TableChange`s say, all at once."""
        if changes:
            clauses = ", ".join(map(_clause, changes))
            [found] = parse(f"ALTER TABLE {table.name} {clauses}")
            assert isinstance(found, AlterTableStatement)
            table.alter(*found.changes, wait=True)

    def _schema(self, table: Table) -> tuple[str, ...]:
        """Return the columns as those of a table to write to, and the names of partition keys."""
        found = view_of(self.state, None).workspace.table(table.name)
        return (write_schema(found.columns).json(), *_keys(found))

    def _table(self, namespace: str, name: str) -> Table:
        return Table(self.state, self._name(namespace, name))

    def _named(self, namespace: str, name: str, catalog: str = "") -> AttachedTable:
        """Return a table as this session reads and writes it; ``catalog`` matters to a merge."""
        state = copy.copy(self.state)
        state.given_spark = self.spark
        return AttachedTable(state, catalog, self._name(namespace, name))

    def _name(self, namespace: str, name: str, branch: str = "") -> TableName:
        found = TableName(namespace or DEFAULT_SCHEMA, name)
        return (
            name_on_branch(view_of(self.state, None).workspace, found, branch) if branch else found
        )


def _ids(unit: UnitOfWork, name: TableName) -> str:
    """Return the ids of a table and of its columns, as `LatestPlan` compares them."""
    if not unit.workspace.has_table(name):
        return ""
    table = unit.workspace.table(name)
    columns = ((f.name, " ".join(str(n.id) for n in f.walk())) for f in table.columns)
    return rows_of([("", table.uuid), *columns])


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SCOPE = QueryScope(DEFAULT_SCHEMA, rollups=True)


def _relation(namespace: str, name: str, how: str, when: str) -> Relation:
    parts = (*schema_names(namespace or DEFAULT_SCHEMA), name)
    number = whole_number(when) if how == "version" else None
    version = when if how == "version" and number is None else number
    timestamp = None
    if how == "timestamp":
        timestamp = (_EPOCH + timedelta(microseconds=int(when))).isoformat()
    return Relation(NamedTable(parts), "", version, timestamp)


_OPTION = "option."
_REFUSED = {
    "location": "a location: its files are below the lake's data path; leave out LOCATION or path",
    "external": "files elsewhere: its files are below the lake's data path; leave out EXTERNAL",
    "collation": "a collation: DuckLake has no collations; leave out DEFAULT COLLATION",
    "hive.": "another file format: its files are Parquet; leave out STORED AS and ROW FORMAT",
}
_SPARKS = ("comment", "owner", "provider", "is_managed_location", "table_type")


def _keys(table: TableVersion) -> list[str]:
    """Return the columns whose values are partition keys."""
    keys = named_keys(table.partition, table.columns)
    return [key.column for key in keys if key.transform.kind == IDENTITY]


def _clustered(table: TableVersion) -> Rows:
    """Return the columns that sort a table's files, behind an empty text, if CLUSTER BY can."""
    keys = [parse_sort_key(text) for text in table.sort]
    if keys and all(is_column(key.expression) and not key.descending for key in keys):
        return [("", *(name for key in keys for name in columns_of(key.expression)))]
    return []


_SET = {
    "UpdateColumnType": "TYPE {newDataType}",
    "UpdateColumnPosition": "{position}",
    "UpdateColumnComment": "COMMENT {newComment}",
}
"""What ALTER COLUMN sets for a `TableChange` of Spark."""


def _clause(change: str) -> str:
    """Return a `TableChange` of Spark, as `LakeCatalog` tells it, as a clause of ALTER TABLE."""
    [[kind, *more]] = field_rows(f"{change}\n")
    told = {"newComment": "", **by_name(more)}
    for key in told.keys() & {"comment", "newComment", "property", "value"}:
        told[key] = quote_text(told[key])
    if kind == "SetProperty" and told["property"] == quote_text("comment"):
        return f"MODIFY COMMENT {told['value']}"
    if kind == "SetProperty":
        return f"SET TBLPROPERTIES ({told['property']} = {told['value']})"
    if kind == "RemoveProperty":
        return f"UNSET TBLPROPERTIES IF EXISTS ({told['property']})"
    [names] = field_rows(f"{told['fieldNames']}\n")
    column = path_text(tuple(names))
    match kind:
        case "AddColumn":
            clauses = [told["dataType"]]
            clauses += ["NOT NULL"] if told["isNullable"] == "false" else []
            clauses += [f"DEFAULT {told['defaultValue']}"] if "defaultValue" in told else []
            clauses += [f"COMMENT {told['comment']}"] if "comment" in told else []
            return " ".join(["ADD COLUMN", column, *clauses, told.get("position", "")])
        case "DeleteColumn":
            exists = "IF EXISTS " if told["ifExists"] == "true" else ""
            return f"DROP COLUMN {exists}{column}"
        case "RenameColumn":
            return f"RENAME COLUMN {column} TO {quote_name(told['newName'])}"
        case "UpdateColumnNullability":
            word = "DROP" if told["nullable"] == "true" else "SET"
            return f"ALTER COLUMN {column} {word} NOT NULL"
        case "UpdateColumnDefaultValue":
            default = told.get("newDefaultValue")
            return (
                f"ALTER COLUMN {column} {f'SET DEFAULT {default}' if default else 'DROP DEFAULT'}"
            )
        case _ if kind in _SET:
            return f"ALTER COLUMN {column} {_SET[kind].format_map(told)}"
    raise Unsupported(f"a lake has no {kind}; use ALTER TABLE")


def _require_arranged(
    table: TableVersion, partitioned_by: Sequence[str], sorted_by: Sequence[str]
) -> None:
    """Refuse other partition keys, or another order, than those of a table that stays."""
    keys = partition_keys(partitioned_by), sort_keys(sorted_by)
    asked, known = new_arrangement(table.columns, *keys, table.full_name), arrangement_of(table)
    if asked.partition not in ((), known.partition) or asked.sort not in ((), known.sort):
        raise InvalidRequest(
            f"table {table.full_name} keeps its partition keys and its order when its rows are"
            f" replaced; leave out {', '.join((*partitioned_by, *sorted_by))}, or set the option"
            f" {OVERWRITE_SCHEMA}"
        )


def kept_properties(given: Mapping[str, str], table: TableName) -> dict[str, str]:
    """Return the table properties among those in which Spark tells its catalogs everything.

    Options of a writer, which Spark passes twice, the second time with ``option.`` in front, are
    not among them.

    Raises Unsupported for a format or place of its own, which tables of a lake do not have, and
    InvalidRequest for an option.
    """
    refuse_format(given.get("provider"), table)
    for key, reason in _REFUSED.items():
        if any(k == key or (key.endswith(".") and k.startswith(key)) for k in given):
            raise Unsupported(f"table {table} cannot have {reason}")
    options = {k.removeprefix(_OPTION): v for k, v in given.items() if k.startswith(_OPTION)}
    refuse_made(options, f"the new table {table}")
    return {
        key: value
        for key, value in given.items()
        if key not in _SPARKS and key not in options and not key.startswith(_OPTION)
    }
