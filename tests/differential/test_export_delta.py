"""Tables of a lake as readers of Delta see them: DuckDB's delta extension and deltalake."""

from __future__ import annotations

import json

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import shelduck
from shelduck.formats.delta import delta_export
from tests.support.delta import DeltaReaders, HandMade, column, metadata, protocol
from tests.support.normal import spark_rows
from tests.support.oracle import DuckDBOracle

EVOLVED = """
CREATE TABLE t (a INT, s STRUCT<x: INT, y: ARRAY<STRUCT<z: INT>>>, m MAP<STRING, INT>, d DATE);
INSERT INTO t SELECT CAST(id AS INT), named_struct('x', CAST(id AS INT), 'y',
    array(named_struct('z', CAST(id AS INT)), NULL)), map('k', CAST(id AS INT)),
    DATE '2024-01-01' + CAST(id AS INT) FROM range(6);
INSERT INTO t VALUES (NULL, NULL, NULL, NULL);
"""


@pytest.fixture
def lake(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        yield lake


@pytest.fixture(scope="module")
def readers():
    with DeltaReaders() as readers:
        yield readers


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out put"


def log(out):
    """The actions of each version, by what they are."""
    versions = []
    for path in sorted((out / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        versions.append({kind: body for action in actions for kind, body in action.items()})
    return versions


def both(readers, out):
    """The rows of the newest version after making sure that both readers see the same."""
    rows = readers.by_duckdb(out)
    assert readers.by_deltalake(out) == rows
    return rows


def test_a_table_is_shown_and_every_change_is_another_version(lake, readers, out):
    lake.sql(EVOLVED)
    table = lake.table("t")

    done = table.export_delta(out)

    assert (done.path, done.files) == (str(out), len(table.files().collect()))
    first = spark_rows(table.read())
    assert both(readers, out) == first
    lake.sql("DELETE FROM t WHERE a IN (2, 3)")
    lake.sql("ALTER TABLE t RENAME COLUMN a TO b")
    lake.sql("ALTER TABLE t RENAME COLUMN s.x TO xx")
    lake.sql("ALTER TABLE t ADD COLUMN a STRING COMMENT 'another one'")
    lake.sql("INSERT INTO t VALUES (7, NULL, map('new', 1), NULL, 'text')")
    table.export_delta(out)

    assert both(readers, out) == spark_rows(table.read())
    assert DeltaTable(out).schema().fields[4].name == "a"
    assert DeltaTable(out).history(1)[0]["engineInfo"] == "Shelduck"
    # The version of before is what it was.
    assert readers.by_deltalake(out, 0) == first
    assert [v.get("metaData") is not None for v in log(out)] == [True, True]


def test_nothing_is_written_when_nothing_changed(lake, out):
    lake.sql(EVOLVED)
    lake.table("t").export_delta(out)
    lake.sql("CREATE TABLE other (a INT)")

    done = lake.table("t").export_delta(out)

    assert len(log(out)) == 1
    assert done.snapshot == lake.snapshots()[-1].id


def test_only_what_changed_is_told_again(lake, out):
    lake.sql(EVOLVED)
    lake.table("t").export_delta(out)
    lake.sql("INSERT INTO t VALUES (9, NULL, NULL, NULL)")
    lake.table("t").export_delta(out)
    lake.sql("DELETE FROM t WHERE a = 9")
    lake.table("t").export_delta(out)

    assert [sorted(v) for v in log(out)[1:]] == [["add", "commitInfo"], ["commitInfo", "remove"]]


@pytest.mark.slow
def test_defaults_of_old_rows_need_new_files(lake, readers, out):
    lake.sql(EVOLVED)
    lake.sql("ALTER TABLE t ADD COLUMN n INT DEFAULT 5")
    lake.sql("ALTER TABLE t ADD COLUMN s.r INT DEFAULT 6")
    table = lake.table("t")

    report = table.plan_export("delta")
    with pytest.raises(shelduck.Unsupported) as raised:
        table.export_delta(out)

    assert str(raised.value) == str(report)
    assert not report.is_ready
    assert set(report.rewrites[0].reasons) == {
        "column 'n' is missing, and Delta cannot express that its rows have '5'",
        "column 's.r' is missing, and Delta cannot express that its rows have '6'",
    }
    assert not out.exists()
    before = spark_rows(table.read())
    done = table.export_delta(out, rewrite=True)
    assert done.report.is_ready
    assert both(readers, out) == before == spark_rows(table.read())


def test_widened_files_are_shown_with_the_feature_and_without_once_written_anew(lake, readers, out):
    lake.sql(EVOLVED)
    lake.sql("CREATE TABLE f (r FLOAT, e DECIMAL(9,2), h SMALLINT, d DATE)")
    lake.sql("INSERT INTO f VALUES (CAST(0.1 AS FLOAT), 1.25, 7, DATE '2024-01-01')")
    wider = [
        *("a TYPE BIGINT", "s.x TYPE BIGINT", "s.y.element.z TYPE BIGINT", "m.value TYPE BIGINT")
    ]
    for change in wider:
        lake.sql(f"ALTER TABLE t ALTER COLUMN {change}")
    lake.sql("ALTER TABLE f SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    for change in (
        "r TYPE DOUBLE",
        "e TYPE DECIMAL(20,5)",
        "h TYPE DOUBLE",
        "d TYPE TIMESTAMP_NTZ",
    ):
        lake.sql(f"ALTER TABLE f ALTER COLUMN {change}")
    lake.sql("INSERT INTO f VALUES (0.1, 99999.12345, 1.5, TIMESTAMP_NTZ '2024-01-01 12:00:00')")
    other = out / "f"
    done, floats = lake.table("t").export_delta(out / "t"), lake.table("f").export_delta(other)

    assert "deltalake 1.6 refuses" in done.report.losses[0].what
    assert readers.by_duckdb(out / "t") == spark_rows(lake.table("t").read())
    assert readers.by_duckdb(other) == spark_rows(lake.table("f").read())
    with pytest.raises(Exception, match="TypeWidening"):
        readers.by_deltalake(out / "t")
    columns = json.loads(log(out / "t")[0]["metaData"]["schemaString"])["fields"]
    changed = {"fromType": "integer", "toType": "long"}
    assert columns[0]["metadata"]["delta.typeChanges"] == [changed]
    assert columns[2]["metadata"]["delta.typeChanges"] == [{**changed, "fieldPath": "value"}]
    assert "delta.typeChanges" not in columns[1]["metadata"]
    z = columns[1]["type"]["fields"][1]["type"]["elementType"]["fields"][0]
    assert z["metadata"]["delta.typeChanges"] == [changed]
    # No bounds are told of a column that was a float32: 0.1 is not 0.1 there.
    stats = json.loads(log(other)[0]["add"]["stats"])
    assert "minValues" not in stats
    assert floats.report.losses[0].subject == "column 'r'"

    lake.table("t").rewrite()
    assert lake.table("t").export_delta(out / "t").report.losses == ()
    assert both(readers, out / "t") == spark_rows(lake.table("t").read())
    assert "typeWidening" not in log(out / "t")[1]["protocol"]["readerFeatures"]


def test_a_name_that_was_dropped_and_used_again(lake, readers, out):
    lake.sql("CREATE TABLE t (a INT, b STRING)")
    lake.sql("INSERT INTO t VALUES (1, 'old')")
    lake.sql("ALTER TABLE t DROP COLUMN b")
    lake.sql("ALTER TABLE t ADD COLUMN b STRING")
    lake.sql("INSERT INTO t VALUES (2, 'new')")
    lake.sql("ALTER TABLE t RENAME COLUMN a TO c")
    lake.sql("ALTER TABLE t ADD COLUMN a INT")
    lake.sql("INSERT INTO t VALUES (3, 'x', 30)")

    lake.table("t").export_delta(out)

    assert both(readers, out) == [(1, None, None), (2, "new", None), (3, "x", 30)]


def test_files_of_duckdb_that_call_columns_otherwise_are_written_anew(
    spark, sqlite_url, data_path, readers, out
):
    with DuckDBOracle(sqlite_url, data_path) as oracle:
        oracle.execute("CALL lake.set_option('data_inlining_row_limit', 0)")
        oracle.execute("CREATE TABLE t (a int, u utinyint, k uuid, h uinteger, c time)")
        oracle.execute("INSERT INTO t VALUES (1, 200, uuid(), 4000000000, TIME '01:02:03')")
        oracle.execute("ALTER TABLE t RENAME a TO b")
        oracle.execute("INSERT INTO t VALUES (2, 255, uuid(), 1, NULL)")
        oracle.execute("ALTER TABLE t ADD COLUMN i interval")
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        table = lake.table("t")
        report = table.plan_export("Delta")
        kept = ["b", "u", "k", "h", "c"]
        before = spark_rows(table.read(columns=kept))
        found = {f.file_id: f.reasons for f in report.rewrites}
        assert len(found) == 2
        [renamed] = {r for reasons in found.values() for r in reasons if "called" in r}
        assert renamed == "column 'b' is called 'b' in the file, not 'a'"
        assert all(
            "column 'k' is uuid (fixed) in the file, not string" in r for r in found.values()
        )
        assert [str(loss) for loss in report.losses] == [
            "column 'u': integers are shown as short",
            "column 'k': Delta has no such type: shown as text",
            "column 'h': integers are shown as long",
            "column 'c': Delta has no such type: shown as text",
            "column 'i': left out: Delta has no type for interval",
        ]

        with pytest.raises(shelduck.Unsupported, match="cannot rewrite these files"):
            table.export_delta(out, rewrite=True)
        lake.sql("ALTER TABLE t DROP COLUMN i")
        table.export_delta(out, rewrite=True)

        assert both(readers, out) == before
        assert before[0][1] == 200


def test_unsigned_numbers_of_duckdb_are_shown_as_they_lie(
    spark, sqlite_url, data_path, readers, out
):
    with DuckDBOracle(sqlite_url, data_path) as oracle:
        oracle.execute("CALL lake.set_option('data_inlining_row_limit', 0)")
        oracle.execute("CREATE TABLE t (u utinyint, v usmallint, w uinteger)")
        oracle.execute("INSERT INTO t VALUES (255, 65535, 4294967295), (0, 0, 0)")
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        lake.table("t").export_delta(out)

        assert both(readers, out) == [(0, 0, 0), (255, 65535, 4294967295)]


def test_adopted_files_are_known_by_name(lake, readers, out, tmp_path):
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", None]}), tmp_path / "1.parquet")
    table = lake.create_table("t", {"a": "bigint", "b": "string"})
    table.add_files(tmp_path / "1.parquet")
    lake.sql("INSERT INTO t VALUES (3, 'y')")

    table.export_delta(out)

    assert both(readers, out) == [(1, "x"), (2, None), (3, "y")]
    [first] = log(out)
    assert first["metaData"]["configuration"]["delta.columnMapping.mode"] == "name"
    # A value that is only in a path is written into a file first.
    place = tmp_path / "b=z"
    place.mkdir()
    pq.write_table(pa.table({"a": [4]}), place / "1.parquet")
    table.add_files(place)
    [again] = table.plan_export("delta").rewrites
    assert again.reasons == ("column 'b' is in the path or the catalog, not in the file",)
    table.export_delta(out, rewrite=True)
    assert both(readers, out) == [(1, "x"), (2, None), (3, "y"), (4, "z")]


def test_a_delta_table_comes_in_and_goes_out(lake, readers, out, tmp_path):
    path = tmp_path / "delta"
    rows = pa.table({"a": [1, 2, 3], "p": ["x", "y", None], "s": [{"i": 1}, {"i": None}, None]})
    write_deltalake(path, rows, configuration={"delta.columnMapping.mode": "name"})
    DeltaTable(path).delete("a = 2")
    lake.import_delta(path, "t")

    # The names of the files are those of the other Delta table, and all of them agree.
    lake.table("t").export_delta(out)

    assert both(readers, out) == readers.by_deltalake(path) == [(1, "x", (1,)), (3, None, None)]


def test_what_goes_out_comes_in_again_version_by_version(lake, spark, out, tmp_path):
    lake.sql(EVOLVED)
    table = lake.table("t")
    wanted = []
    for change in (
        "DELETE FROM t WHERE a = 3",
        "ALTER TABLE t RENAME COLUMN s.x TO xx",
        "ALTER TABLE t ALTER COLUMN m.value TYPE BIGINT",
        "DELETE FROM t WHERE a IS NULL OR a = 4",
        "ALTER TABLE t DROP COLUMN d",
        "INSERT INTO t VALUES (8, NULL, map('k', 5000000000))",
    ):
        lake.sql(change)
        table.export_delta(out)
        wanted.append((table.read().columns, spark_rows(table.read())))

    with shelduck.connect(f"sqlite:///{tmp_path}/o.db", f"{tmp_path}/o/", spark) as other:
        done = other.import_delta(out, "t")

        assert done.versions == tuple(range(6))
        versions = [other.table("t").read(version=s) for s in done.snapshots.values()]
        assert [(v.columns, spark_rows(v)) for v in versions] == wanted


def test_rows_and_deletes_that_the_catalog_keeps(lake, readers, out):
    lake.set_option("data_inlining_row_limit", 100)
    lake.sql("CREATE TABLE t (a INT)")
    lake.table("t").append(lake.spark.sql("SELECT CAST(id AS INT) AS a FROM range(200)"))
    lake.sql("DELETE FROM t WHERE a IN (0, 7)")
    table = lake.table("t")
    table.export_delta(out)
    assert both(readers, out) == spark_rows(table.read())
    lake.sql("INSERT INTO t VALUES (1000)")

    assert table.plan_export("delta").inlined_rows == 1
    with pytest.raises(shelduck.Unsupported, match="must be flushed first"):
        table.export_delta(out)
    table.export_delta(out, rewrite=True)

    assert both(readers, out) == spark_rows(table.read())
    assert len(both(readers, out)) == 199


def test_rules_go_out_and_what_delta_lacks_is_reported(lake, sqlite_url, readers, out):
    lake.sql(
        "CREATE TABLE t (a INT, g INT GENERATED ALWAYS AS (a * 2), id BIGINT GENERATED ALWAYS AS"
        " IDENTITY, CONSTRAINT C CHECK (a > 0), PRIMARY KEY (a))"
    )
    lake.sql("INSERT INTO t (a) SELECT CAST(id AS INT) FROM range(1, 40)")
    with DuckDBOracle(sqlite_url) as duckdb:
        duckdb.execute("ALTER TABLE t ADD COLUMN n UTINYINT")
    lake.sql("ALTER TABLE t ADD CONSTRAINT d CHECK (n > 0)")
    lake.sql("ALTER TABLE t ADD CONSTRAINT e CHECK (a < 7) NOT VALID")
    lake.sql("ALTER TABLE t ADD CONSTRAINT f CHECK (g > 1)")
    done = lake.table("t").export_delta(out)

    assert both(readers, out) == spark_rows(lake.table("t").read())
    assert sorted(str(loss) for loss in done.report.losses) == [
        "CONSTRAINT d CHECK (n > 0): not shown: Delta has no type uint8",
        (
            "CONSTRAINT e CHECK (a < 7): not shown: older rows were not checked; use VALIDATE"
            " CONSTRAINT"
        ),
        "CONSTRAINT primary_key_1 PRIMARY KEY (a) NOT ENFORCED: not shown",
        "column 'n': integers are shown as short",
    ]
    assert rules_in(out) == {
        "delta.constraints.c": "(a > 0) IS NOT FALSE",
        "delta.constraints.f": "(g > 1) IS NOT FALSE",
        "g": {"delta.generationExpression": "CAST(a * 2 AS INT)"},
        "id": {
            "delta.identity.start": 1,
            "delta.identity.step": 1,
            "delta.identity.allowExplicitInsert": False,
            "delta.identity.highWaterMark": 39,
        },
    }
    features = ["checkConstraints", "columnMapping", "generatedColumns", "identityColumns"]
    assert log(out)[-1]["protocol"]["writerFeatures"] == [*features, "invariants"]
    assert sorted(map(str, lake.table("t").plan_export("iceberg").losses))[:2] == [
        "CONSTRAINT C CHECK (a > 0): not shown; only writers of this lake keep to it",
        "CONSTRAINT d CHECK (n > 0): not shown; only writers of this lake keep to it",
    ]

    lake.sql("ALTER TABLE t DROP CONSTRAINT C, RENAME COLUMN a TO b")
    with DuckDBOracle(sqlite_url) as duckdb:
        duckdb.execute("ALTER TABLE t DROP COLUMN g")
    done = lake.table("t").export_delta(out)
    assert "another writer dropped a column of it" in str(done.report)
    assert [key for key in rules_in(out) if key != "id"] == []


def rules_in(out):
    """What the newest metadata of an export say of rules: settings, and those of columns."""
    told = [version["metaData"] for version in log(out) if "metaData" in version][-1]
    found = {k: v for k, v in told["configuration"].items() if k.startswith("delta.constraints")}
    for one in json.loads(told["schemaString"])["fields"]:
        mine = {k: v for k, v in one["metadata"].items() if "ident" in k or "gener" in k}
        found |= {one["name"]: mine} if mine else {}
    return found


@pytest.mark.slow
def test_filters_find_what_is_there(lake, readers, out):
    lake.sql("CREATE TABLE t (a INT, d DATE, p INT) PARTITIONED BY (p)")
    lake.sql(
        "INSERT INTO t SELECT CAST(id AS INT), DATE '2024-01-01' + CAST(id AS INT),"
        " CAST(id % 3 AS INT) FROM range(30)"
    )
    lake.sql("INSERT INTO t VALUES (NULL, NULL, 5), (-100, DATE '0001-01-01', 5)")
    lake.sql("DELETE FROM t WHERE a = 4")
    done = lake.table("t").export_delta(out)

    assert [str(loss) for loss in done.report.losses] == [
        "partitioning by p: not shown; readers can skip files only by bounds"
    ]
    for where in ("a = 29", "a < 0", "d >= '2024-01-20'", "d < '0002-01-01'", "a IS NULL", "p = 5"):
        wanted = spark_rows(lake.table("t").read().where(where))
        found = readers.sql(f"SELECT count(*) FROM delta_scan('{out}') WHERE {where}")
        assert found == [(len(wanted),)]
        assert len(readers.by_deltalake(out, where=where)) == len(wanted)


def test_what_is_not_ours_is_left_alone(lake, out, tmp_path, data_path):
    lake.sql(EVOLVED)
    lake.sql("CREATE TABLE other AS SELECT 1 AS a")
    table = lake.table("t")
    write_deltalake(tmp_path / "theirs", pa.table({"a": [1]}))
    with pytest.raises(
        shelduck.AlreadyExists, match=r"not an export of main\.t; export to another"
    ):
        table.export_delta(tmp_path / "theirs")
    lake.table("other").export_delta(out)
    with pytest.raises(shelduck.AlreadyExists, match=r"not an export of main\.t"):
        table.export_delta(out)
    with pytest.raises(shelduck.InvalidRequest, match="below the lake's data path"):
        table.export_delta(f"{data_path}main/t")
    with pytest.raises(
        shelduck.InvalidRequest, match="cannot export to 'hudi'; use one of 'delta', 'iceberg'"
    ):
        table.plan_export("hudi")
    DeltaTable(out).delete()
    with pytest.raises(shelduck.AlreadyExists, match=r"version 1 .* was written by delta-rs"):
        lake.table("other").export_delta(out)


def test_an_export_that_was_cut_off_leaves_no_half_table(lake, readers, out, monkeypatch):
    lake.sql(EVOLVED)
    table = lake.table("t")

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.link", killed)
    with pytest.raises(KeyboardInterrupt):
        table.export_delta(out)
    monkeypatch.undo()
    assert list((out / "_delta_log").iterdir()) == []
    # What a process that was killed outright would leave.
    (out / "_delta_log" / f".{0:020}.json.8f2c").write_text('{"commitInfo"')

    table.export_delta(out)

    assert both(readers, out) == spark_rows(table.read())


def test_two_exports_at_once_do_not_write_one_version(lake, out, monkeypatch):
    lake.sql(EVOLVED)
    table = lake.table("t")
    found = delta_export.published

    def late(*arguments):
        before = found(*arguments)
        monkeypatch.undo()
        table.export_delta(out)
        return before

    monkeypatch.setattr("shelduck.formats.export_verbs.published", late)
    with pytest.raises(shelduck.Conflict, match=r"another writer created version 0"):
        table.export_delta(out)
    assert [path.name for path in (out / "_delta_log").iterdir()] == [f"{0:020}.json"]


def test_sql_plans_and_exports(lake, readers, out):
    lake.sql(EVOLVED)
    lake.sql("ALTER TABLE t ADD COLUMN n INT DEFAULT 5")

    [planned, *_] = lake.sql("CALL plan_export('t', 'delta')").collect()
    [done] = lake.sql(f"CALL export_delta('t', '{out}', rewrite => true)").collect()

    assert planned.kind == "rewrite"
    assert done.path == str(out)
    assert both(readers, out) == spark_rows(lake.table("t").read())


def test_a_version_that_is_not_ours_by_mapping_mode_stays_in_it(lake, readers, out, tmp_path):
    lake.sql("CREATE TABLE t (a BIGINT)")
    lake.sql("INSERT INTO t VALUES (1)")
    lake.table("t").export_delta(out)
    pq.write_table(pa.table({"a": [2]}), tmp_path / "1.parquet")
    lake.table("t").add_files(tmp_path / "1.parquet")

    # Files without ids come too late: the Delta table goes by ids by now.
    with pytest.raises(shelduck.Unsupported, match="its columns have no field ids, by which"):
        lake.table("t").export_delta(out)
    lake.table("t").export_delta(out, rewrite=True)
    assert both(readers, out) == [(1,), (2,)]


def test_a_column_of_another_tables_file_is_not_taken_for_ours(lake, readers, out):
    delta = HandMade(out.parent / "delta")
    delta.write_file("1.parquet", pa.table({"a": [1], "b": ["hidden"]}))
    delta.commit(protocol(), metadata([column("a", "long")]), delta.add("1.parquet"))
    lake.import_delta(delta.path, "t")
    lake.sql("ALTER TABLE t ADD COLUMN b STRING")
    assert spark_rows(lake.table("t").read()) == [(1, None)]

    [again] = lake.table("t").plan_export("delta").rewrites

    assert again.reasons == (
        "'b' is another column in the file than 'b', which the file does not have",
    )
    lake.table("t").export_delta(out, rewrite=True)
    assert both(readers, out) == [(1, None)]


def test_a_table_without_files(lake, readers, out):
    lake.sql("CREATE TABLE t (a INT, s STRUCT<x: INT>)")
    lake.table("t").export_delta(out)

    assert both(readers, out) == []
    with pytest.raises(duckdb.Error):
        readers.by_duckdb(out.parent / "nowhere")


def test_defaults_and_lengths_go_out_and_come_in(lake, readers, spark, out, tmp_path):
    lake.sql(
        "CREATE TABLE d (id INT, n DECIMAL(5, 2) DEFAULT 1.5, v VARCHAR(3) DEFAULT 'it''s',"
        " t TIMESTAMP_NTZ DEFAULT '2024-01-02 03:04:05', w DATE DEFAULT current_date(),"
        " s STRUCT<x: VARCHAR(2)>)".replace("it''s", "i''s")
    )
    lake.sql("INSERT INTO d VALUES (1, 2, 'abc', NULL, NULL, NULL)")
    table = lake.table("d")
    assert table.plan_export("delta").losses == ()
    table.export_delta(out)
    assert both(readers, out) == spark_rows(table.read())
    [version] = log(out)
    assert version["protocol"]["writerFeatures"] == [
        "allowColumnDefaults",
        "columnMapping",
        "timestampNtz",
    ]
    assert "allowColumnDefaults" not in version["protocol"]["readerFeatures"]

    with shelduck.connect(f"sqlite:///{tmp_path}/o.db", f"{tmp_path}/o/", spark) as other:
        notes = other.import_delta(out, "d").notes
        assert not [note for note in notes if "default" in note or "length" in note]
        made = other.table("d")
        assert [f.default for f in made.columns] == [f.default for f in table.columns]
        other.sql("INSERT INTO d (id) VALUES (2)")
        found = other.sql("SELECT n, v, CAST(t AS STRING), w = current_date() FROM d WHERE id = 2")
        assert [tuple(map(str, row)) for row in found.collect()] == [
            ("1.50", "i's", "2024-01-02 03:04:05", "True")
        ]
        with pytest.raises(shelduck.InvalidRequest, match=r"VARCHAR\(3\)"):
            other.sql("INSERT INTO d (id, v) VALUES (3, 'long')")
