"""Queries: which tables they read, and the text that reaches Spark."""

from __future__ import annotations

import pytest

from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.text.tokens.parts import (
    Call,
    FunctionRelation,
    NamedTable,
    Query,
    Relation,
    TimeExpression,
    TimestampText,
)


def query(text):
    (found,) = parse(text)
    assert isinstance(found, Query)
    return found


def tables(found):
    return [
        str(r.name)
        + (f"@{r.version}" if r.version is not None else "")
        + (f"@{r.timestamp}" if r.timestamp is not None else "")
        for r in found.relations
    ]


def shown(text):
    """Return the text for Spark with each placeholder as <table>."""
    found = query(text)
    out = found.text
    for relation, name in zip(found.relations, tables(found), strict=True):
        out = out.replace(relation.placeholder, f"<{name}>")
    return out


REWRITTEN = [
    ("SELECT 1", "SELECT 1"),
    ("select  *\nfrom t -- all\n where a=1", "select  *\nfrom <t> AS `t` -- all\n where a=1"),
    ("SELECT * FROM t x", "SELECT * FROM <t> x"),
    ("SELECT * FROM t AS x", "SELECT * FROM <t> AS x"),
    ("SELECT * FROM t as limit", "SELECT * FROM <t> as limit"),
    ("SELECT * FROM main.t", "SELECT * FROM <main.t> AS `t`"),
    ("SELECT * FROM lake.main.`t.x`", "SELECT * FROM <lake.main.`t.x`> AS `t.x`"),
    ('SELECT "s" FROM "my table"', 'SELECT "s" FROM <`my table`> AS `my table`'),
    ("SELECT t.a FROM main.t", "SELECT t.a FROM <main.t> AS `t`"),
    (
        "SELECT main.t.a, MAIN.T.* FROM main.t WHERE main.t.b = 1",
        "SELECT `t`.a, `t`.* FROM <main.t> AS `t` WHERE `t`.b = 1",
    ),
    (
        "SELECT a.t.x, b.t.x FROM a.t JOIN b.t ON a.t.x = b.t.x",
        "SELECT `a.t`.x, `b.t`.x FROM <a.t> AS `a.t` JOIN <b.t> AS `b.t` ON `a.t`.x = `b.t`.x",
    ),
    (
        "SELECT t.x FROM s.t WHERE x IN (SELECT max(t.y) FROM t)",
        "SELECT t.x FROM <s.t> AS `t` WHERE x IN (SELECT max(t.y) FROM <t> AS `t`)",
    ),
    # time travel
    ("SELECT * FROM t AT (VERSION => 3)", "SELECT * FROM <t@3> AS `t`"),
    ("SELECT * FROM t AT (VERSION => 3) AS x", "SELECT * FROM <t@3> AS x"),
    ("SELECT * FROM t at (timestamp => '2024-01-01') x", "SELECT * FROM <t@2024-01-01> x"),
    (
        "SELECT * FROM t AT (TIMESTAMP => TIMESTAMP '2024-01-01')",
        "SELECT * FROM <t@2024-01-01> AS `t`",
    ),
    ("SELECT * FROM t VERSION AS OF 3", "SELECT * FROM <t@3> AS `t`"),
    ("SELECT * FROM t VERSION AS OF '3' v", "SELECT * FROM <t@3> v"),
    ("SELECT * FROM t FOR VERSION AS OF 3", "SELECT * FROM <t@3> AS `t`"),
    ("SELECT * FROM t FOR SYSTEM_VERSION AS OF 3", "SELECT * FROM <t@3> AS `t`"),
    ("SELECT * FROM t TIMESTAMP AS OF '2024-01-01' AS x", "SELECT * FROM <t@2024-01-01> AS x"),
    (
        "SELECT * FROM t TIMESTAMP AS OF CAST('2024-01-01' AS TIMESTAMP)",
        "SELECT * FROM <t@2024-01-01> AS `t`",
    ),
    (
        "SELECT * FROM t FOR SYSTEM_TIME AS OF '2024-01-01'::timestamp",
        "SELECT * FROM <t@2024-01-01> AS `t`",
    ),
    ("SELECT * FROM t@v3", "SELECT * FROM <t@3> AS `t`"),
    ("SELECT * FROM t version", "SELECT * FROM <t> version"),
    ("SELECT * FROM t at", "SELECT * FROM <t> at"),
    # lists, joins, brackets
    ("SELECT * FROM a, b x, c", "SELECT * FROM <a> AS `a`, <b> x, <c> AS `c`"),
    (
        "SELECT * FROM a LEFT JOIN b ON left(a.x, 2) = b.x, c WHERE a.y IN (1, 2)",
        (
            "SELECT * FROM <a> AS `a` LEFT JOIN <b> AS `b` ON left(a.x, 2) = b.x, <c> AS `c`"
            " WHERE a.y IN (1, 2)"
        ),
    ),
    ("SELECT * FROM a JOIN b USING (x)", "SELECT * FROM <a> AS `a` JOIN <b> AS `b` USING (x)"),
    ("SELECT * FROM a NATURAL JOIN b", "SELECT * FROM <a> AS `a` NATURAL JOIN <b> AS `b`"),
    (
        "SELECT * FROM (a JOIN (b CROSS JOIN c))",
        "SELECT * FROM (<a> AS `a` JOIN (<b> AS `b` CROSS JOIN <c> AS `c`))",
    ),
    (
        "SELECT * FROM ((SELECT 1 FROM a) UNION ALL SELECT 2 FROM b) k, c",
        (
            "SELECT * FROM ((SELECT 1 FROM <a> AS `a`) UNION ALL SELECT 2 FROM <b> AS `b`) k,"
            " <c> AS `c`"
        ),
    ),
    (
        "SELECT * FROM a, LATERAL (SELECT * FROM b WHERE b.x = a.x)",
        "SELECT * FROM <a> AS `a`, LATERAL (SELECT * FROM <b> AS `b` WHERE b.x = a.x)",
    ),
    (
        "SELECT * FROM a LATERAL VIEW explode(l) e AS x, y WHERE x = 1",
        "SELECT * FROM <a> AS `a` LATERAL VIEW explode(l) e AS x, y WHERE x = 1",
    ),
    (
        "SELECT * FROM a TABLESAMPLE (10 PERCENT) WHERE x = 1",
        "SELECT * FROM <a> TABLESAMPLE (10 PERCENT) AS `a` WHERE x = 1",
    ),
    (
        "SELECT * FROM a TABLESAMPLE (1 ROWS) REPEATABLE (5) x",
        "SELECT * FROM <a> TABLESAMPLE (1 ROWS) REPEATABLE (5) x",
    ),
    (
        "SELECT * FROM a PIVOT (sum(x) FOR y IN (1, 2))",
        "SELECT * FROM <a> AS `a` PIVOT (sum(x) FOR y IN (1, 2))",
    ),
    # what is no table
    (
        "SELECT * FROM range(10) r, explode(array(1)), a",
        "SELECT * FROM range(10) r, explode(array(1)), <a> AS `a`",
    ),
    (
        "SELECT * FROM VALUES (1, 'x'), (2, 'y') AS v(a, b), c",
        "SELECT * FROM VALUES (1, 'x'), (2, 'y') AS v(a, b), <c> AS `c`",
    ),
    ("SELECT * FROM VALUES 1, 2 AS v(a), c", "SELECT * FROM VALUES 1, 2 AS v(a), <c> AS `c`"),
    ("VALUES (1, (SELECT max(x) FROM a))", "VALUES (1, (SELECT max(x) FROM <a> AS `a`))"),
    ("SELECT * FROM parquet.`/data/x`", "SELECT * FROM parquet.`/data/x`"),
    ("SELECT * FROM parquet.x", "SELECT * FROM <parquet.x> AS `x`"),
    # FROM that is no clause
    (
        "SELECT extract(YEAR FROM d), trim(BOTH ' ' FROM s), substring(s FROM 2) FROM t",
        "SELECT extract(YEAR FROM d), trim(BOTH ' ' FROM s), substring(s FROM 2) FROM <t> AS `t`",
    ),
    (
        "SELECT a IS DISTINCT FROM b, a IS NOT DISTINCT FROM b FROM t",
        "SELECT a IS DISTINCT FROM b, a IS NOT DISTINCT FROM b FROM <t> AS `t`",
    ),
    (
        "SELECT 'from x', \"from y\", `from`, r'from z' /* from u */ FROM t -- from v",
        "SELECT 'from x', \"from y\", `from`, r'from z' /* from u */ FROM <t> AS `t`",
    ),
    ("SELECT a.from, b AS from, c FROM t", "SELECT a.from, b AS from, c FROM <t> AS `t`"),
    # subqueries
    (
        "SELECT (SELECT max(x) FROM a) FROM b WHERE EXISTS (SELECT 1 FROM c) AND x IN (TABLE d)",
        (
            "SELECT (SELECT max(x) FROM <a> AS `a`) FROM <b> AS `b` WHERE EXISTS"
            " (SELECT 1 FROM <c> AS `c`) AND x IN (TABLE <d>)"
        ),
    ),
    (
        "SELECT 1 FROM a UNION TABLE b EXCEPT ALL TABLE c",
        "SELECT 1 FROM <a> AS `a` UNION TABLE <b> EXCEPT ALL TABLE <c>",
    ),
    (
        "SELECT * FROM f(TABLE a, x => TABLE (b), TABLE(SELECT * FROM c))",
        "SELECT * FROM f(TABLE <a>, x => TABLE (<b>), TABLE(SELECT * FROM <c> AS `c`))",
    ),
    ("FROM t SELECT a", "FROM <t> AS `t` SELECT a"),
    (
        "SELECT x FROM t GROUP BY x, y HAVING x > 1 ORDER BY x, y LIMIT 3",
        "SELECT x FROM <t> AS `t` GROUP BY x, y HAVING x > 1 ORDER BY x, y LIMIT 3",
    ),
    (
        "SELECT /*+ BROADCAST(t) */ a FROM t WINDOW w AS (PARTITION BY a, b)",
        "SELECT /*+ BROADCAST(t) */ a FROM <t> AS `t` WINDOW w AS (PARTITION BY a, b)",
    ),
    # WITH
    ("WITH t AS (SELECT 1) SELECT * FROM T", "WITH t AS (SELECT 1) SELECT * FROM T"),
    (
        "WITH t AS (SELECT * FROM t) SELECT * FROM t JOIN s.t u",
        "WITH t AS (SELECT * FROM <t> AS `t`) SELECT * FROM t JOIN <s.t> u",
    ),
    (
        "WITH a (x) AS (SELECT 1), b AS (SELECT * FROM a, c) SELECT * FROM b",
        "WITH a (x) AS (SELECT 1), b AS (SELECT * FROM a, <c> AS `c`) SELECT * FROM b",
    ),
    (
        "SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a) x, a",
        "SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a) x, <a> AS `a`",
    ),
    (
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT * FROM r",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT * FROM r",
    ),
]


