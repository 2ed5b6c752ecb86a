"""ALTER TABLE and COMMENT ON, as texts and the changes that they mean."""

from __future__ import annotations

import pytest

from shelduck.alter.statement import AlterTableStatement, RenameTableStatement
from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest, ShelduckError, Unsupported
from shelduck.jobs.statement import DropFeature, UndoJob
from shelduck.model.changes.definition import Position
from shelduck.model.changes.schema_change import (
    AddColumn,
    ChangeType,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SetComment,
    SetDefault,
    SetNullable,
)
from shelduck.model.tables.schema import Default
from shelduck.model.types.data_types import Decimal, List, Map, Member, Primitive, Struct
from shelduck.text.tokens.parts import NamedTable

INT, BIGINT, STRING = Primitive("int32"), Primitive("int64"), Primitive("varchar")

# Every statement of DuckLake's page on schema evolution.
DUCKLAKE = [
    ("ALTER TABLE tbl ADD COLUMN new_column INTEGER;", AddColumn(("new_column",), INT)),
    (
        "ALTER TABLE tbl ADD COLUMN new_column VARCHAR DEFAULT 'my_default';",
        AddColumn(("new_column",), STRING, Default("my_default")),
    ),
    (
        "ALTER TABLE tbl ADD COLUMN nested_column.new_field INTEGER;",
        AddColumn(("nested_column", "new_field"), INT),
    ),
    ("ALTER TABLE tbl DROP COLUMN new_column;", DropColumn(("new_column",))),
    (
        "ALTER TABLE tbl DROP COLUMN nested_column.new_field;",
        DropColumn(("nested_column", "new_field")),
    ),
    ("ALTER TABLE tbl RENAME new_column TO new_name;", RenameColumn(("new_column",), "new_name")),
    (
        "ALTER TABLE tbl RENAME nested_column.new_field TO new_name;",
        RenameColumn(("nested_column", "new_field"), "new_name"),
    ),
    ("ALTER TABLE tbl ALTER col1 SET TYPE BIGINT;", ChangeType(("col1",), BIGINT)),
    (
        "ALTER TABLE tbl ALTER nested_column.new_field SET TYPE BIGINT;",
        ChangeType(("nested_column", "new_field"), BIGINT),
    ),
]

# The type changes that Delta's type widening names, in Delta's words.
DELTA = [
    ("ALTER TABLE tbl ALTER COLUMN c TYPE SHORT", ChangeType(("c",), Primitive("int16"))),
    ("ALTER TABLE tbl ALTER COLUMN c TYPE INT", ChangeType(("c",), INT)),
    ("ALTER TABLE tbl ALTER COLUMN c TYPE LONG", ChangeType(("c",), BIGINT)),
    ("ALTER TABLE tbl ALTER COLUMN c TYPE DOUBLE", ChangeType(("c",), Primitive("float64"))),
    (
        "ALTER TABLE tbl ALTER COLUMN c TYPE TIMESTAMP_NTZ",
        ChangeType(("c",), Primitive("timestamp")),
    ),
    ("ALTER TABLE tbl ALTER COLUMN c TYPE DECIMAL(10, 4)", ChangeType(("c",), Decimal(10, 4))),
    (
        "ALTER TABLE tbl ALTER COLUMN e.key TYPE DOUBLE",
        ChangeType(("e", "key"), Primitive("float64")),
    ),
    (
        "ALTER TABLE tbl ALTER COLUMN e.element.key TYPE DECIMAL(10, 4)",
        ChangeType(("e", "element", "key"), Decimal(10, 4)),
    ),
]

