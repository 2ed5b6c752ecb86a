"""Statements that nobody means: each gives a statement or one ShelduckError, in linear work."""

from __future__ import annotations

import random
import re
import sys
from contextlib import suppress

import pytest

from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest, ShelduckError
from shelduck.jobs.jobs import job_properties
from shelduck.model.tables.schema import new_field
from shelduck.model.text.names import directory
from shelduck.model.types.data_types import parse_type
from shelduck.text.tokens.parameters import with_parameters
from tests.support.lengths import shown, turns
from tests.support.statement_corpus import example_statements

MANY = 1000
DIGITS = "9" * 5000

TOO_DEEP = {
    "brackets": f"SELECT {'(' * MANY}1{')' * MANY}",
    "subqueries": f"SELECT * FROM {'(SELECT * FROM ' * MANY}t{')' * MANY}",
    "a list of tables": f"SELECT * FROM {'(' * MANY}t{')' * MANY}",
    "a default": f"CREATE TABLE t (a INT DEFAULT {'(' * MANY}1{')' * MANY})",
    "a view": f"CREATE VIEW v AS SELECT {'(' * MANY}1{')' * MANY}",
    "rows": f"INSERT INTO t VALUES {'(' * MANY}1{')' * MANY}",
    "open": "(" * 500_000,
    "square": f"SELECT {'a[' * MANY}1{']' * MANY}",
    "a type in round brackets": f"CREATE TABLE t (a {'ARRAY(' * MANY}INT{')' * MANY})",
}


@pytest.mark.parametrize("text", TOO_DEEP.values(), ids=TOO_DEEP)
def test_brackets_that_are_nested_too_deep_are_refused_with_their_place(text):
    with pytest.raises(
        InvalidRequest, match=r"at line 1, column \d+ are nested more than 200 deep"
    ):
        parse(text)


def test_200_brackets_are_read():
    [query] = parse(f"SELECT * FROM {'(' * 200}t{')' * 200}")
    assert [relation.name.parts for relation in query.relations] == [("t",)]


DEEP_TYPES = {
    "array": f"{'array<' * MANY}int{'>' * MANY}",
    "struct": f"{'struct<a: ' * MANY}int{'>' * MANY}",
    "list": f"int{'[]' * MANY}",
}


@pytest.mark.parametrize("text", DEEP_TYPES.values(), ids=DEEP_TYPES)
def test_a_type_that_is_nested_too_deep_is_refused(text):
    with pytest.raises(InvalidRequest, match="more than 100 levels"):
        parse_type(text)
    with pytest.raises(InvalidRequest, match="more than 100 levels"):
        parse(f"CREATE TABLE t (a {text})")


LONG_NUMBERS = (
    f"SELECT {DIGITS}",
    f"CREATE TABLE t (a DECIMAL({DIGITS}, 2))",
    f"CREATE TABLE t (a VARCHAR({DIGITS}))",
    f"CREATE TABLE t (a INT DEFAULT {DIGITS})",
    f"CREATE TABLE t (a INT) PARTITIONED BY (bucket({DIGITS}, a))",
    f"CREATE TABLE t (a INT) DISTRIBUTED BY HASH(a) BUCKETS {DIGITS}",
    f"SELECT * FROM t VERSION AS OF {DIGITS}",
    f"INSERT INTO t VALUES ({DIGITS})",
    f"CALL expire_snapshots({DIGITS})",
    f"VACUUM t RETAIN {DIGITS[:301]} HOURS",
    f"SHOW ALTER TABLE COLUMN LIMIT {DIGITS}",
)


@pytest.mark.parametrize("text", LONG_NUMBERS)
def test_a_number_of_thousands_of_digits_is_refused(text):
    with pytest.raises(InvalidRequest, match=r"the number at .* is longer than 300 characters"):
        parse(text)


@pytest.mark.parametrize("text", [f"SELECT * FROM t@v{DIGITS}", f"DROP TABLE {'a' * 1001}"])
def test_a_name_of_thousands_of_letters_is_refused(text):
    with pytest.raises(InvalidRequest, match=r"the name at .* is longer than 1000 characters"):
        parse(text)


def test_a_snapshot_has_at_most_18_digits():
    with pytest.raises(InvalidRequest, match="expected the id of a snapshot"):
        parse(f"SELECT * FROM t VERSION AS OF '{DIGITS}'")


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_no_catalog_can_hold_is_refused(name):
    with pytest.raises(InvalidRequest, match=r"has the character U\+[0D]\d00, which no catalog"):
        new_field(name, parse_type("int"), 1)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "${spark.x}",
            r"the name '\${spark.x}' of a column contains \${, and Spark puts a setting",
        ),
        ("n" * 1001, r"the name 'n{60}'... of a column is longer than 1000 characters"),
    ],
)
def test_a_name_that_no_statement_can_hold_is_refused(name, told):
    with pytest.raises(InvalidRequest, match=told):
        new_field(name, parse_type("int"), 1)
    assert new_field("n" * 1000, parse_type("int"), 1).name == "n" * 1000


