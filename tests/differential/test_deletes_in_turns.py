"""Small and large deletes from one file, by both engines in every order, then a flush by either."""

from __future__ import annotations

import itertools
from contextlib import closing

import pytest

import shelduck
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.lengths import shown, turns

pytestmark = pytest.mark.usefixtures("ducklake_version")

# Few rows are positions in the catalog, many are a delete file.
SMALL, LARGE = 2, 12
ALL = 100
REWRITE = 0
KINDS = {
    "s": ("us", SMALL),
    "L": ("us", LARGE),
    "E": ("us", ALL),
    "R": ("us", REWRITE),
    "d": ("duckdb", SMALL),
    "D": ("duckdb", LARGE),
}


def orders(steps, of="sLdD"):
    return ["".join(order) for order in itertools.product(of, repeat=steps)]


SOME_ORDERS = [stories for n in (3, 4) for stories in turns(orders(n), 16)]


class Story:
    """Tables with one file of 100 rows each, from which an order of steps deletes."""

    def __init__(self, url, data_path, spark, stories):
        self.url, self.spark = url, spark
        self.names = {f"t{n}": story for n, story in enumerate(stories)}
        self.left = {name: list(range(100)) for name in self.names}
        self.past = {name: {} for name in self.names}
        with closing(shelduck.connect(url, data_path)) as lake:
            for name in self.names:
                lake.create_table(name, {"id": "int"})
        with oracle_at(url) as oracle:
            for name in self.names:
                oracle.execute(f"INSERT INTO {name} FROM range(100)")

    def run(self):
        for step in range(max(map(len, self.names.values()))):
            for who in ("us", "duckdb"):
                self.turn(who, step)

    def turn(self, who, step):
        due = {n: KINDS[s[step]][1] for n, s in self.names.items()
               if step < len(s) and KINDS[s[step]][0] == who}  # fmt: skip
        lake = shelduck.connect(self.url, spark=self.spark)
        with closing(lake), oracle_at(self.url) as oracle:
            for name, count in due.items():
                if count == REWRITE:
                    lake.table(name).rewrite_deletes(0.0)
                    continue
                gone, self.left[name] = self.left[name][:count], self.left[name][count:]
                text = f"DELETE FROM {name} WHERE id BETWEEN {gone[0]} AND {gone[-1]}"
                (lake.sql if who == "us" else oracle.execute)(text)
                self.past[name][oracle.snapshot()] = list(self.left[name])

    def flush(self, who):
        if who == "us":
            with closing(shelduck.connect(self.url, spark=self.spark)) as lake:
                lake.flush_inlined_data()
        else:
            with oracle_at(self.url) as oracle:
                oracle.execute("CALL ducklake_flush_inlined_data('lake')")

    def check(self):
        """Every snapshot of every table, by both; Shelduck reads all of them in one query."""
        with oracle_at(self.url) as oracle:
            for name, past in self.past.items():
                for version, left in past.items():
                    found = [n for (n,) in oracle.rows(name, version=version)]
                    assert found == left, (self.names[name], version)
                    count = oracle.sql(f"SELECT count(*) FROM {name} AT (VERSION => {version})")
                    assert count == [(len(left),)], (self.names[name], version)
            doubled = oracle.sql(
                "SELECT a.data_file_id FROM __ducklake_metadata_lake.ducklake_delete_file a"
                " JOIN __ducklake_metadata_lake.ducklake_delete_file b USING (data_file_id)"
                " WHERE a.delete_file_id < b.delete_file_id"
                " AND a.begin_snapshot < coalesce(b.end_snapshot, 1e9)"
                " AND b.begin_snapshot < coalesce(a.end_snapshot, 1e9)"
            )
            assert doubled == []
        wanted = {(n, v): left for n, past in self.past.items() for v, left in past.items()}
        with closing(shelduck.connect(self.url, spark=self.spark)) as lake:
            parts = [
                f"SELECT '{n}' AS t, {v} AS v, id FROM {n} VERSION AS OF {v}" for n, v in wanted
            ]
            for at in range(0, len(parts), 40):
                found = lake.sql(" UNION ALL ".join(parts[at : at + 40])).collect()
                for key in list(wanted)[at : at + 40]:
                    ids = sorted(row.id for row in found if (row.t, row.v) == key)
                    assert ids == wanted[key], (self.names[key[0]], key)


@pytest.mark.slow
def test_every_snapshot_has_one_delete_file_after_a_flush_by_duckdb(sqlite_url, data_path, spark):
    story = Story(sqlite_url, data_path, spark, ["LsL", "sLLd", "LdE", "LsRd"])
    story.run()
    story.flush("duckdb")

    story.check()


@pytest.mark.slow
@pytest.mark.parametrize("flusher", ["duckdb", "us"])
@pytest.mark.parametrize("stories", SOME_ORDERS, ids=shown)
def test_every_order_of_deletes_has_one_delete_file_after_a_flush(
    sqlite_url, data_path, spark, flusher, stories
):
    story = Story(sqlite_url, data_path, spark, stories)
    story.run()
    story.check()
    story.flush(flusher)
    story.check()
