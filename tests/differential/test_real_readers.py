"""Every export is read right by the Spark readers of Delta and of Iceberg themselves.

A table has columns of every type at every place, is written by Shelduck or by DuckDB, and then
changed. What a report asks to have written anew is left out of a second table, which must be ready
and read right as its files are; the first must be read right when they are written anew.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import shelduck
from shelduck import change_type, set_properties
from tests.support.normal import duckdb_rows, spark_rows
from tests.support.oracle import DuckDBOracle
from tests.support.real_readers import KINDS, Entry, declared, rows, session_with_readers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from shelduck.formats.report import Exported, ExportReport

pytestmark = [pytest.mark.slow, pytest.mark.readers]

FORMATS = ("delta", "iceberg")
WRITERS = ("duckdb", "shelduck")
ON = set_properties({"delta.enableTypeWidening": "true"})
# Of these, as DuckDB writes them, Iceberg's reader for Spark cannot open the table, and the report
# tells it. Delta leaves nanoseconds out.
UNREADABLE = {"delta": ("TIMESTAMP_NS",), "iceberg": ("TIMESTAMP_NS", "TIME")}
CREATED = [Entry(n, kind) for n, kind in enumerate(KINDS)]
WIDENED = [
    Entry(n, kind, wider)
    for n, (kind, wider) in enumerate((kind, wider) for kind in KINDS for wider in kind.wider)
]

CHANGES = (
    "ADD COLUMN s{n}.z INT",
    "DROP COLUMN s{n}.y",
    "RENAME COLUMN s{n}.x TO y",
    "RENAME COLUMN l{n} TO r{n}",
    "ADD COLUMN l{n} STRING",
    "ALTER COLUMN m{n} FIRST",
)


class Readers:
    """A lake, DuckDB at work in it, and what both readers make of its exports."""

    def __init__(self, lake: shelduck.Lake, duckdb: DuckDBOracle, folder: Path) -> None:
        self.lake, self.duckdb, self.folder = lake, duckdb, folder
        self.counts: Counter[str] = Counter()
        self._made = 0

    def made(self, entries: Sequence[Entry], by: str, keys: Sequence[str] = ()) -> str:
        """A table with rows of one of the two writers."""
        self._made += 1
        name = f"t{self._made}"
        self.duckdb.execute(f"CREATE TABLE {name} ({declared(entries)})")
        if keys:
            self.duckdb.execute(f"ALTER TABLE {name} SET PARTITIONED BY ({', '.join(keys)})")
        self.insert(name, entries, by)
        return name

    def insert(self, table: str, entries: Sequence[Entry], by: str, first: int = 0) -> None:
        """More rows, in the types that the columns had at first."""
        listed = ", ".join(["id", *(name for one in entries for name in one.columns)])
        if by == "duckdb":
            self.duckdb.execute(f"INSERT INTO {table} ({listed}) {rows(entries, first)}")
            return
        source = f"source_{table}_{first}"
        self.duckdb.execute(f"CREATE TABLE {source} ({declared(entries)})")
        self.duckdb.execute(f"INSERT INTO {source} {rows(entries, first)}")
        self.lake.sql(f"INSERT INTO {table} ({listed}) SELECT {listed} FROM {source}")

    def run(self, by: str, *statements: str) -> None:
        """Statements by one of the two."""
        for statement in statements:
            (self.lake.sql if by == "shelduck" else self.duckdb.execute)(statement)

    def widen(self, table: str, entries: Sequence[Entry]) -> None:
        """The wider types of these entries, at every place."""
        wider = {leaf: one.wider for one in entries if one.wider for leaf in one.leaves}
        self.lake.table(table).alter(ON, *(change_type(leaf, t) for leaf, t in wider.items()))

    def check(
        self, form: str, entries: Sequence[Entry], story: Callable[[Sequence[Entry]], str]
    ) -> None:
        """Play a story, and make sure that a reader sees what DuckDB sees of it."""
        table = story(entries)
        refused = _refused(self.lake.table(table).plan_export(form), entries)
        ready = [one for one in entries if one not in refused]
        wrong: list[str] = []
        if refused and ready:
            alone = story(ready)
            assert self.lake.table(alone).plan_export(form).is_ready
            wrong += self._wrong(alone, ready, form, "as they are")
        how = "written anew" if refused else "as they are"
        wrong += self._wrong(table, refused or entries, form, how)
        assert not wrong, "\n".join(wrong)

    def _wrong(self, table: str, entries: Sequence[Entry], form: str, how: str) -> list[str]:
        handle, place = self.lake.table(table), self.folder / f"{table}-{form}"
        export = handle.export_delta if form == "delta" else handle.export_iceberg
        done = export(place, rewrite=how == "written anew")
        every = [name for name, _ in self.duckdb.columns(table)]
        # Iceberg reads vectors where no column is nested, else rows.
        flat = ["id", *(one.flat for one in entries if one.flat in every)]
        found = [self.read(form, done, table, columns) for columns in (flat, every)]
        outcome = "wrong" if any(found) else "right"
        self.counts[f"{form}, files {how}: tables {outcome}"] += 1
        self.counts[f"{form}, files {how}: types {outcome}"] += len(entries)
        if not any(found):
            return []
        alone = {name: self.read(form, done, table, ["id", name]) for name in every}
        return [f"{form}, {table}.{name}, files {how}: {w}" for name, w in alone.items() if w]

    def read(self, form: str, done: Exported, table: str, columns: Sequence[str]) -> str:
        """What a reader gets wrong of some columns; nothing when their rows are DuckDB's."""
        place = done.path if form == "delta" else done.path.partition("/metadata/")[0]
        try:
            frame = self.lake.spark.read.format(form).load(place)
            listed = [c for c in columns if c in frame.columns]
            found = spark_rows(frame.select(*listed))
        except Exception as error:  # noqa: BLE001 - whatever a reader says
            text = " ".join(str(error).split())
            return f"{text[:100]} … {text[200:700]}"
        missing = [c for c in columns if c not in listed and f"'{c}" not in str(done.report)]
        if missing:
            return f"{missing} are left out and not told"
        expected = duckdb_rows(self.duckdb, table, ", ".join(listed))
        return "" if found == expected else f"{found} is not {expected}"[:800]


