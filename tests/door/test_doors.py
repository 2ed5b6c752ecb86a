"""One list of statements through each door: the same rows, and the same sentences of errors."""

from __future__ import annotations

from operator import eq
from pathlib import Path

import pyspark
import pytest

import shelduck
from tests.support import door
from tests.support.attaching import duck
from tests.support.connect import connect_server

pytestmark = [pytest.mark.slow, pytest.mark.every_spark]

STATEMENTS = [
    text for text in Path(__file__).with_name("statements.sql").read_text().split(";\n") if text
]


@pytest.fixture(scope="module")
def attached(spark, tmp_path_factory):
    """What a Python session answers to which the lake is attached."""
    folder = tmp_path_factory.mktemp("attached")
    shelduck.attach(spark, "lake", f"sqlite:///{folder}/lake.db", f"{folder}/data/")
    try:
        yield [door.in_process(spark.sql, text) for text in STATEMENTS]
    finally:
        spark.sql("USE spark_catalog.default")
        shelduck.detach(spark, "lake")


@pytest.fixture
def configured(spark, tmp_path):
    """The configuration of a driver, and the address of its lake."""
    url = f"sqlite:///{tmp_path}/lake.db"
    return door.settings(spark, tmp_path, url, f"{tmp_path}/data/"), url


def test_a_thrift_server_answers_as_an_attached_session(spark, attached, configured, tmp_path):
    conf, url = configured
    with door.thrift_server(tmp_path / "server", conf) as server:
        client = server.connect(spark)
        answers = [client.ask(text) for text in STATEMENTS]
    assert _others(_is, answers, attached) == []
    # Spark 4.0 refuses the EXECUTE IMMEDIATE that writes DE.
    country = "CH" if pyspark.__version__.startswith("4.0.") else "DE"
    assert duck(url, "SELECT id, genus, country, weight FROM lake.ducks") == [
        (1, "Tadorna", country, "1.10"),
        (3, "Aix sponsa", "CH", "2.5"),
    ]


@pytest.mark.parametrize("program", [door.spark_sql, door.scala], ids=["spark-sql", "scala"])
def test_a_program_without_python_answers_as_an_attached_session(
    attached, configured, tmp_path, program
):
    conf, url = configured
    answers = program(tmp_path / "program", conf, STATEMENTS)
    printed = ["\n".join("\t".join(row) for row in answer.rows) for answer in answers]
    named = list(zip(STATEMENTS, attached, strict=True))
    assert _others(_says, printed, named) == []
    assert duck(url, "SELECT id, genus FROM lake.ducks") == [(1, "Tadorna"), (3, "Aix sponsa")]


def test_a_connect_client_without_shelduck_answers_as_an_attached_session(
    attached, configured, tmp_path
):
    conf, url = configured
    with connect_server(tmp_path / "server", conf) as server:
        answers = door.over_connect(server, STATEMENTS)
    assert _others(eq, answers, attached) == []
    assert duck(url, "SELECT id, genus FROM lake.ducks") == [(1, "Tadorna"), (3, "Aix sponsa")]


def _others(is_same, answers, attached):
    """The statements with other answers than those of a session, and both answers."""
    asked = zip(STATEMENTS, answers, attached, strict=True)
    return [(text, one, other) for text, one, other in asked if not is_same(one, other)]


def _is(found, expected):
    """Whether an answer through JDBC is one of a session: rows, columns with types, and errors."""
    kinds = [(name, kind.split("(")[0].split("<")[0]) for name, kind in expected.columns]
    # Thrift gives what has no columns one without rows.
    named = kinds if kinds or expected.error else [("Result", "string")]
    return (
        found.rows == expected.rows
        and found.error == expected.error
        and list(found.columns) == named
    )


def _says(printed, named):
    """Whether spark-sql prints the answer to a statement."""
    text, expected = named
    if expected.error:
        # Spark 4.1 prints the calls of its own errors in tasks.
        is_plain = "\n\tat " not in printed or expected.error.startswith("[DIVIDE_BY_ZERO]")
        return door.sentence(printed) == expected.error and is_plain
    # It prints the names alone where others see three columns, as Hive does.
    rows = [row[1:2] for row in expected.rows] if text == "SHOW TABLES" else expected.rows
    return printed == "\n".join("\t".join(row) for row in rows)