FORMS = [
    ("alter table tbl add c int", AddColumn(("c",), INT)),
    ("ALTER TABLE tbl ADD COLUMN IF NOT EXISTS c INT", AddColumn(("c",), INT, if_not_exists=True)),
    (
        "ALTER TABLE tbl ADD COLUMN c INT NOT NULL DEFAULT 5 COMMENT 'five' FIRST",
        AddColumn(("c",), INT, Default("5"), False, "five", Position()),
    ),
    (
        "ALTER TABLE tbl ADD COLUMN c INT DEFAULT 5 NOT NULL COMMENT 'it''s' AFTER b",
        AddColumn(("c",), INT, Default("5"), False, "it's", Position("b")),
    ),
    ("ALTER TABLE tbl ADD COLUMN c INT NULL DEFAULT NULL", AddColumn(("c",), INT)),
    ("ALTER TABLE tbl ADD COLUMN l.element.f INT", AddColumn(("l", "element", "f"), INT)),
    ("ALTER TABLE tbl ADD COLUMN m.value.f INT", AddColumn(("m", "value", "f"), INT)),
    (
        "ALTER TABLE tbl ADD COLUMN c array<struct<a: int, b: map<string, int>>>",
        AddColumn(("c",), List(Struct((Member("a", INT), Member("b", Map(STRING, INT)))))),
    ),
    (
        "ALTER TABLE tbl ADD COLUMN c STRUCT(a INTEGER, b VARCHAR[])",
        AddColumn(("c",), Struct((Member("a", INT), Member("b", List(STRING))))),
    ),
    (
        "ALTER TABLE tbl ADD COLUMN c TIMESTAMP WITH TIME ZONE",
        AddColumn(("c",), Primitive("timestamptz")),
    ),
    ("ALTER TABLE tbl ADD COLUMN c DOUBLE PRECISION", AddColumn(("c",), Primitive("float64"))),
    ("ALTER TABLE tbl ADD COLUMN `a.b` INT", AddColumn(("a.b",), INT)),
    ('ALTER TABLE tbl ADD COLUMN "say ""hi""".`x``y` INT', AddColumn(('say "hi"', "x`y"), INT)),
    ("ALTER TABLE tbl ADD COLUMN größe INT", AddColumn(("größe",), INT)),
    ('ALTER TABLE tbl ADD COLUMN `\\"` INT', AddColumn(('\\"',), INT)),
    ("ALTER TABLE tbl ADD COLUMN comment STRING", AddColumn(("comment",), STRING)),
    ("ALTER TABLE tbl DROP COLUMN IF EXISTS c", DropColumn(("c",), if_exists=True)),
    ("ALTER TABLE tbl DROP c", DropColumn(("c",))),
    ("ALTER TABLE tbl RENAME COLUMN c TO `d e`", RenameColumn(("c",), "d e")),
    ("ALTER TABLE tbl RENAME COLUMN `to` TO c", RenameColumn(("to",), "c")),
    ("ALTER TABLE tbl RENAME to TO c", RenameColumn(("to",), "c")),
    ("ALTER TABLE tbl ALTER c TYPE BIGINT", ChangeType(("c",), BIGINT)),
    ("ALTER TABLE tbl ALTER COLUMN c SET DATA TYPE BIGINT", ChangeType(("c",), BIGINT)),
    ("ALTER TABLE tbl ALTER type TYPE BIGINT", ChangeType(("type",), BIGINT)),
    ("ALTER TABLE tbl ALTER COLUMN c SET DEFAULT -5", SetDefault(("c",), Default("-5"))),
    ("ALTER TABLE tbl ALTER COLUMN c SET DEFAULT NULL", SetDefault(("c",), None)),
    ("ALTER TABLE tbl ALTER COLUMN s.f DROP DEFAULT", SetDefault(("s", "f"), None)),
    ("ALTER TABLE tbl ALTER COLUMN c SET NOT NULL", SetNullable(("c",), nullable=False)),
    ("ALTER TABLE tbl ALTER COLUMN c DROP NOT NULL", SetNullable(("c",), nullable=True)),
    ("ALTER TABLE tbl ALTER COLUMN s.f COMMENT 'x'", SetComment(("s", "f"), "x")),
    ("ALTER TABLE tbl ALTER COLUMN s.f FIRST", MoveColumn(("s", "f"), Position())),
    ("ALTER TABLE tbl ALTER COLUMN c AFTER `d e`", MoveColumn(("c",), Position("d e"))),
    ("ALTER TABLE tbl CHANGE COLUMN c c BIGINT", ChangeType(("c",), BIGINT)),
    ("COMMENT ON TABLE tbl IS 'about'", SetComment((), "about")),
    ("COMMENT ON TABLE tbl IS NULL", SetComment((), None)),
    ("COMMENT ON COLUMN tbl.c IS 'about'", SetComment(("c",), "about")),
]