@pytest.mark.parametrize("text", ["SELECT '\ud800'", "DROP TABLE `a\udfff`", "-- \udc80"])
def test_half_of_a_character_is_refused_with_its_place(text):
    with pytest.raises(InvalidRequest, match=r"half of a character, U\+D[8CF][08F][0F], at line 1"):
        parse(text)


def test_a_name_that_is_longer_than_a_file_name_is_no_directory():
    uuid = "0197b3c4-0000-7000-8000-000000000000"
    assert directory("a" * 200, uuid) == f"{'a' * 200}/"
    assert directory("a" * 201, uuid) == f"{uuid}/"


def listed(pattern: str, count: int, between: str = ", ") -> str:
    return between.join(pattern.replace("#", str(n)) for n in range(count))


# Texts whose second argument is how many parts they have.
LARGE = {
    "set operations": lambda n: listed("SELECT t#.a FROM t#", n, " UNION ALL "),
    "rows": lambda n: f"INSERT INTO t VALUES {listed('(#, 0)', n)}",
    "rows of a query": lambda n: f"SELECT * FROM VALUES {listed('(#, 0)', n)}",
    "names of queries": lambda n: f"WITH {listed('q# AS (SELECT 1)', n)} SELECT * FROM q1, t",
    "queries in queries": lambda n: (
        f"WITH {listed('q# AS (WITH r AS (SELECT 1) TABLE r)', n)} TABLE q1"
    ),
    "tables": lambda n: f"SELECT {listed('main.t#.a', n)} FROM {listed('main.t#', n)}",
    "stars": lambda n: f"SELECT rowid, {listed('*', n)} FROM t",
    "columns": lambda n: f"CREATE TABLE t ({listed('a# INT', n)})",
    "new columns": lambda n: f"ALTER TABLE t {listed('ADD COLUMN a# INT', n)}",
    "listed columns": lambda n: f"INSERT INTO t ({listed('a#', n)}) SELECT 1",
    "assignments": lambda n: f"UPDATE t SET {listed('a# = 1', n)}",
    "subqueries": lambda n: f"UPDATE t SET {listed('a# = (SELECT 1 FROM u)', n)}",
    "partition keys": lambda n: f"ALTER TABLE t SET PARTITIONED BY ({listed('a#', n)})",
    "columns of a view": lambda n: f"CREATE VIEW v ({listed('a#', n)}) AS SELECT 1",
    "parameters": lambda n: f"CREATE MACRO m({listed('a#', n)}) AS 1",
    "properties": lambda n: f"ALTER TABLE t SET TBLPROPERTIES ({listed('a# = 1', n)})",
    "clauses": lambda n: f"MERGE INTO t USING s ON 1 = 1 {'WHEN MATCHED THEN DELETE ' * n}",
    "comments": lambda n: f"SELECT 1 {'/* x */' * n}",
    "dollars": lambda n: f"SELECT {listed('$a#$', n, '')}",
    "cases": lambda n: f"UPDATE t SET a = {'CASE WHEN a THEN ' * n}1{' END' * n}",
    "statements": lambda n: listed("SELECT #", n, ";"),
}


