"""Spark's writers of a table of a lake: ``df.writeTo``, ``df.write``, ``df.writeStream.toTable``.

They are replaced where Spark's own are not enough: the lake itself replaces partitions, for which
Spark would need writers in the JVM, and lets rows change columns (``mergeSchema``, ``evolve``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame, DataFrameWriter, DataFrameWriterV2
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it
from pyspark.sql.merge import MergeIntoWriter
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from shelduck.doors.attached.lake_table import LakeTable
from shelduck.engine.bridge.jvm import field_of, format_of, java_class, options_of
from shelduck.engine.query import merges_schemas, replaces_partitions
from shelduck.engine.rows.assignments import SetValue
from shelduck.engine.rows.store_rules import MARK, default_text
from shelduck.engine.types import spark_type
from shelduck.errors import InvalidRequest, ShelduckError, Unsupported
from shelduck.lake.spark_options import (
    EVOLUTION,
    FOREIGN,
    OVERWRITE_MODE,
    REPLACE_WHERE,
    evolution_asked,
    option_value,
    refuse_format,
    refuse_others,
    refuse_written,
    wants_partitions,
)
from shelduck.model.changes.evolution import FULL_EVOLUTION, NO_EVOLUTION
from shelduck.model.tables.schema import Field, Schema
from shelduck.model.text.names import quote_text, split_name
from shelduck.objects.table import Table
from shelduck.read.scan.matching import require_condition
from shelduck.write.merge.merge_clauses import MergeAction, MergeClause, When

Sparks = Callable[..., Any]
RunMerge = Callable[[DataFrame, Column, Sequence[MergeClause], bool], None]
"""Merges a source on a condition by clauses; the last says whether the schema evolves."""
_LOCATION = "checkpointLocation"
# Spark stores the argument of queryName() as an option.
_NAME = "queryName"
_CHECKPOINT = "spark.sql.streaming.checkpointLocation"


class LakeWriter(DataFrameWriterV2):
    """The writer that ``df.writeTo`` returns for a table of a lake."""

    def __init__(self, df: DataFrame, name: str, table: LakeTable) -> None:
        super().__init__(df, name)
        self._table = table
        self._given: dict[str, str] = {}

    def option(self, key: str, value: Any) -> DataFrameWriterV2:
        """Set an option; ``mergeSchema``, ``evolve`` and ``rescuedDataColumn`` change columns."""
        self._given[key] = _text(value)
        return super().option(key, value)

    def options(self, **options: Any) -> DataFrameWriterV2:
        """Set options, as `option` does."""
        self._given.update({key: _text(value) for key, value in options.items()})
        return super().options(**options)

    def using(self, provider: str) -> DataFrameWriterV2:
        """Set the format of a new table, whose files are Parquet in any case."""
        refuse_format(provider, self._table.name)
        return super().using(provider)

    def append(self) -> None:
        """Append the rows, which may change the columns of the table if an option says so."""
        evolution = evolution_asked(self._given)
        if evolution != NO_EVOLUTION:
            _refuse_rest(self._given, self._table)
            self._table.write(Table.append, self._df, evolution)
        else:
            super().append()

    def overwritePartitions(self) -> None:  # noqa: N802 - Spark's own name
        """Replace the partitions of the rows, as one commit."""
        evolution = evolution_asked(self._given)
        _refuse_rest(self._given, self._table)
        self._table.write(Table.overwrite_partitions, self._df, evolution)


def save_as_table(
    sparks: Sparks, writer: DataFrameWriter, table: LakeTable, *how: Any, **more: Any
) -> None:
    """Save rows as a table: by Spark's writer, unless the rows bring new columns."""
    given = _given_by_name(("format", "mode", "partitionBy"), how, more)
    writer.mode(given.pop("mode", None))
    kind, keys = given.pop("format", None), given.pop("partitionBy", None)
    asked = kind or format_of(writer._jwrite)  # noqa: SLF001 - nothing else tells it
    refuse_format(asked, table.name)
    if asked is not None and asked.lower() in FOREIGN:
        # It means a table of the lake, and Spark looks for a data source of that name.
        kind = "parquet"
    writer.options(**given)
    told = options_of(writer._jwrite)  # noqa: SLF001 - nothing else tells them
    is_there, mode = table.is_there, _mode(writer)
    evolution = evolution_asked(told)
    if evolution.is_none and mode == "APPEND" and merges_schemas(writer._spark):  # noqa: SLF001
        evolution = replace(FULL_EVOLUTION, expects=evolution.expects)
    if is_there and mode == "APPEND" and evolution != NO_EVOLUTION:
        _refuse_rest(told, table)
        table.write(Table.append, writer._df, evolution)  # noqa: SLF001 - Spark's, as the lake needs it
        return
    where = option_value(told, REPLACE_WHERE)
    if where is not None and mode == "OVERWRITE" and is_there:
        refuse_others(told, (REPLACE_WHERE, *EVOLUTION), f"a write into {table.name}")
        table.write(Table.overwrite, writer._df, evolution, where=where)  # noqa: SLF001
        return
    if is_there and mode == "OVERWRITE" and wants_partitions(told):
        refuse_others(told, (OVERWRITE_MODE, *EVOLUTION), f"a write into {table.name}")
        table.write(Table.overwrite_partitions, writer._df, evolution)  # noqa: SLF001
        return
    sparks(kind, None, keys)