@pytest.mark.parametrize(("text", "change"), DUCKLAKE + DELTA + FORMS)
def test_one_action_is_one_change(text, change):
    assert parse(text) == [AlterTableStatement(NamedTable(("tbl",)), (change,))]


def changes(text):
    (statement,) = parse(text)
    assert isinstance(statement, AlterTableStatement)
    return list(statement.changes)


def test_several_actions_keep_their_order():
    text = (
        "ALTER TABLE tbl ADD COLUMN a INT, DROP COLUMN b, RENAME COLUMN c TO d,"
        " ALTER COLUMN e TYPE BIGINT"
    )
    assert changes(text) == [
        AddColumn(("a",), INT),
        DropColumn(("b",)),
        RenameColumn(("c",), "d"),
        ChangeType(("e",), BIGINT),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE tbl ADD COLUMNS (a INT, b STRING)",
        "ALTER TABLE tbl ADD COLUMNS a INT, b STRING",
        "ALTER TABLE tbl ADD (a INT, b STRING)",
        "ALTER TABLE tbl ADD a INT, ADD COLUMN b STRING",
    ],
)
def test_columns_can_be_added_together(text):
    assert changes(text) == [AddColumn(("a",), INT), AddColumn(("b",), STRING)]


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE tbl DROP COLUMNS (a, s.b)",
        "ALTER TABLE tbl DROP COLUMNS a, s.b",
        "ALTER TABLE tbl DROP a, DROP COLUMN s.b",
    ],
)
def test_columns_can_be_dropped_together(text):
    assert changes(text) == [DropColumn(("a",)), DropColumn(("s", "b"))]


def test_alter_column_takes_several_columns():
    assert changes("ALTER TABLE tbl ALTER COLUMN a TYPE BIGINT, b COMMENT 'x', DROP c") == [
        ChangeType(("a",), BIGINT),
        SetComment(("b",), "x"),
        DropColumn(("c",)),
    ]


def test_change_column_can_rename_retype_comment_and_move():
    assert changes("ALTER TABLE tbl CHANGE a b BIGINT COMMENT 'x' AFTER c") == [
        ChangeType(("a",), BIGINT),
        SetComment(("a",), "x"),
        MoveColumn(("a",), Position("c")),
        RenameColumn(("a",), "b"),
    ]


def test_rename_to_renames_the_table():
    assert parse("ALTER TABLE IF EXISTS main.a RENAME TO `b c`") == [
        RenameTableStatement(NamedTable(("main", "a")), NamedTable(("b c",)), if_exists=True)
    ]


