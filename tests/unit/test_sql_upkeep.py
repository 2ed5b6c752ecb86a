"""Transactions, CALL, maintenance, history and views."""

from __future__ import annotations

from decimal import Decimal

import pytest

from shelduck.doors.sql.parse import parse
from shelduck.doors.sql.transactions import BeginTransaction, CommitTransaction, RollbackTransaction
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.objects.restore import Restore
from shelduck.objects.statement.show import DescribeHistory
from shelduck.objects.statement.views import (
    AlterView,
    CreateViewStatement,
    DropViewStatement,
    PinView,
    RenameViewStatement,
    ViewColumn,
)
from shelduck.text.tokens.parts import (
    Call,
    Expression,
    IntervalText,
    NamedTable,
    Query,
    Relation,
    Selection,
    Target,
    TimestampText,
)
from shelduck.upkeep.statement import Checkpoint, Optimize, Vacuum

T, V, U = NamedTable(("t",)), NamedTable(("v",)), Relation(NamedTable(("u",)), "__lake_0__")
ROWS = Target(T, "__lake_target__", "t")

STATEMENTS = [
    ("BEGIN", BeginTransaction()),
    ("BEGIN TRANSACTION", BeginTransaction()),
    ("begin work", BeginTransaction()),
    ("START TRANSACTION", BeginTransaction()),
    ("COMMIT", CommitTransaction()),
    ("COMMIT WORK", CommitTransaction()),
    ("ROLLBACK", RollbackTransaction()),
    ("ROLLBACK WORK", RollbackTransaction()),
    ("CALL checkpoint()", Call("checkpoint")),
    ("CALL system.Checkpoint()", Call("checkpoint")),
    ("CALL `my lake`.system.checkpoint()", Call("checkpoint", catalog="my lake")),
    ("CALL lake.checkpoint()", Call("checkpoint", catalog="lake")),
    (
        "CALL lake.expire_snapshots(older_than => now() - INTERVAL '1 week')",
        Call("expire_snapshots", named=(("older_than", IntervalText("1 week")),), catalog="lake"),
    ),
    (
        "CALL ducklake_flush_inlined_data('lake', 't', schema => 's')",
        Call("flush_inlined_data", ("t",), (("schema", "s"),), catalog="lake"),
    ),
    (
        "CALL set_commit_message('me', 'it''s', extra_info => '{\"a\": 1}')",
        Call("set_commit_message", ("me", "it's"), (("extra_info", '{"a": 1}'),)),
    ),
    (
        "CALL p(1, -2L, 1.50, 1e3, 2.5D, true, NULL)",
        Call("p", (1, -2, Decimal("1.50"), 1000.0, 2.5, True, None)),
    ),
    (
        "CALL p(ARRAY[1, 2], array('a', 'b'), [], names => [3])",
        Call("p", ((1, 2), ("a", "b"), ()), (("names", (3,)),)),
    ),
    (
        (
            "CALL p(older_than => TIMESTAMP '2024-01-01', A => INTERVAL '7 days',"
            " b => INTERVAL '7' DAY, c => INTERVAL 1 WEEK 2 DAYS)"
        ),
        Call(
            "p",
            (),
            (
                ("older_than", TimestampText("2024-01-01")),
                ("a", IntervalText("7 days")),
                ("b", IntervalText("7 DAY")),
                ("c", IntervalText("1 WEEK 2 DAYS")),
            ),
        ),
    ),
    ("OPTIMIZE t", Optimize(Selection(ROWS))),
    (
        "OPTIMIZE t WHERE p >= '2024-01-01'",
        Optimize(Selection(ROWS, Expression("p >= '2024-01-01'"))),
    ),
    ("VACUUM", Vacuum()),
    ("VACUUM t", Vacuum(T)),
    ("VACUUM t RETAIN 168 HOURS DRY RUN", Vacuum(T, 168.0, True)),
    ("VACUUM RETAIN 0 HOURS", Vacuum(None, 0.0)),
    ("VACUUM t RETAIN 0.5 HOURS", Vacuum(T, 0.5)),
    ("VACUUM DRY RUN", Vacuum(dry_run=True)),
    ("RESTORE TABLE t TO VERSION AS OF 3", Restore(T, version=3)),
    ("RESTORE t VERSION AS OF 3", Restore(T, version=3)),
    (
        "RESTORE main.t TO TIMESTAMP AS OF '2024-01-01'",
        Restore(NamedTable(("main", "t")), timestamp="2024-01-01"),
    ),
    ("RESTORE TABLE TO VERSION AS OF 1", Restore(NamedTable(("TABLE",)), version=1)),
    ("DESCRIBE HISTORY t", DescribeHistory(T)),
    ("DESC HISTORY main.t LIMIT 5", DescribeHistory(NamedTable(("main", "t")), 5)),
    ("CHECKPOINT", Checkpoint()),
    (
        "CREATE VIEW v AS SELECT * FROM u -- all",
        CreateViewStatement(V, Query("SELECT * FROM __lake_0__ AS `u`", (U,)), "SELECT * FROM u"),
    ),
    (
        (
            "CREATE OR REPLACE VIEW v (a COMMENT 'x', `b c`) COMMENT 'y'"
            " AS WITH q AS (SELECT 1, 2) SELECT * FROM q;"
        ),
        CreateViewStatement(
            V,
            Query("WITH q AS (SELECT 1, 2) SELECT * FROM q"),
            "WITH q AS (SELECT 1, 2) SELECT * FROM q",
            (ViewColumn("a", "x"), ViewColumn("b c")),
            or_replace=True,
            comment="y",
        ),
    ),
    (
        "CREATE VIEW IF NOT EXISTS v AS (SELECT 1)",
        CreateViewStatement(V, Query("(SELECT 1)"), "(SELECT 1)", if_not_exists=True),
    ),
    ("CREATE VIEW v AS SCHEMA VERSION 3 OF main.t", PinView(V, NamedTable(("main", "t")), 3)),
    (
        "create or replace view v comment 'y' as schema version '3' of t;",
        PinView(V, T, 3, or_replace=True, comment="y"),
    ),
    ("CREATE VIEW IF NOT EXISTS v AS SCHEMA VERSION 3 OF t", PinView(V, T, 3, if_not_exists=True)),
    ("DROP VIEW v", DropViewStatement(V)),
    ("DROP VIEW IF EXISTS main.v", DropViewStatement(NamedTable(("main", "v")), True)),
    ("ALTER VIEW v RENAME TO w", RenameViewStatement(V, NamedTable(("w",)))),
    ("ALTER VIEW v AS TABLE u", AlterView(V, Query("TABLE __lake_0__", (U,)), "TABLE u")),
]


