"""What happened on a branch, as the catalog tells it: DuckDB does it, and no Spark runs."""

from __future__ import annotations

import pytest

import shelduck
from shelduck.errors import Conflict, InvalidRequest

pytestmark = pytest.mark.databases("sqlite", "postgres")


@pytest.fixture
def branch(lake, duck):
    """A branch of three rows in one table."""
    duck.execute("CREATE TABLE t (id INT, v INT, s STRUCT(a INT, b VARCHAR))")
    duck.execute("INSERT INTO t SELECT i, i, {a: i, b: 'x'} FROM range(3) r(i)")
    lake.create_branch("b")
    return lambda: lake.branch_diff("b")


def counts(found):
    [table] = found.tables
    return table.counts.added, table.counts.changed, table.counts.deleted, table.counts.net


# What DuckDB does on the branch, and the clauses that lead there.
SHAPES = {
    "ADD COLUMN c VARCHAR DEFAULT 'x'": "ADD COLUMN c varchar DEFAULT 'x'",
    "DROP COLUMN v": "DROP COLUMN v",
    "RENAME COLUMN v TO w": "RENAME COLUMN v TO w",
    "ALTER COLUMN v TYPE BIGINT": "ALTER COLUMN v TYPE int64",
    "ALTER COLUMN v SET DEFAULT 7": "ALTER COLUMN v SET DEFAULT '7'",
    "ALTER COLUMN v SET NOT NULL": "ALTER COLUMN v SET NOT NULL",
    "ADD COLUMN s.c INT": "ADD COLUMN s.c int32",
    "DROP COLUMN s.b": "DROP COLUMN s.b",
    "RENAME COLUMN s.a TO z": "RENAME COLUMN s.a TO z",
    "SET PARTITIONED BY (bucket(4, v))": "SET PARTITIONED BY (bucket(4, v))",
    "SET SORTED BY (v DESC)": "SET SORTED BY (v DESC)",
}


@pytest.mark.parametrize("statement", SHAPES)
def test_columns_differ_in_the_words_of_alter_table(duck, branch, statement):
    duck.execute(f"ALTER TABLE b.t {statement}")
    [table] = branch().tables
    assert (table.table, table.change, table.clauses) == ("main.t", "changed", (SHAPES[statement],))
    assert str(table.counts) == ""
    assert table.sql == f"ALTER TABLE main.t {SHAPES[statement]}"


# What only Shelduck says, in the words in which it says it.
OURS = (
    "ADD COLUMN c int32 FIRST",
    "ADD COLUMN c int32 AFTER id",
    "ORDER BY (v, id, s)",
    "ALTER COLUMN s.b FIRST",
    "COMMENT ON COLUMN s.a IS 'of a'",
    "SET TBLPROPERTIES ('owner' = 'Mara')",
)


@pytest.mark.parametrize("clause", OURS)
def test_clauses_are_those_that_were_given(lake, branch, clause):
    if clause.startswith("COMMENT"):
        lake.table("b.t").alter(shelduck.set_comment("s.a", "of a"))
    else:
        lake.execute(f"ALTER TABLE b.t {clause}")
    [table] = branch().tables
    wanted = {"ALTER COLUMN s.b FIRST": ("ALTER COLUMN s.b FIRST", "ALTER COLUMN s.a AFTER b")}
    assert table.clauses == wanted.get(clause, (clause,))


def test_a_column_of_the_same_name_is_another_one(lake, branch):
    lake.execute("ALTER TABLE b.t DROP COLUMN v")
    lake.execute("ALTER TABLE b.t ADD COLUMN v int32")
    assert branch().tables[0].clauses == ("DROP COLUMN v", "ADD COLUMN v int32")


def test_names_that_are_exchanged_come_before_what_is_told_of_the_columns(lake, branch):
    clauses = (
        *("RENAME COLUMN v TO id", "RENAME COLUMN id TO v", "ALTER COLUMN v SET DEFAULT '7'"),
        *("ALTER COLUMN id SET DEFAULT '8'", "ADD COLUMN n struct<a: int32>"),
        "ALTER COLUMN n.a SET DEFAULT '9'",
    )
    lake.execute(f"ALTER TABLE b.t {', '.join(clauses)}")
    [table] = branch().tables
    first = ("RENAME COLUMN id TO v", "RENAME COLUMN v TO id")
    assert table.clauses == (*first, *clauses[2:])
    # These clauses make the same columns on another branch.
    lake.create_branch("c")
    lake.execute(table.sql.replace("main.t", "c.t"))
    assert lake.branch_diff("c").tables[0].clauses == table.clauses


