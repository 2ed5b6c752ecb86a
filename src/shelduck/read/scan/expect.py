"""All rows compared with what the catalog says, and a schema that a reader expects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.named_errors import first_line
from shelduck.engine.types import data_type_of, same_type, spark_type
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked, quote_name
from shelduck.model.types.data_types import Decimal, Member, Primitive
from shelduck.model.types.promotions import promotion
from shelduck.read.scan.scan_frames import Origin

_DEFAULT = "CURRENT_DEFAULT"
_ROW_ID = str(Origin.ROW_ID)


def expected_columns(expect: T.StructType | str) -> T.StructType:
    """Return a reader's expected columns, from Spark's DDL too: ``id BIGINT NOT NULL, v INT``.

    Raises InvalidRequest for an invalid text, for no columns, and for a column that is named twice.
    """
    if isinstance(expect, str):
        return expected_columns(_parsed(expect))
    if not isinstance(expect, T.StructType):
        raise InvalidRequest(
            "expect must be a StructType or text such as 'id BIGINT NOT NULL, v INT', not"
            f" {type(expect).__name__}"
        )
    lowered = [name.lower() for name in expect.names]
    twice = next((n for n in expect.names if lowered.count(n.lower()) > 1), None)
    if not lowered or twice is not None:
        problem = "lists no column" if twice is None else f"lists column {quote_name(twice)} twice"
        raise InvalidRequest(f"expect {problem}")
    return expect


def expected_members(expect: T.StructType | str | tuple[Member, ...] | None) -> Sequence[Member]:
    """Return a writer's expected columns, with NOT NULL; raises what `expected_columns` raises."""
    if isinstance(expect, tuple):
        return expect
    found = [] if expect is None else expected_columns(expect).fields
    return [Member(f.name, data_type_of(f.dataType, f.name), f.nullable) for f in found]


def _parsed(text: str) -> T.StructType:
    try:
        found = T.StructType.fromDDL(text)
    except PySparkException as error:
        raise InvalidRequest(
            f"expect={text!r} is not a list of columns: {first_line(error)}"
        ) from error
    return found if isinstance(found, T.StructType) else T.StructType().add("value", found)


def as_expected(
    rows: Callable[[list[str]], DataFrame],
    table: TableVersion,
    expect: T.StructType,
    *,
    adapt: bool,
) -> DataFrame:
    """Return the expected columns, in the reader's order, with its types.

    ``rows`` reads some columns of the table. With ``adapt``, types are promoted, and columns that
    the table does not have are read as their default (``CURRENT_DEFAULT`` of the field), or as
    NULL.

    Raises InvalidRequest with a list of all differences.
    """
    checking = _Checking(table, adapt)
    columns = [checking.column(wanted) for wanted in expect.fields]
    checking.finish()
    found = rows(checking.read or table.columns.names[:1])
    return found.select(*columns)


@dataclass
class _Checking:
    """One comparison: what must be read, and what is wrong so far."""

    table: TableVersion
    adapt: bool
    read: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def column(self, wanted: T.StructField) -> Column:
        """Return an expected column, from those that are read."""
        there = self.table.columns.find((wanted.name,))
        if there is None:
            return self._missing(wanted).alias(wanted.name)
        self.read.append(there.name)
        self._check(there, wanted)
        found = F.col(backticked(there.name))
        if not same_type(spark_type(there.type, there.name), wanted.dataType):
            found = found.cast(wanted.dataType)
        return found.alias(wanted.name)

    def finish(self) -> None:
        """Raise an error with everything that is wrong."""
        if not self.problems:
            return
        listed = "".join(f"\n  - {problem}" for problem in self.problems)
        names = ", ".join(map(quote_name, self.table.columns.names))
        raise InvalidRequest(
            f"{self.table.full_name} does not have the expected columns:{listed}\nits columns:"
            f" {names}"
        )

    def _check(self, there: Field, wanted: T.StructField) -> None:
        name, kind = quote_name(there.name), spark_type(there.type, there.name)
        fits = same_type(kind, wanted.dataType)
        if not fits and not (self.adapt and _is_promoted(there, wanted.dataType)):
            self.problems.append(
                f"column {name} has type {kind.simpleString()}, expected"
                f" {wanted.dataType.simpleString()}"
            )
        if there.nullable and not wanted.nullable:
            self.problems.append(f"column {name} is nullable, expected NOT NULL")
        if wanted.nullable and not there.nullable and not self.adapt:
            self.problems.append(f"column {name} is NOT NULL, expected a nullable column")

    def _missing(self, wanted: T.StructField) -> Column:
        name = quote_name(wanted.name)
        default = (wanted.metadata or {}).get(_DEFAULT)
        if not self.adapt:
            self.problems.append(f"column {name} does not exist")
        elif default is not None:
            return F.expr(default).cast(wanted.dataType)
        elif not wanted.nullable:
            self.problems.append(
                f"column {name} does not exist, but is expected to be NOT NULL, and has no default"
            )
        return F.lit(None).cast(wanted.dataType)


def _is_promoted(there: Field, wanted: T.DataType) -> bool:
    """Return whether every value becomes the same value of the other type."""
    try:
        kind = data_type_of(wanted)
    except Unsupported:
        return False
    return (
        there.is_leaf
        and isinstance(kind, Primitive | Decimal)
        and promotion(there.type, kind).is_light
    )


def wrong_rows(
    rows: DataFrame, table: TableVersion, expected: int | None, keys: Sequence[Field]
) -> Iterator[str]:
    """Read every value of ``rows``, which have their row ids, and tell what is wrong with them.

    ``expected`` is how many there are; ``keys`` are columns of which each row has other values. Two
    queries, one more with keys. Raises what reading the files raises.
    """
    needed = [f for f in table.columns if not f.nullable]
    nulls = [F.count_if(F.col(backticked(f.name)).isNull()) for f in needed]
    values = [F.max(_touched(f)) for f in table.columns]
    measured = [F.count(F.lit(1)), F.count(_ROW_ID), *nulls, *values]
    found = rows.agg(*[c.alias(f"c{n}") for n, c in enumerate(measured)]).collect()[0]
    count, with_ids = found[0], found[1]
    if expected is not None and count != expected:
        yield f"it has {count} rows, and the catalog says {expected}"
    for column, missing in zip(needed, found[2:], strict=False):
        if missing:
            yield f"{column.name} is NOT NULL, and NULL in {missing} rows"
    different = rows.agg(F.count_distinct(_ROW_ID)).collect()[0][0]
    if different != with_ids:
        yield f"{with_ids - different} rows have the row id of another row"
    names = [backticked(f.name) for f in keys]
    if names:
        twice = rows.groupBy(*names).count().where("count > 1").limit(1).collect()
        if twice:
            shown = ", ".join(f"{f.name} = {twice[0][n]}" for n, f in enumerate(keys))
            yield f"{twice[0]['count']} rows have the key {shown}"


def _touched(field: Field) -> Column:
    """Return something for which Spark must read every value of a column."""
    value = F.col(backticked(field.name))
    return F.xxhash64(F.to_json(F.struct(value)) if has_no_hash(field) else value)


def has_no_hash(field: Field) -> bool:
    """Return whether Spark has no hash of a type: maps and variants, also inside others."""
    if field.shape is Kind.MAP or str(field.shape) == "variant":
        return True
    return any(has_no_hash(child) for child in field.children)