def insert_into(
    sparks: Sparks, writer: DataFrameWriter, table: LakeTable, overwrite: bool | None = None
) -> None:
    """Insert rows by the positions of their columns; replace partitions if Spark would."""
    if overwrite is not None:
        writer.mode("overwrite" if overwrite else "append")
    told = options_of(writer._jwrite)  # noqa: SLF001 - nothing else tells them
    is_said = option_value(told, OVERWRITE_MODE) is not None
    dynamic = wants_partitions(told) if is_said else replaces_partitions(writer._spark)  # noqa: SLF001
    if _mode(writer) == "OVERWRITE" and dynamic and table.is_partitioned:
        refuse_others(told, (OVERWRITE_MODE,), f"a write into {table.name}")
        rows = writer._df  # noqa: SLF001
        table.write(Table.overwrite_partitions, rows, NO_EVOLUTION, by_position=True)
    else:
        sparks()


def _refuse_rest(given: Mapping[str, str], table: LakeTable) -> None:
    ours = {name.lower() for name in EVOLUTION}
    rest = {name: value for name, value in given.items() if name.lower() not in ours}
    refuse_written(rest, f"a write into {table.name}")


def _mode(writer: DataFrameWriter) -> str:
    return str(writer._jwrite.curmode()).upper()  # noqa: SLF001 - nothing else tells it


def _text(value: Any) -> str:
    """Return the text by which Spark stores the value of an option."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _given_by_name(
    names: Sequence[str], how: Sequence[Any], more: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call of Spark by name, whether given by position or by name."""
    return dict(zip(names, how, strict=False)) | more


def write_schema(columns: Schema, render_expression: Callable[[str], str]) -> T.StructType:
    """Return the columns, all of them nullable, as those of a table to write to.

    The lake, which sees the rows next, checks whether a column accepts NULL. ``render_expression``
    converts the text of a default that is an expression (DuckDB's SQL) to Spark's SQL.
    """
    found = T.StructType()
    for column in columns.fields:
        kind = spark_type(column.type, column.name)
        metadata = None
        if column.default is not None:
            text = _default(column, kind, render_expression)
            # For Spark, a column has a default if it has both. The second one is for existing rows,
            # which do not matter for a table that is only written to.
            metadata = {"CURRENT_DEFAULT": text, "EXISTS_DEFAULT": "NULL"}
        found.add(T.StructField(column.name, _unlike(kind), nullable=True, metadata=metadata))
    return found


