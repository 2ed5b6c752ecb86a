"""Streams that carry changes of columns from table to table, with DuckDB as the reader."""

from __future__ import annotations

import threading

import pytest

import shelduck
from shelduck import AlreadyExists, InvalidRequest, NotFound, Unsupported
from shelduck.carry import carrying
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle


@pytest.fixture
def lake(spark, tmp_path):
    with shelduck.connect(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data", spark) as lake:
        yield lake


@pytest.fixture
def source(lake):
    lake.sql("CREATE TABLE a (id INT, v INT COMMENT 'value', t STRING)")
    lake.sql("INSERT INTO a VALUES (1, 10, '7')")
    return lake


def seen(lake, name):
    """Names of columns and rows of a table, as DuckDB reads them."""
    with DuckDBOracle(lake._state.store.where) as duck:
        return [column for column, _ in duck.columns(name)], sorted(duck.sql(f"FROM {name}"))


def test_a_sink_gets_rows_and_what_becomes_of_columns(source):
    lake = source
    assert lake.stream("a").to("b") == 3
    assert lake.stream("a").to("b") is None
    lake.sql("ALTER TABLE a RENAME COLUMN v TO w, ADD COLUMN n INT DEFAULT 5 AFTER id")
    lake.sql("INSERT INTO a VALUES (2, 6, 20, 'x')")
    lake.sql("ALTER TABLE a DROP COLUMN t, ALTER COLUMN w TYPE BIGINT")
    lake.sql("INSERT INTO a VALUES (3, 7, 5000000000)")
    before = lake.snapshots()[-1].id
    assert lake.stream("a").plan("b") == (
        "RENAME COLUMN v TO w",
        "ADD COLUMN n int32 DEFAULT '5' AFTER id",
    )
    lake.stream("a").to("b")
    assert seen(lake, "b") == seen(lake, "a")
    assert lake.table("b").columns.find(("n",)).initial_default == "5"
    # Two batches, which are two snapshots: rows and changed columns are in one.
    assert [s.changes_made for s in lake.snapshots() if s.id > before] == [
        "altered_table:2,inlined_insert:2",
        "altered_table:2,inlined_insert:2",
    ]


def test_a_plan_names_the_tables_that_follow(source):
    lake = source
    lake.stream("a").to("b")
    lake.stream("b").to("c")
    planned = lake.table("a").plan_alter(shelduck.rename_column("v", "w"))
    assert planned.views == (
        "table main.b follows: the next batch of its stream brings the change",
    )
    assert lake.table("c").plan_alter(shelduck.rename_column("v", "w")).views == ()
    assert lake.table("a").plan_alter(shelduck.set_properties({"x": "y"})).views == ()


def test_a_name_that_another_column_takes_is_that_of_another_column(source):
    lake = source
    lake.stream("a").to("b")
    lake.sql("ALTER TABLE a RENAME COLUMN v TO w; ALTER TABLE a ADD COLUMN v STRING")
    lake.sql("ALTER TABLE a DROP COLUMN t; ALTER TABLE a ADD COLUMN t INT")
    lake.sql("INSERT INTO a VALUES (2, 20, 'new', 3)")
    lake.stream("a").to("b")
    assert seen(lake, "b") == (["id", "w", "v", "t"], [(1, 10, None, None), (2, 20, "new", 3)])


def test_a_conversion_is_a_job_of_the_sink_with_the_same_using(source):
    lake = source
    lake.stream("a").to("b")
    lake.sql("ALTER TABLE a ALTER COLUMN t TYPE INT USING length(t) + 40")
    lake.jobs()[0].wait()
    lake.sql("INSERT INTO a VALUES (2, 20, 1)")
    lake.stream("a").to("b")
    assert seen(lake, "b") == (["id", "v", "t"], [(1, 10, 41), (2, 20, 1)])
    assert [job.look().table_name for job in lake.jobs()] == ["main.b", "main.a"]


def test_using_is_refused_where_its_names_mean_other_columns(source):
    lake = source
    lake.stream("a").to("b")
    lake.sql("ALTER TABLE b RENAME COLUMN v TO mine; ALTER TABLE b ADD COLUMN v INT")
    lake.table("a").alter(shelduck.change_type("t", "int", using="v + 1"), wait=True)
    lake.sql("INSERT INTO a VALUES (2, 20, 1)")
    with pytest.raises(InvalidRequest, match=r"converted USING v \+ 1, and v is another column"):
        lake.stream("a").to("b")
    lake.table("b").alter(shelduck.change_type("t", "int", using="mine + 1"), wait=True)
    lake.stream("a").to("b")
    assert seen(lake, "b")[1] == [(1, 10, 11, None), (2, 20, 1, None)]


def test_a_text_means_the_columns_that_it_began_with(source):
    lake = source
    stream = lake.stream("a").where("v > 5").select("id", "v AS w", "v * 2 AS twice")
    stream.to("b")
    lake.sql("ALTER TABLE a RENAME COLUMN v TO x, RENAME COLUMN id TO key, ADD COLUMN v STRING")
    lake.sql("INSERT INTO a VALUES (2, 20, '8', 'new'), (3, 5, '8', 'new')")
    stream.to("b")
    assert seen(lake, "b") == (["key", "w", "twice"], [(1, 10, 20), (2, 20, 40)])
    lake.sql("ALTER TABLE a ALTER COLUMN x TYPE BIGINT")
    lake.sql("INSERT INTO a VALUES (4, 5000000000, '8', 'new')")
    stream.to("b")
    assert seen(lake, "b")[1][-1] == (4, 5000000000, 10000000000)
    # What it computes from a column that goes needs another text, and goes on where it stopped.
    lake.sql("ALTER TABLE a DROP COLUMN x")
    lake.sql("INSERT INTO a VALUES (5, '8', 'last')")
    with pytest.raises(InvalidRequest, match=r"does not fit the columns of main\.a in snapshot"):
        stream.to("b")
    lake.stream("a").select("key", "CAST(length(v) AS BIGINT) AS w").to("b")
    assert seen(lake, "b")[1][-1] == (5, 4, None)
    lines = {line.column: line.source_column for line in lake.lineage("b")}
    assert lines == {"key": "key", "w": None}


def test_what_the_sink_changed_by_itself_stays(source):
    lake = source
    lake.stream("a").to("b")
    lake.sql("ALTER TABLE b RENAME COLUMN v TO mine, DROP COLUMN t, ALTER COLUMN id TYPE BIGINT")
    lake.sql("ALTER TABLE b ADD COLUMN own STRING; COMMENT ON COLUMN b.mine IS 'ours'")
    lake.sql("ALTER TABLE a RENAME COLUMN v TO x, RENAME COLUMN t TO u")
    lake.sql("COMMENT ON COLUMN a.x IS 'theirs'; INSERT INTO a VALUES (2, 20, 'x')")
    lake.stream("a").to("b")
    assert seen(lake, "b") == (["id", "mine", "own"], [(1, 10, None), (2, 20, None)])
    table = lake.table("b")._version()
    assert table.comments == {table.columns.find(("mine",)).id: "ours"}
    assert [(x.column, x.source_column) for x in lake.lineage()] == [("id", "id"), ("mine", "x")]
    lake.sql("ALTER TABLE a ADD COLUMN own INT")
    lake.sql("INSERT INTO a VALUES (3, 30, 'x', 1)")
    with pytest.raises(InvalidRequest, match="column own: int cannot be stored as varchar"):
        lake.stream("a").to("b")
    lake.stream("a").select("id", "x", "CAST(own AS STRING) AS own").to("b")
    assert seen(lake, "b")[1][-1] == (3, 30, "1")


def test_fields_that_the_sink_renamed_by_itself_are_filled(lake):
    lake.sql("CREATE TABLE a (id INT, s STRUCT<f: INT, g: STRUCT<`h h`: INT, k: INT>>)")
    lake.sql("INSERT INTO a VALUES (1, named_struct('f', 1, 'g', named_struct('h h', 2, 'k', 3)))")
    stream = lake.stream("a").where("s.g.`h h` > 1")
    stream.to("b")
    lake.sql("ALTER TABLE b RENAME COLUMN s.f TO `my own`; ALTER TABLE b RENAME COLUMN s.g.k TO i")
    lake.sql("ALTER TABLE a RENAME COLUMN s.g.`h h` TO h")
    for key, h in ((2, 4), (3, 1)):
        row = f"({key}, named_struct('f', 3, 'g', named_struct('h', {h}, 'k', 5)))"
        lake.sql(f"INSERT INTO a VALUES {row}")
    stream.to("b")
    assert seen(lake, "b")[1][1:] == [(2, {"my own": 3, "g": {"h": 4, "i": 5}})]


def test_dropped_columns_may_stay(source):
    lake = source
    lake.sql("CREATE TABLE b (id INT, v INT, t STRING); CREATE VIEW w AS SELECT v FROM b")
    lake.stream("a").to("b")
    lake.sql("ALTER TABLE a DROP COLUMN v; INSERT INTO a VALUES (2, 'x')")
    with pytest.raises(InvalidRequest, match="it would break views"):
        lake.stream("a").to("b")
    lake.stream("a").to("b", on_drop="keep")
    lake.sql("ALTER TABLE a ADD COLUMN z INT; INSERT INTO a VALUES (3, 'y', 4)")
    lake.stream("a").to("b", on_drop="keep")
    assert seen(lake, "b")[0] == ["id", "v", "t", "z"]
    assert [row[1] for row in seen(lake, "b")[1]] == [10, None, None]


def test_changed_columns_may_be_an_error(source):
    lake = source
    lake.stream("a").to("b", on_schema_change="fail")
    lake.sql("INSERT INTO a VALUES (2, 20, 'x')")
    lake.sql("ALTER TABLE a RENAME COLUMN v TO w; INSERT INTO a VALUES (3, 30, 'x')")
    with pytest.raises(InvalidRequest, match=r"or run ALTER TABLE main\.b RENAME COLUMN v TO w"):
        lake.stream("a").to("b", on_schema_change="fail")
    assert [row[0] for row in seen(lake, "b")[1]] == [1, 2]
    lake.sql("ALTER TABLE b RENAME COLUMN v TO w")
    lake.stream("a").to("b", on_schema_change="fail")
    assert seen(lake, "b") == seen(lake, "a")


@pytest.mark.parametrize("again", ["UNDROP TABLE b", "CREATE TABLE b SHALLOW CLONE kept"])
def test_rows_that_are_there_are_not_added_once_more(source, again):
    lake = source
    lake.stream("a").to("b")
    lake.sql(f"CREATE TABLE kept SHALLOW CLONE b; DROP TABLE b; {again}")
    lake.sql("INSERT INTO a VALUES (2, 20, 'x')")
    with pytest.raises(InvalidRequest, match="b has rows, and this stream has carried none"):
        lake.stream("a").to("b")
    lake.stream("a", starting_version="latest").to("b")
    lake.sql("ALTER TABLE a RENAME COLUMN v TO w; INSERT INTO a VALUES (3, 30, 'y')")
    lake.stream("a").to("b")
    assert [row[0] for row in seen(lake, "b")[1]] == [1, 3]
    assert seen(lake, "b")[0] == ["id", "w", "t"]


def test_starts_are_those_of_streams(source):
    lake = source
    lake.sql("INSERT INTO a VALUES (2, 20, 'x')")
    at = lake.snapshots()[-1].id
    lake.stream("a", starting_version=at).to("b")
    assert [row[0] for row in seen(lake, "b")[1]] == [2]
    lake.stream("a", starting_version="all").to("b", query_id="again")
    assert [row[0] for row in seen(lake, "b")[1]] == [1, 2, 2]
    lake.sql("DELETE FROM a WHERE id = 1")
    with pytest.raises(Unsupported, match="changed or deleted rows"):
        lake.stream("a").to("b")
    lake.sql("INSERT INTO a VALUES (3, 30, 'x')")
    lake.stream("a", ignore_deletes=True).to("b")
    lake.stream("a", skip_change_commits=True).to("b", query_id="again")
    assert [row[0] for row in seen(lake, "b")[1]] == [1, 2, 2, 3, 3]


def test_a_table_of_another_lake_follows(source, spark, tmp_path):
    url = f"sqlite:///{tmp_path}/other.db"
    with shelduck.connect(url, f"{tmp_path}/other", spark) as other:
        other.sql("CREATE TABLE b (id INT, v INT, t STRING)")
        sink = other.table("b")
        source.stream("a").to(sink)
        source.sql("ALTER TABLE a RENAME COLUMN v TO w; INSERT INTO a VALUES (2, 20, 'x')")
        source.stream("a").to(sink)
        assert seen(other, "b") == seen(source, "a")
        [first, *_] = other.lineage("b")
        assert (first.source, first.source_column) == ("main.a", "id")
        assert first.lake == source.data_path


def test_names_of_tables_may_change(source):
    lake = source
    lake.stream("a").to("b")
    lake.sql("ALTER TABLE a RENAME TO aa; ALTER TABLE b RENAME TO bb")
    lake.sql("INSERT INTO aa VALUES (2, 20, 'x')")
    lake.stream("aa").to("bb")
    assert seen(lake, "bb") == seen(lake, "aa")
    assert {line.source for line in lake.lineage()} == {"main.aa"}


@pytest.mark.parametrize(
    ("run", "error", "told"),
    [
        (lambda a: a("a").to("a"), InvalidRequest, "main.a cannot follow main.a"),
        (lambda a: a("c").to("a"), InvalidRequest, "a cannot follow main.c, which follows it"),
        (lambda a: a("nope").to("b"), NotFound, "table 'nope' does not exist"),
        (lambda a: a("a").to("b", on_drop="x"), InvalidRequest, "'x' is none of 'drop', 'keep'"),
        (lambda a: a("a").where("nope > 1").to("d"), InvalidRequest, "does not fit the columns"),
        (lambda a: a("a").select("v", "v").to("d"), InvalidRequest, "two columns named 'v'"),
        (lambda a: a("a").select(), InvalidRequest, "select needs its expressions"),
    ],
)
def test_what_cannot_be_carried_is_refused(source, run, error, told):
    source.stream("a").to("b")
    source.stream("b").to("c")
    before = source.snapshots()[-1].id
    with pytest.raises(error, match=told):
        run(source.stream)
    assert source.snapshots()[-1].id == before


def test_of_two_at_once_each_row_comes_once(source):
    lake = source
    lake.stream("a").to("b")
    for n in range(2, 8):
        lake.execute(f"INSERT INTO a VALUES ({n}, {n}, 'x')")
        if n % 3 == 0:
            lake.execute(f"ALTER TABLE a ADD COLUMN c{n} INT; ALTER TABLE a DROP COLUMN c{n}")
    failed = []

    def run():
        try:
            lake.stream("a").to("b")
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert seen(lake, "b") == seen(lake, "a")


def test_of_two_that_begin_at_once_one_makes_the_sink(source, monkeypatch):
    made = carrying.Carrying.make_sink

    def twice(one, version):
        made(one, version)
        made(one, version)

    monkeypatch.setattr(carrying.Carrying, "make_sink", twice)
    source.stream("a").to("b")
    assert seen(source, "b") == seen(source, "a")
    source.sql("CREATE VIEW c AS SELECT 1 AS one")
    with pytest.raises(AlreadyExists, match="view"):
        source.stream("a").to("c")


class Killed(BaseException):
    pass


@pytest.mark.parametrize("step", ["append", "with_following", "carry_out_anew", "plan_alter"])
def test_a_batch_is_whole_or_not_there(source, monkeypatch, step):
    lake = source
    lake.stream("a").to("b")
    lake.sql("ALTER TABLE a RENAME COLUMN v TO w, ADD COLUMN n INT DEFAULT 5")
    lake.sql("INSERT INTO a VALUES (2, 20, 'x', 6)")
    lake.table("a").alter(shelduck.change_type("n", "string"), wait=True)
    lake.sql("INSERT INTO a VALUES (3, 30, 'x', 'seven')")
    known = getattr(carrying, step)
    for after in (False, True):

        def dies(*args, after=after):
            if after:
                known(*args)
            raise Killed

        monkeypatch.setattr(carrying, step, dies)
        with pytest.raises(Killed):
            lake.stream("a").to("b")
    monkeypatch.undo()
    lake.stream("a").to("b")
    assert seen(lake, "b") == seen(lake, "a")
    assert rows(lake.sql("SELECT count(*) FROM b")) == [(3,)]


@pytest.mark.parametrize("step", ["next", "carry"])
def test_a_sink_that_was_made_follows_before_its_first_rows(source, monkeypatch, step):
    lake = source

    def dies(*_):
        raise Killed

    owner = carrying.Carrying if step == "next" else carrying.Step
    monkeypatch.setattr(owner, step, dies)
    with pytest.raises(Killed):
        lake.stream("a").to("b")
    monkeypatch.undo()
    assert seen(lake, "b") == (["id", "v", "t"], [])
    lake.sql("ALTER TABLE a RENAME COLUMN v TO w, DROP COLUMN id, ADD COLUMN id INT DEFAULT 9")
    lake.table("a").alter(shelduck.change_type("t", "int", using="w + 1"), wait=True)
    lake.stream("a").to("b")
    assert seen(lake, "b") == seen(lake, "a") == (["w", "t", "id"], [(10, 11, 9)])


def test_a_stream_that_begins_later_follows_from_when_its_sink_was_made(source):
    lake = source
    lake.stream("a", starting_timestamp="2999-01-01").to("b")
    lake.sql("ALTER TABLE a RENAME COLUMN v TO w; INSERT INTO a VALUES (2, 20, 'x')")
    lake.sql("DELETE FROM a WHERE id = 1; INSERT INTO a VALUES (3, 30, 'x')")
    at = lake.snapshots()[-3].id
    with pytest.raises(Unsupported, match="changed or deleted rows"):
        lake.stream("a", starting_version=at).to("b")
    assert seen(lake, "b") == (["id", "w", "t"], [(2, 20, "x")])


def test_columns_that_swap_names_keep_what_else_becomes_of_them(source):
    lake = source
    lake.stream("a").to("b")
    lake.sql("ALTER TABLE a RENAME COLUMN v TO t, RENAME COLUMN t TO v, ADD COLUMN n INT AFTER t")
    lake.sql("ALTER TABLE a ALTER COLUMN t SET DEFAULT 5; COMMENT ON COLUMN a.v IS 'text'")
    lake.sql("INSERT INTO a (id, v) VALUES (2, 'x')")
    lake.stream("a").to("b")
    assert seen(lake, "b") == seen(lake, "a")
    columns = lake.table("b").columns
    assert [column.default and column.default.text for column in columns.fields] == [
        *(None, "5", None, None)
    ]


def test_a_conversion_does_not_keep_not_null_away(source):
    lake = source
    lake.stream("a").to("b")
    lake.sql("ALTER TABLE a ALTER COLUMN id SET NOT NULL")
    lake.table("a").alter(shelduck.change_type("t", "int"), wait=True)
    lake.sql("INSERT INTO a VALUES (2, 20, 8)")
    lake.stream("a").to("b")
    assert seen(lake, "b") == (["id", "v", "t"], [(1, 10, 7), (2, 20, 8)])
    assert [column.nullable for column in lake.table("b").columns.fields] == [False, True, True]


def test_columns_go_whatever_they_were_in_rows_and_structs_before(source):
    lake = source
    lake.sql("ALTER TABLE a ADD COLUMN n INT DEFAULT 5, ADD COLUMN s STRUCT<f: INT, g: INT>")
    lake.sql("ALTER TABLE a DROP COLUMN s.f")
    lake.stream("a").to("b")
    lake.sql("ALTER TABLE a DROP COLUMN n, DROP COLUMN s; INSERT INTO a VALUES (2, 20, 'x')")
    lake.stream("a").to("b")
    assert seen(lake, "b") == seen(lake, "a")


def test_a_text_and_fields_that_get_other_names(lake):
    lake.sql("CREATE TABLE a (id INT, s STRUCT<f: INT, g: INT>, l ARRAY<STRUCT<h: INT>>)")
    values = "named_struct('f', 1, '{}', 2), array(named_struct('{}', 3))"
    lake.sql(f"INSERT INTO a VALUES (1, {values.format('g', 'h')})")
    lake.stream("a").where("id > 0").to("b")
    lake.sql("ALTER TABLE a RENAME COLUMN s.g TO gg; ALTER TABLE a RENAME COLUMN l.element.h TO hh")
    lake.sql(f"INSERT INTO a VALUES (2, {values.format('gg', 'hh')})")
    lake.stream("a").where("id > 0").to("b")
    assert seen(lake, "b") == seen(lake, "a")


def test_sql_carries_and_shows_the_lineage(source, spark):
    lake = source
    call = "CALL carry('a', 'b', where => 'v < 15', select => ARRAY('id', 'v AS w'))"
    assert rows(lake.sql(call)) == [(3,)]
    assert rows(lake.sql(call)) == [(None,)]
    lake.sql("ALTER TABLE a RENAME COLUMN v TO x; INSERT INTO a VALUES (2, 12, 'y'), (3, 30, 'z')")
    # One stream, whoever calls it.
    lake.stream("a").where("v < 15").select("id", "v AS w").to("b")
    assert seen(lake, "b") == (["id", "w"], [(1, 10), (2, 12)])
    shown = lake.sql("CALL lineage('b')")
    assert sorted((r.table, r.column, r.source, r.source_column) for r in shown.collect()) == [
        ("main.b", "id", "main.a", "id"),
        ("main.b", "w", "main.a", "x"),
    ]
    assert rows(lake.sql("CALL lineage('a')")) == []
    assert rows(lake.sql("CALL lineage()")) == rows(shown)
    for wrong in ("on_drop => 'lose'", "starting_version => 'first'", "starting_version => 1.5"):
        with pytest.raises(InvalidRequest, match="is none of"):
            lake.sql(f"CALL carry('a', 'c', {wrong})")
    with pytest.raises(InvalidRequest, match="transaction"), lake.transaction() as tx:
        tx.sql("CALL carry('a', 'c')")
    with pytest.raises(NotFound, match="table 'nosuch' does not exist"):
        lake.sql("CALL carry('nosuch', 'c')")
    assert [t.name for t in lake.tables()] == ["a", "b"]
    with pytest.raises(InvalidRequest, match="is none of"):
        lake.stream("a", starting_version="first")


@pytest.mark.slow
def test_a_stream_with_a_key_changes_and_deletes_rows(source):
    lake = source
    lake.sql("INSERT INTO a VALUES (2, 20, 'x'), (3, 30, 'y'), (4, 40, 'z')")
    keyed = lake.stream("a", key=["id"])
    keyed.to("b")
    lake.sql("UPDATE a SET v = v + 1 WHERE id > 2")
    lake.sql("UPDATE a SET id = 9 WHERE id = 3")
    lake.sql("DELETE FROM a WHERE id = 4")
    lake.sql("ALTER TABLE a RENAME COLUMN id TO k, ADD COLUMN n INT DEFAULT 5")
    with DuckDBOracle(lake._state.store.where) as duck:
        duck.execute("UPDATE a SET v = 21 WHERE k = 2")
        duck.execute("INSERT INTO a VALUES (4, 41, 'w', 6)")
        duck.execute("DELETE FROM a WHERE k = 1")
    lake.table("a").alter(shelduck.change_type("v", "string"), wait=True)
    lake.sql("UPDATE a SET v = concat(v, '!') WHERE k = 9")
    keyed.to("b")
    assert seen(lake, "b") == seen(lake, "a")
    assert seen(lake, "b")[1] == [(2, "21", "x", 5), (4, "41", "w", 6), (9, "31!", "y", 5)]
    assert keyed.to("b") is None


@pytest.mark.slow
def test_a_key_goes_on_behind_not_null_and_a_table_that_is_emptied(source):
    lake = source
    lake.sql("INSERT INTO a VALUES (2, NULL, 'x'), (3, NULL, 'y')")
    keyed = lake.stream("a", key=["id"])
    keyed.to("b")
    lake.sql("UPDATE a SET v = 2 WHERE id = 2")
    lake.sql("DELETE FROM a WHERE id = 3")
    lake.sql("ALTER TABLE a ALTER COLUMN v SET NOT NULL")
    keyed.to("b")
    assert not lake.table("b").columns.find(("v",)).nullable
    assert seen(lake, "b") == seen(lake, "a")
    lake.sql("TRUNCATE TABLE a")
    lake.sql("INSERT INTO a VALUES (2, 3, 'new')")
    keyed.to("b")
    assert seen(lake, "b")[1] == [(2, 3, "new")]


def test_rows_that_leave_a_condition_leave_the_sink(source):
    lake = source
    lake.sql("INSERT INTO a VALUES (2, 20, 'x'), (3, 30, 'y')")
    keyed = (
        lake.stream("a", key=["number"]).where("v > 15").select("id AS number", "v * 2 AS twice")
    )
    keyed.to("b")
    lake.sql("UPDATE a SET v = 40 - v WHERE id < 3")
    lake.sql("UPDATE a SET v = 31 WHERE id = 3")
    keyed.to("b")
    assert seen(lake, "b")[1] == [(1, 60), (2, 40), (3, 62)]
    lake.sql("UPDATE a SET v = 0 WHERE id = 2")
    lake.sql("INSERT OVERWRITE a SELECT id, v, t FROM a WHERE id <> 3")
    lake.sql(
        "CALL carry('a', 'b', key => 'number', where => 'v > 15',"
        " select => ARRAY('id AS number', 'v * 2 AS twice'))"
    )
    assert seen(lake, "b")[1] == [(1, 60)]


def test_a_key_is_that_of_the_sink(source):
    lake = source
    lake.sql("CREATE TABLE plain (id INT, v INT, t STRING)")
    lake.sql("CREATE TABLE other (id INT, v INT, t STRING) UNIQUE KEY (id, v)")
    lake.sql("CREATE TABLE sums (id INT, v INT SUM, t STRING MAX) AGGREGATE KEY (id)")
    for sink in ("plain", "other", "sums"):
        with pytest.raises(
            InvalidRequest, match=rf"main.{sink} is no table with UNIQUE KEY \(id\)"
        ):
            lake.stream("a", key=["id"]).to(sink)
    with pytest.raises(NotFound, match="nope"):
        lake.stream("a", key=["nope"]).to("b")
    lake.sql("CREATE TABLE own (id INT, v INT) UNIQUE KEY (id)")
    with pytest.raises(InvalidRequest, match=r"UNIQUE KEY \(id\) whose columns the stream fills"):
        lake.stream("a", key=["id"]).select("v").to("own")
    with pytest.raises(InvalidRequest, match="leave out skip_change_commits"):
        lake.stream("a", key=["id"], skip_change_commits=True)
    lake.sql("UPDATE a SET v = 11")
    assert lake.stream("a", key=["ID"]).select("id", "v").to("own") is not None
    assert seen(lake, "own")[1] == [(1, 11)]


@pytest.mark.slow
def test_a_sink_with_a_key_computes_and_checks(source):
    lake = source
    lake.sql(
        "CREATE TABLE b (id INT, v INT, w INT GENERATED ALWAYS AS (v * 2), CONSTRAINT low CHECK"
        " (v < 90)) UNIQUE KEY (id)"
    )
    lake.sql("INSERT INTO a VALUES (2, 20, 'x'), (3, 30, 'y')")
    keyed = lake.stream("a", key="id").select("id", "v")
    keyed.to("b")
    lake.sql("DELETE FROM a WHERE id = 1; UPDATE a SET v = 21 WHERE id = 2")
    keyed.to("b")
    assert seen(lake, "b")[1] == [(2, 21, 42), (3, 30, 60)]
    lake.sql("UPDATE a SET v = 99 WHERE id = 2")
    with pytest.raises(InvalidRequest, match="constraint low"):
        keyed.to("b")
    lake.sql("DELETE FROM a WHERE id = 2")
    keyed.to("b")
    assert seen(lake, "b")[1] == [(3, 30, 60)]
