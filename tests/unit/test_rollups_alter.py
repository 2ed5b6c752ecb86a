"""ALTER TABLE of a table with rollups: what each clause means for the base and for which rollup."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shelduck.doors.sql.parse import parse
from shelduck.errors import AlreadyExists, InvalidRequest, NotFound
from shelduck.model.changes.change import altered
from shelduck.model.tables.keys import Aggregation, KeyModel, table_keys
from shelduck.model.tables.rollup import Measure, MeasureSpec, RollupSpec, rollup_of
from shelduck.rollups.altered_bases import names_rollup, parted
from shelduck.rollups.rollup_plan import is_current
from tests.support.rollups import keyed, made
from tests.support.scans import column, table

PLAIN = table(
    column("k1", "int32", 1),
    column("k2", "int32", 2),
    column("v", "int32", 3),
    column("w", "int32", 4),
)
DUP = keyed(PLAIN, KeyModel.DUPLICATE, "k1", "k2")
UNI = keyed(PLAIN, KeyModel.UNIQUE, "k1", "k2")
VALUES = {"v": Aggregation.SUM, "w": Aggregation.MAX}
AGG = keyed(PLAIN, KeyModel.AGGREGATE, "k1", "k2", values=VALUES)
LAST = keyed(PLAIN, KeyModel.AGGREGATE, "k1", "k2", values=VALUES | {"w": Aggregation.REPLACE})

P = RollupSpec("P", ("k2", "v"))
Q = RollupSpec("q", ("w", "k1"))
G = RollupSpec(
    "g", ("k2",), (MeasureSpec("sum_v", Measure.SUM, "v"), MeasureSpec("n", Measure.COUNT))
)
ROLLUPS = {
    id(DUP): [P, Q, G],
    id(UNI): [RollupSpec("P", ("k2", "k1", "v")), RollupSpec("q", ("k2", "k1"))],
    id(AGG): [P, RollupSpec("q", ("k1", "w"))],
    id(LAST): [P, RollupSpec("q", ("k2", "k1", "w"))],
}

C = "ADD COLUMN c INT"


def rollups(base):
    return [made(base, spec, n) for n, spec in enumerate(ROLLUPS[id(base)], 2)]


def parts(base, text):
    """The changes of the base and of each rollup, as text."""
    [statement] = parse(f"ALTER TABLE t {text}")
    found = parted(base, rollups(base), statement.changes)
    return [str(c) for c in found.own], {r: [str(c) for c in cs] for r, cs in found.theirs.items()}


def staged(base, text):
    """The base and its rollups after a statement, with the names of those that were made anew."""
    [statement] = parse(f"ALTER TABLE t {text}")
    found = parted(base, rollups(base), statement.changes)
    unit = Unit(base, rollups(base))
    found.stage(unit)
    unit.made = [t.name for t in found.made_anew(found.plan)]
    return unit


class Unit:
    """What a unit of work remembers of changes."""

    def __init__(self, base, found):
        self.tables = {t.name: t for t in (base, *found)}
        self.made = []
        self.workspace = self

    def alter_table(self, change):
        self.tables[change.table.name] = altered(change.table, change)

    def current(self):
        base = self.tables["t"]
        return {n: is_current(base, t) for n, t in self.tables.items() if "$" in n}


def refused(kind, base, text):
    with pytest.raises(kind) as caught:
        parts(base, text)
    assert type(caught.value) is kind
    return str(caught.value)


@pytest.mark.parametrize(
    ("base", "text", "own", "theirs"),
    [
        (DUP, "ADD COLUMN c INT", "ADD COLUMN c int32", {}),
        (DUP, "ADD COLUMN c INT TO p", "ADD COLUMN c int32", {"p": "ADD COLUMN c int32"}),
        (
            # A place in a rollup says nothing about the base.
            *(DUP, "ADD COLUMN c INT AFTER v TO P", "ADD COLUMN c int32"),
            {"p": "ADD COLUMN c int32 AFTER v"},
        ),
        # The rollup has no k1, so the column goes where those without a position go.
        (
            *(DUP, "ADD COLUMN c INT AFTER k1 TO p", "ADD COLUMN c int32"),
            {"p": "ADD COLUMN c int32"},
        ),
        (
            *(DUP, "ADD COLUMN (c INT, d INT) TO p", "ADD COLUMN c int32; ADD COLUMN d int32"),
            {"p": "ADD COLUMN c int32; ADD COLUMN d int32"},
        ),
        (
            *(DUP, "ADD COLUMN c INT AFTER v TO p, ADD COLUMN d INT AFTER c TO p"),
            "ADD COLUMN c int32; ADD COLUMN d int32",
            {"p": "ADD COLUMN c int32 AFTER v; ADD COLUMN d int32 AFTER c"},
        ),
        # What goes to several rollups is one column of the base.
        (
            *(DUP, "ADD COLUMN c INT TO p, ADD COLUMN c INT TO q", "ADD COLUMN c int32"),
            {"p": "ADD COLUMN c int32", "q": "ADD COLUMN c int32"},
        ),
        (
            *(DUP, "ADD COLUMN c INT NOT NULL DEFAULT 1 TO p"),
            "ADD COLUMN c int32 NOT NULL DEFAULT '1'",
            {"p": "ADD COLUMN c int32 NOT NULL DEFAULT '1'"},
        ),
        (
            *(DUP, "ADD COLUMN c INT KEY TO p", "ADD COLUMN c int32 KEY"),
            {"p": "ADD COLUMN c int32 KEY"},
        ),
        # Every row of a UNIQUE rollup is known by all keys.
        (UNI, "ADD COLUMN c INT", "ADD COLUMN c int32", {}),
        (UNI, "ADD COLUMN c INT TO q", "ADD COLUMN c int32", {"q": "ADD COLUMN c int32"}),
        (
            *(UNI, "ADD COLUMN c INT KEY", "ADD COLUMN c int32 KEY"),
            {"p": "ADD COLUMN c int32 KEY", "q": "ADD COLUMN c int32 KEY"},
        ),
        (
            *(UNI, "ADD COLUMN c INT KEY TO q", "ADD COLUMN c int32 KEY"),
            {"q": "ADD COLUMN c int32 KEY", "p": "ADD COLUMN c int32 KEY"},
        ),
        # Sums in rollups are wider, and what is replaced stands beside all keys.
        (
            *(AGG, "ADD COLUMN c INT SUM TO p", "ADD COLUMN c int32 SUM"),
            {"p": "ADD COLUMN c int64 SUM"},
        ),
        (
            *(AGG, "ADD COLUMN c INT MAX TO q", "ADD COLUMN c int32 MAX"),
            {"q": "ADD COLUMN c int32 MAX"},
        ),
        (AGG, "ADD COLUMN c INT", "ADD COLUMN c int32", {}),
        (AGG, "ADD COLUMN c INT TO p", "ADD COLUMN c int32", {"p": "ADD COLUMN c int32"}),
        (LAST, "ADD COLUMN c INT", "ADD COLUMN c int32", {"q": "ADD COLUMN c int32"}),
        (LAST, "ADD COLUMN c INT MIN", "ADD COLUMN c int32 MIN", {}),
        # What is dropped, renamed or widened is so wherever it is held.
        (DUP, "DROP COLUMN w", "DROP COLUMN w", {"q": "DROP COLUMN w"}),
        (DUP, "DROP COLUMN W FROM Q", "", {"q": "DROP COLUMN W"}),
        (UNI, "DROP COLUMN v", "DROP COLUMN v", {"p": "DROP COLUMN v"}),
        (UNI, "DROP COLUMN w", "DROP COLUMN w", {}),
        (AGG, "DROP COLUMN v", "DROP COLUMN v", {"p": "DROP COLUMN v"}),
        (AGG, "DROP COLUMN k1", "DROP COLUMN k1", {"q": "DROP COLUMN k1"}),
        (
            *(DUP, "RENAME COLUMN V TO x", "RENAME COLUMN V TO x"),
            {"p": "RENAME COLUMN v TO x"},
        ),
        (
            *(DUP, "RENAME COLUMN k2 TO x", "RENAME COLUMN k2 TO x"),
            {"p": "RENAME COLUMN k2 TO x", "g": "RENAME COLUMN k2 TO x"},
        ),
        (
            *(DUP, "ALTER COLUMN v TYPE BIGINT", "ALTER COLUMN v TYPE int64"),
            {"p": "ALTER COLUMN v TYPE int64"},
        ),
        (
            *(DUP, "ALTER COLUMN k2 TYPE BIGINT", "ALTER COLUMN k2 TYPE int64"),
            {"p": "ALTER COLUMN k2 TYPE int64", "g": "ALTER COLUMN k2 TYPE int64"},
        ),
        (AGG, "MODIFY COLUMN v BIGINT SUM", "MODIFY COLUMN v int64 SUM", {}),
        (
            *(AGG, "MODIFY COLUMN w BIGINT MAX", "MODIFY COLUMN w int64 MAX"),
            {"q": "ALTER COLUMN w TYPE int64"},
        ),
        # Values that are converted are made anew afterwards.
        (DUP, "ALTER COLUMN w TYPE STRING", "ALTER COLUMN w TYPE varchar", {}),
        (
            *(DUP, "ALTER COLUMN w TYPE BIGINT USING w + 1"),
            *("ALTER COLUMN w TYPE int64 USING w + 1", {}),
        ),
        (DUP, "ALTER COLUMN v COMMENT 'x'", "COMMENT ON COLUMN v IS 'x'", {}),
        # A move inside a rollup is none of the base.
        (DUP, "MODIFY COLUMN k1 INT FIRST FROM q", "", {"q": "ALTER COLUMN k1 FIRST"}),
        (DUP, "ORDER BY (v, k2) FROM p", "", {"p": "ORDER BY (v, k2)"}),
        (
            *(DUP, "ORDER BY (k2, k1, v, w), ORDER BY (k1, w) FROM q"),
            *("ORDER BY (k2, k1, v, w)", {"q": "ORDER BY (k1, w)"}),
        ),
    ],
)  # fmt: skip
def test_each_clause_is_one_of_the_base_of_rollups_or_of_both(base, text, own, theirs):
    found = parts(base, text)

    assert found == (
        own.split("; ") if own else [],
        {r: cs.split("; ") for r, cs in theirs.items()},
    )


@pytest.mark.parametrize(
    ("kind", "base", "text", "told"),
    [
        (AlreadyExists, DUP, "ADD COLUMN V INT TO p", "base table main.t already has it"),
        (AlreadyExists, AGG, "ADD COLUMN w INT MAX TO p", "base table main.t already has it"),
        (InvalidRequest, DUP, f"{C} TO p, {C} TO p", "Repeatedly add column: c"),
        (
            *(InvalidRequest, DUP, "ADD COLUMN c INT TO p, ADD COLUMN c BIGINT TO q"),
            "Repeatedly add same column with different definition: c",
        ),
        (
            *(InvalidRequest, AGG, "ADD COLUMN c INT SUM TO p, ADD COLUMN c INT MAX TO q"),
            "Repeatedly add same column with different definition: c",
        ),
        (NotFound, DUP, f"{C} TO r", "not exist in table[t]; existing rollups: P, q, g"),
        (NotFound, DUP, "DROP COLUMN v FROM r", "Index[r] does not exist in table[t]"),
        (NotFound, DUP, "ORDER BY (v, k2) FROM r", "Index[r] does not exist in table[t]"),
        (NotFound, DUP, "MODIFY COLUMN v INT AFTER k2 FROM r", "Index[r] does not exist in table"),
        (InvalidRequest, DUP, "ADD COLUMN c INT TO T", "T is the table itself"),
        (InvalidRequest, DUP, "DROP COLUMN v FROM t", "t is the table itself"),
        (InvalidRequest, DUP, "ORDER BY (k1) FROM t", "t is the table itself"),
        (InvalidRequest, DUP, "MODIFY COLUMN v INT FIRST FROM t", "t is the table itself"),
        (
            *(InvalidRequest, DUP, "ADD COLUMN c INT TO g"),
            "cannot add column c to rollup g of main.t: the rollup combines rows; add the",
        ),
        (NotFound, DUP, "DROP COLUMN w FROM p", "column 'w' does not exist in p"),
        (NotFound, DUP, "DROP COLUMN x FROM p", "column 'x' does not exist in p"),
        (InvalidRequest, DUP, "DROP COLUMN v", "cannot drop column v: rollup g uses it"),
        (InvalidRequest, DUP, "ALTER COLUMN v TYPE STRING", "column v: rollup g uses it"),
        (
            *(InvalidRequest, DUP, "MODIFY COLUMN v BIGINT FROM p"),
            "is only for moving a column within a rollup",
        ),
    ],
)  # fmt: skip
def test_what_no_rollup_takes_is_refused(kind, base, text, told):
    assert told in refused(kind, base, text)


@pytest.mark.parametrize(
    ("base", "text", "columns", "by"),
    [
        (DUP, "ADD COLUMN c INT TO p", "k2 v c", "k2 v"),
        (DUP, "ADD COLUMN c INT KEY TO p", "k2 v c", "k2 v c"),
        (DUP, "RENAME COLUMN k2 TO x", "x v", "x v"),
        (DUP, "ORDER BY (v, k2) FROM p", "v k2", "v k2"),
        (DUP, "ALTER COLUMN v TYPE BIGINT", "k2 v", "k2 v"),
        (UNI, "ADD COLUMN c INT KEY", "k2 k1 c v", "k2 k1 c"),
        (UNI, "ADD COLUMN c INT AFTER v TO p", "k2 k1 v c", "k2 k1"),
        (UNI, "DROP COLUMN v", "k2 k1", "k2 k1"),
        (AGG, "ADD COLUMN c INT MIN TO p", "k2 v c", "k2"),
        (AGG, "ADD COLUMN c INT TO p", "k2 c v", "k2 c"),
        (AGG, "DROP COLUMN v", "k2", "k2"),
        (AGG, "DROP COLUMN w", "k2 v", "k2"),
    ],
)
def test_a_rollup_is_current_after_what_was_done_to_it(base, text, columns, by):
    unit = staged(base, text)
    found = unit.tables["t$P"]

    assert found.columns.names == columns.split()
    keys = table_keys(found).key_fields(found.columns)
    assert [f.name for f in keys] == by.split()
    assert unit.current()["t$P"]
    assert "t$P" not in unit.made


def test_a_new_column_is_known_by_what_it_is_in_the_base():
    unit = staged(AGG, "ADD COLUMN c INT SUM DEFAULT 0 TO p, ADD COLUMN d INT TO q")
    source = unit.tables["t"].columns.get(("c",)).id
    [c] = [c for c in rollup_of(unit.tables["t$P"]).columns if c.source == source]

    assert c.measure is Measure.SUM
    assert str(unit.tables["t$P"].columns.by_id(c.id).type) == "int64"
    source = unit.tables["t"].columns.get(("d",)).id
    [d] = [c for c in rollup_of(unit.tables["t$q"]).columns if c.source == source]
    assert d.measure is None
    assert unit.current() == {"t$P": True, "t$q": True}


def test_a_rollup_that_loses_a_key_of_combined_rows_is_made_anew():
    base = replace(AGG)
    ROLLUPS[id(base)] = [RollupSpec("P", ("k2", "k1", "v"))]
    unit = staged(base, "DROP COLUMN k1 FROM p")

    assert unit.made == ["t$P"]
    assert unit.tables["t$P"].columns.names == ["k2", "v"]
    assert unit.current() == {"t$P": True}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("DROP COLUMN k2 FROM p", "no key column left: column k2 of main.`t$P` is the last one"),
        ("ORDER BY (v, k2) FROM p", "value should be after key"),
        ("MODIFY COLUMN v INT SUM FIRST FROM p", "value should be after key"),
        ("ADD COLUMN c INT AFTER v TO p", "value should be after key"),
        ("ADD COLUMN c INT SUM DEFAULT 5 TO p", "SUM aggregation function must be zero"),
    ],
)
def test_a_rollup_keeps_the_rules_of_its_keys(text, told):
    with pytest.raises(InvalidRequest) as caught:
        staged(AGG, text)
    assert told in str(caught.value)


def test_columns_change_their_names_among_themselves():
    unit = staged(DUP, "RENAME COLUMN k2 TO x, RENAME COLUMN v TO k2, RENAME COLUMN x TO v")

    assert unit.tables["t"].columns.names == ["k1", "v", "k2", "w"]
    assert unit.tables["t$P"].columns.names == ["v", "k2"]
    assert unit.current() == dict.fromkeys(unit.current(), True)


def test_a_column_does_not_take_the_name_that_a_measure_has():
    with pytest.raises(AlreadyExists) as caught:
        staged(DUP, "RENAME COLUMN k2 TO sum_v")
    assert "sum_v already exists in rollup g" in str(caught.value)


def test_a_column_is_added_to_a_rollup_and_renamed_at_once():
    unit = staged(DUP, "ADD COLUMN c INT TO p, RENAME COLUMN c TO d")

    assert unit.tables["t$P"].columns.names == ["k2", "v", "d"]


def test_a_column_may_take_the_name_of_one_that_goes():
    unit = staged(DUP, "DROP COLUMN w, ADD COLUMN w STRING TO p")

    assert unit.tables["t$P"].columns.names == ["k2", "v", "w"]


def test_the_clauses_that_name_a_rollup_are_told_apart():
    def named(text):
        [statement] = parse(f"ALTER TABLE t {text}")
        return names_rollup(statement.changes)

    assert not named("ADD COLUMN c INT, DROP COLUMN v, RENAME COLUMN w TO x, ORDER BY (k1)")
    for text in ("ADD COLUMN c INT TO p", "DROP COLUMN v FROM p", "ORDER BY (k1) FROM p"):
        assert named(f"DROP COLUMN w, {text}")
