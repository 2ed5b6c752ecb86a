"""Apache Kudu's page on schema changes, claim by claim."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from shelduck import AlreadyExists, InvalidRequest, Unsupported
from tests.coverage.pages import Page
from tests.support.cases import KuduCase
from tests.support.lakes import rows

PAGE = Page("kudu", "Apache Kudu: schema changes")
IDS, CLIENTS, READS, COMPACTION = (
    *("Column ids", "Schemas in requests", "Varying schemas at read time", "Compaction"),
)


@pytest.fixture
def x(case):
    """The table of the document's example, with a row in a file."""
    found = KuduCase(case.catalog, case.lake, case.data)
    found.lake.sql("CREATE TABLE x (col_a INT, col_b INT)")
    found.lake.sql("INSERT INTO x VALUES (1, 2)")
    return found


@PAGE.row("K1", IDS, "Each column has an id that is an integer and is not shown to users")
def test_k1_columns_have_ids(x):
    assert list(x.ids("x").values()) == [1, 2]
    assert x.lake.sql("SELECT * FROM x").columns == ["col_a", "col_b"]


@PAGE.row(*("K2", IDS, "Ids are not used again"))
def test_k2_ids_are_not_used_again(x):
    x.light("ALTER TABLE x DROP COLUMN col_b")
    x.light("ALTER TABLE x ADD COLUMN col_b INT")
    assert x.ids("x") == {"col_a": 1, "col_b": 3}


@PAGE.row(
    *("K3", IDS, "A column that is dropped and added again does not show its old values"),
    statement="ALTER TABLE x DROP COLUMN col_b; ALTER TABLE x ADD COLUMN col_b int not null default"
    " 999;",
)
def test_k3_the_example(x):
    x.light("ALTER TABLE x DROP COLUMN col_b;")
    x.light("ALTER TABLE x ADD COLUMN col_b int not null default 999;")
    assert x.both("SELECT * FROM x") == [(1, 999)]


@PAGE.row(*("K4", IDS, "A column that is there cannot be added"))
def test_k4_a_name_is_taken(x):
    x.refused(AlreadyExists, "ALTER TABLE x ADD COLUMN col_b INT")


@PAGE.row(
    *("K5", IDS, "Clients name columns, so the same query goes on after a column was replaced"),
    statement="select sum(col_b) from x;",
)
def test_k5_the_same_query_goes_on(x):
    again = x.again()
    assert rows(again.sql("SELECT sum(col_b) FROM x")) == [(2,)]
    x.light("ALTER TABLE x DROP COLUMN col_b")
    x.light("ALTER TABLE x ADD COLUMN col_b INT DEFAULT 7")
    assert rows(again.sql("SELECT sum(col_b) FROM x")) == [(7,)]


@PAGE.row(
    *("K6", CLIENTS, "A request says names, types and nullability of its columns"),
    statement='table.read(expect="col_a INT, col_b INT")',
    beyond="only if it wants to: without `expect` a query names what it needs",
)
def test_k6_a_reader_may_say_what_it_expects(x):
    assert rows(x.lake.table("x").read(expect="col_a INT, col_b INT")) == [(1, 2)]


@PAGE.row(*("K7", CLIENTS, "A name that the newest schema does not have is an error"))
def test_k7_unknown_names_are_errors(x):
    with pytest.raises(InvalidRequest, match="column col_c does not exist"):
        x.lake.table("x").read(expect="col_a INT, col_c INT NOT NULL")


@pytest.mark.parametrize("expect", ["col_a INT, col_b STRING", "col_a INT, col_b INT NOT NULL"])
@PAGE.row(*("K8", CLIENTS, "A type or nullability that does not match is an error"))
def test_k8_other_types_are_errors(x, expect):
    with pytest.raises(InvalidRequest, match="does not have the expected columns"):
        x.lake.table("x").read(expect=expect)


@PAGE.row(
    *("K20", CLIENTS, "An RPC to write says it too, and is compared with the newest schema"),
    statement='table.append(df, expect="col_a INT, col_b INT")',
    beyond="only if it wants to; INSERT and MERGE have `WITH EXPECT`",
)
def test_k20_a_writer_may_say_what_it_expects(x, spark):
    row = spark.sql("SELECT 3 AS col_a, 4 AS col_b")
    x.lake.table("x").append(row, expect="col_a INT, col_b INT")
    x.light("ALTER TABLE x DROP COLUMN col_b")
    with pytest.raises(InvalidRequest, match="column col_b does not exist"):
        x.lake.table("x").append(row, expect="col_a INT, col_b INT")
    assert rows(x.lake.sql("SELECT * FROM x ORDER BY col_a")) == [(1,), (3,)]


@PAGE.row(
    *("K9", CLIENTS, "Later, data may be adapted to the type that is asked for"),
    statement='table.read(expect="col_a INT, col_b BIGINT", adapt=True)',
    beyond="wider types and NULL for columns that only the reader has are adapted today",
)
def test_k9_data_is_adapted(x):
    found = x.lake.table("x").read(expect="col_a INT, col_b BIGINT, col_c INT", adapt=True)
    assert rows(found) == [(1, 2, None)]
    assert found.schema["col_b"].dataType.simpleString() == "bigint"


@PAGE.row(*("K10", READS, "Files were written with different schemas; the table's schema decides"))
def test_k10_files_of_several_schemas(x):
    x.light("ALTER TABLE x ADD COLUMN c INT")
    x.lake.sql("INSERT INTO x VALUES (2, 3, 4)")
    x.light("ALTER TABLE x DROP COLUMN col_b")
    assert x.both("SELECT * FROM x ORDER BY col_a") == [(1, None), (2, 4)]


