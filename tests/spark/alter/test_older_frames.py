"""Frames that are older than an ALTER: their rows have the columns that they know, or an error."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from tests.support.attaching import attached_lake
from tests.support.lakes import newest, rows

pytestmark = pytest.mark.every_spark

FIRST, SECOND = (1, 10, "5", (1, 2)), (2, 20, "6", (3, 4))
_NUMBERS = count()
_PUT = "INSERT INTO {{t}} ({}) VALUES (2, 20, '6', named_struct('x', 3, 'y', 4))"


@dataclass(frozen=True)
class Alter:
    """Statements, the second row for a stream that keeps its columns, and the rows of a view.

    Without them, the frame has to be made again.
    """

    statements: tuple[str, ...]
    second: tuple | None = None
    seen: list | None = None


def _alter(*clauses, put="a, b, v, s", **rows):
    text = _PUT.format(put) if "(" not in put else f"INSERT INTO {{t}} {put}"
    return Alter((*(f"ALTER TABLE {{t}} {clause}" for clause in clauses), text), **rows)


ALTERS = {
    "a column moves": _alter("ALTER COLUMN b FIRST", second=SECOND, seen=[FIRST, SECOND]),
    "a job makes a number of a text": _alter(
        "ALTER COLUMN v TYPE INT", put="(a, b, v, s) SELECT 2, 20, 6, named_struct('x', 3, 'y', 4)"
    ),
    "names are exchanged": _alter(
        *("RENAME COLUMN a TO c", "RENAME COLUMN b TO a", "RENAME COLUMN c TO b"),
        put="b, a, v, s",
        second=SECOND,
    ),
    "a field moves": _alter("ALTER COLUMN s.y FIRST"),
    "a field has another name": _alter(
        "RENAME COLUMN s.y TO z", put="(a, b, v, s) SELECT 2, 20, '6', named_struct('x', 3, 'z', 4)"
    ),
    "a name": _alter("RENAME COLUMN b TO z", put="a, z, v, s", second=SECOND),
    "a wider type": _alter("ALTER COLUMN a TYPE BIGINT"),
    "a job makes a text of a number": _alter(
        "ALTER COLUMN a TYPE STRING",
        put="(a, b, v, s) SELECT '2', 20, '6', named_struct('x', 3, 'y', 4)",
    ),
    "another column in its place": _alter(
        *("DROP COLUMN b", "ADD COLUMN c INT AFTER a"),
        put="a, c, v, s",
        second=(2, None, "6", (3, 4)),
    ),
    "another column of its name": _alter(
        "DROP COLUMN b", "ADD COLUMN b INT AFTER a", second=(2, None, "6", (3, 4))
    ),
    "another field of its name": _alter(
        "DROP COLUMN s.y", "ADD COLUMN s.y INT", second=(2, 20, "6", (3, None))
    ),
    "one more": _alter("ADD COLUMN c INT DEFAULT 7", second=SECOND, seen=[FIRST, SECOND]),
    "one less": _alter(
        "DROP COLUMN b",
        put="(a, v, s) SELECT 2, '6', named_struct('x', 3, 'y', 4)",
        second=(2, None, "6", (3, 4)),
    ),
    "another table of its name": Alter(
        (
            "DROP TABLE {t}",
            "CREATE TABLE {t} (b INT, a INT, v STRING, s STRUCT<x INT, y INT>)",
            _PUT.format("a, b, v, s"),
        ),
        seen=[SECOND],
    ),
}
# How a stream is read, where rows are, and whether its query has run before.
WAYS = [
    ("table", "files", True),
    ("format", "catalog", False),
    ("feed", "files", True),
    ("table", "catalog", True),
    ("feed", "catalog", False),
]


@pytest.fixture(scope="module")
def attached(spark, tmp_path_factory):
    with attached_lake(spark, tmp_path_factory.mktemp("frames")) as found:
        yield found


@pytest.fixture
def table(spark, attached, request):
    """A new table of one row."""
    name = f"lake.main.t{next(_NUMBERS)}"
    spark.sql(f"CREATE TABLE {name} (a INT, b INT, v STRING, s STRUCT<x INT, y INT>)")
    return name


def _fill(spark, table, place):
    limit = 10 if place == "catalog" else 0
    short = table.removeprefix("lake.")
    spark.sql(
        f"CALL lake.set_option('data_inlining_row_limit', '{limit}', table_name => '{short}')"
    )
    spark.sql(f"INSERT INTO {table} VALUES (1, 10, '5', named_struct('x', 1, 'y', 2))")


def _change(spark, table, alter):
    for statement in alter.statements:
        spark.sql(statement.format(t=table))


def _stream(spark, table, door, mode):
    reader = spark.readStream.option("onSchemaChange", mode)
    if door == "feed":
        reader = reader.option("readChangeFeed", "true")
    if door == "format":
        named = reader.format("shelduck").option("catalog", "lake")
        return named.load(table.removeprefix("lake."))
    return reader.table(table)


def _arrived(frame, checkpoint):
    """Run a query on a frame until it has read what there is, and return the rows that came."""
    found = []
    chosen = frame.select("a", "b", "v", "s")
    writer = chosen.writeStream.foreachBatch(lambda batch, _: found.extend(rows(batch)))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return sorted(found)


def _refuses(call):
    with pytest.raises(Exception, match="make the frame again"):
        call()


@pytest.mark.guard
@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("alter", ALTERS.values(), ids=ALTERS)
def test_an_older_stream_keeps_its_columns_or_is_to_be_made_again(
    spark, table, tmp_path, alter, way
):
    door, place, has_run = way
    _fill(spark, table, place)
    frames = [_stream(spark, table, door, mode) for mode in ("follow", "fail")]
    if has_run:
        assert _arrived(frames[0], tmp_path / "follow") == [FIRST]
    _change(spark, table, alter)
    if alter.second is None:
        _refuses(lambda: _arrived(frames[0], tmp_path / "follow"))
    else:
        expected = [alter.second] if has_run else [FIRST, alter.second]
        assert _arrived(frames[0], tmp_path / "follow") == expected
    _refuses(lambda: _arrived(frames[1], tmp_path / "fail"))


READS = {
    "a table": lambda spark, _, table: spark.table(table),
    "a query": lambda spark, _, table: spark.sql(f"SELECT * FROM {table} WHERE a < ?", [100]),
    "a handle": lambda _, lake, table: lake.table(table.removeprefix("lake.")).read(),
    "a format": lambda spark, _, table: (
        spark.read.format("shelduck").option("catalog", "lake").load(table.removeprefix("lake."))
    ),
    "a cache": lambda spark, _, table: spark.table(table).where("b > 0").cache(),
    "a feed": lambda spark, lake, table: (
        spark.read.option("readChangeFeed", "true")
        .option("startingVersion", newest(lake))
        .table(table)
    ),
}


@pytest.mark.guard
@pytest.mark.sampled(2)
@pytest.mark.parametrize("alter", ALTERS.values(), ids=ALTERS)
@pytest.mark.parametrize("place", ["files", "catalog"])
def test_an_older_frame_has_the_rows_and_columns_of_its_snapshot(
    spark, attached, table, alter, place
):
    _fill(spark, table, place)
    frames = {name: read(spark, attached, table) for name, read in READS.items()}
    _change(spark, table, alter)
    chosen = {name: frame.select("a", "b", "v", "s") for name, frame in frames.items()}
    assert [(name, rows(frame)) for name, frame in chosen.items()] == [(n, [FIRST]) for n in READS]
    frames["a cache"].unpersist()
    copy = f"{table}_copy"
    spark.sql(f"CREATE TABLE {copy} (a INT, b INT, v STRING, s STRUCT<x INT, y INT>)")
    chosen["a table"].writeTo(copy).append()
    merge = chosen["a query"].alias("n").mergeInto(copy, F.expr("n.a > 1"))
    merge.whenNotMatched().insertAll().merge()
    assert rows(spark.table(copy)) == [FIRST, FIRST]


@pytest.mark.guard
@pytest.mark.sampled(4)
@pytest.mark.parametrize("alter", ALTERS.values(), ids=ALTERS)
def test_a_view_of_an_older_frame_has_its_columns_or_is_to_be_made_again(spark, table, alter):
    _fill(spark, table, "files")
    spark.table(table).createOrReplaceTempView("seen")
    _change(spark, table, alter)
    try:
        if alter.seen:
            read = spark.table("seen").select("a", "b", "v", "s")
            assert sorted(rows(read)) == alter.seen
        else:
            with pytest.raises(AnalysisException, match="createOrReplaceTempView of a new"):
                spark.table("seen").select("a", "b", "v", "s").collect()
    finally:
        spark.catalog.dropTempView("seen")
