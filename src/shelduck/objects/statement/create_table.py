"""CREATE TABLE: its clauses, key models as Doris has them, and what they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from shelduck.jobs.rollup_statement import read_rollups
from shelduck.keys.key_draft import keyed_table
from shelduck.lake.evolution.arrangement import new_arrangement
from shelduck.lake.lookup import require_satisfied
from shelduck.lake.results import TableName
from shelduck.lake.spark_options import PROVIDERS
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.constraining import AddConstraint, apply_constraint
from shelduck.model.changes.definition import Definition, with_default
from shelduck.model.tables.column_storage import bound_storage, stored_properties
from shelduck.model.tables.computed import WrittenComputed, declared
from shelduck.model.tables.constraints import ConstraintKind
from shelduck.model.tables.keys import KeyModel, KeySpec
from shelduck.model.tables.partition import PartitionBy, SortKey
from shelduck.model.tables.properties import checked_properties
from shelduck.model.tables.rollup import RollupSpec
from shelduck.model.tables.schema import Schema, comments_of, new_schema
from shelduck.model.text.names import quote_name
from shelduck.model.types.data_types import Member
from shelduck.rollups.following import create_with_rollups, drop_with_rollups
from shelduck.text.ddl.column_clauses import Beside, read_columns
from shelduck.text.ddl.partitioning import read_doris_partitions, read_partition_keys
from shelduck.text.ddl.sorting import read_sort_keys
from shelduck.text.query.rewriting import begins_query, read_query
from shelduck.text.query.travel import read_time
from shelduck.text.tokens.arguments import read_properties
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.parts import NamedTable, OfTable, Query

_CLAUSES = {
    "LOCATION": "the files of a table are below the lake's data path; leave it out",
    "OPTIONS": "leave it out",
    "CLUSTERED": "use PARTITIONED BY (bucket(N, c)) and SORTED BY (...)",
    "PARTITION": "use PARTITIONED BY (...)",
    "WITH": "leave it out",
    "ROW": "tables are Parquet files; leave it out",
    "STORED": "tables are Parquet files; leave it out",
}
_SEQUENCE = "function_column.sequence_col"


@dataclass(frozen=True, slots=True)
class CreateTableStatement(OfTable):
    """CREATE TABLE, with columns or with a query that gives them.

    ``must_exist`` says that it is REPLACE TABLE: there must be a table to replace.
    ``partitioned_by`` and ``sorted_by`` are how its files are laid out. ``doris_properties`` are
    those of PROPERTIES, but for the sequence column, which ``keys`` has.
    """

    columns: tuple[Definition, ...] = ()
    if_not_exists: bool = False
    or_replace: bool = False
    must_exist: bool = False
    comment: str | None = None
    as_query: Query | None = None
    partitioned_by: tuple[PartitionBy, ...] = ()
    sorted_by: tuple[SortKey, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    keys: KeySpec | None = None
    rollups: tuple[RollupSpec, ...] = ()
    doris_properties: dict[str, str] = field(default_factory=dict)
    constraints: tuple[AddConstraint, ...] = ()
    computed: tuple[WrittenComputed, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyTableStatement(OfTable):
    """CREATE TABLE … LIKE, or CLONE, which ``has_rows``: of now, a snapshot or a time.

    A shallow one ``shares`` the files of the source where it can.
    """

    source: NamedTable
    has_rows: bool
    shares: bool = False
    if_not_exists: bool = False
    or_replace: bool = False
    version: int | None = None
    timestamp: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


def read_create_table(cursor: Cursor) -> CreateTableStatement | CopyTableStatement:
    """Read the statement behind ``CREATE TABLE``."""
    if_not_exists, or_replace = cursor.made_how("table")
    name = cursor.table_name()
    shares = cursor.accept("SHALLOW", "CLONE")
    if shares or cursor.accept("DEEP", "CLONE") or cursor.accept("CLONE"):
        copied = _copy(cursor, name, if_not_exists, or_replace, has_rows=True)
        return replace(copied, shares=shares)
    if cursor.accept("LIKE"):
        return _copy(cursor, name, if_not_exists, or_replace, has_rows=False)
    return _create_table(cursor, name, if_not_exists, or_replace)


def read_replace(cursor: Cursor) -> CreateTableStatement:
    """Read the statement behind ``REPLACE TABLE``: CREATE OR REPLACE of a table that exists."""
    name = cursor.table_name()
    return replace(_create_table(cursor, name, False, or_replace=True), must_exist=True)


def _copy(
    cursor: Cursor, name: NamedTable, if_not_exists: bool, or_replace: bool, *, has_rows: bool
) -> CopyTableStatement:
    source = cursor.table_name()
    version, timestamp = read_time(cursor) if has_rows else (None, None)
    if not has_rows and cursor.accept("USING"):
        _provider(cursor)
    properties = read_properties(cursor) if cursor.accept("TBLPROPERTIES") else {}
    return CopyTableStatement(
        *(name, source, has_rows, False, if_not_exists, or_replace, version, timestamp, properties)
    )


def _create_table(
    cursor: Cursor, name: NamedTable, if_not_exists: bool, or_replace: bool
) -> CreateTableStatement:
    columns: tuple[Definition, ...] = ()
    beside = Beside(computed=[])
    opening = cursor.at
    if cursor.sees("(") and not begins_query(cursor):
        columns = read_columns(cursor, beside)
    keys = (c for c in beside.constraints if c.kind is ConstraintKind.PRIMARY_KEY)
    needed = {name.lower() for key in keys for name in key.columns}
    columns = tuple(
        replace(c, nullable=c.nullable and c.name.lower() not in needed) for c in columns
    )
    clauses = _clauses(cursor) | {"constraints": tuple(beside.constraints)}
    clauses["computed"] = tuple(beside.computed or ())
    clauses["keys"] = taken_keys(cursor, columns, clauses)
    if cursor.accept("AS") or begins_query(cursor):
        if columns:
            raise cursor.failure("AS (the query of CREATE TABLE AS defines the columns)", opening)
        clauses["as_query"] = read_query(cursor)
    elif not columns:
        raise cursor.failure("the columns in brackets, or AS and a query")
    return CreateTableStatement(name, columns, if_not_exists, or_replace, **clauses)


def _clauses(cursor: Cursor) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while words := next((words for words in _READERS if cursor.sees(*words)), None):
        key, read = _READERS[words]
        if key in found:
            what = "a KEY clause" if key == "keys" else words[0]
            raise cursor.failure(f"{what} only once")
        cursor.expect(*words)
        found[key] = read(cursor)
    word = cursor.peek().key
    begins_with = word == "WITH" and cursor.peek(1).key != "("
    if word in _CLAUSES and not begins_with:
        raise cursor.refusal(f"CREATE TABLE ... {word}", _CLAUSES[word])
    begun = next((words for words in _READERS if words[0] == word), ())
    # It has not been read, so one of the words is missing.
    cursor.expect(*begun)
    for ignored in ("using", "engine"):
        found.pop(ignored, None)
    return found


def _provider(cursor: Cursor) -> str:
    provider = cursor.name("a format")
    if provider.lower() not in PROVIDERS:
        raise cursor.refusal(
            f"USING {provider}", "tables of a lake are Parquet files; leave it out"
        )
    return provider


def read_engine(cursor: Cursor) -> str:
    """Take what stands behind ``ENGINE =``; it is OLAP."""
    engine = cursor.name("OLAP")
    if engine.upper() != "OLAP":
        raise cursor.refusal(f"ENGINE={engine}", "tables of a lake are Parquet files; leave it out")
    return engine


def read_distribution(cursor: Cursor) -> tuple[tuple[str, ...], str | None]:
    """Take what stands behind ``DISTRIBUTED BY``; return the columns of HASH and the buckets.

    Files of a lake are in no buckets: the number is kept to be shown.
    """
    columns: tuple[str, ...] = ()
    if not cursor.accept("RANDOM"):
        if not cursor.accept("HASH"):
            raise cursor.failure("HASH and columns in brackets, or RANDOM")
        columns = cursor.columns()
    if not cursor.accept("BUCKETS"):
        return columns, None
    if cursor.accept("AUTO"):
        return columns, "AUTO"
    return columns, str(cursor.whole("the number of buckets, or AUTO"))


def taken_keys(
    cursor: Cursor, columns: Sequence[Definition], clauses: dict[str, Any]
) -> KeySpec | None:
    """Take what is said of keys out of the clauses; return the model that it means.

    Without a KEY clause the words of columns mean one. A table without keys that is distributed is
    a DUPLICATE table whose key has no columns. Raises InvalidRequest where words, clause and
    properties contradict each other.
    """
    spec: KeySpec | None = clauses.pop("keys", None) or _keys_of_words(columns)
    distributed_by, buckets = clauses.pop("distributed_by", ((), None))
    sequence = clauses.get("doris_properties", {}).pop(_SEQUENCE, None)
    if sequence is not None and (spec is None or spec.model is not KeyModel.UNIQUE):
        raise cursor.error(
            f"the property {_SEQUENCE} applies only to tables with UNIQUE KEY (...); add the keys,"
            " or leave out the property"
        )
    if spec is None and (distributed_by or buckets):
        spec = KeySpec(KeyModel.DUPLICATE, ())
    if spec is None:
        return None
    known = {name.lower() for name in spec.columns}
    for column in columns:
        if column.key and column.name.lower() not in known:
            raise cursor.error(
                f"column {quote_name(column.name)} has the word KEY but is not in"
                f" {spec.model.value} KEY (...); add it there, or leave out the word"
            )
    return replace(
        spec,
        aggregations=tuple((c.name, c.aggregation) for c in columns if c.aggregation is not None),
        sequence=sequence,
        distributed_by=distributed_by,
        buckets=buckets,
    )


def _keys_of_words(columns: Sequence[Definition]) -> KeySpec | None:
    if any(c.aggregation is not None for c in columns):
        keys = (c.name for c in columns if c.key or c.aggregation is None)
        return KeySpec(KeyModel.AGGREGATE, tuple(keys))
    names = tuple(c.name for c in columns if c.key)
    return KeySpec(KeyModel.DUPLICATE, names) if names else None


def _key_clause(model: KeyModel, cursor: Cursor) -> KeySpec:
    return KeySpec(model, cursor.columns())


KEY_CLAUSES: dict[tuple[str, ...], Callable[[Cursor], KeySpec]] = {
    (model.value, "KEY"): partial(_key_clause, model) for model in KeyModel
}
"""How each clause is read, by the words that it begins with."""


_READERS: dict[tuple[str, ...], tuple[str, Callable[[Cursor], object]]] = {
    ("COMMENT",): ("comment", lambda cursor: cursor.string("the comment as a string")),
    ("USING",): ("using", _provider),
    ("ENGINE", "="): ("engine", read_engine),
    ("PARTITIONED", "BY"): ("partitioned_by", read_partition_keys),
    ("PARTITION", "BY"): ("partitioned_by", read_doris_partitions),
    ("AUTO", "PARTITION", "BY"): ("partitioned_by", read_doris_partitions),
    ("SORTED", "BY"): ("sorted_by", read_sort_keys),
    # Delta's word.
    ("CLUSTER", "BY"): ("sorted_by", read_sort_keys),
    ("DISTRIBUTED", "BY"): ("distributed_by", read_distribution),
    **{words: ("keys", read) for words, read in KEY_CLAUSES.items()},
    ("ROLLUP",): ("rollups", read_rollups),
    ("TBLPROPERTIES",): ("properties", read_properties),
    ("PROPERTIES",): ("doris_properties", read_properties),
}


def creating(
    state: LakeState, statement: CreateTableStatement, name: TableName, members: list[Member]
) -> Callable[[UnitOfWork], None]:
    """Return what stages a CREATE TABLE; all that needs no catalog is checked before.

    ``members`` are the columns: the statement may have a query instead.
    """
    told = str(statement.name)
    columns = new_schema(members)
    comments = comments_of(columns, members)
    if statement.comment is not None:
        comments[None] = statement.comment
    if statement.columns:
        pairs = zip(columns, statement.columns, strict=True)
        columns = Schema(tuple(with_default(made, said.default, told) for made, said in pairs))
    arrangement = new_arrangement(columns, statement.partitioned_by, statement.sorted_by, told)
    stored = dict(stored_properties(statement.doris_properties))
    properties = checked_properties(statement.properties | stored, told)
    properties = bound_storage(properties, columns, told)
    if statement.keys is not None:
        given = properties, arrangement
        properties, arrangement = keyed_table(columns, statement.keys, *given, told)
    if statement.computed:
        computed = tuple(one.made_in(state.zone) for one in statement.computed)
        columns, properties = declared(columns, computed, properties, told)
    checks: list[str] = []
    for constraint in statement.constraints:
        made = constraint.made_in(state.zone)
        properties, checked = apply_constraint(properties, made, columns, told)
        checks += [] if checked is None else [checked]

    def stage(unit: UnitOfWork) -> None:
        may_exist = statement.if_not_exists and statement.as_query is None
        if may_exist and unit.workspace.has_table(name):
            return
        if statement.must_exist or (statement.or_replace and unit.workspace.has_table(name)):
            drop_with_rollups(unit, unit.workspace.table(name))
        unit.workspace.create_table(
            name, columns, comments, arrangement=arrangement, properties=properties
        )
        if checks or statement.computed:
            require_satisfied(unit, name, checks)
        if statement.rollups:
            create_with_rollups(unit, name, statement.rollups)

    return stage