@pytest.mark.parametrize(("text", "expected"), REWRITTEN)
def test_only_tables_are_replaced(text, expected):
    assert shown(text) == expected


def test_one_table_at_one_time_has_one_placeholder():
    found = query("SELECT * FROM t a, T b, t VERSION AS OF 3 c, t VERSION AS OF 3 d")
    assert tables(found) == ["t", "t@3"]
    assert found.text == "SELECT * FROM __lake_0__ a, __lake_0__ b, __lake_1__ c, __lake_1__ d"


def test_a_metadata_table_keeps_its_parts():
    found = query("SELECT files.path FROM t.files JOIN s.t.snapshots USING (id)")
    assert [r.name.parts for r in found.relations] == [("t", "files"), ("s", "t", "snapshots")]
    assert found.text == (
        "SELECT files.path FROM __lake_0__ AS `files` JOIN __lake_1__ AS `snapshots` USING (id)"
    )


FUNCTIONS = [
    ("table_changes('t', 1, 5)", ("t",), Call("table_changes", (1, 5))),
    (
        "lake.table_changes('main.`my t`', 3)",
        ("main", "my t"),
        Call("table_changes", (3,), catalog="lake"),
    ),
    (
        "TABLE_CHANGES('t', '2024-01-01', TIMESTAMP '2024-01-02 10:00:00')",
        ("t",),
        Call("table_changes", ("2024-01-01", TimestampText("2024-01-02 10:00:00"))),
    ),
    (
        "table_changes('t', CAST('2024-01-01' AS TIMESTAMP), '2024-01-02'::timestamp)",
        ("t",),
        Call("table_changes", (TimestampText("2024-01-01"), TimestampText("2024-01-02"))),
    ),
    (
        "ducklake_table_changes('lake', 'main', 'my t', 3, 4)",
        ("main", "my t"),
        Call("ducklake_table_changes", (3, 4), catalog="lake"),
    ),
    (
        "ducklake_list_files('lake', 's.t', snapshot_version => 3)",
        ("s", "t"),
        Call("ducklake_list_files", (), (("snapshot_version", 3),), "lake"),
    ),
    ("snapshots()", None, Call("snapshots")),
    ("lake.snapshots()", None, Call("snapshots", catalog="lake")),
    ("ducklake_snapshots('lake')", None, Call("snapshots", catalog="lake")),
]


