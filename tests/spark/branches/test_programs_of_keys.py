"""Merges of tables with keys, drawn from a seed: a plain dict for each side agrees."""

from __future__ import annotations

import random

import pytest

import shelduck
from shelduck import Conflict
from tests.support.lengths import one_by_one, with_slow
from tests.support.oracle import DuckDBOracle

MODELS = {
    "unique": ("CREATE TABLE t (k INT, n INT) UNIQUE KEY (k)", lambda _, n: n),
    "sum": ("CREATE TABLE t (k INT, n INT SUM) AGGREGATE KEY (k)", int.__add__),
    "max": ("CREATE TABLE t (k INT, n INT MAX) AGGREGATE KEY (k)", max),
}
KEYS = range(6)
PROGRAMS = [(model, seed) for seed in range(100) for model in MODELS]


class Side:
    """The rows of a table by key, and the keys that were loaded or deleted since the last merge."""

    def __init__(self, rows):
        self.rows, self.touched = dict(rows), set()


class Program:
    """Loads, deletes and compactions of `t` and of `b.t`, and merges."""

    def __init__(self, lake, model, seed):
        self.lake, self.model, self.draw = lake, model, random.Random(seed)
        make, self.loaded = MODELS[model]
        lake.sql(make)
        self.sides = {"t": Side({})}
        self.load("t")
        lake.sql("CREATE BRANCH b")
        self.sides = {name: Side(self.sides["t"].rows) for name in ("t", "b.t")}
        self.base = dict(self.sides["t"].rows)

    def run(self, steps):
        acts = (self.load, self.load, self.delete, self.compact)
        for _ in range(steps):
            if self.draw.random() < 0.3:
                self.merge()
            else:
                self.draw.choice(acts)(self.draw.choice(list(self.sides)))
        self.merge()

    def load(self, name):
        new = {k: self.draw.randrange(100) for k in KEYS if self.draw.random() < 0.4} or {0: 1}
        self.lake.sql(f"INSERT INTO {name} VALUES {', '.join(map(str, new.items()))}")
        side = self.sides[name]
        for key, n in new.items():
            known = side.rows.get(key)
            side.rows[key] = n if known is None else self.loaded(known, n)
        side.touched |= new.keys()

    def delete(self, name):
        gone = tuple(self.draw.sample(KEYS, 2))
        self.lake.sql(f"DELETE FROM {name} WHERE k IN {gone}")
        side = self.sides[name]
        side.touched |= {k for k in gone if side.rows.pop(k, None) is not None}

    def compact(self, name):
        self.lake.table(name).compact(min_files=2)

    def merge(self):
        ours, theirs = self.sides["t"], self.sides["b.t"]
        both = ours.touched & theirs.touched
        both = {k for k in both if k in self.base or k in theirs.rows}
        conflicts = {k for k in both if (k in ours.rows) != (k in theirs.rows)}
        try:
            self.lake.merge_branch("b")
        except Conflict:
            assert conflicts
            return
        assert not conflicts
        if not theirs.touched:
            # Nothing was merged: the sides are still compared with the same base.
            return
        for key in theirs.touched:
            if key not in theirs.rows:
                ours.rows.pop(key, None)
            elif key not in ours.rows or ours.rows[key] == self.base.get(key):
                ours.rows[key] = theirs.rows[key]
            else:
                n = theirs.rows[key] - (self.base.get(key, 0) if self.model == "sum" else 0)
                ours.rows[key] = self.loaded(ours.rows[key], n)
        ours.touched, theirs.touched, self.base = set(), set(), dict(theirs.rows)

    def look(self, duck):
        for name, side in self.sides.items():
            assert sorted(duck.sql(f"FROM {name}")) == sorted(side.rows.items()), name


@pytest.mark.parametrize(("model", "seed"), with_slow(PROGRAMS[:3], one_by_one(PROGRAMS[3:], 30)))
def test_a_program_of_keys_is_as_its_model(spark, tmp_path, model, seed):
    where = f"sqlite:///{tmp_path}/lake.db"
    with shelduck.connect(where, f"{tmp_path}/data", spark) as lake, DuckDBOracle(where) as duck:
        lake.set_option("data_inlining_row_limit", seed % 2 * 100)
        program = Program(lake, model, seed)
        for _ in range(3):
            program.run(3)
            program.look(duck)
        assert not lake.check(rows=True).problems
