"""Random programs over tables whose columns have Bloom filters and encodings.

After each step both engines read the rows, and look some up in columns with filters. Each file of
ours that is new then has a filter of each such column, by the footer that DuckDB reads.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import shelduck
from tests.properties.test_evolution import SETTINGS
from tests.support.lengths import long
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

STEPS = 8
MODELS = {
    "plain": "(k INT, p INT, s STRING, v BIGINT)",
    "unique": "(k INT, p INT, s STRING, v BIGINT) UNIQUE KEY (k, p)",
    "aggregate": "(k INT, p INT, s STRING REPLACE, v BIGINT SUM) AGGREGATE KEY (k, p)",
}
ROLLUPS: dict[str, Any] = {
    "plain": (["p"], {"total": ("sum", "v")}),
    "unique": (["p", "k", "v"], None),
    "aggregate": (["p", "v"], None),
}
NAMES = ["s", "S t", "größe"]
# A chunk with a dictionary has no filter, nor has one without values.
_CHUNKS = (
    "SELECT s.field_id, m.bloom_filter_offset IS NOT NULL, m.encodings FROM parquet_metadata('{0}')"
    " m JOIN parquet_schema('{0}') s ON s.name = m.path_in_schema"
    " WHERE coalesce(m.stats_null_count, 0) < m.num_values"
)
_ELSEWHERE = """
import sys
import shelduck
with shelduck.connect(sys.argv[1]) as lake:
    for statement in sys.argv[2:]:
        lake.execute(statement)
