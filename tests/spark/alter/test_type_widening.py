"""Type widening as a feature of a table: allowing it, its history, and leaving it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

import shelduck
from shelduck import (
    Conflict,
    InvalidRequest,
    NotFound,
    Unsupported,
    change_type,
    rename_column,
    set_properties,
    unset_properties,
)
from shelduck.jobs import widening as table_widening
from tests.support.lakes import newest, refusal, rows
from tests.support.oracle import DuckDBOracle

ENABLED = "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
ENABLE = f"SET {ENABLED}"
STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', 0)",
    """CREATE TABLE t (id INT, d DATE, s STRUCT<f: FLOAT, l: ARRAY<SMALLINT>>,
    m MAP<INT, DECIMAL(5,2)>) TBLPROPERTIES ('owner' = 'me')""",
    """INSERT INTO t VALUES (1, DATE'2024-02-29', named_struct('f', 1.1F, 'l', array(1S)),
    map(1, 1.25BD)), (2, NULL, NULL, NULL)""",
]
WIDER = (
    f"ALTER TABLE t {ENABLE}, ALTER COLUMN id TYPE BIGINT, ALTER COLUMN d TYPE TIMESTAMP_NTZ,"
    " ALTER COLUMN s.f TYPE DOUBLE, ALTER COLUMN s.l.element TYPE INT,"
    " ALTER COLUMN m.key TYPE BIGINT, ALTER COLUMN m.value TYPE DECIMAL(9,4)"
)
WIDENED = [
    (
        1,
        dt.datetime(2024, 2, 29),  # noqa: DTZ001 - a local time
        (1.100000023841858, [1]),
        {1: Decimal("1.2500")},
    ),
    (2, None, None, None),
]
CHANGES = {
    "id": [{"fromType": "integer", "toType": "long"}],
    "d": [{"fromType": "date", "toType": "timestamp_ntz"}],
    "s.f": [{"fromType": "float", "toType": "double"}],
    "s.l": [{"fromType": "short", "toType": "integer", "fieldPath": "element"}],
    "m": [
        {"fromType": "integer", "toType": "long", "fieldPath": "key"},
        {"fromType": "decimal(5,2)", "toType": "decimal(9,4)", "fieldPath": "value"},
    ],
}


def properties(lake, table="t"):
    return dict(rows(lake.sql(f"SHOW TBLPROPERTIES {table}")))


def test_several_types_at_any_depth_change_in_one_statement(copied):
    catalog, lake = copied
    before = newest(lake)
    lake.sql(WIDER)

    assert newest(lake) == before + 1
    assert rows(lake.sql("SELECT * FROM t ORDER BY id")) == WIDENED
    assert lake.table("t").type_changes() == CHANGES
    assert rows(lake.sql(f"SELECT id, d FROM t VERSION AS OF {before} ORDER BY id")) == [
        (1, dt.date(2024, 2, 29)),
        (2, None),
    ]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        [first, second] = duckdb.sql("SELECT id, d, s.f, s.l, m FROM t ORDER BY id")
    assert first == (1, WIDENED[0][1], 1.100000023841858, [1], {1: Decimal("1.2500")})
    assert second == (2, None, None, None, None)


def test_the_wider_list_waits_for_the_property(copied, base):
    catalog, lake = copied
    told = refusal(
        Unsupported,
        lambda: lake.sql("ALTER TABLE t ALTER COLUMN d TYPE TIMESTAMP_NTZ"),
        catalog,
        base.folder / "data",
    )
    assert told.endswith(f"enable it with ALTER TABLE main.t {ENABLE}")
    lake.sql(told[told.index("ALTER TABLE") :])
    lake.sql("ALTER TABLE t ALTER COLUMN d TYPE TIMESTAMP_NTZ")

    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'false')")
    with pytest.raises(Unsupported, match="type widening is disabled"):
        lake.sql("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")
    # What was widened stays so.
    assert lake.table("t").type_changes() == {"d": CHANGES["d"]}
    lake.sql("ALTER TABLE t UNSET TBLPROPERTIES ('delta.enableTypeWidening')")
    lake.sql("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")


def test_properties_are_shown_kept_with_history_and_left_alone_by_duckdb(copied):
    catalog, lake = copied
    before = newest(lake)
    lake.sql(f"ALTER TABLE t {ENABLE}, SET TBLPROPERTIES (team = 'a')")

    assert properties(lake) == {
        "delta.enableTypeWidening": "true",
        "delta.feature.typeWidening": "supported",
        "owner": "me",
        "team": "a",
    }
    assert rows(lake.sql("SHOW TBLPROPERTIES t ('OWNER')")) == [("owner", "me")]
    assert rows(lake.sql("SHOW TBLPROPERTIES t (x)")) == [
        ("x", "Table main.t does not have property: x")
    ]
    [(text,)] = rows(lake.sql("SHOW CREATE TABLE t"))
    assert text.endswith(
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.feature.typeWidening' ="
        " 'supported', 'owner' = 'me', 'team' = 'a')"
    )
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute("COMMENT ON TABLE t IS 'hers'")
        duckdb.execute("INSERT INTO t (id) VALUES (3)")
        duckdb.execute("ALTER TABLE t ADD COLUMN n INTEGER")
        assert duckdb.sql("SELECT count(*) FROM t") == [(3,)]
    assert len(properties(lake)) == 4
    lake.sql(f"RESTORE TABLE t TO VERSION AS OF {before}")
    assert properties(lake) == {"owner": "me"}


def test_properties_change_inside_a_transaction_and_are_undone_with_it(lake):
    with lake.transaction() as tx:
        tx.table("t").alter(set_properties({"a.b": "1"}), unset_properties("owner"))
        tx.create_table("fresh", {"a": "int"}, properties={"k": "v"})
    assert properties(lake) == {"a.b": "1"}
    assert properties(lake, "fresh") == {"k": "v"}

    lake.sql("BEGIN")
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('a.b' = '2')")
    assert properties(lake) == {"a.b": "2"}
    lake.sql("ROLLBACK")
    assert properties(lake) == {"a.b": "1"}


def test_setting_what_is_set_is_no_snapshot(lake):
    before = newest(lake)
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('owner' = 'me')")

    assert newest(lake) == before


def test_a_rename_keeps_the_history_and_a_new_column_begins_one(lake):
    table = lake.table("t")
    table.alter(change_type("id", "bigint"), rename_column("id", "key"))
    assert table.type_changes() == {"key": CHANGES["id"]}

    lake.sql("ALTER TABLE t DROP COLUMN key, ADD COLUMN key INT")
    assert table.type_changes() == {}


def test_describe_tells_the_history(lake):
    lake.sql(WIDER)
    told = rows(lake.sql("DESCRIBE EXTENDED t"))
    at = told.index(("# Type Changes", "", ""))

    assert told[at + 1 : at + 7] == [
        ("id", "integer -> long", None),
        ("d", "date -> timestamp_ntz", None),
        ("s.f", "float -> double", None),
        ("s.l", "element: short -> integer", None),
        ("m", "key: integer -> long", None),
        ("m", "value: decimal(5,2) -> decimal(9,4)", None),
    ]
    assert "owner=me]" in next(text for name, text, _ in told if name == "Table Properties")


@pytest.mark.parametrize(
    ("mode", "kinds"),
    [
        (None, ["double", "bigint", "timestamp_ntz"]),
        ("always", ["double", "bigint", "timestamp_ntz"]),
        ("same_family", ["int", "bigint", "timestamp_ntz"]),
        ("never", ["int", "int", "date"]),
    ],
)
def test_a_write_that_may_change_the_schema_widens_what_the_mode_says(lake, mode, kinds):
    lake.sql(f"CREATE TABLE w (a INT, b INT, c DATE) {ENABLED}")
    if mode is not None:
        lake.sql(f"ALTER TABLE w SET TBLPROPERTIES ('shelduck.allowAutomaticWidening' = '{mode}')")
    a = "CAST(1.5 AS DOUBLE)" if kinds[0] == "double" else "CAST(1 AS INT)"
    c = "TIMESTAMP_NTZ'2024-01-01 12:00:00'" if kinds[2] != "date" else "DATE'2024-01-01'"
    lake.sql(f"INSERT WITH SCHEMA EVOLUTION INTO w BY NAME SELECT {a} AS a, 5L AS b, {c} AS c")

    assert [f.dataType.simpleString() for f in lake.table("w").schema] == kinds
    assert rows(lake.sql("SELECT b FROM w")) == [(5,)]


@pytest.mark.slow
def test_merges_and_streams_widen_too(lake, tmp_path, spark):
    lake.sql(f"CREATE TABLE w (k INT, a INT) {ENABLED}")
    lake.sql("INSERT INTO w VALUES (1, 1)")
    lake.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO w USING (SELECT 1 AS k, 2.5D AS a) s ON w.k = s.k"
        " WHEN MATCHED THEN UPDATE SET *"
    )
    assert rows(lake.sql("SELECT k, a FROM w")) == [(1, 2.5)]

    spark.sql("SELECT 3000000000L AS k, 4.5D AS a").write.parquet(f"{tmp_path}/in")
    stream = spark.readStream.schema("k bigint, a double").parquet(f"{tmp_path}/in")
    sink = lake.table("w").sink(write=lambda table, batch: table.append(batch, merge_schema=True))
    query = stream.writeStream.foreachBatch(sink).option("checkpointLocation", f"{tmp_path}/c")
    query.trigger(availableNow=True).start().awaitTermination()
    assert rows(lake.sql("SELECT k, a FROM w ORDER BY k")) == [(1, 2.5), (3000000000, 4.5)]
    assert lake.table("w").type_changes() == {
        "k": [{"fromType": "integer", "toType": "long"}],
        "a": [{"fromType": "integer", "toType": "double"}],
    }


def test_a_default_that_is_an_expression_is_set_anew(lake):
    lake.sql(f"CREATE TABLE w (a DATE DEFAULT current_date()) {ENABLED}")
    with pytest.raises(Unsupported) as refused:
        lake.sql("ALTER TABLE w ALTER COLUMN a TYPE TIMESTAMP_NTZ")

    remedy = "ALTER COLUMN a DROP DEFAULT, ALTER COLUMN a TYPE TIMESTAMP_NTZ, ALTER COLUMN a SET"
    assert f"ALTER TABLE main.w {remedy} DEFAULT" in str(refused.value)


def test_leaving_rewrites_only_files_of_older_types(copied):
    catalog, lake = copied
    table = lake.table("t")
    lake.sql(WIDER)
    lake.sql("INSERT INTO t (id, d) VALUES (3, TIMESTAMP_NTZ'2024-03-01 12:00:00')")
    before, snapshot = rows(lake.sql("SELECT * FROM t ORDER BY id")), newest(lake)
    files = {row.file_path for row in table.files().collect()}

    pending = table.pending_type_rewrites()
    assert len(pending.files) == 1
    assert pending.bytes == pending.files[0].bytes > 0
    assert {".".join(c.path) for c in pending.files[0].columns} == {
        *("id", "d", "s.f", "s.l.element", "m.key", "m.value")
    }
    assert "id int32 -> int64" in str(pending)
    done = rows(lake.sql("ALTER TABLE t DROP FEATURE typeWidening"))

    assert len(done) == 1
    assert newest(lake) == snapshot + 2
    after = {row.file_path for row in table.files().collect()}
    assert len(files & after) == 1
    assert len(after) == 2
    assert rows(lake.sql("SELECT * FROM t ORDER BY id")) == before
    assert table.type_changes() == {}
    assert table.pending_type_rewrites().files == ()
    assert properties(lake) == {"owner": "me"}
    # Before it, the types and their history are what they were.
    assert rows(lake.sql(f"SELECT * FROM t VERSION AS OF {snapshot} ORDER BY id")) == before
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.sql("SELECT id FROM t WHERE d > DATE '2024-02-28' ORDER BY id") == [
            *[(1,), (3,)]
        ]
        # Filters at the seams that DuckDB 1.5.5 answers wrongly on files of older types.
        assert duckdb.sql("SELECT id FROM t WHERE s.f > 1.1 AND s.f < 1.2") == [(1,)]
    assert table.drop_feature("typeWidening") == shelduck.Unchanged(newest(lake))
    lake.sql("ALTER TABLE t ALTER COLUMN s.l.element TYPE BIGINT")
    assert table.type_changes() == {
        "s.l": [{"fromType": "integer", "toType": "long", "fieldPath": "element"}]
    }


@pytest.mark.slow
def test_leaving_goes_on_where_a_crash_left_it(lake, monkeypatch):
    table = lake.table("t")
    for n in range(3, 6):
        lake.sql(f"INSERT INTO t (id) VALUES ({n})")
    lake.sql("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")
    lake.set_option("target_file_size", 1, table="t")
    before = rows(lake.sql("SELECT * FROM t ORDER BY id"))
    assert len(table.pending_type_rewrites().files) == 4

    real, calls = table_widening.rewrite, []

    def dies(state, found, bins, **how):
        calls.append(len(bins))
        real(state, found, bins[:2], **how)
        raise KeyboardInterrupt

    monkeypatch.setattr(table_widening, "rewrite", dies)
    with pytest.raises(KeyboardInterrupt):
        table.drop_feature("typeWidening")
    monkeypatch.setattr(table_widening, "rewrite", real)

    assert calls == [4]
    assert len(table.pending_type_rewrites().files) == 2
    assert table.type_changes() == {"id": CHANGES["id"]}
    assert table.drop_feature("typeWidening").files == 2
    assert rows(lake.sql("SELECT * FROM t ORDER BY id")) == before
    assert table.type_changes() == {}


def test_files_of_older_types_that_come_meanwhile_stop_the_last_step(lake, monkeypatch):
    lake.sql("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")
    nothing = table_widening.Compacted(lake.table("t").name)
    monkeypatch.setattr(table_widening, "rewrite", lambda *_, **__: nothing)
    before = newest(lake)

    with pytest.raises(Conflict, match=r"1 file\(s\) of main.t still hold older .*int32"):
        lake.table("t").drop_feature("typeWidening")
    assert newest(lake) == before


def test_a_feature_that_is_not_there_and_a_transaction_are_refused(lake):
    with pytest.raises(NotFound, match="feature 'columnMapping' does not exist"):
        lake.sql("ALTER TABLE t DROP FEATURE columnMapping")
    with lake.transaction() as tx:  # noqa: SIM117 - what is refused is inside
        with pytest.raises(InvalidRequest, match="DROP FEATURE commits by itself"):
            tx.sql("ALTER TABLE t DROP FEATURE typeWidening")
    before = newest(lake)
    lake.sql("ALTER TABLE IF EXISTS nope DROP FEATURE typeWidening")
    lake.sql("ALTER TABLE t DROP FEATURE TYPEWIDENING")
    assert newest(lake) == before


def test_rewriting_gives_files_the_columns_of_today(lake):
    table = lake.table("t")
    lake.sql("ALTER TABLE t ADD COLUMN n INT DEFAULT 7, ALTER COLUMN id TYPE BIGINT")
    lake.sql("INSERT INTO t (id) VALUES (3)")
    before = rows(lake.sql("SELECT * FROM t ORDER BY id"))
    first = min(row.data_file_id for row in table.files().collect())

    assert table.rewrite([first], dry_run=True).files == 1
    done = table.rewrite([first])

    assert (done.files, done.new_files) == (1, 1)
    assert rows(lake.sql("SELECT * FROM t ORDER BY id")) == before
    assert table.pending_type_rewrites().files == ()
    with pytest.raises(NotFound, match=f"main.t has no data file {first} whose rows have ids"):
        table.rewrite([first])
    assert table.rewrite().files == 2
