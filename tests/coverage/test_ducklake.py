"""DuckLake's page on schema evolution, claim by claim."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import shelduck
from shelduck import Unsupported
from tests.coverage.pages import Page
from tests.support.cases import Case

PAGE = Page("ducklake", "DuckLake: schema evolution")
ADD, DROP, RENAME = "Adding columns and fields", "Dropping", "Renaming"
TYPE, IDS = "Type promotion", "Field identifiers"
NESTED = "CREATE TABLE tbl (id INT, nested_column STRUCT<a: INT, new_field: INT>)"
ROWS = "INSERT INTO tbl VALUES (1, named_struct('a', 10, 'new_field', 7))"


@pytest.fixture
def tbl(case):
    """The table of the document's examples, with a row in a file."""
    case.lake.sql("CREATE TABLE tbl (id INT, col1 INT)")
    case.lake.sql("INSERT INTO tbl VALUES (1, 5)")
    return case


@pytest.fixture
def nested(case):
    case.lake.sql(NESTED)
    case.lake.sql(ROWS)
    return case


@PAGE.row("L1", ADD, "Schema changes rewrite no data files")
def test_l1_no_file_is_rewritten(tbl):
    tbl.light("ALTER TABLE tbl ADD COLUMN n INT, RENAME COLUMN col1 TO c, ALTER c SET TYPE BIGINT")


@PAGE.row(
    *("L2", ADD, "A new column is NULL by default"),
    statement="ALTER TABLE tbl ADD COLUMN new_column INTEGER;",
)
def test_l2_a_column_is_added(tbl):
    tbl.light("ALTER TABLE tbl ADD COLUMN new_column INTEGER;")
    assert tbl.both("SELECT id, new_column FROM tbl") == [(1, None)]


@PAGE.row(
    *("L3", ADD, "A new column may have a default, which older rows show too"),
    statement="ALTER TABLE tbl ADD COLUMN new_column VARCHAR DEFAULT 'my_default';",
)
def test_l3_a_default(tbl):
    tbl.light("ALTER TABLE tbl ADD COLUMN new_column VARCHAR DEFAULT 'my_default';")
    tbl.lake.sql("INSERT INTO tbl (id) VALUES (2)")
    assert tbl.both("SELECT id, new_column FROM tbl ORDER BY id") == [
        *[(1, "my_default"), (2, "my_default")]
    ]


@PAGE.row(
    *("L4", ADD, "A struct gets a new field by its path"),
    statement="ALTER TABLE tbl ADD COLUMN nested_column.new_field INTEGER;",
    beyond="fields in the elements of lists and in the values of maps can be added too",
)
def test_l4_a_field(case):
    case.lake.sql(
        "CREATE TABLE tbl (id INT, nested_column STRUCT<a: INT>, l ARRAY<STRUCT<a: INT>>)"
    )
    case.lake.sql("INSERT INTO tbl VALUES (1, named_struct('a', 10), array(named_struct('a', 1)))")
    case.light("ALTER TABLE tbl ADD COLUMN nested_column.new_field INTEGER;")
    case.light("ALTER TABLE tbl ADD COLUMN l.element.b INT")
    found = case.lake.sql("SELECT nested_column.new_field, l[0].a, l[0].b FROM tbl")
    assert list(map(tuple, found.collect())) == [(None, 1, None)]


@PAGE.row(*("L5", DROP, "A column is dropped"), statement="ALTER TABLE tbl DROP COLUMN new_column;")
def test_l5_a_column_is_dropped(tbl):
    tbl.light("ALTER TABLE tbl DROP COLUMN col1;")
    assert tbl.both("SELECT * FROM tbl") == [(1,)]


@PAGE.row(
    *("L6", DROP, "A field is dropped by its full path"),
    statement="ALTER TABLE tbl DROP COLUMN nested_column.new_field;",
)
def test_l6_a_field_is_dropped(nested):
    nested.light("ALTER TABLE tbl DROP COLUMN nested_column.new_field;")
    assert nested.lake.sql("SELECT nested_column.* FROM tbl").columns == ["a"]


@PAGE.row(
    *("L7", RENAME, "A column is renamed"),
    statement="ALTER TABLE tbl RENAME new_column TO new_name;",
)
def test_l7_a_column_is_renamed(tbl):
    tbl.light("ALTER TABLE tbl RENAME col1 TO new_name;")
    assert tbl.both("SELECT new_name FROM tbl") == [(5,)]


@PAGE.row(
    *("L8", RENAME, "A field is renamed by its full path"),
    statement="ALTER TABLE tbl RENAME nested_column.new_field TO new_name;",
)
def test_l8_a_field_is_renamed(nested):
    nested.light("ALTER TABLE tbl RENAME nested_column.new_field TO new_name;")
    assert nested.both("SELECT nested_column.new_name FROM tbl") == [(7,)]


@PAGE.row(
    *("L9", TYPE, "The type of a column changes"),
    statement="ALTER TABLE tbl ALTER col1 SET TYPE BIGINT;",
)
def test_l9_a_column_gets_wider(tbl):
    tbl.light("ALTER TABLE tbl ALTER col1 SET TYPE BIGINT;")
    tbl.lake.sql("INSERT INTO tbl VALUES (2, 3000000000)")
    assert tbl.both("SELECT col1 FROM tbl ORDER BY id") == [(5,), (3_000_000_000,)]


@PAGE.row(
    *("L10", TYPE, "The type of a field changes"),
    statement="ALTER TABLE tbl ALTER nested_column.new_field SET TYPE BIGINT;",
)
def test_l10_a_field_gets_wider(nested):
    nested.light("ALTER TABLE tbl ALTER nested_column.new_field SET TYPE BIGINT;")
    assert nested.both("SELECT nested_column.new_field FROM tbl") == [(7,)]