def _refused(report: ExportReport, entries: Sequence[Entry]) -> list[Entry]:
    """The entries whose columns need new files; all of them where a reason names none of them."""
    reasons = {reason for file in report.rewrites for reason in file.reasons}
    named = [re.findall(r"column '\D(\d+)", reason) for reason in reasons]
    if not all(named):
        return list(entries)
    return [one for one in entries if any(str(one.number) in found for found in named)]


def other(by: str) -> str:
    return "duckdb" if by == "shelduck" else "shelduck"


def entries_of(form: str, by: str, entries: Sequence[Entry]) -> list[Entry]:
    """Those that a writer writes and whose tables a reader opens."""
    left_out = UNREADABLE[form] if by == "duckdb" else ()
    return [one for one in entries if by in one.kind.by and one.kind.name not in left_out]


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Readers]:
    folder = tmp_path_factory.mktemp("readers")
    url = f"sqlite:///{folder}/lake.db"
    with (
        session_with_readers(folder) as spark,
        shelduck.connect(url, f"{folder}/data", spark) as lake,
    ):
        lake.set_option("data_inlining_row_limit", 0)
        with DuckDBOracle(url, None, {"DATA_INLINING_ROW_LIMIT": 0}) as duckdb:
            found = Readers(lake, duckdb, folder)
            yield found
    for outcome, count in sorted(found.counts.items()):
        print(f"{outcome}: {count}")  # noqa: T201 - told at the end of `make test-all`


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("by", WRITERS)
def test_tables_as_they_were_created(readers, by, form):
    def story(entries):
        return readers.made(entries, by)

    readers.check(form, entries_of(form, by, CREATED), story)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("by", WRITERS)
def test_tables_whose_types_were_widened(readers, by, form):
    def story(entries):
        table = readers.made(entries, by)
        readers.widen(table, entries)
        return table

    readers.check(form, entries_of(form, by, WIDENED), story)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("by", WRITERS)
def test_tables_with_rows_from_before_and_after_a_widening(readers, by, form):
    def story(entries):
        table = readers.made(entries, by)
        readers.widen(table, entries)
        readers.insert(table, entries, other(by), first=100)
        readers.run(by, f"DELETE FROM {table} WHERE id = 1")
        readers.run(other(by), f"DELETE FROM {table} WHERE id = 101")
        return table

    readers.check(form, entries_of(form, by, WIDENED), story)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("by", WRITERS)