def test_the_last_part_behind_comment_on_column_is_the_column():
    assert parse("COMMENT ON COLUMN main.tbl.c IS NULL") == [
        AlterTableStatement(NamedTable(("main", "tbl")), (SetComment(("c",), None),))
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "ALTER TABLE tbl ADD COLUMN c",
            (
                "cannot parse 'ALTER TABLE tbl ADD COLUMN c': expected a data type at line 1,"
                " column 29, but the statement ends"
            ),
        ),
        ("ALTER TABLE tbl ADD COLUMN c FOO", "unknown data type 'foo' in 'FOO'"),
        (
            "ALTER TABLE tbl ADD COLUMN c INT DEFAULT",
            "expected a default at line 1, column 41, but the statement ends",
        ),
        ("ALTER TABLE tbl ADD COLUMN c INT DEFAULT 1 DEFAULT 2", "expected DEFAULT only once"),
        ("ALTER TABLE tbl ADD COLUMN c INT FOO", "expected the end of the statement at line 1"),
        ("ALTER TABLE tbl", "expected one of ADD, DROP, RENAME, ALTER, CHANGE"),
        ("ALTER TABLE\n  tbl FOO c", "at line 2, column 7, but found 'FOO'"),
        ("ALTER TABLE tbl RENAME a TO s.b", "expected the new name without the path"),
        ("ALTER TABLE tbl ALTER COLUMN a", "expected TYPE, SET, DROP, COMMENT, FIRST or AFTER"),
        ("ALTER TABLE tbl ALTER COLUMN a TYPE BIGINT b", "expected TYPE, SET, DROP"),
        ("ALTER TABLE tbl DROP ``", "expected a column, not an empty name"),
        ("ALTER TABLE tbl UNDO JOB x", "expected the id of a job"),
        ("ALTER TABLE tbl DROP 'a'", "expected a column at line 1, column 22"),
        ("ALTER TABLE tbl DROP (a, b", "expected ) at line 1, column 27"),
        ("COMMENT ON COLUMN c IS 'x'", "expected a column as table.column"),
        ("COMMENT ON TABLE c IS x", "expected the comment as a string, or NULL"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text, message):
    with pytest.raises(InvalidRequest) as caught:
        parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("behind", "more"),
    [
        ("", {}),
        (" ON ERROR NULL", {"on_error_null": True}),
        (" USING a + 1 PROPERTIES ('wait' = 'false')", {"using": "a + 1"}),
    ],
)
def test_a_job_is_undone(behind, more):
    properties = {"wait": "false"} if "wait" in behind else {}
    found = UndoJob(NamedTable(("tbl",)), 3, properties=properties, **more)
    assert parse(f"ALTER TABLE tbl UNDO JOB 3{behind}") == [found]


@pytest.mark.parametrize("name", ["typeWidening", "'typeWidening'", '"typeWidening"'])
def test_a_feature_is_named_with_and_without_quotes(name):
    assert parse(f"ALTER TABLE tbl DROP FEATURE {name}") == [
        DropFeature(NamedTable(("tbl",)), "typeWidening")
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "ALTER TABLE tbl ALTER COLUMN c CHECK (a > 1)",
            "the constraint CHECK here is not supported",
        ),
        ("ALTER TABLE tbl ADD PARTITION (a = 1)", "ADD PARTITION is not supported"),
        (
            "ALTER TABLE tbl ADD COLUMN c INT GENERATED ALWAYS AS (1)",
            "a computed column in a table that is there",
        ),
        ("ALTER TABLE tbl ADD COLUMN c STRING COLLATE UTF8_LCASE", "a collation"),
        ("ALTER TABLE tbl SET LOCATION 'x'", "ALTER TABLE ... SET"),
        ("ALTER TABLE tbl DROP FEATURE f TRUNCATE HISTORY", "CALL expire_snapshots"),
        ("ALTER TABLE tbl DROP FEATURE 'f' TRUNCATE HISTORY", "CALL expire_snapshots"),
        ("ALTER TABLE tbl DROP FEATURE f, DROP COLUMN c", "write two statements"),
        ("ALTER TABLE tbl UNDO JOB 3, DROP COLUMN c", "UNDO JOB together with other changes"),
        ("ALTER TABLE tbl DROP a, RENAME TO b", "RENAME TO together with other changes"),
        ("ALTER TABLE tbl RENAME TO b, DROP a", "RENAME TO together with other changes"),
        ("COMMENT ON SCHEMA s IS 'x'", "COMMENT ON SCHEMA is not supported"),
    ],
)
def test_what_is_not_supported_says_so(text, message):
    with pytest.raises(Unsupported) as caught:
        parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ALTER TABLE t ADD COLUM x INT", "unknown data type 'x' .*did you mean COLUMN"),
        ("ALTER TABLE t DROP COLUM x", "did you mean COLUMN instead of COLUM"),
        ("ALTER TABLE t RENAME COLUM x TO y", "did you mean COLUMN instead of COLUM"),
        ("ALTER TABLE t ALTER COLUMN x TIPE INT", "did you mean TYPE instead of TIPE"),
        ("CREATE TABLE t (a INT DEFUALT 3)", "did you mean DEFAULT instead of DEFUALT"),
        ("CREATE TABLE t (a INT) PARTITONED BY (a)", "did you mean PARTITIONED"),
        ("CREATE TABEL t (a INT)", "did you mean TABLE instead of TABEL"),
        ("SELEC 1", "did you mean SELECT instead of SELEC"),
    ],
)
def test_a_mistyped_keyword_is_named(text, told):
    with pytest.raises(ShelduckError, match=told):
        parse(text)