"""


class Program:
    """One run: the lake, the rows by their keys, and what is known of columns and files."""

    def __init__(self, seed: int, spark: SparkSession, url: str, folder: Path) -> None:
        self.random = random.Random(seed)
        self.url = url
        # DuckDB reads no footer of an encrypted file by its path alone.
        self.encrypted = self.pick([False, False, False, True])
        note(f"encrypted: {self.encrypted}")
        made = shelduck.connect(
            url, str(folder / "data"), spark, progress=False, encrypted=self.encrypted
        )
        # Two clients, each of which keeps what it knows.
        self.lakes = [made, shelduck.connect(url, spark=spark, progress=False)]
        self.model = self.pick(list(MODELS))
        self.has_rollup = self.pick([False, False, True])
        self.state: dict[str, Any] = {"rows": {}, "name": "s", "number": False}
        self.state |= {"indexes": set(), "plain": False}
        self.versions: dict[int, dict[str, Any]] = {}
        self.known: set[str] = set()
        # Columns of which some files may have no filter: a job that copies chunks leaves that so.
        self.bare: set[str] = set()
        self.filtered = 0
        self._next = 0
        self.lake.set_option("data_inlining_row_limit", self.pick([0, 0, 4]))
        self.say(f"CREATE TABLE t {MODELS[self.model]}")
        if self.has_rollup:
            self.lake.table("t").add_rollup("r", *ROLLUPS[self.model]).wait()

    @property
    def lake(self) -> shelduck.Lake:
        return self.pick(self.lakes)

    @property
    def rows(self) -> dict[int, tuple[int | None, int]]:
        """The values of the column with text, as numbers, and those of v, by k."""
        return self.state["rows"]

    @property
    def s(self) -> str:
        return f"`{self.state['name']}`"

    def pick(self, options: list[Any]) -> Any:
        return self.random.choice(options)

    def say(self, statement: str) -> None:
        note(statement)
        self.lake.sql(statement)

    def run(self) -> None:
        self.insert()
        self.index()
        self.check()
        kinds = [self.insert, self.insert, self.change, self.merge, self.by_duckdb, self.by_duckdb]
        kinds += [self.index, self.index, self.drop_index, self.encode, self.elsewhere]
        kinds += [self.lay_out, self.rename, self.drop_and_undrop, self.convert, self.convert]
        kinds += [self.convert_and_undo, self.upkeep, self.upkeep, self.restore, self.clone]
        for _ in range(STEPS):
            self.pick(kinds)()
            self.check()
        assert self.lakes[0].check(rows=True).problems == ()
        for lake in self.lakes:
            lake.close()

    # Rows.

    def new_rows(self, *, fresh: bool) -> dict[int, tuple[int | None, int]]:
        found = {}
        for _ in range(self.pick([2, 12])):
            self._next += 1
            key = self._next
            if not fresh and self.model != "plain" and self.pick([True, False, False]):
                key = self.pick([*range(1, self._next)] or [key])
            value = self.pick([self._next * 7, self._next * 7, self._next * 7, 7, None])
            found[key] = (value, self.pick([1, 20]))
        return found

    def values(self, rows: dict[int, tuple[int | None, int]]) -> str:
        return ", ".join(f"({k}, {k % 3}, {self.literal(s)}, {v})" for k, (s, v) in rows.items())

    def literal(self, value: int | None) -> str:
        if value is None:
            return "NULL"
        return str(value) if self.state["number"] else f"'{value}'"

    def insert(self) -> None:
        new = self.new_rows(fresh=False)
        self.say(f"INSERT INTO t VALUES {self.values(new)}")
        for key, (s, v) in new.items():
            before = self.rows[key][1] if self.model == "aggregate" and key in self.rows else 0
            self.rows[key] = (s, before + v)

    def change(self) -> None:
        if self.pick([True, False]):
            self.say("DELETE FROM t WHERE k % 5 = 2")
            self.state["rows"] = {k: row for k, row in self.rows.items() if k % 5 != 2}
        else:
            self.say(f"UPDATE t SET {self.s} = {self.literal(8)} WHERE k % 4 = 1")
            self.rows.update({k: (8, v) for k, (_, v) in self.rows.items() if k % 4 == 1})

    def merge(self) -> None:
        new = self.new_rows(fresh=False)
        s = self.s
        self.say(
            f"MERGE INTO t USING (SELECT * FROM VALUES {self.values(new)} AS x(k, p, s, v)) AS n"
            f" ON t.k = n.k WHEN MATCHED THEN UPDATE SET {s} = n.s, v = n.v"
            f" WHEN NOT MATCHED THEN INSERT (k, p, {s}, v) VALUES (n.k, n.p, n.s, n.v)"
        )
        self.rows.update(new)

    def by_duckdb(self) -> None:
        """DuckDB writes files without filters."""
        self.learn(ours=True)
        new = self.new_rows(fresh=True)
        s = self.s.replace("`", '"')
        acts = {
            f"INSERT INTO t VALUES {self.values(new)}": new,
            "DELETE FROM t WHERE k % 7 = 3": None,
            f"UPDATE t SET {s} = {self.literal(9)} WHERE k % 6 = 1": {
                k: (9, v) for k, (_, v) in self.rows.items() if k % 6 == 1
            },
        }
        statement = self.pick(list(acts))
        with DuckDBOracle(self.url, None, {"DATA_INLINING_ROW_LIMIT": self.pick([0, 3])}) as other:
            note(f"duckdb: {statement}")
            other.execute(statement)
        changed = acts[statement]
        if changed is None:
            self.state["rows"] = {k: row for k, row in self.rows.items() if k % 7 != 3}
        else:
            self.rows.update(changed)
        self.bare = {"k", "s"}
        self.learn(ours=False)

    # How columns are stored.

    def index(self) -> None:
        column = self.pick(["k", "s"])
        if self.encrypted or column in self.state["indexes"]:
            return
        self.state["indexes"].add(column)
        name = self.s if column == "s" else "k"
        if self.pick([True, False]):
            self.say(f"ALTER TABLE t ADD INDEX i_{column} ({name}) USING BLOOMFILTER")
            self.bare -= {column}
            self.known |= self.require_filters("t", set(), {column})
            return
        note(f"a light index of {name}")
        self.bare |= {column}
        self.learn(ours=False)
        self.lake.table("t").alter(shelduck.add_index(f"i_{column}", name))

    def drop_index(self) -> None:
        for column in sorted(self.state["indexes"]):
            self.say(f"DROP INDEX i_{column} ON t")
            self.state["indexes"].remove(column)

    def encode(self) -> None:
        self.state["plain"] = not self.state["plain"]
        encoding = "PLAIN" if self.state["plain"] else "DICTIONARY"
        rewrite = self.pick(["", ", REWRITE"])
        self.say(f"ALTER TABLE t ALTER COLUMN {self.s} SET ENCODING ({encoding}){rewrite}")
        self.learn(ours=True, renewed={"s"})

    def elsewhere(self) -> None:
        """What another process does; it has no JVM."""
        column = self.pick(["k", "s"])
        statements = [f"ALTER TABLE t ALTER COLUMN {self.s} SET ENCODING (DICTIONARY)"]
        if column in self.state["indexes"]:
            statements += [f"DROP INDEX i_{column} ON t"]
            self.state["indexes"].remove(column)
        if self.model == "plain" and not self.has_rollup:
            new = self.new_rows(fresh=True)
            statements += [
                "CALL set_option('data_inlining_row_limit', 20)",
                f"INSERT INTO t VALUES {self.values(new)}",
            ]
            self.rows.update(new)
        self.state["plain"] = False
        note(f"elsewhere: {statements}")
        subprocess.run([sys.executable, "-c", _ELSEWHERE, self.url, *statements], check=True)

    def lay_out(self) -> None:
        how = ["SET PARTITIONED BY (p)", "RESET PARTITIONED BY", f"SET SORTED BY ({self.s} DESC)"]
        self.say(f"ALTER TABLE t {self.pick([*how, 'RESET SORTED BY', 'REWRITE'])}")
        self.learn(ours=True, renewed=set())

    def rename(self) -> None:
        name = self.pick([n for n in NAMES if n != self.state["name"]])
        self.say(f"ALTER TABLE t RENAME COLUMN {self.s} TO `{name}`")
        self.state["name"] = name

    def drop_and_undrop(self) -> None:
        """A column comes back with its filter and its encoding; tables with keys refuse it."""
        if self.model != "plain":
            return
        self.say("ALTER TABLE t RESET SORTED BY")
        self.learn(ours=True)
        was = set(self.state["indexes"])
        self.say(f"ALTER TABLE t DROP COLUMN {self.s}")
        self.state["indexes"] -= {"s"}
        if self.pick([True, False]):
            self._next += 1
            self.say(f"INSERT INTO t (k, p, v) VALUES ({self._next}, {self._next % 3}, 1)")
            self.rows[self._next] = (None, 1)
        self.learn(ours=True)
        self.say(f"ALTER TABLE t UNDROP COLUMN {self.s}")
        self.state["indexes"] = was

    def convert(self) -> None:
        kind = "STRING" if self.state["number"] else "INT"
        self.say(f"ALTER TABLE t ALTER COLUMN {self.s} TYPE {kind}")
        self.state["number"] = not self.state["number"]
        self.learn(ours=True, renewed={"s"})

    def convert_and_undo(self) -> None:
        """A row comes between both, and DuckDB's while the job waits."""
        kind = "STRING" if self.state["number"] else "INT"
        change = f"ALTER TABLE t ALTER COLUMN {self.s} TYPE {kind}"
        self.say(f'{change} PROPERTIES ("wait" = "false")')
        self.by_duckdb()
        note("run")
        [job] = [job for job in self.lake.jobs() if job.look().is_open]
        self.lake.run_jobs()
        self.state["number"] = not self.state["number"]
        self.learn(ours=True, renewed={"s"})
        self.insert()
        self.check()
        self.say(f"ALTER TABLE t UNDO JOB {job.id}")
        self.state["number"] = not self.state["number"]
        self.learn(ours=True, renewed={"s"})

    def upkeep(self) -> None:
        table = self.lake.table("t")
        works: dict[str, Callable[[], object]] = {
            "compact": lambda: table.compact(min_files=1, target_file_size=10**8),
            "rewrite deletes": lambda: table.rewrite_deletes(delete_threshold=0),
            "flush": table.flush_inlined_data,
            "maintain": self.lake.maintain,
        }
        name = self.pick(list(works))
        note(name)
        works[name]()

    def restore(self) -> None:
        number = self.pick(list(self.versions))
        self.say(f"RESTORE TABLE t TO VERSION AS OF {number}")
        self.state = self.copy(self.versions[number])
        self.bare = {"k", "s"}

    def clone(self) -> None:
        self.say("CREATE OR REPLACE TABLE c CLONE t")
        self.require_filters("c", set(), {"k", "s"})
        self.same_rows(self.lakes[0].sql(f"SELECT k, p, {self.s}, v FROM c").collect())

    # What must be so.

    @staticmethod
    def copy(state: dict[str, Any]) -> dict[str, Any]:
        return state | {"rows": dict(state["rows"]), "indexes": set(state["indexes"])}

    def check(self) -> None:
        self.learn(ours=True)
        self.same_rows(self.lake.sql(f"SELECT k, p, {self.s}, v FROM t").collect())
        sums: dict[int, int] = {}
        for key, (_, v) in self.rows.items():
            sums[key % 3] = sums.get(key % 3, 0) + v
        found = self.lake.sql("SELECT p, sum(v) FROM t GROUP BY p").collect()
        assert dict(map(tuple, found)) == sums
        s = self.state["name"]
        with DuckDBOracle(self.url) as other:
            self.same_rows(other.sql(f'SELECT k, p, "{s}", v FROM t'))
            for value in {7, 8, 9, self._next * 7, self.pick([14, 21, 5])}:
                keys = sorted(k for k, (n, _) in self.rows.items() if n == value)
                where = f"= {self.literal(value)}"
                assert other.sql(f'SELECT k FROM t WHERE "{s}" {where} ORDER BY k') == [
                    (k,) for k in keys
                ]
                ours = self.lake.sql(f"SELECT k FROM t WHERE {self.s} {where}").collect()
                assert sorted(k for (k,) in ours) == keys
            self.versions[other.snapshot()] = self.copy(self.state)
        key = self.pick([*range(1, self._next + 2)])
        ours = self.lake.sql(f"SELECT v FROM t WHERE k = {key}").collect()
        assert [v for (v,) in ours] == [v for k, (_, v) in self.rows.items() if k == key]

    def same_rows(self, found: Any) -> None:
        as_number = self.state["number"]
        expected = [
            (k, k % 3, s if as_number or s is None else str(s), v)
            for k, (s, v) in self.rows.items()
        ]
        assert sorted(map(tuple, found)) == sorted(expected)

    def learn(self, *, ours: bool, renewed: set[str] | None = None) -> None:
        """New files are known from now on; those of ours are as their table says.

        A job that copies chunks has ``renewed`` some columns.
        """
        every = {"k", "s"}
        columns = every if renewed is None else (every - self.bare) | renewed
        self.known |= self.require_filters("t", self.known, columns if ours else set())

    def paths(self, table: str) -> set[str]:
        return {row[0] for row in self.lakes[0].execute(f"CALL list_files('{table}')").rows}

    def require_filters(self, table: str, known: set[str], columns: set[str]) -> set[str]:
        """The files of a table, after a look at some columns of those that are not known."""
        found = self.paths(table)
        is_seen = columns and found - known and not self.encrypted
        ids = self.column_ids(table) if is_seen else {}
        for path in found - known if ids else ():
            for field, has_filter, encodings in duckdb.sql(_CHUNKS.format(path)).fetchall():
                name = ids.get(field)
                has_dictionary = "DICTIONARY" in encodings
                told = f"{name} of {path}: {encodings}"
                if name in columns:
                    assert not (name == "s" and self.state["plain"] and has_dictionary), told
                if name in columns & self.state["indexes"]:
                    assert has_filter or has_dictionary, told
                    self.filtered += has_filter
        return found

    def column_ids(self, table: str) -> dict[int, str]:
        names = {self.state["name"]: "s", "k": "k"}
        query = (
            "SELECT column_id, column_name FROM __ducklake_metadata_lake.ducklake_column"
            " JOIN ducklake_table_info('lake') USING (table_id)"
            f" WHERE table_name = '{table}' AND end_snapshot IS NULL"
        )
        with DuckDBOracle(self.url) as other:
            return {n: names[name] for n, name in other.sql(query) if name in names}


def tell(seed: int, spark: SparkSession, folder: Path, url: str = "") -> None:
    Program(seed, spark, url or f"sqlite:///{folder}/lake.db", folder).run()
    shutil.rmtree(folder)


@pytest.mark.slow
@settings(SETTINGS, max_examples=long(40, 3))
@given(seed=st.integers(0, 1 << 32))
def test_programs_keep_rows_filters_and_encodings(spark, tmp_path_factory, seed):
    tell(seed, spark, tmp_path_factory.mktemp("program"))


@pytest.mark.slow
@settings(SETTINGS, max_examples=long(10, 1))
@given(seed=st.integers(0, 1 << 32))
def test_programs_keep_them_on_postgresql(spark, postgres_server, tmp_path_factory, seed):
    with postgres_server.fresh_database() as url:
        tell(seed, spark, tmp_path_factory.mktemp("program"), url)