@PAGE.row(*("K11", READS, "A column that a file lacks is its read default"))
def test_k11_the_read_default(x):
    x.light("ALTER TABLE x ADD COLUMN c INT DEFAULT 5")
    assert x.both("SELECT c FROM x") == [(5,)]


@PAGE.row(*("K12", READS, "Without a read default the column is nullable and is NULL"))
def test_k12_no_read_default_is_null(x):
    x.refused(InvalidRequest, "ALTER TABLE x ADD COLUMN c INT NOT NULL")
    x.light("ALTER TABLE x ADD COLUMN c INT")
    assert x.both("SELECT c FROM x") == [(None,)]


@PAGE.row(*("K13", READS, "Read default and write default are two things"))
def test_k13_the_write_default_changes_alone(x):
    x.light("ALTER TABLE x ADD COLUMN c INT DEFAULT 5")
    x.light("ALTER TABLE x ALTER c SET DEFAULT 6")
    x.lake.sql("INSERT INTO x (col_a) VALUES (2)")
    assert x.both("SELECT c FROM x ORDER BY col_a") == [(5,), (6,)]


@PAGE.row(
    *("K14", READS, "Type changes are not handled; adapters may come later"),
    beyond="lossless changes are read from old files as they are, others are converted by a job",
)
def test_k14_types_change(x):
    x.light("ALTER TABLE x ALTER col_b SET TYPE BIGINT")
    x.lake.sql("ALTER TABLE x ALTER col_b SET TYPE STRING")
    assert x.both("SELECT col_b FROM x") == [("2",)]


@PAGE.row(*("K15", READS, "Updates of a column that was removed since are ignored"))
def test_k15_updates_of_a_removed_column_disappear(x):
    x.lake.sql("UPDATE x SET col_b = 20")
    x.light("ALTER TABLE x DROP COLUMN col_b")
    assert x.both("SELECT * FROM x") == [(1,)]


@PAGE.row(*("K16", READS, "Updates of a new column are applied on top of its default"))
def test_k16_updates_of_a_new_column(x):
    x.lake.sql("INSERT INTO x VALUES (2, 3)")
    x.light("ALTER TABLE x ADD COLUMN c INT DEFAULT 5")
    x.lake.sql("UPDATE x SET c = c + 1 WHERE col_a = 2")
    assert x.both("SELECT c FROM x ORDER BY col_a") == [(5,), (6,)]


@PAGE.row(
    *("K17", COMPACTION, "Files of different schemas become one with the newest schema"),
    statement="OPTIMIZE x",
    does="older snapshots keep the old files, which DuckLake's compaction would take from them",
)
def test_k17_compaction_writes_the_newest_schema(x):
    x.light("ALTER TABLE x ADD COLUMN c INT DEFAULT 5")
    x.lake.sql("INSERT INTO x VALUES (2, 3, 4)")
    x.lake.table("x").rewrite_deletes(0)
    x.lake.sql("OPTIMIZE x")
    assert x.both("SELECT * FROM x ORDER BY col_a") == [(1, 2, 5), (2, 3, 4)]


@PAGE.row(*("K18", COMPACTION, "The read default is written as data"))
def test_k18_a_rewrite_writes_the_default(x):
    x.light("ALTER TABLE x ADD COLUMN c INT DEFAULT 5")
    before = set(x.data.rglob("*.parquet"))
    x.lake.sql("ALTER TABLE x REWRITE")
    [file] = set(x.data.rglob("*.parquet")) - before
    assert pq.read_table(file).column("c").to_pylist() == [5]


@PAGE.row(
    *("K19", COMPACTION, "Deltas can be read only by the schema that wrote them"),
    differs="a delete file holds positions and an update is a new row, so that no schema is needed",
)
def test_k19_deletes_need_no_schema(x):
    x.lake.sql("INSERT INTO x VALUES (2, 3)")
    x.lake.sql("DELETE FROM x WHERE col_b = 3")
    x.light("ALTER TABLE x DROP COLUMN col_b")
    assert x.both("SELECT * FROM x") == [(1,)]


@PAGE.row(
    *("K21", COMPACTION, "A column's encoding and compression are changed"),
    statement="ALTER TABLE x ALTER COLUMN col_b SET ENCODING (PLAIN), REWRITE",
    differs="DICTIONARY or PLAIN, for new files and by a job for older ones; the codec is an option"
    " of the table",
)
def test_k21_an_encoding_changes(x):
    x.lake.sql("INSERT INTO x SELECT 1, 5 FROM range(50)")
    x.lake.sql(PAGE.statement("K21"))
    assert x.both("SELECT count(*), sum(col_b) FROM x") == [(51, 252)]
    live = [f.file_path for f in x.lake.table("x").files().collect() if f.end_snapshot is None]
    chunks = [pq.read_metadata(path).row_group(0) for path in live]
    found = {
        (c.path_in_schema, e) for g in chunks for c in map(g.column, (0, 1)) for e in c.encodings
    }
    assert ("col_a", "PLAIN_DICTIONARY") in found
    assert ("col_b", "PLAIN_DICTIONARY") not in found
    with pytest.raises(Unsupported, match="parquet_compression"):
        x.lake.sql("ALTER TABLE x ALTER COLUMN col_b SET COMPRESSION zstd")