@PAGE.row(
    *("L11", TYPE, "Only lossless promotions are possible"),
    beyond="what statistics prove to fit is metadata; other changes are jobs that convert every"
    " value or report the one that does not fit",
)
def test_l11_others_are_proven_or_jobs(tbl):
    tbl.light("ALTER TABLE tbl ALTER col1 SET TYPE SMALLINT")
    assert tbl.both("SELECT col1 FROM tbl") == [(5,)]
    tbl.lake.sql("ALTER TABLE tbl ALTER col1 SET TYPE VARCHAR")
    tbl.lake.run_jobs()
    assert tbl.both("SELECT col1 FROM tbl") == [("5",)]
    assert tbl.told()[0] == (1, "FINISHED", "")


PROMOTIONS = {
    "int8": ["int16", "int32", "int64"],
    "int16": ["int32", "int64"],
    "int32": ["int64"],
    "uint8": ["uint16", "uint32", "uint64"],
    "uint16": ["uint32", "uint64"],
    "uint32": ["uint64"],
    "float32": ["float64"],
}


@PAGE.row(
    *(
        "L12",
        TYPE,
        "int8, int16, int32, uint8, uint16, uint32 and float32 get wider within their kind",
    ),
    statement=", ".join(f"{a} → {'/'.join(b)}" for a, b in PROMOTIONS.items()),
)
def test_l12_all_promotions(case):
    pairs = [(a, b) for a, wider in PROMOTIONS.items() for b in wider]
    columns = {f"c{n}": a for n, (a, _) in enumerate(pairs)}
    # DuckDB's int8 is a bigint, so the words are DuckLake's.
    table = case.lake.create_table("tbl", columns)
    case.lake.sql(f"INSERT INTO tbl VALUES ({', '.join(['7'] * len(pairs))})")
    case.light(
        "ALTER TABLE tbl " + ", ".join(f"ALTER c{n} SET TYPE {b}" for n, (_, b) in enumerate(pairs))
    )
    assert [str(f.type) for f in table.columns] == [b for _, b in pairs]
    assert case.both("SELECT * FROM tbl") == [(7,) * len(pairs)]


@PAGE.row("L13", IDS, "Columns have field ids in ducklake_column, which data files contain too")
def test_l13_files_have_field_ids(tbl):
    [file] = tbl.data.rglob("*.parquet")
    ids = {f.name: int(f.metadata[b"PARQUET:field_id"]) for f in pq.read_schema(file)}
    assert ids == {f.name: f.id for f in tbl.lake.table("tbl").columns} == {"id": 1, "col1": 2}


@PAGE.row("L14", IDS, "Rows are reconstructed by id: values of an older type are cast")
def test_l14_older_types_are_cast(tbl):
    tbl.light("ALTER TABLE tbl ALTER col1 SET TYPE BIGINT")
    assert tbl.lake.sql("SELECT col1 FROM tbl").schema["col1"].dataType.simpleString() == "bigint"
    assert tbl.both("SELECT col1 FROM tbl") == [(5,)]


@PAGE.row("L15", IDS, "Ids that a file has and the table has not are ignored")
def test_l15_dropped_columns_are_ignored(tbl):
    tbl.light("ALTER TABLE tbl DROP COLUMN col1")
    tbl.light("ALTER TABLE tbl ADD COLUMN col1 INT")
    assert tbl.both("SELECT * FROM tbl") == [(1, None)]


@PAGE.row("L16", IDS, "Ids that a file has not are replaced with initial_default")
def test_l16_initial_default(tbl):
    tbl.light("ALTER TABLE tbl ADD COLUMN n INT DEFAULT 42")
    tbl.light("ALTER TABLE tbl ALTER n SET DEFAULT 43")
    assert tbl.both("SELECT n FROM tbl") == [(42,)]


@PAGE.row(
    *("L17", IDS, "A column of a given snapshot is read by the schema of that snapshot"),
    statement="SELECT * FROM tbl AT (VERSION => n)",
)
def test_l17_older_snapshots_keep_their_schema(tbl):
    before = tbl.lake.snapshots()[-1].id
    tbl.light("ALTER TABLE tbl RENAME col1 TO c, ADD COLUMN n INT")
    found = tbl.lake.sql(f"SELECT * FROM tbl AT (VERSION => {before})")
    assert found.columns == ["id", "col1"]


@PAGE.row(
    "L18",
    TYPE,
    "A change of type that no promotion allows is refused",
    differs="only pairs without a meaning are refused; the others are jobs (L11)",
)
def test_l18_pairs_without_a_meaning(tbl):
    told = tbl.refused(Unsupported, "ALTER TABLE tbl ALTER col1 SET TYPE TIMESTAMP")
    assert "cannot change col1 of main.tbl from int32 to timestamptz" in told


@PAGE.row("L19", IDS, "An encrypted lake has encrypted files, whose keys are in ducklake_data_file")
def test_l19_an_encrypted_lake_changes_alike(tmp_path, spark):
    catalog, data = tmp_path / "sealed.db", tmp_path / "sealed"
    with shelduck.connect(f"sqlite:///{catalog}", f"{data}/", spark, encrypted=True) as lake:
        case = Case(catalog, lake, data)
        lake.sql("CALL set_option('data_inlining_row_limit', '0')")
        lake.sql("CREATE TABLE tbl (id INT, col1 INT)")
        lake.sql("INSERT INTO tbl VALUES (1, 5)")
        case.light("ALTER TABLE tbl RENAME col1 TO c, ADD COLUMN n INT DEFAULT 42")
        assert case.both("SELECT id, c, n FROM tbl") == [(1, 5, 42)]
    [file] = data.rglob("*.parquet")
    assert file.read_bytes()[:4] == b"PARE"