def _unlike(kind: T.DataType) -> T.DataType:
    """Return a type whose structs have one more field each.

    Behind a list of columns, Spark renames the fields of rows by position if a struct of the table
    has as many, and the lake could not find them by name.
    """
    if isinstance(kind, T.StructType):
        parts = [T.StructField(f.name, _unlike(f.dataType)) for f in kind]
        return T.StructType([*parts, T.StructField("__shelduck_more", T.BooleanType())])
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_unlike(kind.elementType))
    if isinstance(kind, T.MapType):
        return T.MapType(_unlike(kind.keyType), _unlike(kind.valueType))
    return kind


def _default(column: Field, kind: T.DataType, render_expression: Callable[[str], str]) -> str:
    """Return the SQL of a column's default; without one, SQL that fails the write."""
    default = column.default
    assert default is not None
    name = kind.simpleString()
    try:
        if default.literal:
            return default_text(column.leaf, default.text, column.name)
        return f"CAST({render_expression(default.text)} AS {name})"
    except ShelduckError as error:
        told = f"{MARK}column {column.name!r} is missing and its default fails: {error}"
        return f"CAST(raise_error({quote_text(told)}) AS {name})"


class LakeMerge(MergeIntoWriter):
    """Collects the clauses; `merge` runs them at once.

    The methods are Spark's, with its names: texts in conditions and values are columns' names.
    """

    def __init__(self, df: DataFrame, condition: Column, run: RunMerge) -> None:
        # Spark's own constructor would create a writer in Java that needs one on every executor.
        self._df = df
        self._on = _column(condition)
        self._run = run
        self._clauses: list[MergeClause] = []
        self._evolves = False

    def whenMatched(self, condition: Column | None = None) -> Any:  # noqa: N802 - Spark's own name
        """Say what happens to rows that match; follow it with an action."""
        return _Matched(self, When.MATCHED, condition)

    def whenNotMatched(self, condition: Column | None = None) -> Any:  # noqa: N802 - Spark's own name
        """Say what happens to rows of the source that match none."""
        return _NotMatched(self, When.NOT_MATCHED, condition)

    def whenNotMatchedBySource(  # noqa: N802 - Spark's own name
        self, condition: Column | None = None
    ) -> Any:
        """Say what happens to rows of the table that no row of the source matches."""
        return _NotMatchedBySource(self, When.NOT_MATCHED_BY_SOURCE, condition)

    def withSchemaEvolution(self) -> LakeMerge:  # noqa: N802 - Spark's own name
        """Add columns that only the source has, in the same snapshot."""
        self._evolves = True
        return self

    def merge(self) -> None:
        """Run the merge as one commit."""
        self._run(self._df, self._on, self._clauses, self._evolves)

    def _then(self, clause: MergeClause) -> LakeMerge:
        self._clauses.append(clause)
        return self


class _When:
    """The rows of one clause."""

    def __init__(self, writer: LakeMerge, when: When, condition: Column | None) -> None:
        self._writer = writer
        self._when = when
        self._condition = None if condition is None else _column(condition)

    def _then(self, action: MergeAction, values: tuple[SetValue, ...] | None = ()) -> LakeMerge:
        clause = MergeClause(self._when, action, values, self._condition)
        return self._writer._then(clause)  # noqa: SLF001 - the other half of the builder


class _Matched(_When):
    def updateAll(self) -> LakeMerge:  # noqa: N802 - Spark's own name
        """Set every column to the source's of the same name."""
        return self._then(MergeAction.UPDATE, None)

    def update(self, assignments: Mapping[str, Column]) -> LakeMerge:
        """Set some columns."""
        return self._then(MergeAction.UPDATE, _assigned(assignments))

    def delete(self) -> LakeMerge:
        """Delete the rows."""
        return self._then(MergeAction.DELETE)


class _NotMatched(_When):
    def insertAll(self) -> LakeMerge:  # noqa: N802 - Spark's own name
        """Insert the rows, each column from the source's of the same name."""
        return self._then(MergeAction.INSERT, None)

    def insert(self, assignments: Mapping[str, Column]) -> LakeMerge:
        """Insert rows of these values; other columns get their default."""
        return self._then(MergeAction.INSERT, _assigned(assignments))