def calls(text: str) -> int:
    """How many functions Python calls to read a text: its work, on every machine."""
    count = 0

    def called(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        with suppress(ShelduckError):
            parse(text)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("build", LARGE.values(), ids=LARGE)
def test_work_grows_with_the_text_and_no_faster(build):
    small, large = calls(build(60)), calls(build(MANY // 4))
    # 4 times if linear, 17 times if quadratic.
    assert large < 6 * small


@pytest.mark.slow
@pytest.mark.parametrize("build", LARGE.values(), ids=LARGE)
def test_work_grows_with_a_large_text_and_no_faster(build):
    # 16 times if linear, 256 times if quadratic.
    assert calls(build(16_000)) < 24 * calls(build(1_000))


@pytest.mark.parametrize("build", LARGE.values(), ids=LARGE)
def test_a_thousand_parts_are_read(build):
    with suppress(ShelduckError):
        parse(build(MANY))


def test_a_megabyte_of_text_is_one_string():
    assert len(parse(f"SELECT '{'x' * 1_000_000}'")) == 1


ODD = (
    *"()[]{}<>,.;:=*-+@$?|&!#~^%/\\\"'`",
    "::", "=>", ":=", "<=>", "--", "/*", "*/", "$$", "$a$", "''", '""', "``", "0x", "1e999", ".5",
    "${x}", "\u00e9", "\u2003", "\U0001f986", "\ud800", "\0", "\n", "NULL", "DEFAULT", "END", "AS",
    "ON", "SELECT", "FROM", "WITH", "VALUES", "TABLE", "IN", "CASE", "RETURNING", "AT (VERSION =>",
    "array<", "struct<a:", "decimal(", "varchar(99999999999)", DIGITS, f"'{DIGITS}'", "a" * 300,
)  # fmt: skip
PIECE = re.compile(r"\w+|'[^']*'|\s+|[^\w\s]")


def mutated(random: random.Random, statements: tuple[str, ...]) -> str:
    """Return an example with some of its pieces dropped, doubled, swapped, nested or replaced."""
    pieces = PIECE.findall(random.choice(statements))
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        at = random.randrange(len(pieces) + 1)
        upto = min(len(pieces), at + random.choice((1, 1, 2, 5)))
        other = PIECE.findall(random.choice(statements))
        match random.randrange(8):
            case 0:
                del pieces[at:upto]
            case 1:
                pieces[at:at] = pieces[at:upto]
            case 2 if len(pieces) > 1:
                one, two = random.sample(range(len(pieces)), 2)
                pieces[one], pieces[two] = pieces[two], pieces[one]
            case 3:
                depth = random.choice((1, 2, 150, 500))
                opening, closing = random.choice(("()", "[]", "<>", "{}", ("(SELECT ", ")")))
                pieces[at:upto] = [opening * depth, *pieces[at:upto], closing * depth]
            case 4:
                pieces[at:upto] = [random.choice(ODD)]
            case 5:
                pieces[at:at] = [" ", random.choice(ODD), " "]
            case 6:
                pieces[at:at] = other[: random.randrange(len(other) + 1)]
            case _:
                pieces[at:upto] = pieces[at:upto] * random.choice((2, 50, 300))
    return "".join(pieces)


def test_the_examples_are_many():
    assert len(example_statements()) > 700


def test_what_becomes_of_an_example_is_read_or_refused():
    assert without_words(range(1_000)) == []


@pytest.mark.slow
@pytest.mark.parametrize("seeds", turns(range(1_000, 100_000), 15_000), ids=shown)
def test_what_becomes_of_many_examples_is_read_or_refused(seeds):
    assert without_words(seeds) == []


def without_words(seeds: range) -> list[int]:
    """The seeds whose statement is refused with an empty message; other faults are raised."""
    statements = example_statements()
    empty = []
    for seed in seeds:
        text = mutated(random.Random(seed), statements)
        for read in (parse, lambda text: with_parameters(text, {"a": 1})):
            try:
                read(text)
            except ShelduckError as error:
                empty += [] if str(error) else [seed]
            except BaseException as error:
                error.add_note(f"seed {seed}: {text[:300]!r}")
                raise
    return empty


NUMBERS = ("1" * 30, DIGITS, "²", "٣²", "٣", "1_0")
WITH_NUMBERS = (
    "ALTER JOB {} SET ('tasks' = '1')",
    "CANCEL ALTER TABLE COLUMN FROM t ({})",
    "DESCRIBE HISTORY t LIMIT {}",
    "CREATE TABLE b (i INT) PARTITIONED BY (bucket({}, i))",
    "CREATE TABLE b (i INT) DISTRIBUTED BY HASH(i) BUCKETS {}",
    "RESTORE TABLE t TO VERSION AS OF {}",
    "RESTORE TABLE t TO VERSION AS OF '{}'",
    "SELECT * FROM t@v{}",
)


@pytest.mark.parametrize("number", NUMBERS, ids=ascii)
@pytest.mark.parametrize("text", WITH_NUMBERS)
def test_what_is_no_number_of_64_bits_is_refused_in_a_sentence(text, number):
    with pytest.raises(InvalidRequest):
        parse(text.format(number))


@pytest.mark.parametrize("number", NUMBERS, ids=ascii)
@pytest.mark.parametrize(
    "text", ["ALTER TABLE t ADD z DECIMAL({}, 2)", "CALL p({})", "INSERT INTO t VALUES ({}L)"]
)
def test_what_is_no_number_of_a_value_is_refused_in_a_sentence(text, number):
    with suppress(InvalidRequest):
        parse(text.format(number))


@pytest.mark.parametrize("number", NUMBERS, ids=ascii)
def test_a_property_of_a_job_that_is_no_number_is_refused(number):
    with pytest.raises(InvalidRequest, match="must be a number of seconds"):
        job_properties({"timeout": number})
