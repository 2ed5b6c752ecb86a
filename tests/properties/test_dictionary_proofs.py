"""Dictionaries never prove a text that the job refuses, nor refuse what the job would accept."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import shelduck
from shelduck import InvalidRequest, change_type
from shelduck.alter import verb as alter_verbs
from shelduck.jobs import dictionary_proof
from tests.properties.test_evolution import SETTINGS
from tests.support.lengths import long
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# Texts that become an INT, and some that do not, by what the documentation says.
GOOD = ["0", "7", " 12 ", "-5", "+3", "007", "2147483647"]
BAD = ["x", "", "1.5", "2147483648", "1e3", "7\u0663", "0x1", "twelve"]
CHANGES = [
    {},
    {"using": "CAST(trim(v) AS INT) + 0"},
    {"using": "coalesce(CAST(v AS INT), -1)"},
    {"using": "CAST(coalesce(v, 'no') AS INT)"},
    {"using": "CAST(v AS INT) + CAST(id AS INT) * 0"},
    {"on_error": "null"},
    {"using": "CAST(v AS INT)", "on_error": "null"},
]
PROVEN = re.compile(r"proven for (\d+) of (\d+) file\(s\)")
CONF = "parquet.enable.dictionary"


class Drawn:
    """A table whose files several writers make, with the texts of each row by its id."""

    def __init__(self, data: st.DataObject, spark: SparkSession, folder: Path) -> None:
        self._data, self.spark, self.folder = data, spark, folder
        self.url = f"sqlite:///{folder}/lake.db"
        self.rows: dict[int, str | None] = {}
        self.dead: set[int] = set()
        self.times = 1
        self.certain = True
        self.files: list[set[int]] = []

    def pick(self, choices: list[Any]) -> Any:
        return self._data.draw(st.sampled_from(choices))

    def texts(self) -> list[str | None]:
        """The texts of one file: a few kinds, or many different ones that fill a dictionary."""
        kind = self.pick(["good", "good", "good", "bad", "nulls", "many"])
        pool = {"good": GOOD, "bad": GOOD + BAD, "nulls": [], "many": []}[kind]
        drawn = st.lists(st.sampled_from([*pool, None]), min_size=1, max_size=12)
        found = self._data.draw(drawn)
        if kind == "many":
            found += [str(n) for n in range(3000)]
        self.times = self.pick([1, 40])
        found *= self.times
        note(f"{kind}: {sorted(set(map(str, found)))[:12]}, {len(found)} rows")
        return found

    def connect(self) -> shelduck.Lake:
        return shelduck.connect(self.url, f"{self.folder}/data/", self.spark, progress=False)

    def write(self) -> None:
        """Add one file by one of the writers."""
        texts, first = self.texts(), len(self.rows)
        added = dict(enumerate(texts, first))
        self.rows |= added
        self.files.append(set(added))
        {"spark": self._spark, "duckdb": self._duckdb, "pyarrow": self._pyarrow}[
            self.pick(["spark", "spark", "duckdb", "pyarrow"])
        ](added)

    def _spark(self, added: dict[int, str | None]) -> None:
        has_dictionary = self.pick([True, True, False])
        size = self.pick(["1024", "100000000"])
        # A dictionary that saves nothing is not written.
        saves = self.times > 1 and len(set(added.values())) < 100 and size != "1024"
        self.certain &= has_dictionary and saves
        self.note_writer("spark", dictionary=has_dictionary, size=size)
        hadoop = self.spark.sparkContext._jsc.hadoopConfiguration()
        hadoop.set(CONF, str(has_dictionary).lower())
        try:
            with self.connect() as lake:
                lake.set_option("parquet_row_group_size_bytes", size, table="t")
                frame = self.spark.createDataFrame([*added.items()], "id BIGINT, v STRING")
                lake.table("t").append(frame.coalesce(1))
        finally:
            hadoop.unset(CONF)

    def _duckdb(self, added: dict[int, str | None]) -> None:
        self.certain = False
        self.note_writer("duckdb")
        with DuckDBOracle(self.url, options={"DATA_INLINING_ROW_LIMIT": 0}) as duckdb:
            duckdb.execute("CALL lake.set_option('parquet_row_group_size', '1000')")
            # It could not keep the size in bytes that the table has, too.
            duckdb.execute("SET preserve_insertion_order = false")
            rows = ", ".join(f"({n}, {_literal(v)})" for n, v in added.items())
            duckdb.execute(f"INSERT INTO t VALUES {rows}")

    def _pyarrow(self, added: dict[int, str | None]) -> None:
        self.certain = False
        options = {
            "use_dictionary": self.pick([True, True, False]),
            "row_group_size": self.pick([3, 1_000_000]),
            "dictionary_pagesize_limit": self.pick([20, 1_000_000]),
            "data_page_size": self.pick([10, 1_000_000]),
            "data_page_version": self.pick(["1.0", "2.0"]),
        }
        self.note_writer("pyarrow", **options)
        texts = pa.array(added.values(), pa.string())
        if self.pick([True, False]):
            # Its dictionary has a text that no row has.
            known = [*dict.fromkeys(v for v in added.values() if v is not None), "unused"]
            at = [None if v is None else known.index(v) for v in added.values()]
            texts = pa.DictionaryArray.from_arrays(pa.array(at, pa.int32()), pa.array(known))
        path = f"{self.folder}/added-{len(self.files)}.parquet"
        made = pa.table({"id": pa.array(added, pa.int64()), "v": texts})
        pq.write_table(made, path, **options)
        with self.connect() as lake:
            lake.table("t").add_files(path)

    def note_writer(self, name: str, **options: Any) -> None:
        note(f"file {len(self.files)}: {name} {options}")

    def delete(self) -> None:
        """Delete rows: of all texts that do not fit, or of some."""
        bad = [n for n, v in self.rows.items() if v in BAD]
        chosen = self._data.draw(st.lists(st.sampled_from([*self.rows]), max_size=3))
        gone = bad if self.pick([True, False]) else chosen
        if gone:
            note(f"deleted: {len(gone)}, such as {self.rows[gone[0]]!r}")
            self.dead |= set(gone)
            with self.connect() as lake:
                lake.sql(f"DELETE FROM t WHERE id IN ({', '.join(map(str, gone))})")

    def bad_files(self) -> int:
        """How many files have a row with a text that does not fit."""
        return sum(any(self.rows[n] in BAD for n in ids - self.dead) for ids in self.files)


def _literal(text: str | None) -> str:
    return "NULL" if text is None else f"'{text}'"


@contextmanager
def blind() -> Iterator[None]:
    """Without a look at dictionaries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alter_verbs, "of_dictionaries", lambda _: ())
        yield