def test_tables_whose_columns_changed(readers, by, form):
    """Renamed, added, dropped and moved, names that came again, and rows deleted."""

    def story(entries):
        table = readers.made(entries, by)
        changes = [change.format(n=one.number) for one in entries for change in CHANGES]
        readers.run(by, f"DELETE FROM {table} WHERE id = 1")
        readers.run("shelduck", f"ALTER TABLE {table} {', '.join(changes)}")
        return table

    readers.check(form, entries_of(form, by, CREATED), story)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("by", WRITERS)
def test_tables_whose_older_files_lack_a_default(readers, by, form):
    def story(entries):
        table = readers.made(entries, by)
        readers.run(
            "shelduck",
            f"ALTER TABLE {table} ADD COLUMN added INT DEFAULT 7",
            f"ALTER TABLE {table} RENAME COLUMN {entries[0].flat} TO renamed",
        )
        readers.run(other(by), f"INSERT INTO {table} (id, renamed) VALUES (100, NULL)")
        readers.run(by, f"DELETE FROM {table} WHERE id = 0")
        return table

    readers.check(form, entries_of(form, by, CREATED[:6]), story)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("by", WRITERS)
def test_partitioned_tables(readers, by, form):
    """Partitioned by every column that is no key of bytes, and widened then."""

    def story(entries):
        keys = [one.flat for one in entries if one.kind.is_key]
        table = readers.made(entries, by, keys)
        readers.widen(table, entries)
        readers.insert(table, entries, by, first=100)
        readers.run(by, f"DELETE FROM {table} WHERE id = 1")
        return table

    chosen = {one.kind.name: one for one in reversed(WIDENED)}
    readers.check(form, entries_of(form, by, list(chosen.values())), story)


@pytest.mark.parametrize("name", UNREADABLE["iceberg"])
def test_what_icebergs_reader_cannot_open_is_told_with_the_remedy(readers, name):
    entries = [one for one in CREATED if one.kind.name in ("INTEGER", name)]
    table = readers.made(entries, "duckdb")
    handle, column = readers.lake.table(table), entries[0].flat
    done = handle.export_iceberg(readers.folder / f"{table}-before")

    [told] = {loss.what for loss in done.report.losses}
    assert "cannot open the table" in told
    assert readers.read("iceberg", done, table, ["id"]), "it can be opened by now"
    if "table.rewrite" in told:
        handle.rewrite(list(map(int, re.findall(r"rewrite\(\[(\d+)\]\)", told))))
    done = handle.export_iceberg(readers.folder / f"{table}-after", format_version=2)
    assert not readers.read("iceberg", done, table, ["id", column])


def test_variants_go_to_delta_and_back(readers):
    lake, duckdb, spark = readers.lake, readers.duckdb, readers.lake.spark
    table = "variants"
    duckdb.execute(f"CREATE TABLE {table} (id INTEGER, v VARIANT)")
    duckdb.execute(f"INSERT INTO {table} VALUES (1, 5::VARIANT), (2, {{'a': [1, 2]}}::VARIANT)")
    lake.sql(
        f"INSERT INTO {table} SELECT id, parse_json(concat('{{\"a\": ', id, '}}')) FROM range(3, 9)"
    )
    lake.sql(f"INSERT INTO {table} VALUES (10, NULL)")
    done = lake.table(table).export_delta(readers.folder / f"{table}-delta")
    delta = spark.read.format("delta").load(done.path)
    ours = lake.table(table).read()
    shown = "id", "to_json(v) AS v"
    wanted = sorted(ours.selectExpr(*shown).collect())
    assert sorted(delta.selectExpr(*shown).collect()) == wanted
    assert [row.v for row in wanted][:3] == ["5", '{"a":[1,2]}', '{"a":3}']

    delta.write.format("delta").save(str(readers.folder / "theirs"))
    lake.sql(f"CALL import_delta('{readers.folder}/theirs', 'imported')")
    assert sorted(lake.table("imported").read().selectExpr(*shown).collect()) == wanted
    assert duckdb.sql("SELECT id FROM imported WHERE v IS NULL") == [(10,)]
