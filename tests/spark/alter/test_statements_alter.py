"""ALTER TABLE and COMMENT ON through `lake.sql`: what is read afterwards, and what is refused.

Every accepted statement is one snapshot and writes no file; a refused one changes nothing.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from shelduck import AlreadyExists, InvalidRequest, NotFound, Unsupported
from tests.support.lakes import everything, newest, refusal, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    (
        "CREATE TABLE t (id INT NOT NULL, n INT, f FLOAT, name STRING, s STRUCT<a: INT, b: STRING>,"
        " l ARRAY<STRUCT<e: INT>>, m MAP<STRING, STRUCT<v: INT>>)"
    ),
    (
        "INSERT INTO t VALUES (1, 10, 1.1, 'one', named_struct('a', 1, 'b', 'x'),"
        " array(named_struct('e', 1), NULL), map('k', named_struct('v', 1))),"
        " (2, NULL, NULL, NULL, NULL, NULL, NULL)"
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "query", "expected"),
    [
        ("ALTER TABLE t ADD COLUMN c INT", "id, c", [(1, None), (2, None)]),
        ("ALTER TABLE T ADD c VARCHAR DEFAULT '??'", "id, C", [(1, "??"), (2, "??")]),
        ("ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 5", "id, c", [(1, 5), (2, 5)]),
        ("ALTER TABLE t ADD COLUMN IF NOT EXISTS c INT DEFAULT 5", "id, c", [(1, 5), (2, 5)]),
        (
            "ALTER TABLE t ADD COLUMNS (c INT DEFAULT 1, d STRING COMMENT 'dee')",
            "id, c, d",
            [(1, 1, None), (2, 1, None)],
        ),
        (
            (
                "ALTER TABLE t ADD COLUMN c BINARY DEFAULT X'00FF', ADD COLUMN d DATE DEFAULT"
                " DATE '2024-02-29', ADD COLUMN e DECIMAL(9, 2) DEFAULT 1.5, ADD COLUMN g BOOLEAN"
                " DEFAULT true"
            ),
            "id, c, d, e, g",
            [
                (1, b"\x00\xff", dt.date(2024, 2, 29), Decimal("1.50"), True),
                (2, b"\x00\xff", dt.date(2024, 2, 29), Decimal("1.50"), True),
            ],
        ),
        ("ALTER TABLE t ADD COLUMN s.c INT", "id, s", [(1, (1, "x", None)), (2, None)]),
        (
            "ALTER TABLE t DROP COLUMN s.a, DROP COLUMN s.b, ADD COLUMN s.c INT",
            "id, s",
            [(1, (None,)), (2, None)],
        ),
        (
            "ALTER TABLE t RENAME s.a TO b, RENAME s.b TO a, RENAME n TO f, RENAME f TO n",
            "id, s.a, s.b, f",
            [(1, "x", 1, 10), (2, None, None, None)],
        ),
        ("ALTER TABLE t DROP (id, n, f, name, s, l, m), ADD id INT", "id", [(None,), (None,)]),
        (
            "ALTER TABLE t CHANGE COLUMN id TYPE BIGINT, s.a COMMENT 'x', name FIRST",
            "name, id",
            [("one", 1), (None, 2)],
        ),
        ("ALTER TABLE t ADD COLUMN s.c INT DEFAULT 5", "id, s", [(1, (1, "x", 5)), (2, None)]),
        ("ALTER TABLE t ADD COLUMN s.c INT FIRST", "id, s", [(1, (None, 1, "x")), (2, None)]),
        ("ALTER TABLE t ADD COLUMN s.c INT AFTER a", "id, s", [(1, (1, None, "x")), (2, None)]),
        (
            "ALTER TABLE t ADD COLUMN l.element.c INT DEFAULT 5",
            "id, l",
            [(1, [(1, 5), None]), (2, None)],
        ),
        (
            "ALTER TABLE t ADD COLUMN m.value.c INT DEFAULT 5",
            "id, m",
            [(1, {"k": (1, 5)}), (2, None)],
        ),
        (
            "ALTER TABLE t ADD COLUMN c STRUCT<p: INT, q: ARRAY<STRING>>",
            "id, c",
            [(1, None), (2, None)],
        ),
        ("ALTER TABLE t DROP COLUMN s.a", "id, s", [(1, ("x",)), (2, None)]),
        ("ALTER TABLE t DROP COLUMN IF EXISTS s.a", "id, s", [(1, ("x",)), (2, None)]),
        ("ALTER TABLE t RENAME COLUMN n TO number", "id, number", [(1, 10), (2, None)]),
        ("ALTER TABLE t RENAME n TO N", "id, n", [(1, 10), (2, None)]),
        ("ALTER TABLE t RENAME COLUMN s.a TO c", "id, s.c", [(1, 1), (2, None)]),
        ("ALTER TABLE t RENAME l.element.e TO c", "id, l[0].c", [(1, 1), (2, None)]),
        ("ALTER TABLE t RENAME m.value.v TO c", "id, m['k'].c", [(1, 1), (2, None)]),
        (
            "ALTER TABLE t RENAME s.a TO x, RENAME s.b TO a, RENAME s.x TO b",
            "id, s.a, s.b",
            [(1, "x", 1), (2, None, None)],
        ),
        (
            "ALTER TABLE t DROP COLUMN n, ADD COLUMN n STRING DEFAULT 'new'",
            "id, n",
            [(1, "new"), (2, "new")],
        ),
        (
            "ALTER TABLE t DROP COLUMN s.a, ADD COLUMN s.a INT",
            "id, s",
            [(1, ("x", None)), (2, None)],
        ),
        ("ALTER TABLE t ALTER COLUMN n TYPE BIGINT", "id, n", [(1, 10), (2, None)]),
        ("ALTER TABLE t ALTER n SET TYPE BIGINT", "id, n", [(1, 10), (2, None)]),
        ("ALTER TABLE t ALTER n SET DATA TYPE BIGINT", "id, n", [(1, 10), (2, None)]),
        ("ALTER TABLE t ALTER s.a SET TYPE BIGINT", "id, s", [(1, (1, "x")), (2, None)]),
        ("ALTER TABLE t ALTER l.element.e TYPE BIGINT", "id, l", [(1, [(1,), None]), (2, None)]),
        ("ALTER TABLE t ALTER m.value.v TYPE BIGINT", "id, m", [(1, {"k": (1,)}), (2, None)]),
        ("ALTER TABLE t ALTER f TYPE DOUBLE", "id, f", [(1, 1.100000023841858), (2, None)]),
        (
            "ALTER TABLE t ALTER COLUMN s TYPE STRUCT<b: STRING, c: INT, a: BIGINT>",
            "id, s",
            [(1, (1, "x", None)), (2, None)],
        ),
        (
            "ALTER TABLE t CHANGE COLUMN n number BIGINT COMMENT 'counted'",
            "id, number",
            [(1, 10), (2, None)],
        ),
        ("ALTER TABLE t ALTER COLUMN n SET DEFAULT 7", "id, n", [(1, 10), (2, None)]),
        ("ALTER TABLE t ALTER COLUMN id DROP NOT NULL", "id", [(1,), (2,)]),
        ("ALTER TABLE t ALTER COLUMN n COMMENT 'counted'", "id, n", [(1, 10), (2, None)]),
        ("COMMENT ON TABLE t IS 'it''s'", "id", [(1,), (2,)]),
        ("COMMENT ON COLUMN t.n IS 'counted'", "id, n", [(1, 10), (2, None)]),
    ],
)
def test_an_alter_is_one_snapshot_of_metadata(copied, base, statement, query, expected):
    catalog, lake = copied
    _, files = everything(catalog, base.folder / "data")

    [result] = lake.sql(statement).collect()

    assert (result.snapshot, newest(lake)) == (3, 3)
    assert (result.operation, result.rows, result.files) == ("ALTER TABLE", 0, 0)
    assert everything(catalog, base.folder / "data")[1] == files
    assert rows(lake.sql(f"SELECT {query} FROM t ORDER BY id")) == expected
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.sql("SELECT count(*) FROM t") == [(2,)]


def test_several_changes_of_one_alter_are_one_snapshot(lake):
    lake.sql(
        "ALTER TABLE t ADD COLUMN c STRING DEFAULT 'c' FIRST, RENAME COLUMN n TO number,"
        " ALTER COLUMN number TYPE BIGINT, DROP COLUMN name, ADD COLUMN s.c INT DEFAULT 5,"
        " ALTER COLUMN l AFTER id"
    )

    assert newest(lake) == 3
    assert lake.table("t").schema.simpleString() == (
        "struct<c:string,id:int,l:array<struct<e:int>>,number:bigint,f:float,"
        "s:struct<a:int,b:string,c:int>,m:map<string,struct<v:int>>>"
    )
    assert rows(lake.sql("SELECT c, id, number, s FROM t ORDER BY id")) == [
        ("c", 1, 10, (1, "x", 5)),
        ("c", 2, None, None),
    ]
    assert rows(lake.sql("SELECT id, name FROM t AT (VERSION => 2) ORDER BY id")) == [
        (1, "one"),
        (2, None),
    ]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS N STRING",
        "ALTER TABLE t DROP COLUMN IF EXISTS q",
        "ALTER TABLE IF EXISTS q DROP COLUMN a",
        "ALTER TABLE IF EXISTS q RENAME TO r",
        "ALTER TABLE t ALTER COLUMN n TYPE INT",
        "ALTER TABLE t ALTER COLUMN n DROP NOT NULL",
        "ALTER TABLE t ALTER COLUMN n DROP DEFAULT",
        "ALTER TABLE t ALTER COLUMN id FIRST",
        "ALTER TABLE t RENAME COLUMN n TO n",
        "ALTER TABLE t RENAME n TO x, RENAME x TO n",
    ],
)
def test_what_changes_nothing_makes_no_snapshot(copied, base, statement):
    catalog, lake = copied
    before = everything(catalog, base.folder / "data")

    [result] = lake.sql(statement).collect()

    assert result.snapshot == 2
    assert everything(catalog, base.folder / "data") == before


LAST_FIELD = "cannot drop l.element.e: it is the last field of l.element of main.t"
STRUCTS_ONLY = "only structs have fields to add, drop or rename"


@pytest.mark.sampled(32)
@pytest.mark.parametrize(
    ("statement", "kind", "message"),
    [
        ("ALTER TABLE q DROP COLUMN a", NotFound, "table 'q' does not exist in schema 'main'"),
        (
            "ALTER TABLE q.t DROP COLUMN a",
            NotFound,
            "schema 'q' does not exist; existing schemas: 'main'",
        ),
        ("ALTER TABLE t ADD COLUMN N INT", AlreadyExists, "column 'N' already exists in main.t"),
        (
            "ALTER TABLE t ADD COLUMN s.A INT",
            AlreadyExists,
            "column 's.A' already exists in main.t",
        ),
        (
            "ALTER TABLE t ADD COLUMN c INT, ADD COLUMN c INT",
            AlreadyExists,
            "column 'c' already exists in main.t",
        ),
        (
            "ALTER TABLE t ADD COLUMN c INT NOT NULL",
            InvalidRequest,
            (
                "cannot add column c as NOT NULL to main.t: existing rows would hold NULL; give a"
                " literal DEFAULT (and only top-level columns can be NOT NULL)"
            ),
        ),
        (
            "ALTER TABLE t ADD COLUMN s.c INT NOT NULL DEFAULT 1",
            InvalidRequest,
            (
                "cannot add column s.c as NOT NULL to main.t: existing rows would hold NULL; give"
                " a literal DEFAULT (and only top-level columns can be NOT NULL)"
            ),
        ),
        (
            "ALTER TABLE t ADD COLUMN c STRING DEFAULT uuid()",
            Unsupported,
            (
                "cannot add column c to main.t with the default UUID(): existing rows need one"
                " value, which only constants, current_timestamp() and current_date() give; add the"
                " column with a literal default, then SET DEFAULT"
            ),
        ),
        (
            "ALTER TABLE t ADD COLUMN c INT DEFAULT 'q'",
            InvalidRequest,
            (
                "cannot set the default 'q' of c of main.t: 'q' is not a value of type int32:"
                " expected a whole number"
            ),
        ),
        (
            "ALTER TABLE t ADD COLUMN l.c INT",
            InvalidRequest,
            f"l of main.t is array<struct<e: int32>>: {STRUCTS_ONLY}",
        ),
        (
            "ALTER TABLE t ADD COLUMN m.key.c INT",
            InvalidRequest,
            f"m.key of main.t is varchar: {STRUCTS_ONLY}",
        ),
        (
            "ALTER TABLE t ADD COLUMN n.c INT",
            InvalidRequest,
            f"n of main.t is int32: {STRUCTS_ONLY}",
        ),
        (
            "ALTER TABLE t ADD COLUMN q.c INT",
            NotFound,
            (
                "column 'q' does not exist in main.t; existing columns: 'id', 'n', 'f', 'name',"
                " 's', 'l', 'm'"
            ),
        ),
        (
            "ALTER TABLE t ADD COLUMN c INT AFTER q",
            InvalidRequest,
            "cannot place a column after 'q', which does not exist in main.t",
        ),
        (
            "ALTER TABLE t ADD COLUMN c INTERVAL DEFAULT '1 day'",
            InvalidRequest,
            (
                "cannot set the default '1 day' of c of main.t: literals of type interval are not"
                " supported: '1 day'"
            ),
        ),
        (
            "ALTER TABLE t DROP COLUMN nam",
            NotFound,
            "column 'nam' does not exist in main.t; did you mean 'name', 'n', 'm'?",
        ),
        ("ALTER TABLE t DROP COLUMN l.element.e", InvalidRequest, LAST_FIELD),
        (
            "ALTER TABLE t DROP COLUMN l.element",
            InvalidRequest,
            f"l of main.t is array<struct<e: int32>>: {STRUCTS_ONLY}",
        ),
        (
            "ALTER TABLE t DROP COLUMNS (id, n, f, name, s, l, m)",
            InvalidRequest,
            "cannot drop m: it is the last column of main.t",
        ),
        ("ALTER TABLE t RENAME n TO NAME", AlreadyExists, "column 'NAME' already exists in main.t"),
        ("ALTER TABLE t RENAME s.a TO b", AlreadyExists, "column 'b' already exists in main.t"),
        (
            "ALTER TABLE t RENAME q TO r",
            NotFound,
            (
                "column 'q' does not exist in main.t; existing columns: 'id', 'n', 'f', 'name',"
                " 's', 'l', 'm'"
            ),
        ),
        (
            "ALTER TABLE t ALTER n TYPE ARRAY<INT>",
            Unsupported,
            (
                "cannot change n of main.t from int32 to array<int32>:"
                " a struct, list or map cannot be changed to or from another kind of type;"
                " add a new column and drop the old one"
            ),
        ),
        (
            "ALTER TABLE t ALTER n SET NOT NULL",
            InvalidRequest,
            (
                "column 'n' of main.t contains NULL and cannot become NOT NULL; fill or delete"
                " these rows first"
            ),
        ),
        (
            "ALTER TABLE t ALTER s SET NOT NULL",
            InvalidRequest,
            (
                "column 's' of main.t contains NULL and cannot become NOT NULL; fill or delete"
                " these rows first"
            ),
        ),
        (
            "ALTER TABLE t ALTER s.a SET NOT NULL",
            Unsupported,
            (
                "cannot change NOT NULL of s.a of main.t: it is nested, and DuckLake supports NOT"
                " NULL only for top-level columns"
            ),
        ),
        (
            "ALTER TABLE t ALTER s SET DEFAULT 'q'",
            Unsupported,
            (
                "cannot set a default for s of main.t, which is struct<a: int32, b: varchar>:"
                " DuckLake supports no defaults for structs, lists and maps; set the default of a"
                " field of the struct, or leave it NULL"
            ),
        ),
        (
            "ALTER TABLE t ALTER n AFTER n",
            InvalidRequest,
            "cannot move column n of main.t after itself",
        ),
        ("COMMENT ON TABLE q IS 'x'", NotFound, "table 'q' does not exist in schema 'main'"),
        (
            "COMMENT ON COLUMN t.q IS 'x'",
            NotFound,
            (
                "column 'q' does not exist in main.t; existing columns: 'id', 'n', 'f', 'name',"
                " 's', 'l', 'm'"
            ),
        ),
        ("ALTER TABLE t RENAME TO t2, DROP COLUMN n", Unsupported, "write two statements"),
        (
            "ALTER TABLE t RENAME TO q.t",
            Unsupported,
            "cannot rename main.t to q.t: DuckLake cannot",
        ),
        (
            "ALTER TABLE t ADD CONSTRAINT c CHECK (n > 10)",
            InvalidRequest,
            "CHECK constraint c (n > 10) of main.t is not satisfied by the row (n = 10, id = 1",
        ),
        ("ALTER TABLE t ADD COLUMN `` INT", InvalidRequest, "expected a column, not an empty name"),
        (
            "ALTER TABLE t RENAME n TO ``",
            InvalidRequest,
            "expected the new name, not an empty name",
        ),
    ],
)
def test_an_alter_that_cannot_be_changes_nothing(copied, base, statement, kind, message):
    catalog, lake = copied

    told = refusal(kind, lambda: lake.sql(statement), catalog, base.folder / "data")

    assert message in told


def test_a_refused_change_takes_the_others_of_its_statement_along(copied, base):
    catalog, lake = copied
    statement = "ALTER TABLE t ADD COLUMN c INT, DROP COLUMN n, ALTER f TYPE DATE"

    refusal(Unsupported, lambda: lake.sql(statement), catalog, base.folder / "data")

    assert rows(lake.sql("SELECT n FROM t ORDER BY id")) == [(10,), (None,)]


def test_new_rows_get_the_default_of_their_time_and_old_rows_keep_theirs(lake):
    lake.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 1")
    lake.sql("INSERT INTO t (id) VALUES (3)")
    lake.sql("ALTER TABLE t ALTER c SET DEFAULT 2")
    lake.sql("INSERT INTO t (id) VALUES (4)")
    lake.sql("ALTER TABLE t ALTER c DROP DEFAULT")
    lake.sql("INSERT INTO t (id) VALUES (5)")

    assert rows(lake.sql("SELECT id, c FROM t ORDER BY id")) == [
        (1, 1),
        (2, 1),
        (3, 1),
        (4, 2),
        (5, None),
    ]


def test_a_column_becomes_not_null_when_no_row_holds_null(lake):
    lake.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 1")

    lake.sql("ALTER TABLE t ALTER c SET NOT NULL")

    assert [f.name for f in lake.table("t").columns if not f.nullable] == ["id", "c"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["true", "null"])
def test_nulls_are_seen_in_a_column_whose_name_is_a_word_of_sql(lake, name):
    lake.sql(f"CREATE TABLE odd (id INT, `{name}` INT)")
    lake.sql("INSERT INTO odd VALUES (1, NULL)")

    with pytest.raises(InvalidRequest, match=f"column '{name}' of main.odd contains NULL"):
        lake.sql(f"ALTER TABLE odd ALTER `{name}` SET NOT NULL")
    lake.sql(f"CREATE TABLE whole (id INT, `{name}` STRUCT<a: INT>)")
    lake.sql("INSERT INTO whole VALUES (1, named_struct('a', 1))")
    lake.sql(f"ALTER TABLE whole ALTER `{name}` SET NOT NULL")


def test_a_table_is_renamed_and_its_rows_stay(copied):
    catalog, lake = copied

    lake.sql("ALTER TABLE t RENAME TO `an other`")

    assert [str(n) for n in lake.tables()] == ["main.`an other`"]
    assert rows(lake.sql("SELECT id FROM `an other` ORDER BY id")) == [(1,), (2,)]
    assert rows(lake.sql("SELECT id FROM t VERSION AS OF 2 ORDER BY id")) == [(1,), (2,)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows('"an other"', columns="id") == [(1,), (2,)]


INTEGERS = {
    "TINYINT": (-128, 127),
    "SMALLINT": (-32768, 32767),
    "INT": (-2147483648, 2147483647),
    "BIGINT": (-(2**63), 2**63 - 1),
    "UTINYINT": (0, 255),
    "USMALLINT": (0, 65535),
    "UINTEGER": (0, 4294967295),
    "UBIGINT": (0, 2**64 - 1),
}
PROMOTIONS = [
    ("TINYINT", "SMALLINT"),
    ("TINYINT", "INT"),
    ("TINYINT", "BIGINT"),
    ("SMALLINT", "INT"),
    ("SMALLINT", "BIGINT"),
    ("INT", "BIGINT"),
    ("UTINYINT", "USMALLINT"),
    ("UTINYINT", "UINTEGER"),
    ("UTINYINT", "UBIGINT"),
    ("USMALLINT", "UINTEGER"),
    ("USMALLINT", "UBIGINT"),
    ("UINTEGER", "UBIGINT"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "path", "wrap"),
    [
        ("{0} {1}", "{0}", "{0}"),
        ("{0} STRUCT<f: {1}>", "{0}.f", "named_struct('f', {0})"),
        ("{0} ARRAY<{1}>", "{0}.element", "array({0})"),
        ("{0} MAP<STRING, {1}>", "{0}.value", "map('k', {0})"),
    ],
    ids=["top", "struct", "list", "map"],
)
def test_every_promotion_of_the_specification_keeps_limits_old_and_new(copied, make, path, wrap):
    catalog, lake = copied
    names = [f"c{n}" for n in range(len(PROMOTIONS))]
    columns = ", ".join(
        make.format(c, source) for c, (source, _) in zip(names, PROMOTIONS, strict=True)
    )
    lake.sql(f"CREATE TABLE p (id INT, {columns})")
    lake.sql(f"INSERT INTO p VALUES {_limits(wrap, 0, 0)}, {_limits(wrap, 1, 0)}")

    lake.sql(
        "ALTER TABLE p "
        + ", ".join(
            f"ALTER COLUMN {path.format(c)} SET TYPE {target}"
            for c, (_, target) in zip(names, PROMOTIONS, strict=True)
        )
    )
    assert newest(lake) == 5
    lake.sql(f"INSERT INTO p VALUES {_limits(wrap, 0, 1)}, {_limits(wrap, 1, 1)}")

    expected = [
        tuple(INTEGERS[pair[new]][high] for pair in PROMOTIONS) for new in (0, 1) for high in (0, 1)
    ]
    found = rows(lake.sql("SELECT * FROM p ORDER BY id"))
    assert [tuple(int(_bare(v)) for v in row[1:]) for row in found] == expected
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        told = duckdb.sql("SELECT * FROM p ORDER BY id")
        assert [tuple(_bare(v) for v in row[1:]) for row in told] == expected


def _limits(wrap: str, high: int, new: int) -> str:
    values = [str(INTEGERS[pair[new]][high]) for pair in PROMOTIONS]
    digits = [f"CAST('{v}' AS DECIMAL(20, 0))" for v in values]
    return f"({2 * new + high}, {', '.join(wrap.format(d) for d in digits)})"


def _bare(value):
    """What a value holds, taken out of its struct, list or map."""
    if isinstance(value, dict):
        [value] = value.values()
    elif isinstance(value, list | tuple):
        [value] = value
    return value


def test_finer_timestamps_and_longer_decimals_keep_values_and_filters(copied):
    catalog, lake = copied
    lake.sql("CREATE TABLE p (id INT, s TIMESTAMP_S, m TIMESTAMP_MS, d DECIMAL(5, 2))")
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute("CALL lake.set_option('data_inlining_row_limit', 0)")
        duckdb.execute(
            "INSERT INTO p VALUES (1, '2024-01-01 00:00:01', '2024-01-01 00:00:01.5', 999.99)"
        )

    lake.sql(
        "ALTER TABLE p SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true'),"
        " ALTER s TYPE TIMESTAMP_NTZ, ALTER m TYPE TIMESTAMP_NTZ, ALTER d TYPE DECIMAL(20, 2)"
    )
    lake.sql(
        "INSERT INTO p VALUES (2, TIMESTAMP_NTZ'2024-01-01 00:00:01.000001',"
        " TIMESTAMP_NTZ'2024-01-01 00:00:01.500001', 100000.00)"
    )

    second = dt.datetime(2024, 1, 1, 0, 0, 1)  # noqa: DTZ001 - a local time
    expected = [
        (1, second, second.replace(microsecond=500000), Decimal("999.99")),
        (2, second.replace(microsecond=1), second.replace(microsecond=500001), Decimal("1E5")),
    ]
    assert rows(lake.sql("SELECT * FROM p ORDER BY id")) == expected
    after = "s > TIMESTAMP_NTZ'2024-01-01 00:00:01' AND m > TIMESTAMP_NTZ'2024-01-01 00:00:01.5'"
    assert rows(lake.sql(f"SELECT id FROM p WHERE {after} AND d > 999.99")) == [(2,)]
    assert rows(lake.sql("SELECT id FROM p WHERE d = 999.99")) == [(1,)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("p") == expected


@pytest.mark.slow
def test_filters_on_a_widened_float_see_the_value_that_it_had(lake):
    lake.sql("ALTER TABLE t ALTER f TYPE DOUBLE")
    lake.sql("INSERT INTO t (id, f) VALUES (3, 1.1)")

    def ids(condition):
        return [i for (i,) in rows(lake.sql(f"SELECT id FROM t WHERE {condition} ORDER BY id"))]

    assert ids("f = 1.1D") == [3]
    assert ids("f > 1.1D") == [1]
    assert ids("f = CAST(1.1 AS FLOAT)") == [1]
    assert ids("f < 1.1D") == []
