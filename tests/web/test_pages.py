"""The numbers of each page, on lakes whose numbers are known."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

import shelduck
from shelduck.catalog.commit.commit import commit
from shelduck.catalog.read import row_counts
from shelduck.catalog.running import job_rows as catalog_jobs
from shelduck.ducklake.tables import tag
from shelduck.model.changes.change import (
    AppendFiles,
    CommitInfo,
    DeleteRows,
    FileDeletes,
    RenameTable,
)
from shelduck.model.changes.job import OPEN_STATES, JobState, JobStep, JobWork, NewJob
from shelduck.model.files.data_file import DeletesSeen
from shelduck.web.pages import jobs_page
from tests.support.files import write_delete_file, write_file
from tests.support.html import figures, of_class, rows, words
from tests.support.lake import Lake
from tests.web.conftest import served


def dead(lake, name, *positions):
    table, [file, *_] = lake.table(name), lake.files(name)
    deletes = FileDeletes(
        file.id, DeletesSeen(), delete_file=write_delete_file(table, file.path, positions)
    )
    lake.commit(DeleteRows(table, (deletes,)))


def sized(lake, name, size, rows_):
    """A file whose size the catalog has from us."""
    table = lake.table(name)
    file = replace(write_file(table, rows_), file_size_bytes=size)
    lake.commit(AppendFiles(table.id, (file,)))


def test_the_lake_page_counts_files_rows_deletes_and_jobs(lake, page):
    lake.create("ducks", id="bigint")
    lake.create("Geese", id="bigint")
    sized(lake, "ducks", 1_000_000, [{"id": n} for n in range(6)])
    sized(lake, "ducks", 500_000, [{"id": n} for n in range(4)])
    dead(lake, "ducks", 1, 3)
    deleted = lake.files("ducks")[0].delete_file
    lake.tell("INSERT INTO Geese VALUES (1), (2), (3)", "DELETE FROM Geese WHERE id = 2", inline=10)
    lake.tell("DELETE FROM ducks WHERE id = 3", inline=10)
    job = NewJob(lake.table("ducks").id, "main.ducks", JobWork())
    lake_commit(lake, job)

    found = page.tree("/")
    assert deleted.delete_count == 2
    told = figures(found)
    assert (told["tables"], told["data files"], told["snapshots"]) == ("2", "2", "9")
    lines = rows(found, "Tables")
    assert [(line[0], line[1], line[3], line[4], line[6]) for line in lines] == [
        ("main.ducks", "7", "2", "30%", "1 open job"),
        ("main.Geese", "2", "0 2 rows in the catalog", "0%", ""),
    ]
    assert all(line[5].endswith(("seconds ago", "second ago")) for line in lines)
    assert lines[0][2] == "1.5 MB"
    assert lake.ask("SELECT count(*) FROM ducks") == [(7,)]
    assert lake.ask("SELECT count(*) FROM Geese") == [(2,)]


def lake_commit(lake, job):
    head = lake.head().id
    return commit(lake.store, lake.info, [job], base=head, info=CommitInfo())


@pytest.mark.every_database
def test_every_page_asks_every_database(lake, page, sql):
    sql("CREATE TABLE t (a INT NOT NULL, s STRUCT<x: INT>) SORTED BY (a)")
    bounds = {1: ("1", "1", 0)}
    row = {"a": 1, "s": {"x": 1}}
    file = write_file(lake.table("t"), [row, row], bounds)
    made = replace(file, file_size_bytes=20_000)
    info = CommitInfo("Mara", "first rows")
    lake.commit(AppendFiles(lake.table("t").id, (made,)), info=info)
    dead(lake, "t", 0)
    sql("ALTER TABLE t ALTER COLUMN a TYPE BIGINT, ADD COLUMN s.y INT", "CREATE TABLE `T%` (b INT)")
    lake.tell("INSERT INTO t (a) VALUES (7)", inline=10)
    number = step_running(lake)

    path = f"/tables/{page.id_of('t')}"
    lines = [[c for n, c in enumerate(line) if n != 5] for line in rows(page.tree("/"), "Tables")]
    assert lines[0] == ["main.t", "2", lines[0][2], "1 1 row in the catalog", "50%", "1 open job"]
    assert lines[1] == ["main.T%", "0", "0 bytes", "0", "0%", ""]
    assert len(of_class(of_class(page.tree("/"), "chart")[0], "bar")) == 1
    assert [line[0] for line in rows(page.tree("/?q=t%25&sort=newest"), "Tables")] == ["main.T%"]
    story = page.tree(path)
    assert [s.get("id") for s in of_class(story, "step")] == ["at-1", "at-4"]
    assert rows(story, "Changes of the columns")[0][3] == (
        "changed type of a int32 → int64 added s.y int32"
    )
    assert rows(page.tree(f"{path}/moult"), "Layouts")[0][1:] == [
        *("1", "2", "20.0 kB", "snapshot 2", "a: int32 instead of int64 lacks s.y")
    ]
    files = page.tree(f"{path}/files")
    assert rows(files, "Files by size") == [["10 to 100 kB", "1", "2", "20.0 kB"]]
    assert figures(files)["rows in the catalog"] == "1"
    assert "One value of a is in at most 1 file of 1" in words(files)
    query = f"/snapshots?table={page.id_of('t')}&author=Mara&kind=rows+added"
    [line] = rows(page.tree(query), "Snapshots")
    assert (line[0], *line[2:]) == ("2", "Mara", "added rows to main.t", "first rows")
    compared = rows(page.tree("/snapshots/compare?a=1&b=4"), "Tables that differ")
    assert (compared[0][:3], compared[0][4]) == (
        ["main.t", "+1", "+1"],
        "changed type of a int32 → int64 added s.y int32",
    )
    assert rows(page.tree("/jobs"), "Jobs")[0][:2] == [str(number), "main.t"]
    planned = page.tree("/plan?sql=ALTER+TABLE+t+ALTER+COLUMN+a+TYPE+STRING")
    # The row in the catalog counts as a file without bytes.
    assert rows(planned, "Steps")[0][3:] == ["2", "2 1 in the catalog", "20.0 kB"]


def step_running(lake):
    number = lake_commit(lake, NewJob(lake.table("t").id, "main.t", JobWork())).job.id
    step(lake, number, JobState.RUNNING, done=1, total=2)
    return number


def test_tables_are_searched_sorted_and_paged(lake, page, sql, monkeypatch):
    monkeypatch.setattr("shelduck.web.pages.lake_page.PAGE", 10)
    sql(*(f"CREATE TABLE t{n:02} (a INT)" for n in range(11)), "CREATE TABLE `o_d%` (a INT)")
    sized(lake, "t07", 10**7, [{"a": 1}])
    sized(lake, "t03", 10**8, [{"a": 1}])

    assert [line[0] for line in rows(page.tree("/?sort=bytes"), "Tables")][:3] == [
        *("main.t03", "main.t07", "main.o_d%")
    ]
    assert [line[0] for line in rows(page.tree("/?sort=newest"), "Tables")][:3] == [
        *("main.t03", "main.t07", "main.o_d%")
    ]
    second = page.tree("/?page=2")
    assert [line[0] for line in rows(second, "Tables")] == ["main.t09", "main.t10"]
    assert "Page 2 of 2 (12 tables)" in words(second)
    assert [line[0] for line in rows(page.tree("/?q=_D%25"), "Tables")] == ["main.o_d%"]
    assert [line[0] for line in rows(page.tree("/?q=T1"), "Tables")] == ["main.t10"]
    assert "No table has “nothing” in its name." in page.text("/?q=nothing")
    assert [line[0] for line in rows(page.tree("/?page=9"), "Tables")][-1] == "main.t10"


def test_the_lake_page_shows_commits_of_the_last_thirty_days(lake, page):
    lake.create("t", a="int")
    lake.create("u", a="int")
    [chart] = of_class(page.tree("/"), "chart")
    today = datetime.now(UTC)
    bar = f"{today.day} {today:%b %Y}: 3"
    assert [words(b) for b in chart.iter("rect")] == [bar]
    [shape] = chart.iter("rect")
    assert (shape.get("x"), shape.get("width")) == ("97.0833%", "2.5%")
    assert (shape.get("y"), shape.get("height")) == ("0.0%", "100.0%")


def test_an_empty_lake_says_so(lake, page):
    assert "The lake has no tables yet." in page.text("/")
    assert "No job was ever needed" in page.text("/jobs")


def facts(page, title):
    """The terms of the card with this title, each with what stands behind it."""
    [card] = [c for c in of_class(page, "card") if words(c).startswith(title)]
    [told] = of_class(card, "facts")
    return dict(zip(map(words, told.iter("dt")), map(words, told.iter("dd")), strict=True))


def test_the_definition_of_a_table_shows_what_it_has(page, sql):
    sql(
        "CREATE TABLE t (k INT, day DATE, v INT SUM) AGGREGATE KEY (k, day)"
        " ROLLUP (r (k, v)) PARTITIONED BY (bucket(4, k), day) SORTED BY (day DESC, k)",
        "CREATE TABLE u (id BIGINT GENERATED ALWAYS AS IDENTITY, a INT,"
        " b INT GENERATED ALWAYS AS (a + 1), PRIMARY KEY (id), CONSTRAINT small CHECK (a < 9))",
        "ALTER TABLE u RENAME COLUMN a TO `<b>`",
    )
    found = page.tree(f"/tables/{page.id_of('t')}/definition")
    assert facts(found, "Keys") == {"Key 0": "AGGREGATE KEY (k, day)"}
    assert facts(found, "Partitioning") == {"Part 0": "bucket(4, k)", "Part 1": "day"}
    assert facts(found, "Sort order") == {"Sort 0": "day DESC", "Sort 1": "k"}
    assert facts(found, "Rollups") == {"r": "k, v"}
    other = page.tree(f"/tables/{page.id_of('u')}/definition")
    assert facts(other, "Constraints") == {
        "primary_key_1": "PRIMARY KEY (id) NOT ENFORCED",
        "small": "CHECK (`<b>` < 9)",
    }
    assert facts(other, "Computed columns") == {
        "id": "GENERATED ALWAYS AS IDENTITY",
        "b": "GENERATED ALWAYS AS (`<b>` + 1)",
    }
    with shelduck.connect(page.lake.url) as lake:
        for name, shown in (("t", found), ("u", other)):
            [(text,)] = lake.execute(f"SHOW CREATE TABLE {name}").rows
            assert "".join(of_class(shown, "code")[-1].itertext()) == text
    rollup = page.tree(f"/tables/{page.id_of('t$r')}/definition")
    assert "The table is the rollup r of main.t;" in words(rollup)


def test_the_definition_of_a_plain_table_asks_no_more_than_its_columns(lake, page):
    lake.create("t", a="int")
    path = f"/tables/{page.id_of('t')}/definition"
    before = lake.store.statements
    assert "no keys, partitions, sort order" in page.text(path)
    # The newest snapshot, and what a table is made of.
    assert lake.store.statements - before == 4


@pytest.mark.every_database
def test_views_are_listed_and_each_has_a_page(page, lake, sql, monkeypatch):
    sql(
        "CREATE TABLE t (a INT, b INT)",
        "ALTER TABLE t RENAME COLUMN a TO c",
        "CREATE VIEW old COMMENT 'as it was' AS SCHEMA VERSION 1 OF t",
    )
    lake.tell(
        "CREATE VIEW twice (x) AS SELECT b * 2 FROM t",
        "COMMENT ON VIEW twice IS 'two <of> each'",
        "CREATE SCHEMA s",
        "CREATE VIEW s.far AS SELECT '" + "<x>" * 200 + "' AS far",
    )
    listed = rows(page.tree("/"), "Views")
    assert [name for name, _ in listed] == ["main.old", "main.twice", "s.far"]
    assert listed[1][1] == "SELECT (b * 2) FROM t"
    assert listed[2][1].startswith("SELECT '<x><x>")
    assert len(listed[2][1]) == 300
    assert [name for name, _ in rows(page.tree("/?q=TWI"), "Views")] == ["main.twice"]
    assert "Views of the lake" not in page.text("/?q=other")
    links = {words(a): a.get("href") for a in page.tree("/").iter("a")}
    twice = page.tree(links["main.twice"])
    assert "two <of> each" in words(twice)
    assert "CREATE VIEW main.twice (x) COMMENT 'two <of> each' AS SELECT (b * 2)" in words(twice)
    old = page.tree(links["main.old"])
    assert "CREATE VIEW main.old COMMENT 'as it was' AS SCHEMA VERSION 1 OF main.t" in words(old)
    [pinned] = [a.get("href") for a in old.iter("a") if words(a).startswith("the columns that")]
    assert rows(page.tree(pinned), "Columns at snapshot 1")[0][:2] == ["a", "int32"]
    assert "view 99 does not exist" in page.text("/views/99", 404)

    with monkeypatch.context() as patch:
        patch.setattr("shelduck.web.pages.lake_page.PAGE", 2)
        assert "1 more view not shown" in page.text("/")
    newer = update(tag).where(tag.c.key == "shelduck.pinned").values(value='{"version": 99}')
    with lake.store.write() as connection:
        connection.execute(newer)
    told = words(page.tree("/"))
    assert "view old" in told
    assert "main.t" in told


def test_moult_tells_what_each_layout_lacks_and_has(lake, page, sql):
    sql("CREATE TABLE t (id INT, s STRUCT<a: INT>, old STRING)")
    row = {"id": 1, "s": {"a": 1}, "old": "x"}
    sized(lake, "t", 6000, [row] * 3)
    sized(lake, "t", 2000, [row])
    sql(
        "ALTER TABLE t ALTER COLUMN id TYPE BIGINT, ADD COLUMN s.b INT, ADD COLUMN n INT,"
        " DROP COLUMN old, RENAME COLUMN id TO number"
    )
    sized(lake, "t", 1000, [{"number": 1, "s": {"a": 1, "b": 2}, "n": 3}] * 5)
    sql("ALTER TABLE t RENAME COLUMN n TO m")

    found = page.tree(f"/tables/{page.id_of('t')}/moult")
    assert rows(found, "Layouts") == [
        ["1", "1", "5", "1.0 kB", "snapshot 5", "current"],
        [
            *("2", "2", "4", "8.0 kB", "snapshots 2 to 3"),
            "number: int32 instead of int64 lacks s.b, m still has old (column 4)",
        ],
    ]
    [stack] = of_class(found, "stack")
    parts = [s for s in stack.iter("svg") if s is not stack]
    assert [(p.get("x"), p.get("width")) for p in parts] == [
        ("0.0%", "11.1111%"),
        ("11.1111%", "88.8889%"),
    ]
    text = words(found)
    assert "11% of the bytes have the columns of today; 89% lie in older layouts" in text
    assert "A job would write 3 files again: 9 rows, 9.0 kB." in text
    assert "2 files would get another layout." in text


def test_pages_ask_before_they_read_footers_of_others(lake, page):
    lake.tell("CREATE TABLE t (a INTEGER)", "INSERT INTO t SELECT range FROM range(30)")
    path = f"/tables/{page.id_of('t')}"
    assert "A job would write 1 file again: 30 rows" in words(page.tree(f"{path}/moult"))
    assert "nothing to merge" in page.text(f"{path}/files")
    lake.tell("INSERT INTO t SELECT range FROM range(30)")
    assert "Read them and plan" in page.text(f"{path}/files")
    assert "would become 1 file" in words(page.tree(f"{path}/files?plan=1"))


def test_files_are_counted_by_size_partition_and_overlap(lake, page, sql):
    sql("CREATE TABLE t (id INT, place STRING) PARTITIONED BY (place) SORTED BY (id DESC)")
    for low, place, size in ((0, "a", 9_999), (50, "a", 10_000), (200, "b", 5_000_000)):
        table = lake.table("t")
        bounds = {1: (str(low), str(low + 99), 0)}
        made = write_file(table, [{"id": low, "place": place}] * 100, bounds)
        file = replace(
            *(made,),
            partition_id=table.partition_id,
            partition_values=(place,),
            file_size_bytes=size,
        )
        lake.commit(AppendFiles(table.id, (file,)))
    dead(lake, "t", *range(99))

    found = page.tree(f"/tables/{page.id_of('t')}/files")
    assert figures(found) == {
        "data files": "3",
        "in data files": "5.0 MB",
        "mean size": "1.7 MB",
        "rows in files": "300",
        "deleted (99 rows)": "33%",
        "rows in the catalog": "0",
    }
    assert rows(found, "Files by size") == [
        ["below 10 kB", "1", "100", "10.0 kB"],
        ["10 to 100 kB", "1", "100", "10.0 kB"],
        ["4 to 16 MB", "1", "100", "5.0 MB"],
    ]
    assert rows(found, "Partitions") == [
        ["place = b", "1", "100", "0%", "5.0 MB"],
        ["place = a", "2", "200", "50%", "20.0 kB"],
    ]
    text = words(found)
    assert "One value of id is in at most 2 files of 3; on average in 1.3." in text
    assert "1 file (10.0 kB) would be written again without them" in text
    [spans] = of_class(found, "spans")
    assert [(s.get("x"), s.get("width")) for s in spans.iter("rect")] == [
        ("0.0%", "50.0%"),
        ("16.6667%", "50.0%"),
        ("66.6667%", "33.3333%"),
    ]


def test_compaction_of_small_files_is_planned(lake, page):
    lake.create("t", id="bigint")
    for n in range(4):
        sized(lake, "t", 1000, [{"id": n}])
    text = words(page.tree(f"/tables/{page.id_of('t')}/files"))
    assert "4 files (4.0 kB) would become 1 file" in text
    assert "The table has no sort order." in text
    assert "The table is not partitioned" in text


def told(lake, who, why, *changes):
    lake.commit(*changes, info=CommitInfo(who, why))


def test_the_log_is_filtered_by_table_author_and_kind(lake, page, sql):
    lake.create("one", a="int")
    lake.create("two", a="int")
    for who, name in (("Mara", "one"), ("Jonas", "two"), ("Mara", "two")):
        table = lake.table(name)
        told(lake, who, f"rows of {who}", AppendFiles(table.id, (write_file(table, [{"a": 1}]),)))
    told(lake, "Ilse", "a better name", RenameTable(lake.table("one"), "first"))
    sql("ALTER TABLE two ADD COLUMN b INT")
    first, two = page.id_of("first"), page.id_of("two")

    def log(query):
        found = page.tree(f"/snapshots?{query}")
        return [[line[0], *line[2:]] for line in rows(found, "Snapshots")]

    assert log("") == [
        ["7", "", "altered main.two", ""],
        ["6", "Ilse", "created table main.first", "a better name"],
        ["5", "Mara", "added rows to main.two", "rows of Mara"],
        ["4", "Jonas", "added rows to main.two", "rows of Jonas"],
        ["3", "Mara", "added rows to main.first", "rows of Mara"],
        ["2", "", "created table main.two", ""],
        ["1", "", "created table main.one", ""],
        ["0", "", "created schema main", ""],
    ]
    assert [line[0] for line in log(f"table={first}")] == ["6", "3", "1"]
    assert [line[0] for line in log("author=Mara")] == ["5", "3"]
    assert [line[0] for line in log("kind=columns")] == ["7"]
    assert [line[0] for line in log(f"kind=rows+added&table={two}&author=Jonas")] == ["4"]
    assert [line[0] for line in log("before=2")] == ["1", "0"]
    assert "the kind &#39;x&#39; is unknown" in page.text("/snapshots?kind=x", 400)
    assert "No snapshot matches." in page.text("/snapshots?author=Nobody")


def test_a_name_that_looks_like_an_entry_of_the_log_is_no_entry(lake, page, sql):
    lake.create("t", a="int")
    number = page.id_of("t")
    sql(f"CREATE TABLE `x:{number}` (a INT)", f"CREATE TABLE `altered_table:{number},` (a INT)")
    found = rows(page.tree(f"/snapshots?table={number}"), "Snapshots")
    assert [line[0] for line in found] == ["1"]
    assert "No snapshot matches." in page.text("/snapshots?kind=columns")
    assert rows(page.tree("/?q=main.t"), "Tables")[0][0] == "main.t"


def test_the_log_goes_on_on_the_next_page(lake, page, sql, monkeypatch):
    monkeypatch.setattr("shelduck.web.pages.lake_page.PAGE", 4)
    monkeypatch.setattr("shelduck.catalog.read.read._FIRST_PAGE", 3)
    monkeypatch.setattr("shelduck.catalog.read.read._NEXT_PAGES", 3)
    sql(*(f"CREATE TABLE t{n} (a INT)" for n in range(6)))
    found = page.tree("/snapshots")
    assert [line[0] for line in rows(found, "Snapshots")] == ["6", "5", "4", "3"]
    [older] = [a.get("href") for a in found.iter("a") if a.get("rel") == "next"]
    assert older == "/snapshots?before=3"
    assert [line[0] for line in rows(page.tree(older), "Snapshots")] == ["2", "1", "0"]


def test_two_snapshots_are_compared(lake, page, sql):
    sql("CREATE TABLE t (a INT, s STRUCT<x: INT>)", "CREATE TABLE gone (a INT)")
    sized(lake, "t", 1000, [{"a": 1}] * 3)
    first = lake.head().id
    sql(
        "ALTER TABLE t ADD COLUMN b STRING DEFAULT 'x' NOT NULL, RENAME COLUMN s.x TO y",
        "ALTER TABLE t ALTER COLUMN a FIRST, ALTER COLUMN b FIRST",
        "DROP TABLE gone",
        "CREATE TABLE made (a INT)",
        "ALTER TABLE t RENAME TO ducks",
    )
    sized(lake, "ducks", 2000, [{"a": 1, "b": "y"}] * 2)

    found = page.tree(f"/snapshots/compare?a={first}&b={lake.head().id}")
    assert rows(found, "Tables that differ") == [
        [
            *("main.ducks was main.t", "+1", "+2", "+2.0 kB"),
            "renamed s.x to y added b varchar DEFAULT 'x' NOT NULL",
        ],
        [f"main.gone only in {first}", "0", "0", "0", ""],
        [f"main.made only in {lake.head().id}", "0", "0", "0", ""],
    ]
    back = rows(page.tree(f"/snapshots/compare?a={lake.head().id}&b={first}"), "Tables that")
    assert back[2][:4] == [
        "main.t was main.ducks",
        "\N{MINUS SIGN}1",
        "\N{MINUS SIGN}2",
        "\N{MINUS SIGN}2.0 kB",
    ]
    assert "Files, rows and columns of all tables are the same." in page.text(
        f"/snapshots/compare?a={first}&b={first}"
    )
    missing = page.text("/snapshots/compare?a=1&b=999", 404)
    assert "snapshot 999 does not exist; existing snapshots: 0 to" in missing


def test_rows_in_the_catalog_are_compared_for_more_tables_than_one_statement_asks(
    lake, page, sql, monkeypatch
):
    monkeypatch.setattr(row_counts, "AT_ONCE", 2)
    sql(*(f"CREATE TABLE t{n} (a INT)" for n in range(5)))
    first = lake.head().id
    sql(*(f"INSERT INTO t{n} VALUES {', '.join(['(1)'] * n)}" for n in range(1, 5)))

    found = rows(page.tree(f"/snapshots/compare?a={first}&b={lake.head().id}"), "Tables that")
    assert [line[:3] for line in found] == [[f"main.t{n}", "0", f"+{n}"] for n in range(1, 5)]


def test_another_order_of_columns_is_one_change(lake, page, sql):
    sql("CREATE TABLE t (a INT, b INT, c INT)", "ALTER TABLE t ALTER COLUMN c FIRST")
    found = rows(page.tree("/snapshots/compare?a=1&b=2"), "Tables that differ")
    assert found == [["main.t", "0", "0", "0", "changed the order of columns"]]


def begun(lake, name="t"):
    return lake_commit(lake, NewJob(lake.table(name).id, f"main.{name}", JobWork())).job.id


def step(lake, number, state, **told_):
    catalog_jobs.move_job(lake.store, JobStep(number, OPEN_STATES, state, **told_))


def test_jobs_show_state_progress_and_message(lake, page):
    for name in ("t", "u", "v"):
        lake.create(name, a="int")
    running, cancelled = begun(lake), begun(lake, "u")
    step(lake, running, JobState.RUNNING, done=5, total=20)
    step(lake, cancelled, JobState.CANCELLED, message="a has the value 'x', which is no int32")
    waiting = begun(lake, "v")

    found = page.tree("/jobs")
    lines = rows(found, "Jobs")
    assert [line[:3] for line in lines] == [
        [str(waiting), "main.v", "PENDING no worker runs it"],
        [str(cancelled), "main.u", "CANCELLED"],
        [str(running), "main.t", "RUNNING no worker runs it"],
    ]
    assert lines[1][6] == "a has the value 'x', which is no int32"
    assert lines[0][3] == "not counted yet"
    assert lines[2][3].startswith("5 of 20 files, ")
    assert "left" in lines[2][3]
    [done] = of_class(found, "done")
    assert done.get("width") == "25.0%"
    [live] = [e for e in found.iter("div") if e.get("id") == "jobs"]
    assert (live.get("hx-trigger"), live.get("hx-get")) == ("every 2s", "/jobs")
    only = rows(page.tree(f"/jobs?table={page.id_of('u')}"), "Jobs")
    assert [line[0] for line in only] == [str(cancelled)]
    quiet = page.tree(f"/jobs?table={page.id_of('u')}")
    [live] = [e for e in quiet.iter("div") if e.get("id") == "jobs"]
    assert live.get("hx-trigger") == "every 15s"
    assert list(found.iter("button")) == []


def test_an_alter_is_planned_and_nothing_happens(lake, page, sql):
    sql("CREATE TABLE t (a INT, v STRING)")
    sized(lake, "t", 3_000_000, [{"a": 1, "v": "1"}] * 7)
    before = lake.head()

    def plan(text):
        return page.tree(f"/plan?{'&'.join(['sql=' + text.replace(' ', '+')])}")

    light = plan("ALTER TABLE t ADD COLUMN b INT, ALTER COLUMN a TYPE BIGINT")
    assert [line[1] for line in rows(light, "Steps")] == ["light", "light"]
    assert "Metadata only: one short transaction, no file is touched." in words(light)
    heavy = plan("ALTER TABLE t ALTER COLUMN v TYPE INT")
    [line] = rows(heavy, "Steps")
    assert (line[0], line[1], line[3:]) == (
        *("ALTER COLUMN v TYPE int32", "heavy"),
        ["1", "7", "3.0 MB"],
    )
    for text, expected in (
        (
            "ALTER TABLE t ALTER COLUMN a TYPE DECIMAL(3,1)",
            "Values: proven for 0 of 1 file(s); 1 file(s) must be read",
        ),
        ("DROP TABLE t", "only one ALTER TABLE"),
        ("ALTER TABLE nope ADD COLUMN a INT", "table 'nope' does not exist"),
        ("ALTER TABLE t DROP COLUMN zz", "column 'zz' does not exist"),
        ("ALTER TABLE", "expected a table at line 1"),
    ):
        assert expected in words(plan(text)), text
    [area] = page.tree(f"/plan?table={page.id_of('t')}").iter("textarea")
    assert area.text == "ALTER TABLE main.t "
    assert lake.head() == before


def test_pages_of_tables_that_are_not_there_say_so(lake, page, sql):
    sql("CREATE TABLE t (a INT)")
    number = page.id_of("t")
    sql("DROP TABLE t")
    for path in ("", "/moult", "/files"):
        text = page.text(f"/tables/{number}{path}", 404)
        assert "does not exist" in text
        assert f"/tables/{number}{path}" not in text
    assert "this page does not exist" in page.text("/tables/x", 404)
    assert "page must be a whole number from 0" in page.text("/?page=-1", 400)
    assert page.client.post("/").status_code == 403


def test_a_page_that_fails_says_so_and_the_terminal_why(page, monkeypatch, capsys):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret details")

    monkeypatch.setattr("shelduck.web.pages.lake_page.tables_at", broken)
    text = page.text("/", 500)
    assert "this page failed; the terminal of shelduck ui says where" in text
    assert "secret details" not in text
    assert "secret details" in capsys.readouterr().err


def test_a_file_that_another_process_keeps_is_one_error(duckdb_url, data_path, monkeypatch):
    monkeypatch.setattr("shelduck.catalog.databases.duckdb.BUSY_SECONDS", 0.3)
    lake = Lake(duckdb_url, data_path)
    lake.store.close()
    keep = f"import duckdb, sys; c = duckdb.connect({lake.store.database.path.as_posix()!r})"
    told = "print('open', flush=True); sys.stdin.read()"
    with (
        subprocess.Popen(
            [sys.executable, "-c", f"{keep}; {told}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as other,
        served(lake) as client,
    ):
        assert other.stdout.readline() == "open\n"
        found = client.get("/")
        other.stdin.close()
        other.wait()
        assert client.get("/").status_code == 200
    assert found.status_code == 503
    assert "CatalogUnavailable" in found.text


def test_a_catalog_that_cannot_be_reached_is_one_error(page, monkeypatch):
    def gone(*_: object) -> None:
        raise shelduck.CatalogUnavailable("catalog x is locked")

    monkeypatch.setattr("shelduck.web.pages.jobs_page.catalog_jobs.jobs", gone)
    assert "catalog x is locked" in page.text("/jobs", 503)


ROWS = [
    "INSERT INTO t VALUES (1, 1), (2, NULL), (4, 4)",
    "INSERT INTO t VALUES (3, 2)",
    "DELETE FROM t WHERE id = 3",
    "INSERT INTO t SELECT i, 7 FROM range(10, 50) r(i)",
    "DELETE FROM t WHERE id = 10",
    "DELETE FROM t WHERE id IN (11, 12)",
    "DELETE FROM t WHERE id BETWEEN 13 AND 30",
    "UPDATE t SET p = 5 WHERE id = 1",
    "DELETE FROM t WHERE id >= 10",
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("acts", [1, len(ROWS)])
def test_pages_count_rows_in_files_and_in_the_catalog(acts, lake, page):
    lake.tell(
        "CREATE TABLE t (id INTEGER, p INTEGER)", "ALTER TABLE t SET PARTITIONED BY (p)", inline=10
    )
    empty = before = lake.head().id
    count = 0
    for act in ROWS[:acts]:
        lake.tell(act, inline=10)
        [(counted,)] = lake.ask("SELECT count(*) FROM t")
        [line] = rows(page.tree("/"), "Tables")
        assert line[1] == str(counted), act
        for older, difference in ((empty, counted), (before, counted - count)):
            compared = f"/snapshots/compare?a={older}&b={lake.head().id}"
            [line] = rows(page.tree(compared), "Tables that differ")
            sign = "+" if difference > 0 else "\N{MINUS SIGN}" if difference else ""
            # DuckDB merges delete files; the page says that it is not sure then.
            assert line[2] == f"{sign}{abs(difference)}" or line[2].endswith(" about"), act
        before, count = lake.head().id, counted

    assert figures(page.tree("/"))["rows in the catalog"] == "3"
    one = "1" if acts == 1 else "5"
    files = page.tree(f"/tables/{page.id_of('t')}/files")
    shown = [place for place, _ in rows(files, "Partitions of rows")]
    assert sorted(shown) == sorted([f"p = {one}", "p = 4", "p = NULL"])


@pytest.mark.parametrize(
    "note", ["", "load 7", "[]", "3", '{"conversions": 1}', '{"conversions": [{"to": "int"}]}']
)
def test_a_note_of_somebody_else_is_no_record_of_a_job(note):
    assert jobs_page._record(note) == ()


def test_a_record_says_what_became_of_values():
    made = '{"column": "v", "from": "varchar", "to": "int32", "nulls": 1200, "became_null": 3}'
    told = jobs_page._record(f'{{"job": 3, "rows": 5000, "conversions": [{made}]}}')
    assert told == ("5,000 rows", "v: varchar to int32, 1,200 NULL, 3 of them from other values")