@pytest.mark.parametrize(("text", "parts", "call"), FUNCTIONS)
def test_a_table_function_is_a_relation_of_its_own(text, parts, call):
    found = query(f"SELECT c.* FROM {text} c WHERE c._change_type = 'insert'")
    assert found.text == "SELECT c.* FROM __lake_0__ c WHERE c._change_type = 'insert'"
    assert found.relations == ()
    table = None if parts is None else NamedTable(parts)
    assert found.functions == (FunctionRelation(call, "__lake_0__", table),)


def changes(start, end=None, *, excludes=(False, False), options=()):
    flags = zip(("excludes_start", "excludes_end"), excludes, strict=True)
    return Call("changes", (start, end), (*flags, ("options", options)))


JANUARY, JUNE = TimestampText("2026-01-01"), TimestampText("2026-06-01")


@pytest.mark.parametrize(
    ("clause", "call"),
    [
        ("VERSION 1 TO VERSION 3", changes(1, 3)),
        ("version '1'", changes(1)),
        (
            "SYSTEM_VERSION 1 EXCLUSIVE TO SYSTEM_VERSION 3 INCLUSIVE",
            changes(1, 3, excludes=(True, False)),
        ),
        (
            "TIMESTAMP '2026-01-01' INCLUSIVE TO TIMESTAMP CAST('2026-06-01' AS DATE) EXCLUSIVE",
            changes(JANUARY, JUNE, excludes=(False, True)),
        ),
        ("SYSTEM_TIME DATE'2026-01-01'", changes(JANUARY)),
        (
            "VERSION 1 WITH (deduplicationMode = 'netChanges', computeUpdates = true)",
            changes(1, options=("deduplicationMode", "netChanges", "computeUpdates", "true")),
        ),
    ],
)
def test_changes_of_a_table_are_a_function_with_the_tables_name(clause, call):
    found = query(f"SELECT s.t.a FROM s.t CHANGES FROM {clause} JOIN u USING (a)")
    assert found.text == "SELECT `t`.a FROM __lake_0__ AS `t` JOIN __lake_1__ AS `u` USING (a)"
    assert found.functions == (FunctionRelation(call, "__lake_0__", NamedTable(("s", "t"))),)
    found = query(f"SELECT c.* FROM s.t CHANGES FROM {clause} AS c WHERE c.a > 0")
    assert found.text == "SELECT c.* FROM __lake_0__ AS c WHERE c.a > 0"