@pytest.mark.parametrize(
    ("statements", "told", "wanted"),
    [
        (["INSERT INTO b.t (id) VALUES (7), (8)"], "2 added", (2, 0, 0, 2)),
        (["DELETE FROM b.t WHERE id < 2"], "2 deleted", (0, 0, 2, -2)),
        (["UPDATE b.t SET v = 9 WHERE id = 1"], "+0 in all", (None, None, None, 0)),
        (
            ["INSERT INTO b.t (id) VALUES (7), (8)", "DELETE FROM b.t WHERE id = 0"],
            "+1 in all",
            (None, None, None, 1),
        ),
        (
            [
                *("INSERT INTO b.t (id) VALUES (7)", "INSERT INTO b.t (id) VALUES (8)"),
                "CALL ducklake_merge_adjacent_files('lake', 't', schema => 'b')",
            ],
            # The merged file also has the rows of the base.
            "not counted",
            (None, None, None, None),
        ),
    ],
)
def test_rows_are_counted_as_far_as_the_catalog_knows(duck, branch, statements, told, wanted):
    for statement in statements:
        duck.execute(statement)
    found = branch()
    assert (counts(found), str(found.tables[0].counts)) == (wanted, told)


def test_a_branch_on_which_nothing_happened_has_no_difference(lake, duck, branch):
    assert branch().is_empty
    assert str(branch()) == "nothing happened on b since snapshot 2"
    assert branch().markdown() == "Nothing happened on `b`.\n"
    duck.execute("INSERT INTO t (id) VALUES (4)")
    duck.execute("CALL ducklake_rewrite_data_files('lake', 't', schema => 'b')")
    assert branch().is_empty
    duck.execute("INSERT INTO b.t (id) VALUES (7)")
    assert not branch().is_empty
    lake.merge_branch("b")
    assert branch().is_empty


def test_a_table_that_another_one_replaced_is_told_once(duck, branch):
    duck.execute("CREATE OR REPLACE TABLE b.t AS SELECT 1 AS id, 2 AS w")
    duck.execute("CREATE TABLE b.n (id INT)")
    told = [(t.table, t.change, t.counted) for t in branch().tables]
    assert told == [("main.n", "created", ""), ("main.t", "replaced", "1 added")]


def test_a_diff_prints_as_text_and_as_a_comment(lake, duck, branch):
    duck.execute('CREATE TABLE b."m|`ore" (id INT)')
    duck.execute('INSERT INTO b."m|`ore" VALUES (1)')
    duck.execute("ALTER TABLE t RENAME COLUMN v TO ours")
    duck.execute("ALTER TABLE b.t RENAME COLUMN v TO theirs")
    duck.execute("INSERT INTO b.t (id) VALUES (7), (8)")
    conflict = "column v.name of main.t was v, is ours, and on the branch theirs"
    assert str(branch()).splitlines() == [
        *("b, a branch of main since snapshot 2", "main.`m|``ore` created", "  rows: 1 added"),
        *("main.t", "  RENAME COLUMN v TO theirs", "  rows: 2 added", f"conflict: {conflict}"),
    ]
    assert branch().markdown().splitlines() == [
        *("`b`, a branch of `main` since snapshot 2", ""),
        *("| table | change | rows |", "|---|---|---|"),
        "| ``` main.`m\\|``ore` ``` | created | 1 added |",
        "| `main.t` | changed | 2 added |",
        *("", "```sql", "ALTER TABLE main.t RENAME COLUMN v TO theirs;", "```"),
        *("", "**A merge is refused**", "", "```", f"conflict: {conflict}", "```"),
    ]
    assert branch().told.rows == [
        ("main.`m|``ore`", "created", 1, 0, 0, ""),
        ("main.t", "conflict", 2, 0, 0, "ALTER TABLE main.t RENAME COLUMN v TO theirs"),
    ]
    assert lake.execute("MERGE BRANCH b DRY RUN").rows == branch().told.rows
    assert branch().as_json()["conflicts"][0]["item"] == "v.name"


def test_a_diff_needs_the_snapshot_of_its_base(duck, branch):
    duck.execute("INSERT INTO b.t (id) VALUES (7)")
    duck.execute("CALL ducklake_expire_snapshots('lake', older_than => now())")
    with pytest.raises(Conflict, match=r"with which a merge compares b\.t, has expired"):
        branch()


@pytest.mark.parametrize("rows", [-1, 1001])
def test_a_number_of_rows_that_no_diff_shows_is_refused(lake, branch, rows):
    with pytest.raises(InvalidRequest, match="pass 0 to 1,000"):
        lake.branch_diff("b", rows)
