"""Stories of a table and its branches, drawn from a seed, beside a plain model of their rows.

DuckDB and Shelduck write on all sides in turns; Shelduck branches and merges, and DuckDB reads.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from shelduck.catalog.commit.commit import commit
from shelduck.catalog.read import read
from shelduck.errors import Conflict, NotFound
from shelduck.model.changes.change import AppendFiles, CommitInfo, DeleteRows, FileDeletes
from shelduck.model.changes.records import LearnLayouts
from shelduck.model.files.data_file import deletes_seen
from tests.support.files import write_delete_file, write_file

# What a branch and its source may do before they are merged.
ROWS = ("insert", "insert", "delete", "update")
COLUMNS = ("add_column", "rename_column", "drop_column")
FILES = ("compact", "expire", "clean_up")
VIEWS = ("change_view", "change_view", "drop_view")
TABLES = ("drop_table", "undrop_table", "replace_table", "rename_table", "clone")
# Tables that mostly get other names, or go and come back.
NAMES = ROWS + 3 * ("rename_table", "undrop_table", "drop_table") + TABLES


class Side:
    """A table as a model: names of columns by number, and rows by `id`, which nobody changes.

    A row is the number of the write that made it, and its values by the numbers of columns. `made`
    is the number of the table.
    """

    def __init__(self, schema, table, made, columns, rows):
        self.schema, self.table, self.made = schema, table, made
        self.columns, self.rows = dict(columns), dict(rows)
        # The last thing that happened to it, and to its source when both were the same.
        self.changes = self.began = 0
        # What a view of the table shows: ids with a rest by a number. None for no view.
        self.view = None

    def copied(self, schema):
        found = Side(schema, self.table, self.made, self.columns, self.rows)
        found.changes = found.began = self.changes
        found.view = self.view
        return found

    @property
    def name(self):
        return f"{self.schema}.{self.table}"

    @property
    def listed(self):
        """The columns in a SELECT that shows them all."""
        return ", ".join(["id", *self.columns.values()])

    @property
    def shown(self):
        """What SELECT * shows, sorted."""
        rows = ((key, row) for key, (_, row) in self.rows.items())
        return sorted(((k, *(row.get(c) for c in self.columns)) for k, row in rows), key=first)


def first(row):
    return row[0]


def chosen(base, ours, theirs):
    """The state that a side changed, and whether both did, each in its own way."""
    if ours == base:
        return theirs, False
    return ours, theirs not in (base, ours)


def merged(base, ours, theirs):
    """The three-way merge of a model, whether something conflicts, and whether that is certain.

    It is not if both sides gave a row the same values.
    """
    made, conflicts, equal = {}, False, False
    for number in {*base.columns, *ours.columns, *theirs.columns}:
        name, clash = chosen(*(s.columns.get(number) for s in (base, ours, theirs)))
        conflicts |= clash
        if name is not None:
            made[number] = name
    conflicts |= len({*made.values()}) < len(made)
    rows = {}
    for key in {*base.rows, *ours.rows, *theirs.rows}:
        states = [s.rows.get(key) for s in (base, ours, theirs)]
        row, clash = chosen(*states)
        same = clash and None not in states and states[1][1] == states[2][1]
        equal |= same
        conflicts |= clash and not same
        if row is not None:
            rows[key] = row
    found = ours.copied(ours.schema)
    found.columns, found.rows = made, rows
    found.view, clash = chosen(base.view, ours.view, theirs.view)
    conflicts |= clash
    return found, conflicts, equal and not conflicts


class Program:
    """A story of `main.t` and its branches."""

    inlines = False

    def __init__(self, lake, duck, seed, acts=ROWS + COLUMNS + FILES):
        self.lake, self.duck, self.draw = lake, duck, random.Random(seed)
        self.acts = acts
        self.chance, self.looked = random.Random(seed), {}
        self.key, self.number = 0, 10
        duck.execute("CREATE TABLE t (id BIGINT, v BIGINT)")
        self.sides = {"main": Side("main", "t", 1, {1: "v"}, {})}
        # What a branch and its source were when they were the same, and that source.
        self.bases, self.sources = {}, {}
        self.past, self.dropped, self.clones = [], None, []
        self.expired, self.compacted, self.refused = set(), False, 0
        # Which row has an id, and which id a row has. The columns by all names that they had.
        self.rows, self.ids = {}, {}
        self.names = {"v": 1}
        for _ in range(3):
            self.insert(self.sides["main"])

    def run(self, steps):
        for _ in range(steps):
            if len(self.sides) < 3 and self.draw.random() < 0.4:
                self.branch()
            elif self.bases and self.draw.random() < 0.25:
                self.merge(self.draw.choice(sorted(self.bases)))
            elif self.bases and self.draw.random() < 0.05:
                self.drop(self.draw.choice(sorted(self.bases)))
            else:
                self.act(self.draw.choice(self.acts))
            self.look()

    def act(self, name):
        sides = [side for side in self.sides.values() if side.table is not None]
        if name in (*FILES[1:], "undrop_table"):
            getattr(self, name)()
        elif sides:
            getattr(self, name)(self.draw.choice(sides))

    def one_of(self, *ways):
        return self.draw.choice(ways)

    def changed(self, side):
        self.key += 1
        side.changes = self.key
        return self.key

    # Branches.

    def branch(self):
        self.key += 1
        name, source = f"b{self.key}", self.draw.choice(sorted(self.sides))
        self.lake.execute(f"CREATE BRANCH {name} FROM {source}")
        self.sources[name] = source
        self.bases[name] = self.sides[source].copied(source)
        self.sides[name] = self.sides[source].copied(name)
        if self.draw.random() < 0.3:
            # Nothing happened on it.
            self.unchanged(name)

    def merge(self, name):
        source = self.sides.get(self.sources[name])
        if source is None:
            self.refuse(name, "was dropped")
        elif self.is_of_one_table(name):
            self.merge_rows(name, source)
        else:
            self.merge_tables(name, source)

    def is_of_one_table(self, name):
        sides = (self.sides[self.sources[name]], self.sides[name], self.bases[name])
        return len({side.made for side in sides}) == 1 and None not in {s.table for s in sides}

    def merge_rows(self, name, source):
        side = self.sides[name]
        base = self.bases[name]
        wanted, conflicts, maybe = merged(base, source, side)
        wanted.table, clash = chosen(base.table, source.table, side.table)
        conflicts |= clash
        listed = self.listed(name)
        try:
            self.lake.merge_branch(name)
        except Conflict as error:
            # DuckDB expires the snapshots that a merge compares with.
            if not (name in self.expired and "expired" in str(error)):
                found = self.lake.merge_conflicts(name)
                kinds = {one.kind for one in found}
                assert found
                assert conflicts or (maybe and "row" in kinds) or kinds == {"file"}, found
                self.refused += not (conflicts or maybe)
            return
        assert not conflicts
        if listed is not None:
            assert "conflict" not in {row[1] for row in listed}
        if wanted.rows != source.rows or wanted.columns != source.columns:
            # Rows of the catalog are looked at when a merge has put them into files.
            assert self.inlines or listed is None or source.name in {row[0] for row in listed}
            self.changed(wanted)
        self.sides[source.schema] = wanted
        self.settled(name)

    def merge_tables(self, name, source):
        """Merge where a side made or dropped its table: all of it, or nothing."""
        base, side = self.bases[name], self.sides[name]
        try:
            self.lake.merge_branch(name)
        except Conflict as error:
            is_gone = name in self.expired and "expired" in str(error)
            assert is_gone or {c.kind for c in self.lake.merge_conflicts(name)} == {"table"}
            return
        if side.table is None:
            # The same table went, or the source has another one, or got it after the branch began.
            is_there = None not in (base.table, source.table)
            if source.made == base.made and is_there:
                assert source.changes == base.began
                source.table = None
        elif side.made != base.made:
            # A new one, which is now on both sides; the source may have one of another name.
            made = side.copied(source.schema)
            if source.table is not None and source.made != base.made:
                assert source.table != side.table
                self.clones.append(made)
                self.drop(name)
                return
            self.changed(made)
            self.sides[source.schema] = made
        else:
            assert side.changes == base.changes
            self.merge_clones(name)
            return
        self.settled(name)

    def merge_clones(self, name):
        known = {clone.name for clone in self.clones}
        new = [clone.copied(self.sources[name]) for clone in self.clones if clone.schema == name]
        self.clones += [clone for clone in new if clone.name not in known]

    def settled(self, name):
        source = self.sources[name]
        self.merge_clones(name)
        self.bases[name] = self.sides[name].copied("base")
        if source in self.sides:
            self.bases[name].began = self.sides[source].changes
        self.expired.discard(name)
        if self.draw.random() < 0.3:
            self.unchanged(name)

    def unchanged(self, name):
        """What did nothing since it began, or was merged, changes nothing."""
        before = self.duck.snapshot()
        assert self.listed(name) == []
        self.lake.merge_branch(name)
        assert self.duck.snapshot() == before

    def listed(self, name):
        """What a merge would do, None if it cannot be compared."""
        try:
            return self.lake.branch_diff(name).told.rows
        except Conflict as error:
            if name not in self.expired or "expired" not in str(error):
                raise
            return None

    def refuse(self, name, told):
        before = self.duck.snapshot()
        with pytest.raises(Conflict, match=told):
            self.lake.merge_branch(name)
        assert self.duck.snapshot() == before

    def drop(self, name):
        self.look_back(name)
        if self.draw.random() < 0.5:
            self.lake.drop_branch(name)
        else:
            self.duck.execute(f"DROP SCHEMA {name} CASCADE")
        del self.sides[name], self.bases[name], self.sources[name]
        self.past = [known for known in self.past if known[1].schema != name]
        self.clones = [clone for clone in self.clones if clone.schema != name]

    # Rows.

    def insert(self, side):
        keys = range(self.key, self.key + self.draw.choice((1, 5, 40)))
        self.key = keys.stop
        column = next(iter(side.columns), None)
        self.one_of(self.insert_by_duckdb, self.insert_by_shelduck)(side, column, keys)
        side.rows |= {k: (k, {} if column is None else {column: k}) for k in keys}
        self.changed(side)

    def insert_by_duckdb(self, side, column, keys):
        names = "id" if column is None else f"id, {side.columns[column]}"
        values = ", ".join(f"({k})" if column is None else f"({k}, {k})" for k in keys)
        self.duck.execute(f"INSERT INTO {side.name} ({names}) VALUES {values}")

    def insert_by_shelduck(self, side, column, keys):
        """A file of its own, committed as Spark's."""
        row = {} if column is None else {side.columns[column]: None}
        rows = [{"id": key} | dict.fromkeys(row, key) for key in keys]

        def make(connection, table):
            known = {f.name: None for f in table.columns}
            file = write_file(table, [known | row for row in rows])
            return AppendFiles(table.id, (file,))

        self.commit(side, make)

    def some(self, side):
        part = self.draw.choice((2, 7, 50))
        rest = self.draw.randrange(part)
        return f"id % {part} = {rest}", [k for k in side.rows if k % part == rest]

    def delete(self, side):
        condition, keys = self.some(side)
        self.one_of(self.delete_by_duckdb, self.delete_by_shelduck)(side, condition, keys)
        for key in keys:
            del side.rows[key]
        if keys:
            self.changed(side)

    def delete_by_duckdb(self, side, condition, _):
        self.duck.execute(f"DELETE FROM {side.name} WHERE {condition}")

    def delete_by_shelduck(self, side, _, keys):
        """Delete files of its own, committed as Spark's."""

        def make(connection, table):
            dead = [self.deaths(table, f, keys) for f in read.data_files(connection, table)]
            return DeleteRows(table, tuple(found for found in dead if found is not None))

        if keys:
            self.commit(side, make)

    def deaths(self, table, file, keys):
        there = pq.read_table(file.path, partitioning=None)
        number = table.columns.fields[0].id
        [place] = [n for n, f in enumerate(there.schema) if _field_id(f) == number]
        gone = {*keys}
        now = {n for n, key in enumerate(there.column(place).to_pylist()) if key in gone}
        if not now:
            return None
        before = set()
        if file.delete_file is not None:
            before = {*pq.read_table(file.delete_file.path).column("pos").to_pylist()}
        if now <= before:
            return None
        made = write_delete_file(table, file.path, sorted(now | before))
        return FileDeletes(file.id, deletes_seen(file), made)

    def commit(self, side, make):
        state = self.lake._state
        with state.store.read() as connection:
            base = read.snapshot(connection)
            table = read.table(connection, base, side.schema, side.table, state.info)
            change = make(connection, table)
        commit(
            *(state.store, state.info, [change, LearnLayouts({})]), base=base.id, info=CommitInfo()
        )

    def update(self, side):
        if not side.columns:
            return
        condition, keys = self.some(side)
        # Now and then both sides write the same.
        number, value = self.draw.choice(list(side.columns)), self.draw.randrange(1000, 1003)
        self.update_in(side, f"{side.columns[number]} = {value}", condition)
        if keys:
            self.changed(side)
        for key in keys:
            side.rows[key] = (self.key, side.rows[key][1] | {number: value})

    def update_in(self, side, change, condition):
        self.duck.execute(f"UPDATE {side.name} SET {change} WHERE {condition}")

    # Columns.

    def fresh(self):
        self.number += 1
        return f"c{self.number}"

    def add_column(self, side):
        name, number = self.fresh(), self.number
        self.alter(side, f"ADD COLUMN {name} BIGINT")
        side.columns[number] = name
        self.names[name] = number

    def rename_column(self, side):
        if side.columns:
            number, name = self.draw.choice(list(side.columns)), self.fresh()
            self.alter(side, f"RENAME COLUMN {side.columns[number]} TO {name}")
            side.columns[number] = name
            self.names[name] = number

    def drop_column(self, side):
        if len(side.columns) > 1:
            number = self.draw.choice(list(side.columns))
            self.alter(side, f"DROP COLUMN {side.columns.pop(number)}")

    def alter(self, side, what):
        run = self.one_of(self.duck.execute, self.lake.execute)
        run(f"ALTER TABLE {side.name} {what}")
        self.changed(side)

    # Views.

    def change_view(self, side):
        part = self.draw.choice((2, 3))
        side.view = (part, self.draw.randrange(part))
        table = self.draw.choice((f"lake.{side.schema}.t", f"{side.schema}.t"))
        if side.view[0] == 2:
            # Both sides may write the same.
            table = "t"
        self.duck.execute(
            f"CREATE OR REPLACE VIEW {side.schema}.w AS SELECT id FROM {table}"
            f" WHERE id % {part} = {side.view[1]}"
        )

    def drop_view(self, side):
        if side.view is not None:
            self.one_of(self.duck.execute, self.lake.execute)(f"DROP VIEW {side.schema}.w")
            side.view = None

    # Tables.

    def drop_table(self, side):
        run = self.one_of(self.duck.execute, self.lake.execute)
        run(f"DROP TABLE {side.name}")
        self.dropped, side.table = side.copied(side.schema), None
        self.changed(side)

    def undrop_table(self):
        """Bring a table back, unless its name or its snapshots are gone."""
        known = self.dropped
        side = None if known is None else self.sides.get(known.schema)
        if side is None or side.table is not None:
            return
        try:
            self.lake.execute(f"UNDROP TABLE {known.name}")
        except NotFound as error:
            if "expired" not in str(error) and "does not exist" not in str(error):
                raise
            return
        self.sides[known.schema], self.dropped = known, None
        old, before = known.made, known.changes
        base = self.bases.get(known.schema)
        source = self.sides.get(self.sources.get(known.schema))
        stays = base is not None and base.made == old
        if stays:
            # A twin of a table that is gone is a new table.
            is_there = source is not None and (source.made, source.table is None) == (old, False)
            stays = self.is_twin(known, before, base.changes if is_there else None)
        self.made(known)
        if stays:
            known.made, base.changes = old, known.changes
        for name in [n for n, source in self.sources.items() if source == known.schema]:
            side, base = self.sides[name], self.bases[name]
            if side.table is None or (side.made, base.made) != (old, old):
                continue
            if self.is_twin(side, before, base.began, known):
                base.began = known.changes
                self.renumber(name, old, known.made)
            elif stays:
                self.renumber(name, old, self.changed(side))

    def is_twin(self, side, changes, began, of=None):
        """Whether a table is a twin, of one that came back; never if something happened to it."""
        catalog = "__ducklake_metadata_lake.ducklake"
        own = self.duck.sql(
            f"SELECT value FROM {catalog}_tag JOIN {catalog}_table t ON table_id = object_id"
            f" JOIN {catalog}_schema s USING (schema_id) WHERE key = 'shelduck.hint.twin'"
            f" AND schema_name = '{side.schema}' AND table_name = '{side.table}'"
            f" AND ducklake_tag.end_snapshot IS NULL AND t.end_snapshot IS NULL"
        )
        told = json.loads(own[0][0]) if own else {}
        found = bool(told.get("counter"))
        if of is not None and found:
            [(number,)] = self.duck.sql(
                f"SELECT table_id FROM {catalog}_table t JOIN {catalog}_schema s USING (schema_id)"
                f" WHERE schema_name = '{of.schema}' AND table_name = '{of.table}'"
                " AND t.end_snapshot IS NULL"
            )
            found = told["source"] == number
        assert not found or changes == began
        return found

    def renumber(self, name, old, new):
        """Let a branch, and those that came from it, be of another table."""
        for each in (self.sides[name], self.bases[name]):
            each.made = new if each.made == old else each.made
        for other in [n for n, source in self.sources.items() if source == name]:
            if self.bases[other].made == old:
                self.renumber(other, old, new)

    def made(self, side):
        side.made = self.changed(side)

    def replace_table(self, side):
        name, number = self.fresh(), self.number
        run = self.one_of(self.duck.execute, self.lake.execute)
        run(f"CREATE OR REPLACE TABLE {side.name} (id BIGINT, {name} BIGINT)")
        side.rows, side.columns = {}, {number: name}
        self.made(side)
        # Ids begin again in a new table.
        self.dropped = None

    def rename_table(self, side):
        name = f"t{self.fresh()}"
        run = self.one_of(self.duck.execute, self.lake.execute)
        run(f"ALTER TABLE {side.name} RENAME TO {name}")
        # A merge takes no names of tables.
        side.table = name

    def clone(self, side):
        name = f"clone_{self.fresh()}"
        self.lake.execute(f"CREATE TABLE {side.schema}.{name} SHALLOW CLONE {side.name}")
        made = side.copied(side.schema)
        made.table = name
        # It goes on by itself, and has other ids if the catalog kept some of the rows.
        self.made(made)
        self.insert(made)
        self.clones.append(made)

    # Files.

    def compact(self, side):
        self.compacted = True
        what = self.draw.choice(("merge_adjacent_files", "rewrite_data_files"))
        self.compact_by_duckdb(side, what)

    def compact_by_duckdb(self, side, what):
        more = ", delete_threshold => 0.01" if what == "rewrite_data_files" else ""
        self.duck.execute(
            f"CALL ducklake_{what}('lake', '{side.table}', schema => '{side.schema}'{more})"
        )

    def expire(self):
        """Let one of the engines expire snapshots."""
        self.look_at_columns()
        if self.draw.random() < 0.5:
            known = self.snapshots()
            some = self.draw.sample(known, self.draw.randrange(len(known) + 1))
            gone = [n for n in some if n != max(known)]
            if gone:
                self.duck.execute(f"CALL ducklake_expire_snapshots('lake', versions => {gone})")
                self.expired = {*self.bases}
        else:
            self.lake.expire_snapshots(retain_last=self.draw.choice((1, 2, 5)))
        there = {*self.snapshots()}
        self.past = [known for known in self.past if known[0] in there]

    def clean_up(self):
        """Let the engines delete files that nobody needs, in any order."""
        ways = [
            lambda: self.duck.execute("CALL ducklake_cleanup_old_files('lake', cleanup_all=>true)"),
            lambda: self.duck.execute(
                "CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)"
            ),
            lambda: self.lake.cleanup_old_files(older_than="0 seconds"),
            lambda: self.lake.remove_orphans(older_than="0 seconds"),
        ]
        for way in self.draw.sample(ways, self.draw.randrange(1, 5)):
            way()
        self.look_back(*self.draw.sample(sorted(self.sides), 1))

    def snapshots(self):
        return [n for (n,) in self.duck.sql("SELECT snapshot_id FROM ducklake_snapshots('lake')")]

    # What is there.

    def shown(self, side, at=None):
        source = side.name if at is None else f"{side.name} AT (VERSION => {at})"
        found = self.duck.sql(f"SELECT rowid, {side.listed} FROM {source}")
        if side.made == 1:
            self.know((row, key) for row, key, *_ in found)
        return sorted((row[1:] for row in found), key=first)

    def know(self, pairs):
        """An id is given once, on whichever side, and a row keeps it.

        DuckDB gives updated rows other ids when it merges their files with those of inserted rows.
        """
        for row, key in pairs:
            assert self.rows.setdefault(row, key) == key, f"row id {row} is given twice"
            assert self.ids.setdefault(key, row) == row or self.compacted, f"{key} has two ids"

    def look(self):
        now = self.duck.snapshot()
        for side in (*self.sides.values(), *self.clones):
            if side.table is None:
                continue
            state = (side.name, side.changes, *side.columns.values())
            # What others do changes it seldom: now and then is often enough.
            if self.looked.get(side.schema) != state or self.chance.random() < 0.3:
                assert self.shown(side) == side.shown, side.name
            self.looked[side.schema] = state
            if side.view is not None:
                part, rest = side.view
                found = self.duck.sql(f"SELECT id FROM {side.schema}.w")
                assert sorted(found) == sorted((k,) for k in side.rows if k % part == rest)
            self.past.append((now, side.copied(side.schema)))

    def look_back(self, *names):
        """Snapshots show what they showed, of some sides or all."""
        self.look_at_columns()
        seen = set()
        for snapshot, side in self.past:
            key = (side.name, side.changes, tuple(side.columns.values()))
            if (not names or side.schema in names) and key not in seen:
                seen.add(key)
                assert self.shown(side, snapshot) == side.shown, (snapshot, side.name)

    def look_at_columns(self):
        """A column has one id on all sides, and nobody else has had it."""
        if not {*TABLES}.isdisjoint(self.acts):
            return
        query = "SELECT DISTINCT column_id, column_name FROM {}.ducklake_column"
        found = self.duck.sql(query.format("__ducklake_metadata_lake"))
        pairs = {(number, self.names[name]) for number, name in found if name in self.names}
        for one in (0, 1):
            assert len({pair[one] for pair in pairs}) == len(pairs), pairs

    def end(self):
        """Drop all branches and clones, and let nothing stay but what the table has."""
        for name in sorted(self.bases):
            self.drop(name)
        for clone in self.clones:
            self.duck.execute(f"DROP TABLE {clone.name}")
        self.clones = []
        for way in ("duckdb", "shelduck", "duckdb"):
            self.forget(way)
            self.look()

    def forget(self, way):
        if way == "duckdb":
            self.duck.execute("CALL ducklake_expire_snapshots('lake', older_than => now())")
            self.duck.execute("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
            self.duck.execute("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")
        else:
            self.lake.expire_snapshots(retain_last=1)
            self.lake.cleanup_old_files(older_than="0 seconds")
            self.lake.remove_orphans(older_than="0 seconds")
        self.past = []

    def left(self):
        """Names of the files that the table has, and of those that are there."""
        table, named = self.sides["main"].table, set()
        if table is not None:
            query = f"SELECT data_file, delete_file FROM ducklake_list_files('lake', '{table}')"
            named = {Path(path).name for row in self.duck.sql(query) for path in row if path}
        return named, {path.name for path in Path(self.lake.data_path).rglob("*.parquet")}


def tell(lake, duck, seed, *, steps=14, kind=Program, **more):
    """Tell a story to its end, and look at all that it left."""
    program = kind(lake, duck, seed, **more)
    program.run(steps)
    program.look_back()
    assert not lake.check().problems, lake.check()
    program.end()
    named, there = program.left()
    assert there == named
    return program


def _field_id(field):
    return int((field.metadata or {}).get(b"PARQUET:field_id", -1))