def test_changes_without_a_range_is_an_alias():
    assert (
        query("SELECT changes.a FROM t CHANGES").text == "SELECT changes.a FROM __lake_0__ CHANGES"
    )


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("VERSION 'b'", "expected the id of a snapshot"),
        ("VERSION -1", "expected the id of a snapshot"),
        ("VERSION 1 TO TIMESTAMP '2026-01-01'", "expected VERSION or SYSTEM_VERSION"),
        ("VERSION 1 TO 3", "expected VERSION or SYSTEM_VERSION"),
        ("TIMESTAMP now()", "expected a time such as '2026-01-31 12:00:00'"),
        ("1 TO 3", "expected TIMESTAMP or SYSTEM_TIME"),
    ],
)
def test_a_range_of_changes_has_two_ends_of_one_kind(clause, message):
    with pytest.raises(InvalidRequest, match=message):
        query(f"SELECT * FROM t CHANGES FROM {clause}")


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("VERSION => getvariable('v')", TimeExpression("VERSION", "getvariable('v')")),
        ("version => 1 + (2)", TimeExpression("VERSION", "1 + (2)")),
        (
            "TIMESTAMP => now() - INTERVAL 1 DAY",
            TimeExpression("TIMESTAMP", "now() - INTERVAL 1 DAY"),
        ),
    ],
)
def test_a_time_may_be_computed(time, expected):
    found = query(f"SELECT * FROM t AT ({time}) x JOIN t AT ({time}) y ON x.a = y.a")
    assert found.text == "SELECT * FROM __lake_0__ x JOIN __lake_0__ y ON x.a = y.a"
    assert found.relations == (Relation(NamedTable(("t",)), "__lake_0__", computed=expected),)


def test_a_variable_is_one_of_the_session():
    found = query("SELECT getvariable('v'), getvariable FROM t WHERE a > GetVariable('my v')")
    assert found.text == (
        "SELECT system.session.`v`, getvariable FROM __lake_0__ AS `t`"
        " WHERE a > system.session.`my v`"
    )