class _NotMatchedBySource(_Matched):
    def updateAll(self) -> LakeMerge:  # noqa: N802 - Spark's own name
        """Refuse: there is no row of the source."""
        raise InvalidRequest(
            f"WHEN {self._when.value} has no source row to take all columns from; name the"
            ' columns, as in update({"column": value})'
        )


def _assigned(values: Mapping[str, Column]) -> tuple[SetValue, ...]:
    if not values:
        raise InvalidRequest('no column is set; pass {"column": value, ...}')
    return tuple(SetValue(split_name(name), _set_value(value)) for name, value in values.items())


def _set_value(value: Column) -> Column | None:
    found = _column(value)
    # SQL's word for the column's default, which Spark also accepts here.
    return None if str(found).upper() == "COLUMN<'DEFAULT'>" else found


def _column(value: Any) -> Column:
    found = F.col(value) if isinstance(value, str) else value
    require_condition(found)
    return found


def to_table(
    _sparks: Callable[..., Any], writer: DataStreamWriter, table: LakeTable, *how: Any, **more: Any
) -> StreamingQuery:
    """Start a query that writes each batch to the table once; create the table if it is missing."""
    names = ("format", "outputMode", "partitionBy", "queryName")
    given = _given_by_name(names, how, more)
    # Options about Spark's own file format do not matter here.
    given.pop("format", None)
    for name in names[1:]:
        value = given.pop(name, None)
        if value is not None:
            getattr(writer, name)(value)
    writer.options(**given)
    mode = str(_field(writer, "outputMode")[0]).lower()
    options = {n.lower(): v for n, v in options_of(writer._jwrite).items()}  # noqa: SLF001
    refuse_others(
        options_of(writer._jwrite),  # noqa: SLF001
        (_LOCATION, *EVOLUTION, _NAME),
        f"a stream into {table.name}",
    )
    _check(writer, table, mode, options)
    evolution = evolution_asked(options)
    if mode == "complete" and evolution != NO_EVOLUTION:
        raise InvalidRequest(
            f"a stream into {table.name} with output mode 'complete' replaces all rows and keeps"
            f" the columns; leave out {', '.join(EVOLUTION)}",
            about="option",
        )
    keys = _taken_keys(writer)
    if not table.is_there:
        table.create(writer._df.schema, keys)  # noqa: SLF001
    function = table.sink(replaces=mode == "complete", evolution=evolution)
    return writer.foreachBatch(function).start()


def _check(
    writer: DataStreamWriter, table: LakeTable, mode: str, options: Mapping[str, str]
) -> None:
    require_sink_mode(mode, table.name)
    of_session = writer._spark.conf.get(_CHECKPOINT, None)  # noqa: SLF001
    if _LOCATION.lower() not in options and not of_session:
        raise InvalidRequest(
            f"a stream into {table.name} needs a directory for its checkpoint; set"
            ' .option("checkpointLocation", path)'
        )


def require_sink_mode(mode: str, table: str) -> None:
    """Raise Unsupported for an output mode in which a stream cannot write to a table."""
    if mode not in ("append", "complete"):
        raise Unsupported(
            f"toTable does not support output mode {mode!r} for {table}; use foreachBatch"
            " with a function that merges each batch, such as batch.mergeInto"
        )


def _taken_keys(writer: DataStreamWriter) -> list[str]:
    """Return the arguments of partitionBy, and remove them: foreachBatch refuses them."""
    found, put = _field(writer, "partitioningColumns")
    if found.isEmpty():
        return []
    names = found.get()
    put(java_class(writer._spark, "scala.Option").empty())  # noqa: SLF001
    return [str(names.apply(n)) for n in range(names.size())]


def _field(writer: DataStreamWriter, name: str) -> tuple[Any, Callable[[Any], None]]:
    """Return a writer's settings, which it does not expose otherwise, and how to change them."""
    java = writer._jwrite  # noqa: SLF001
    field = field_of(java, name)
    return field.get(java), lambda value: field.set(java, value)