@pytest.mark.parametrize("text", ["ALTER TABLE t ADD COLUMN a itn", "SELECT 1 FROM t,, u WHERE"])
def test_a_right_keyword_is_not(text):
    try:
        parse(text)
    except ShelduckError as error:
        told = str(error)
    else:
        told = ""
    assert "did you mean" not in told


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("CHANGE COLUMN f TYPE BIGINT", ChangeType(("f",), BIGINT)),
        ("CHANGE s.f TYPE BIGINT", ChangeType(("s", "f"), BIGINT)),
        ("CHANGE type type BIGINT", ChangeType(("type",), BIGINT)),
        ("CHANGE COLUMN f COMMENT 'x'", SetComment(("f",), "x")),
        ("CHANGE COLUMN comment comment BIGINT", ChangeType(("comment",), BIGINT)),
        ("CHANGE f FIRST", MoveColumn(("f",), Position())),
        ("CHANGE first first BIGINT", ChangeType(("first",), BIGINT)),
        ("CHANGE f AFTER a", MoveColumn(("f",), Position("a"))),
        ("CHANGE f SET NOT NULL", SetNullable(("f",), nullable=False)),
        ("CHANGE f DROP NOT NULL", SetNullable(("f",), nullable=True)),
        ("CHANGE f SET DEFAULT 4", SetDefault(("f",), Default("4"))),
        ("CHANGE f DROP DEFAULT", SetDefault(("f",), None)),
        ("CHANGE set set BIGINT", ChangeType(("set",), BIGINT)),
    ],
)
def test_change_column_says_what_alter_column_says(text, change):
    assert changes(f"ALTER TABLE tbl {text}") == [change]


def test_change_column_takes_sparks_list():
    assert changes("ALTER TABLE tbl CHANGE COLUMN a TYPE BIGINT, b COMMENT 'x', c FIRST") == [
        ChangeType(("a",), BIGINT),
        SetComment(("b",), "x"),
        MoveColumn(("c",), Position()),
    ]


def test_a_new_name_that_is_a_keyword_is_put_in_quotes():
    assert changes("ALTER TABLE tbl CHANGE a `type` BIGINT") == [
        ChangeType(("a",), BIGINT),
        RenameColumn(("a",), "type"),
    ]
    with pytest.raises(InvalidRequest, match="expected the comment as a string"):
        parse("ALTER TABLE tbl CHANGE COLUMN id COMMENT STRING")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("ADD COLUMNS a INT, DROP BIGINT", "DROP"),
        ("ADD COLUMN a INT, CHANGE DATE COMMENT 'x'", "CHANGE"),
        ("ALTER COLUMN a FIRST, RENAME TYPE INT", "RENAME"),
        ("DROP COLUMNS a, ADD", "ADD"),
    ],
)
def test_a_word_that_spark_reads_as_one_more_column_is_not_the_next_action(text, word):
    with pytest.raises(InvalidRequest) as caught:
        parse(f"ALTER TABLE tbl {text}")
    told = f"expected COLUMN behind {word} (or, if {word} is a column, quotes around it)"
    assert told in str(caught.value)