def test_a_change_feed_and_its_table_are_two_relations():
    found = query(
        "SELECT * FROM t, table_changes('t', 1, 2), table_changes('T', 1, 2) b,"
        " table_changes('t', 1) c"
    )
    assert found.text == ("SELECT * FROM __lake_0__ AS `t`, __lake_1__, __lake_1__ b, __lake_2__ c")
    assert found.relations == (Relation(NamedTable(("t",)), "__lake_0__"),)
    table = NamedTable(("t",))
    assert found.functions == (
        FunctionRelation(Call("table_changes", (1, 2)), "__lake_1__", table),
        FunctionRelation(Call("table_changes", (1,)), "__lake_2__", table),
    )


def test_a_placeholder_is_no_word_of_the_text():
    found = query("SELECT __lake_0__ FROM t")
    assert found.text == "SELECT __lake_0__ FROM __lake_x0__ AS `t`"


def test_statements_are_cut_at_semicolons_that_are_no_text():
    found = parse("SELECT ';' /* ; */ FROM a; -- ;\n SELECT 2;;\n")
    assert [f.text for f in found] == ["SELECT ';' /* ; */ FROM __lake_0__ AS `a`", "SELECT 2"]
    assert parse(" -- nothing\n ; ") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM (a", "'SELECT * FROM (a': the '(' at line 1, column 15 is not closed"),
        ("SELECT *\nFROM a)", "the ')' at line 2, column 7 has no opening bracket"),
        ("SELECT 'a FROM b", "the string that begins at line 1, column 8 is not closed"),
        ("SELECT `a FROM b", "the quoted name that begins at line 1, column 8 is not closed"),
        ("SELECT 1 /* /* */", "the comment that begins at line 1, column 10 is not closed"),
        ("SELECT * FROM t VERSION AS OF x", "expected the id of a snapshot at line 1"),
        ("SELECT * FROM t VERSION AS OF -1", "expected the id of a snapshot"),
        ("SELECT * FROM t AT (VERSION => 3", "is not closed"),
        (
            "SELECT * FROM t TIMESTAMP AS OF now()",
            "expected a time such as '2026-01-31 12:00:00' at line 1, column 33",
        ),
        ("SELECT * FROM t@2024", "expected a version such as t@v3"),
        ("SELECT * FROM table_changes(t, 1)", "expected a literal: a number, a string"),
        (
            "SELECT * FROM table_changes(1, 2)",
            "expected the table's name as a string at line 1, column 29",
        ),
        (
            "FROM ducklake_table_changes('l', 's', 3)",
            "expected the table's name as a string at line 1, column 39",
        ),
        (
            "FROM ducklake_snapshots()",
            "expected the name of the lake as a string at line 1, column 25",
        ),
        ("SELECT * FROM t AT (VERSION => )", "expected a time at line 1, column 32"),
        ("SELECT * FROM table_changes('a b', 1)", "expected the name of a table, such as"),
        ("SELECT * FROM table_changes('`t', 1)", "expected the name of a table, such as"),
        ("SELECT * FROM table_changes('t', n)", "expected a literal: a number, a string"),
        ("WITH SELECT 1", "expected a query in brackets after WITH"),
        ("FOO BAR", "cannot parse 'FOO BAR': expected a statement such as SELECT"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text, message):
    with pytest.raises(InvalidRequest) as caught:
        parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("WITH q AS (FROM u) INSERT INTO t SELEC * FROM q", "line 2, column 34"),
        ("WITH q AS (FROM u)\nINSERT INTO t (a) FROM v VERSION AS OF nix", "line 3, column 40"),
        ("WITH q AS (FROM u VERSION AS OF nix)\nINSERT INTO t FROM q", "line 2, column 33"),
        ("WITH q AS (FROM u) INSERT INTO t FROM v VERSION AS OF", "line 2, column 54"),
        ("WITH q AS (FROM u) INSERT INTO t FROM (SELECT [1 FROM q)", "line 2, column 56"),
        ("WITH q AS (FROM u) MERGE INTO t USING q ON a = b WHEN nix", "line 2, column 55"),
        ("WITH q AS (FROM u) MERGE INTO t USING (FROM q) s ON a = b WHEN nix", "line 2, column 64"),
        ("WITH q AS (FROM u VERSION AS OF nix) MERGE INTO t USING q ON a = b", "line 2, column 67"),
        ("DELETE FROM t RETURNING a, (b", "line 2, column 28"),
        ("MERGE INTO t USING s ON a = b WHEN MATCHED THEN DELETE RETURNING *, b]", "column 70"),
    ],
)
def test_an_error_is_about_the_text_as_written(text, place):
    with pytest.raises(InvalidRequest) as caught:
        parse(f"SELECT 1;\n{text};\nSELECT 2")
    told = str(caught.value)
    assert told.startswith(f"cannot parse {' '.join(text.split())!r}: ")
    assert place in told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SET a = 1", "SET is not supported: 'SET a = 1'; call spark.conf.set"),
        ("CACHE TABLE t", "if it is a statement of Spark, run it with spark.sql()"),
        ("SAVEPOINT a", "use BEGIN, COMMIT and ROLLBACK"),
        ("WITH a AS (SELECT 1) DELETE FROM t", "as a subquery in DELETE FROM t WHERE"),
        ("WITH a AS (SELECT 1) UPDATE s.t SET x = 1", "as a subquery in UPDATE t SET or MERGE"),
        ("WITH a AS (SELECT 1) UPDATE t AS u SET x = 1", "UPDATE after a query"),
        (
            "WITH a AS (SELECT 1) INSERT INTO t WITH a AS (SELECT 2) SELECT * FROM a",
            "write WITH and the query after",
        ),
        ("FROM a INSERT INTO b SELECT *", "INSERT INTO after a query"),
        ("SELECT * FROM IDENTIFIER('t')", "write the name of the table"),
        (
            "MERGE INTO t USING s CHANGES FROM VERSION 1 ON t.a = s.a WHEN MATCHED THEN DELETE",
            "use (SELECT * FROM t CHANGES FROM …)",
        ),
    ],
)
def test_what_is_not_supported_says_so(text, message):
    with pytest.raises(Unsupported) as caught:
        parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (
            "WITH a AS (SELECT x FROM u) INSERT OVERWRITE TABLE t (x) SELECT x FROM (FROM a)",
            "INSERT OVERWRITE TABLE t (x) WITH a AS (SELECT x FROM u) SELECT x FROM (FROM a)",
        ),
        (
            "WITH a AS (SELECT 1 AS x) INSERT INTO t BY NAME (SELECT * FROM a)",
            "INSERT INTO t BY NAME WITH a AS (SELECT 1 AS x) (SELECT * FROM a)",
        ),
        (
            "WITH a AS (SELECT 1 AS x) INSERT WITH SCHEMA EVOLUTION INTO t (x) TABLE a",
            "INSERT WITH SCHEMA EVOLUTION INTO t (x) WITH a AS (SELECT 1 AS x) TABLE a",
        ),
        (
            "WITH a AS (SELECT 1 AS x) INSERT OVERWRITE t SELECT x AS into FROM a",
            "INSERT OVERWRITE t WITH a AS (SELECT 1 AS x) SELECT x AS into FROM a",
        ),
        (
            "WITH t AS (SELECT 1) INSERT INTO t FROM t SELECT *",
            "INSERT INTO t WITH t AS (SELECT 1) FROM t SELECT *",
        ),
        (
            "WITH a AS (SELECT 1 AS x) INSERT INTO t REPLACE WHERE x = 1 SELECT * FROM a",
            "INSERT INTO t REPLACE WHERE x = 1 WITH a AS (SELECT 1 AS x) SELECT * FROM a",
        ),
    ],
)
def test_with_before_insert_belongs_to_its_query(text, same):
    assert parse(text) == parse(same)


@pytest.mark.parametrize(
    ("text", "stars"),
    [
        ("SELECT rowid, * FROM t", 1),
        ("SELECT rowid, x.*, count(*) OVER () FROM t x, u", 1),
        ("SELECT a * b, rowid FROM t UNION SELECT * FROM t", 1),
        ("SELECT rowid FROM t", 0),
        # Here `*` would show the virtual columns of both, so neither has them.
        ("SELECT *, t.rowid FROM t JOIN u USING (a)", None),
        ("SELECT rowid FROM t NATURAL JOIN u", None),
        ("FROM t WHERE rowid = 1", None),
        ("SELECT * FROM t", None),
    ],
)
def test_virtual_columns_are_read_where_a_query_names_them(text, stars):
    found = query(text)
    has_virtual = any(r.virtual for r in found.relations)
    assert (len(found.stars) if has_virtual else None) == stars
    hidden = {r.placeholder: ["rowid"] for r in found.relations}
    assert found.without(hidden).count("EXCEPT (rowid)") == (stars or 0)
    assert "star" not in found.without({})