@pytest.mark.slow
@settings(SETTINGS, max_examples=long(100, 4))
@given(data=st.data())
def test_a_job_does_what_dictionaries_prove(data, spark, tmp_path_factory):
    drawn = Drawn(data, spark, tmp_path_factory.mktemp("proof"))
    with drawn.connect() as lake:
        lake.set_option("data_inlining_row_limit", "0")
        lake.sql("CREATE TABLE t (id BIGINT, v STRING)")
    for _ in range(data.draw(st.integers(1, 4))):
        drawn.write()
    if drawn.pick([True, False]):
        drawn.delete()
    options = drawn.pick(CHANGES)
    change = change_type("v", "int", **options)
    note(f"{options}")
    with pytest.MonkeyPatch.context() as patch, drawn.connect() as lake:
        patch.setattr(dictionary_proof, "_SMALL", 0)
        patch.setattr(dictionary_proof, "_WORTH", 0)
        patch.setattr(dictionary_proof, "_FEW", 0)
        table = lake.table("t")
        proof = table.plan_alter(change).steps[0].proof
        note(proof)
        refused = None
        try:
            job = table.alter(change)
        except InvalidRequest as error:
            refused = str(error)
            with blind():
                job = table.alter(change)
        try:
            job.wait()
        except InvalidRequest as error:
            accepted = False
            note(str(error))
        else:
            accepted = True

    found = PROVEN.match(proof)
    assert (refused is None) or not accepted
    assert (refused is None) == ("would fail" not in proof)
    if found is not None and found[1] == found[2]:
        assert accepted
    if found is not None and "using" not in options:
        assert int(found[1]) <= len(drawn.files) - drawn.bad_files() + (options != {}) * 9
    if refused is not None:
        value = re.search(r"(?:such as|fails for) '(.*?)'", refused)
        assert value is not None
        with DuckDBOracle(drawn.url) as duckdb:
            assert (value[1],) in duckdb.sql("SELECT v FROM t")
    if drawn.certain and options == {} and not drawn.dead:
        # Spark's dictionaries hold all texts, so nothing is left to the job.
        assert found is not None
        assert accepted == (found[1] == found[2]) == (refused is None)
