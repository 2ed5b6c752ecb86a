"""Branches: DuckDB writes on all sides, Shelduck branches and merges, and a plain model agrees."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import shelduck
from shelduck.branches.merge import BranchMerge
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, NotFound, Unsupported
from tests.support.lengths import turns
from tests.support.oracle import DuckDBOracle

pytestmark = pytest.mark.databases("sqlite", "postgres")
PROGRAMS = range(2_000)
FAST = range(8)


@pytest.fixture
def lake(lake_url, data_path, monkeypatch):
    # Spark does that: see tests/spark/branches.
    monkeypatch.setattr("shelduck.branches.changed_rows.RowMerge.is_known", False)
    with shelduck.connect(lake_url, data_path) as found:
        found.set_option("data_inlining_row_limit", 0)
        yield found


@pytest.fixture
def duck(lake, lake_url):
    with DuckDBOracle(lake_url) as oracle:
        yield oracle


class Side:
    """A table as a model: names of columns by number, and rows by `id`, which nobody changes.

    A row is the number of the write that made it, and its values by the numbers of columns.
    """

    def __init__(self, name, columns, rows):
        self.name, self.columns, self.rows = name, dict(columns), dict(rows)

    def copied(self, name):
        return Side(name, self.columns, self.rows)

    @property
    def shown(self):
        """What SELECT * shows, sorted."""
        rows = ((key, row) for key, (_, row) in self.rows.items())
        return sorted(((k, *(row.get(c) for c in self.columns)) for k, row in rows), key=_first)


def _first(row):
    return row[0]


def chosen(base, ours, theirs):
    """The state that a side changed, and whether both did, each in its own way."""
    if ours == base:
        return theirs, False
    return ours, theirs not in (base, ours)


def merged(base, ours, theirs):
    """The three-way merge of a model, and whether rows conflict."""
    made, conflicts = {}, False
    for number in {*base.columns, *ours.columns, *theirs.columns}:
        name, clash = chosen(*(s.columns.get(number) for s in (base, ours, theirs)))
        conflicts |= clash
        if name is not None:
            made[number] = name
    conflicts |= len({*made.values()}) < len(made)
    rows = {}
    for key in {*base.rows, *ours.rows, *theirs.rows}:
        row, clash = chosen(*(s.rows.get(key) for s in (base, ours, theirs)))
        conflicts |= clash
        if row is not None:
            rows[key] = row
    return Side(ours.name, made, rows), conflicts


class Program:
    """A story of `main.t` and its branches, drawn from a seed."""

    def __init__(self, lake, duck, seed):
        self.lake, self.duck, self.draw = lake, duck, random.Random(seed)
        self.key, self.number = 0, 10
        duck.execute("CREATE TABLE t (id BIGINT, v BIGINT)")
        self.sides = {"main": Side("main.t", {1: "v"}, {})}
        self.bases = {}
        self.past = []
        self.expired, self.compacted, self.refused = False, False, 0
        for _ in range(3):
            self.insert(self.sides["main"])

    def run(self, steps):
        acts = (
            *(self.insert, self.insert, self.delete, self.update),
            *(self.add_column, self.rename_column, self.drop_column, self.compact),
        )
        for _ in range(steps):
            if len(self.sides) < 3 and self.draw.random() < 0.4:
                self.branch()
            elif self.bases and self.draw.random() < 0.25:
                self.merge(self.draw.choice(sorted(self.bases)))
            elif self.draw.random() < 0.1:
                self.expire()
            elif self.bases and self.draw.random() < 0.05:
                self.drop(self.draw.choice(sorted(self.bases)))
            else:
                self.draw.choice(acts)(self.draw.choice(list(self.sides.values())))
            self.look()

    def branch(self):
        self.key += 1
        name = f"b{self.key}"
        self.lake.execute(f"CREATE BRANCH {name}")
        self.bases[name] = self.sides["main"].copied("base")
        self.sides[name] = self.sides["main"].copied(f"{name}.t")

    def merge(self, name):
        main, side, base = self.sides["main"], self.sides[name], self.bases[name]
        wanted, conflicts = merged(base, main, side)
        try:
            self.lake.merge_branch(name)
        except Conflict as error:
            # DuckDB expires the snapshots that a merge compares with.
            if not (self.expired and "expired" in str(error)):
                found = self.lake.merge_conflicts(name)
                assert conflicts or {one.kind for one in found} == {"file"}
                self.refused += not conflicts
        else:
            assert not conflicts
            self.sides["main"] = wanted
            self.bases[name] = side.copied("base")

    def insert(self, side):
        keys = range(self.key, self.key + self.draw.choice((1, 5, 40)))
        self.key = keys.stop
        first = next(iter(side.columns), None)
        names = "id" if first is None else f"id, {side.columns[first]}"
        values = ", ".join(f"({k})" if first is None else f"({k}, {k})" for k in keys)
        self.duck.execute(f"INSERT INTO {side.name} ({names}) VALUES {values}")
        side.rows |= {k: (k, {} if first is None else {first: k}) for k in keys}

    def _some(self, side):
        part = self.draw.choice((2, 7, 50))
        rest = self.draw.randrange(part)
        return f"id % {part} = {rest}", [k for k in side.rows if k % part == rest]

    def delete(self, side):
        condition, keys = self._some(side)
        self.duck.execute(f"DELETE FROM {side.name} WHERE {condition}")
        for key in keys:
            del side.rows[key]

    def update(self, side):
        if not side.columns:
            return
        condition, keys = self._some(side)
        number, value = self.draw.choice(list(side.columns)), self.draw.randrange(1000, 1_000_000)
        self.duck.execute(
            f"UPDATE {side.name} SET {side.columns[number]} = {value} WHERE {condition}"
        )
        self.key += 1
        for key in keys:
            side.rows[key] = (self.key, side.rows[key][1] | {number: value})

    def _name(self):
        self.number += 1
        return f"c{self.number}"

    def add_column(self, side):
        name, number = self._name(), self.number
        self._alter(side, f"ADD COLUMN {name} BIGINT")
        side.columns[number] = name

    def rename_column(self, side):
        if side.columns:
            number, name = self.draw.choice(list(side.columns)), self._name()
            self._alter(side, f"RENAME COLUMN {side.columns[number]} TO {name}")
            side.columns[number] = name

    def drop_column(self, side):
        if len(side.columns) > 1:
            number = self.draw.choice(list(side.columns))
            self._alter(side, f"DROP COLUMN {side.columns.pop(number)}")

    def _alter(self, side, what):
        run = self.draw.choice((self.duck.execute, self.lake.execute))
        run(f"ALTER TABLE {side.name} {what}")

    def compact(self, side):
        self.compacted = True
        schema = side.name.partition(".")[0]
        what = self.draw.choice(("merge_adjacent_files", "rewrite_data_files"))
        self.duck.execute(f"CALL ducklake_{what}('lake', 't', schema => '{schema}')")

    def shown(self, side):
        names = ", ".join(["id", *side.columns.values()])
        return sorted(self.duck.sql(f"SELECT {names} FROM {side.name}"), key=_first)

    def look(self):
        for side in self.sides.values():
            assert self.shown(side) == side.shown, side.name
        names = ", ".join(["id", *self.sides["main"].columns.values()])
        now = self.duck.sql("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")[0][0]
        self.past.append((now, names, self.sides["main"].shown))

    def look_back(self):
        for snapshot, names, rows in self.past:
            found = self.duck.sql(f"SELECT {names} FROM main.t AT (VERSION => {snapshot})")
            assert sorted(found, key=_first) == rows, snapshot

    def expire(self):
        """Let one of the engines remove all that no newest snapshot needs."""
        if self.draw.random() < 0.5:
            self.duck.execute("CALL ducklake_expire_snapshots('lake', older_than => now())")
            self.duck.execute("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
            self.duck.execute("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")
            self.expired = True
        else:
            self.lake.expire_snapshots(retain_last=1)
            self.lake.cleanup_old_files(older_than="0 seconds")
            self.lake.remove_orphans(older_than="0 seconds")
        self.past = []

    def drop(self, name):
        if self.draw.random() < 0.5:
            self.lake.drop_branch(name)
        else:
            self.duck.execute(f"DROP SCHEMA {name} CASCADE")
        del self.sides[name], self.bases[name]


def tell(lake, duck, seed):
    program = Program(lake, duck, seed)
    program.run(14)
    program.look_back()
    assert not lake.check().problems, lake.check()
    for name in list(program.bases):
        program.drop(name)
    program.expire()
    program.expire()
    program.look()
    program.expire()
    program.look()
    listed = duck.sql("SELECT data_file, delete_file FROM ducklake_list_files('lake', 't')")
    named = {Path(path).name for row in listed for path in row if path is not None}
    assert {path.name for path in Path(lake.data_path).rglob("*.parquet")} == named
    return program


@pytest.mark.parametrize("seed", FAST)
def test_a_program_of_branches_is_as_its_model(lake, duck, seed):
    tell(lake, duck, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [seed for some in turns(PROGRAMS, 30) for seed in some])
def test_many_programs_of_branches_are_as_their_models(lake, duck, seed):
    tell(lake, duck, seed)


def test_a_lake_in_a_duckdb_file_has_no_branches(duckdb_url, data_path):
    with shelduck.connect(duckdb_url, data_path) as lake:
        lake.execute("CREATE TABLE t (id INT)")
        with pytest.raises(Unsupported, match="a DuckDB file, which has no triggers"):
            lake.create_branch("b")
        assert lake.branches() == []
        assert lake.schemas() == ["main"]


def test_a_branch_is_made_of_some_tables_as_of_a_snapshot(lake, duck):
    duck.execute("CREATE TABLE t (id INT)")
    duck.execute("CREATE TABLE other (id INT)")
    duck.execute("INSERT INTO t VALUES (1)")
    at = duck.sql("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")[0][0]
    duck.execute("INSERT INTO t VALUES (2)")

    lake.execute(f"CREATE BRANCH b FROM main VERSION AS OF {at} WITH TABLES (t)")
    assert lake.execute("SHOW BRANCHES").rows == [("b", "main", at, 1)]
    assert duck.sql("FROM b.t") == [(1,)]
    assert [str(name) for name in lake.tables("b")] == ["b.t"]
    lake.execute("CREATE BRANCH IF NOT EXISTS b")
    lake.execute("USE BRANCH b")
    assert lake.execute("SHOW TABLES").rows == [("b", "t", False)]
    lake.execute("DROP BRANCH b")
    lake.execute("DROP BRANCH IF EXISTS b")
    assert lake.branches() == []


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("CREATE BRANCH main", AlreadyExists, "schema 'main' already exists"),
        ("CREATE BRANCH b FROM nowhere", NotFound, "schema 'nowhere' does not exist"),
        ("CREATE BRANCH b VERSION AS OF 99", NotFound, "snapshot 99 does not exist"),
        ("CREATE BRANCH b WITH TABLES (nothing)", NotFound, "table 'nothing' does not exist"),
        ("DROP BRANCH main", NotFound, "branch 'main' does not exist"),
        ("MERGE BRANCH nothing", NotFound, "branch 'nothing' does not exist"),
        ("MERGE BRANCH known INTO known", InvalidRequest, "branch 'known' came from 'main'"),
        ("BEGIN; CREATE BRANCH b", InvalidRequest, "CREATE BRANCH commits by itself"),
    ],
)
def test_what_is_no_branch_is_refused(lake, text, error, told):
    lake.execute("CREATE TABLE t (id INT)")
    lake.execute("CREATE BRANCH known")
    with pytest.raises(error, match=told):
        lake.execute(text)
    assert [branch.name for branch in lake.branches()] == ["known"]


def test_tables_are_made_and_dropped_on_a_branch(lake, duck):
    for name in ("kept", "gone"):
        duck.execute(f"CREATE TABLE {name} (id INT)")
        duck.execute(f"INSERT INTO {name} VALUES (1)")
    lake.create_branch("b")
    duck.execute("CREATE TABLE b.more (id INT, s VARCHAR)")
    duck.execute("INSERT INTO b.more VALUES (7, 'seven')")
    duck.execute("DROP TABLE b.gone")

    assert lake.branch_diff("b").told.rows == [
        ("main.gone", "dropped", None, None, None, ""),
        ("main.more", "created", 1, 0, 0, ""),
    ]
    lake.merge_branch("b")
    assert duck.sql("FROM main.more") == [(7, "seven")]
    assert [str(name) for name in lake.tables("main")] == ["main.kept", "main.more"]
    duck.execute("INSERT INTO b.more VALUES (8, 'eight')")
    lake.merge_branch("b")
    assert sorted(duck.sql("FROM main.more")) == [(7, "seven"), (8, "eight")]
    duck.execute("DROP TABLE b.more")
    duck.execute("DROP TABLE b.kept")
    lake.merge_branch("b")
    assert lake.tables("main") == []
    base = lake.branches()[0].base
    assert lake.merge_branch("b").snapshot == base


def test_a_merge_that_conflicts_changes_nothing(lake, duck):
    duck.execute("CREATE TABLE t (id INT, v VARCHAR)")
    duck.execute("INSERT INTO t VALUES (1, 'a')")
    lake.create_branch("b")
    duck.execute("ALTER TABLE t RENAME COLUMN v TO ours")
    duck.execute("ALTER TABLE b.t RENAME COLUMN v TO theirs")
    before = duck.sql("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")

    with pytest.raises(
        Conflict, match=r"column v\.name of main\.t: it was v, is now ours, and theirs"
    ):
        lake.merge_branch("b")
    [found] = lake.merge_conflicts("b")
    assert (found.kind, found.base, found.ours, found.theirs) == ("column", "v", "ours", "theirs")
    assert duck.sql("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')") == before
    duck.execute("ALTER TABLE t DROP COLUMN ours")
    [found] = lake.merge_conflicts("b")
    assert (found.base, found.ours, found.theirs) == ("v varchar", "", "theirs varchar")


def test_two_branches_that_touch_other_columns_merge_in_any_order(lake, duck):
    shapes = []
    for order in (("x", "y"), ("y", "x")):
        duck.execute("CREATE OR REPLACE TABLE t (id INT, v INT)")
        duck.execute("INSERT INTO t VALUES (1, 2)")
        for name in order:
            lake.create_branch(name)
        for name in sorted(order):
            duck.execute(f"ALTER TABLE {name}.t ADD COLUMN {name} INT DEFAULT {len(name)}")
            duck.execute(f"INSERT INTO {name}.t VALUES (5, 6, {ord(name)})")
        for name in order:
            lake.merge_branch(name)
        shapes.append(sorted(duck.sql("SELECT id, v, x, y FROM t"), key=str))
        for name in order:
            lake.drop_branch(name)
    assert shapes[0] == shapes[1] == [(1, 2, 1, 1), (5, 6, 1, 121), (5, 6, 120, 1)]


MEANWHILE = {
    "INSERT INTO t VALUES (9, 9)": [(1, 1, 5), (2, 2, 5), (7, 7, 5), (9, 9, 5)],
    "DELETE FROM t WHERE id = 2": [(1, 1, 5), (7, 7, 5)],
    "INSERT INTO b.t VALUES (9, 9, 9)": [(1, 1, 5), (2, 2, 5), (7, 7, 5), (9, 9, 9)],
    "ALTER TABLE b.t ADD COLUMN y INT": [(1, 1, 5, None), (2, 2, 5, None), (7, 7, 5, None)],
    "ALTER TABLE t ADD COLUMN y INT": [(1, 1, 5, None), (2, 2, 5, None), (7, 7, 5, None)],
    "CALL ducklake_merge_adjacent_files('lake')": [(1, 1, 5), (2, 2, 5), (7, 7, 5)],
    "COMMENT ON TABLE b.t IS 'seen'": [(1, 1, 5), (2, 2, 5), (7, 7, 5)],
}


@pytest.mark.parametrize("statement", MEANWHILE)
def test_a_merge_looks_again_if_others_commit_meanwhile(lake, duck, statement, monkeypatch):
    duck.execute("CREATE TABLE t (id INT, v INT)")
    duck.execute("INSERT INTO t VALUES (1, 1)")
    duck.execute("INSERT INTO t VALUES (2, 2)")
    lake.create_branch("b")
    duck.execute("INSERT INTO b.t VALUES (7, 7)")
    duck.execute("ALTER TABLE b.t ADD COLUMN x INT DEFAULT 5")
    left = [statement]
    stage = BranchMerge.stage

    def staged(self):
        stage(self)
        if left:
            duck.execute(left.pop())

    monkeypatch.setattr(BranchMerge, "stage", staged)
    lake.merge_branch("b")
    assert sorted(duck.sql("FROM t")) == MEANWHILE[statement]
    assert not lake.check().problems


def test_no_id_is_given_on_both_sides(lake, duck):
    duck.execute("CREATE TABLE t (id INT)")
    duck.execute("INSERT INTO t VALUES (1)")
    lake.create_branch("b")
    # The process still knows the table that it alters right before and right after a merge.
    for turn, names in enumerate([("b.t", "t"), ("t", "b.t")]):
        for name in names:
            duck.execute(f"INSERT INTO {name} (id) VALUES (1)")
            lake.execute(f"ALTER TABLE {name} ADD COLUMN {name[0]}{turn} INT")
        lake.merge_branch("b")
    catalog = "FROM __ducklake_metadata_lake.ducklake"
    # All but the first column, and that of a block, are on one side only until they are merged.
    names = duck.sql(
        f"SELECT column_id, count(DISTINCT column_name) {catalog}_column"
        " WHERE column_name <> '_block' GROUP BY ALL HAVING count(DISTINCT column_name) > 1"
    )
    rows = duck.sql(
        f"SELECT row_id_start, count(DISTINCT path) {catalog}_data_file GROUP BY ALL"
        " HAVING count(DISTINCT path) > 1"
    )
    assert (names, rows) == ([], [])
    assert len(duck.sql("FROM t")) == 5