@pytest.mark.parametrize(("text", "statement"), STATEMENTS)
def test_a_statement_is_read(text, statement):
    assert parse(text) == [statement]


def test_numbers_of_a_call_keep_their_kinds():
    (found,) = parse("CALL p(1, 1.0, 1e0, 1BD, TRUE)")
    assert [type(a) for a in found.positional] == [int, Decimal, float, Decimal, bool]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("BEGIN SELECT 1", "expected the end of the statement at line 1, column 7"),
        ("START TRANSACTION WORK", "expected the end of the statement"),
        ("START", "expected a statement such as SELECT"),
        ("COMMIT NOW", "expected the end of the statement"),
        ("CALL p", "expected ( at line 1, column 7"),
        ("CALL ducklake_checkpoint()", "expected the name of the lake as a string"),
        ("CALL ducklake_checkpoint(1)", "expected the name of the lake as a string"),
        (
            "CALL a.b.c()",
            "expected a procedure as procedure, system.procedure or catalog.system.procedure",
        ),
        ("CALL p(x)", "expected a literal: a number, a string, TRUE, FALSE, NULL, TIMESTAMP"),
        ("CALL p(1 + 1)", "expected ) at line 1, column 10, but found '+'"),
        ("CALL p(a => 1, 2)", "expected name => value (arguments after a named argument"),
        ("CALL p(a => 1, A => 2)", "expected each argument only once at line 1, column 16"),
        ("CALL p(1,, 2)", "expected a literal"),
        ("CALL p(-'x')", "expected a number at line 1, column 9"),
        ("CALL p(INTERVAL 7)", "expected a unit such as DAYS at line 1, column 18"),
        ("CALL p(INTERVAL x)", "expected an interval such as '7 days'"),
        ("CALL p([1, 2)", "expected ] at line 1, column 13"),
        ("OPTIMIZE t WHERE", "expected a condition"),
        ("VACUUM t RETAIN x HOURS", "expected a literal"),
        ("VACUUM t RETAIN -1 HOURS", "expected a number of hours"),
        ("VACUUM t RETAIN 5 DAYS", "expected HOURS at line 1, column 19"),
        ("RESTORE TABLE t", "expected TO VERSION AS OF n or TO TIMESTAMP AS OF '...'"),
        ("RESTORE TABLE t TO VERSION 3", "expected TO VERSION AS OF n or TO TIMESTAMP AS OF"),
        ("DESCRIBE HISTORY t LIMIT x", "expected a whole number at line 1, column 26"),
        ("CHECKPOINT t", "expected the end of the statement"),
        ("CREATE VIEW v", "expected AS at line 1, column 14"),
        ("CREATE VIEW v AS SCHEMA VERSION OF t", "expected the id of a snapshot"),
        ("CREATE VIEW v AS SCHEMA VERSION 3 t", "expected OF"),
        ("CREATE VIEW v AS SCHEMA VERSION 3 OF t WHERE a = 1", "expected the end"),
        ("CREATE VIEW v () AS SELECT 1", "expected a column at line 1, column 16"),
        ("CREATE VIEW v (a, A) AS SELECT 1", "expected each column only once"),
        ("CREATE OR REPLACE VIEW IF NOT EXISTS v AS SELECT 1", "OR REPLACE and IF NOT EXISTS"),
        ("CREATE VIEW v AS DROP u", "expected a query: SELECT, WITH, FROM, VALUES or TABLE"),
        ("DROP VIEW v, w", "expected the end of the statement"),
        ("ALTER VIEW v", "expected RENAME TO and a name, or AS and a query"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text, message):
    with pytest.raises(InvalidRequest) as caught:
        parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("COMMIT MESSAGE 'x'", "use CALL set_commit_message('author', 'message')"),
        ("ROLLBACK TO a", "there are no savepoints"),
        ("OPTIMIZE t ZORDER BY (a)", "SET SORTED BY"),
        ("CREATE VIEW v TBLPROPERTIES ('a' = 'b') AS SELECT 1", "views have no properties"),
        ("CREATE VIEW v WITH SCHEMA BINDING AS SELECT 1", "CREATE VIEW ... WITH is not supported"),
        ("ALTER VIEW v SET TBLPROPERTIES ('a' = 'b')", "ALTER VIEW ... SET is not supported"),
    ],
)
def test_what_is_not_supported_says_so(text, message):
    with pytest.raises(Unsupported) as caught:
        parse(text)
    assert message in str(caught.value)
