"""Rows of a scan plan as a DataFrame: one native scan per group, projected and united.

Rows in the catalog itself are one more part, with the current columns of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal as Number
from enum import StrEnum
from functools import partial, reduce
from typing import cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import (
    Deletes,
    Engine,
    FileEntry,
    FileRelation,
    Named,
    Sql,
    engine_for,
    select_named,
)
from shelduck.engine.session import local_columns, local_frame
from shelduck.engine.types import (
    carrier,
    carrier_type,
    decoded,
    exists_default,
    same_type,
    spark_type,
)
from shelduck.errors import Unsupported
from shelduck.metrics import BYTES_PLANNED, FILES_PLANNED, FILES_SKIPPED, is_wanted, record
from shelduck.model.files.data_file import DataFile, InlinedRows, Layout
from shelduck.model.files.fitted import fitted_values
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.model.types.data_types import SIGNED, DataType, Decimal, Primitive
from shelduck.read.plan.scan import PLANNED, FileSource, GroupSize, ReadColumn, ScanGroup, ScanPlan
from shelduck.read.plan.scan_groups import Column as ReadAs
from shelduck.read.plan.scan_groups import Expression
from shelduck.read.scan.rollup_rule import Chooser, chooser_for
from shelduck.read.scan.scan_columns import to_column

PARTITION_COLUMNS = "spark.shelduck.partitionColumns"
"""The setting of a session that keeps partition columns ordinary, if it is ``false``."""
ROW_ID_START = "__shelduck_row_id_start"
FILE_ID = "__shelduck_file_id"
BEGIN_SNAPSHOT = "__shelduck_begin_snapshot"
_CONSTANTS = (ROW_ID_START, FILE_ID, BEGIN_SNAPSHOT)
_BEYOND = 10**38


class Origin(StrEnum):
    """Columns with the origin of a row; they follow the table's own columns.

    A row in the catalog itself has no file and no position, and a row of an uncommitted transaction
    has no row id yet.
    """

    ROW_ID = "__shelduck_origin_row_id"
    FILE_ID = "__shelduck_origin_file_id"
    POSITION = "__shelduck_origin_position"
    SNAPSHOT_ID = "__shelduck_origin_snapshot_id"


ORIGINS = (Origin.ROW_ID, Origin.FILE_ID, Origin.POSITION)
"""Those of rows that a statement changes."""


Local = Callable[[Sequence[Field], Sequence[Origin]], DataFrame]


def read_rows(
    spark: SparkSession,
    plan: ScanPlan,
    source: FileSource = PLANNED,
    *,
    inlined: Sequence[InlinedRows] = (),
    local: Local | None = None,
    origins: Sequence[Origin] = (),
    choose: Chooser | None = None,
    only_deleted: bool = False,
    since: int | None = None,
) -> DataFrame:
    """Return the rows of a plan, and of ``inlined``, with the table's current names and types.

    ``source`` says which files of a group a query needs. ``local`` makes the DataFrame of inlined
    rows. ``origins`` are added as columns; SNAPSHOT_ID needs a plan made with ``snapshots``. Every
    column is nullable.

    ``choose`` is called while Spark plans a query, and may name a rollup that holds the rows
    that it needs. Rows that come from several groups or from the catalog are always read.
    ``only_deleted`` returns the deleted rows of files instead, all of which have some; not over
    Spark Connect. Rows that were inserted before the snapshot ``since`` may be left out.
    """
    engine = engine_for(spark)
    if len(plan.groups) != 1 or origins or any(rows.rows for rows in inlined):
        choose = None
    frames = [
        _group(
            *(engine, plan, group, source),
            origins=origins,
            choose=choose,
            only_deleted=only_deleted,
            since=since,
        )
        for group in plan.groups
        if group.files
    ]
    if any(rows.rows for rows in inlined):
        make = local or partial(frame_of_inlined, spark, inlined)
        frames.append(make(plan.columns, origins))
    made = reduce(DataFrame.unionAll, frames or [local_frame(spark, [], _schema(plan, origins))])
    return _commented(made, plan, origins)


def _commented(found: DataFrame, plan: ScanPlan, origins: Sequence[Origin]) -> DataFrame:
    """Return rows for people with the comments of their columns as Spark keeps them."""
    comments, types = plan.table.comments, {} if origins else _commented_types(plan)
    if origins or not (types or any(f.id in comments for f in plan.columns)):
        return found
    told = {f.name: {"comment": comments[f.id]} for f in plan.columns if f.id in comments}
    # A cast would keep filters on fields from the files; most groups are read with this type.
    has = {f.name: f.dataType for f in found.schema} if types else {}
    casts = {name: kind for name, kind in types.items() if has[name] != kind}
    named = [
        Named(f.name, backticked(f.name), casts.get(f.name), told.get(f.name)) for f in plan.columns
    ]
    return select_named(found, named)


def _commented_types(plan: ScanPlan) -> dict[str, T.DataType]:
    """Return the types of columns with fields that have comments."""
    comments = plan.table.comments
    nested = [f for f in plan.columns if not f.is_leaf] if comments else []
    return {
        f.name: spark_type(f.commented(comments), f.name)
        for f in nested
        if any(below.id in comments and below is not f for below in f.walk())
    }


def _schema(plan: ScanPlan, origins: Sequence[Origin]) -> T.StructType:
    fields = [T.StructField(f.name, spark_type(f.type, f.name)) for f in plan.columns]
    return T.StructType(fields + [T.StructField(o, T.LongType()) for o in origins])


def frame_of_inlined(
    spark: SparkSession,
    inlined: Sequence[InlinedRows],
    columns: Sequence[Field],
    origins: Sequence[Origin] = (),
) -> DataFrame:
    """Return inlined rows with the current ``columns``, followed by ``origins``."""
    engine_for(spark).compute_few_rows()
    found = inlined_frame(spark, columns, inlined, Origin.ROW_ID, Origin.SNAPSHOT_ID)
    wanted = [Named(f.name, backticked(f.name)) for f in columns]
    if origins:
        nothing = F.lit(None).cast(T.LongType())
        known = (Origin.ROW_ID, Origin.SNAPSHOT_ID)
        wanted += [Named(o, o if o in known else nothing) for o in origins]
    return select_named(found, wanted)


def _group(
    engine: Engine,
    plan: ScanPlan,
    group: ScanGroup,
    source: FileSource,
    *,
    origins: Sequence[Origin],
    choose: Chooser | None,
    only_deleted: bool,
    since: int | None,
) -> DataFrame:
    schema = _read_schema(group, row_ids=Origin.ROW_ID in origins)
    types = {} if origins else _commented_types(plan)
    for f, made in zip(plan.columns, group.outputs, strict=True) if types else ():
        read = schema[made.name] if f.name in types and isinstance(made, ReadAs) else None
        if read is not None and same_type(read.dataType, types[f.name]):
            read.dataType = types[f.name]
    snapshot = plan.table.snapshot.id
    asked = None if choose is None else chooser_for(engine, plan, choose)
    relation = _relation(engine, group, schema, plan.table, source, origins=bool(origins))
    if source.knows_values and not origins:
        relation = replace(
            relation,
            measurer=partial(source.measured, group),
            statistics=partial(source.statistics, group),
        )
    found = engine.relation(replace(relation, chooser=asked, wants_deleted=only_deleted))
    if group.snapshot_column is not None:
        stored = backticked(group.snapshot_column)
        found = found.where(f"{stored} <= {int(snapshot)}L")
        # A file that came from another table has rows that are older there.
        if since is not None and all(f.begin_snapshot < since for f in group.files):
            found = found.where(f"{stored} >= {since}L")
    # Metadata of the read schema says how files are read; it does not belong to the rows.
    columns = [
        Named(f.name, _source(engine, e, f.type), metadata={})
        for f, e in zip(plan.columns, group.outputs, strict=True)
    ]
    if origins:
        found, index = engine.row_index(found, schema.names)
        columns += [Named(o, _origin(group, o, index), metadata={}) for o in origins]
    return select_named(found, columns)


def _source(engine: Engine, made: Expression, kind: DataType) -> str | Column:
    found = backticked(made.name) if isinstance(made, ReadAs) else to_column(made)
    return engine.unpushed(found, kind)


def _origin(group: ScanGroup, origin: Origin, index: str) -> str:
    match origin:
        case Origin.FILE_ID:
            return FILE_ID
        case Origin.POSITION:
            return Sql(index)
        case Origin.SNAPSHOT_ID:
            if group.snapshot_column is None:
                return BEGIN_SNAPSHOT
            # A file that came from another table has rows that are older there.
            return Sql(f"greatest({backticked(group.snapshot_column)}, {BEGIN_SNAPSHOT})")
        case Origin.ROW_ID:
            return _embedded(group.row_id_column, f"{ROW_ID_START} + {index}")


def _embedded(column: str | None, otherwise: str) -> Sql:
    """Return the value that rows store, and ``otherwise`` for rows that store none."""
    return Sql(otherwise if column is None else f"coalesce({backticked(column)}, {otherwise})")


def _read_schema(group: ScanGroup, *, row_ids: bool) -> T.StructType:
    fields = [_read_field(c) for c in group.read]
    known = {c.name for c in group.read}
    extra = [group.snapshot_column, group.row_id_column if row_ids else None]
    fields += [T.StructField(n, T.LongType()) for n in extra if n is not None and n not in known]
    return T.StructType(fields)


def _read_field(column: ReadColumn) -> T.StructField:
    found = T.StructField(column.name, spark_type(column.type, column.name))
    if column.default is not None:
        assert isinstance(column.type, Primitive | Decimal)
        found.metadata = {"EXISTS_DEFAULT": exists_default(column.type, column.default)}
    return found


def _relation(
    engine: Engine,
    group: ScanGroup,
    schema: T.StructType,
    table: TableVersion,
    source: FileSource,
    *,
    origins: bool,
) -> FileRelation:
    """Return the relation over the files of a group, whose columns Spark reads as ``schema``."""
    keys = set(group.keys) if source.knows_values and _has_partitions(engine, group) else set()
    constants = T.StructType(
        [T.StructField(name, T.LongType()) for name in (_CONSTANTS if origins else ())]
        + [T.StructField(name, T.StringType()) for name in group.constants]
        + [T.StructField(f.name, f.dataType) for f in schema if f.name in keys]
    )
    size, columns = source.size(group), _Columns(group.files)

    def lister(filters: list[str]) -> Iterable[FileEntry]:
        for part in _recorded(source.parts(group, filters), size, table):
            known = source.values(group, part.files) if keys else {}
            for file, texts in zip(part.files, part.values, strict=True):
                constant = (file.row_id_start, file.id, file.begin_snapshot) if origins else ()
                yield FileEntry(
                    file.path,
                    file.file_size_bytes,
                    (*constant, *texts, *known.get(file.id, ())),
                    _deletes(file, table.snapshot.id) if group.with_deletes else None,
                    file.record_count,
                    columns.number(file.layout),
                )

    return FileRelation(
        T.StructType([f for f in schema if f.name not in keys]),
        constants,
        lister,
        with_deletes=group.with_deletes,
        size_in_bytes=size.bytes,
        files=size.files,
        places=size.places,
        root=_described(table, size.files),
        table=table.full_name,
        untrusted=group.untrusted,
        columns=columns.names,
        encrypted=table.options.encrypted,
    )


def _recorded(
    parts: Iterable[ScanGroup], size: GroupSize, table: TableVersion
) -> Iterator[ScanGroup]:
    """Yield the parts that a query reads, and record their files."""
    if not is_wanted():
        # There may be a million files.
        yield from parts
        return
    files = total = 0
    for part in parts:
        files += len(part.files)
        total += sum(f.file_size_bytes for f in part.files)
        yield part
    of_table = {"shelduck.table": table.full_name}
    record(FILES_PLANNED, files, of_table)
    record(FILES_SKIPPED, size.files - files, of_table)
    record(BYTES_PLANNED, total, of_table)


class _Columns:
    """The different names of columns that files have, and their numbers by layout.

    Files share few layouts; comparing these by their columns would take long for many files.
    """

    def __init__(self, files: Sequence[DataFile]) -> None:
        self._known: dict[tuple[str, ...], int] = {}
        self._seen: dict[int, tuple[Layout, int | None]] = {}
        for layout in (f.layout for f in files):
            if layout is not None and layout.fields and id(layout) not in self._seen:
                number = self._known.setdefault(_names(layout), len(self._known))
                self._seen[id(layout)] = layout, number

    @property
    def names(self) -> list[tuple[str, ...]]:
        """The names by number."""
        return list(self._known)

    def number(self, layout: Layout | None) -> int | None:
        """Return the number of the names of a layout, None if they are not known."""
        if layout is None:
            return None
        if id(layout) not in self._seen:
            # The layout stays here, so that no other one gets its id.
            self._seen[id(layout)] = layout, self._known.get(_names(layout))
        return self._seen[id(layout)][1]


def _names(layout: Layout) -> tuple[str, ...]:
    return tuple(field.name for field in layout.fields)


def _has_partitions(engine: Engine, group: ScanGroup) -> bool:
    is_asked = bool(group.keys) and engine.has_jvm
    return is_asked and engine.spark.conf.get(PARTITION_COLUMNS, "true") == "true"


def _described(table: TableVersion, count: int) -> str:
    """Return what EXPLAIN says about the files of a group before filters choose among them."""
    files = "1 file" if count == 1 else f"{count} files"
    return f"{table.full_name}, snapshot {table.snapshot.id}, {files}"


def _deletes(file: DataFile, snapshot: int) -> Deletes:
    stored = file.delete_file
    if stored is None:
        return Deletes(None, snapshot, file.inlined_deletes)
    return Deletes(stored.path, snapshot, file.inlined_deletes, stored.delete_count)


def inlined_frame(
    spark: SparkSession,
    columns: Sequence[Field],
    inlined: Sequence[InlinedRows],
    row_id: str,
    snapshot_id: str,
) -> DataFrame:
    """Return inlined rows with the current ``columns``, their row ids and first snapshots.

    Raises CorruptLake for invalid texts of values, and Unsupported for a promotion whose values
    Shelduck cannot convert.
    """
    values = [[v for part in inlined for v in _column_values(f, part)] for f in columns]
    values.append([number for part in inlined for number in part.row_ids])
    values.append([begin for part in inlined for begin in part.begin_snapshots])
    names = [f"c{n}" for n in range(len(columns))]
    fields = [T.StructField(n, carrier_type(f.type)) for n, f in zip(names, columns, strict=True)]
    origins = [T.StructField(n, T.LongType()) for n in ("id", "begin")]
    shape = T.StructType([*fields, *origins])
    frame = engine_for(spark).own(local_columns(spark, values, shape))
    made = [decoded(F.col(n), f.type).alias(f.name) for n, f in zip(names, columns, strict=True)]
    return frame.select(*made, F.col("id").alias(row_id), F.col("begin").alias(snapshot_id))


def _column_values(field: Field, part: InlinedRows) -> list[object]:
    found = fitted_values(part.columns, part.rows, field)
    name = str(field.shape)
    if name in ("varchar", "json"):
        return found
    if name in SIGNED and name != "int128":
        # Whoever read them has checked that they are integers of their type.
        return [None if v is None else int(cast("str", v)) for v in found]
    return [_carried(field, v) for v in found]


def _carried(field: Field, value: object) -> object:
    """Return a value as Spark gets it, by the text of each of its leaves."""
    if value is None:
        return None
    if field.shape is Kind.LIST:
        return [_carried(field.children[0], v) for v in cast("list[object]", value)]
    if field.shape is Kind.MAP:
        key, content = field.children
        pairs = cast("list[tuple[object, object]]", value)
        return {_carried(key, k): _carried(content, v) for k, v in pairs}
    if isinstance(field.shape, Kind):
        members = cast("dict[str, object]", value)
        return tuple(_carried(c, members.get(c.name)) for c in field.children)
    found = carrier(field.shape, value, f"inlined column {field.name!r}")
    if str(field.shape) in ("uint64", "int128", "uint128") and found is not None:
        # Spark holds them in decimals.
        if abs(number := cast("int", found)) >= _BEYOND:
            raise Unsupported(
                f"column {field.name!r} has the value {number} in a row that the catalog keeps,"
                " and Spark has no numbers of 39 digits; delete or change it in DuckDB"
            )
        return Number(number)
    return found
