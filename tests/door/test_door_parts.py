"""What stands before a door: whose a text is, and the lines that a configuration needs."""

from __future__ import annotations

import socket
import sys
import threading
from contextlib import suppress
from types import SimpleNamespace

import pytest
from py4j import clientserver
from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
from py4j.protocol import Py4JJavaError
from typer.testing import CliRunner

from shelduck.cli.app import app
from shelduck.doors import sidecar
from shelduck.doors.attached.attach import attached_to, detach
from shelduck.doors.attached.takeover import TextKind
from shelduck.engine.bridge import classes, driver
from shelduck.engine.bridge.lake_catalog import CLASS
from shelduck.errors import NotFound, Unsupported
from tests.support.attaching import attached_lake
from tests.support.processes import SPARK_HOME
from tests.support.time_limit import PATIENCE, until

QUERY, STATEMENT, SPARKS = TextKind.QUERY, TextKind.STATEMENT, TextKind.SPARKS


@pytest.fixture
def session(spark, tmp_path):
    with attached_lake(spark, tmp_path, "CREATE TABLE t (id INT)"):
        yield attached_to(spark)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT 1", SPARKS),
        ("SHOW TABLES IN lake.main", SPARKS),
        ("USE lake.main", SPARKS),
        ("SELECT * FROM lake.main.t", QUERY),
        ("SELECT * FROM lake.main.t AT (VERSION => 1)", QUERY),
        ("SELECT rowid FROM lake.main.t", QUERY),
        ("SELECT ~id FROM lake.main.t TABLESAMPLE (10 PERCENT)", QUERY),
        ("UPDATE lake.main.t SET id = 1", STATEMENT),
        ("CREATE TEMPORARY VIEW v AS SELECT * FROM lake.main.t", STATEMENT),
        ("EXECUTE IMMEDIATE 'DELETE FROM lake.main.t'", STATEMENT),
        ("SELECT 1 FROM lake.main.t; SELECT 2", STATEMENT),
        ("DELETE FROM lake.main.t WHERE", STATEMENT),
    ],
)
def test_a_text_is_sparks_a_query_or_a_statement(session, text, kind):
    assert session.kind(text) is kind


@pytest.mark.parametrize("text", ["DELETE FROM t WHERE id = :id", "SELECT * FROM t WHERE id = ?"])
def test_parameters_that_reach_no_parser_are_refused(monkeypatch, text):
    monkeypatch.setattr(
        sidecar, "attached_to", lambda _: SimpleNamespace(kind=lambda _: QUERY, lakes={})
    )
    door = sidecar.Door()
    monkeypatch.setattr(door, "_with_lakes", lambda spark, _: spark)
    told = "on Spark 4.0.2, the values of parameters do not reach a lake; write them into the"
    session = SimpleNamespace(version="4.0.2", sql=lambda text: text)
    with pytest.raises(Unsupported, match=told):
        door.answer(session, "plan", text, ["lake"])
    assert door.answer(session, "plan", "SELECT '?'", ["lake"]) == "SELECT '?'"
    session.version = "4.1.0"
    assert door.answer(session, "plan", text, ["lake"]) == text


def test_a_session_that_was_forgotten_finds_its_lakes_again(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(sidecar, "_MOST", 1)
    sessions = [spark.newSession() for _ in range(3)]
    for one in sessions:
        one.conf.set("spark.sql.catalog.lake", CLASS)
        one.conf.set("spark.sql.catalog.lake.uri", f"sqlite:///{tmp_path}/lake.db")
        one.conf.set("spark.sql.catalog.lake.data-path", f"{tmp_path}/data/")
    answer = sidecar.Door().answer
    try:
        answer(sessions[0], "run", "CREATE TABLE lake.main.t AS SELECT 1 AS id", ["lake"])
        for one in sessions * 2:
            found = answer(one, "plan", "SELECT id FROM lake.main.t", ["lake"])
            assert [tuple(row) for row in found.collect()] == [(1,)]
        with pytest.raises(NotFound, match="catalog 'lake' does not exist"):
            detach(sessions[1], "lake")
    finally:
        detach(sessions[0], "lake")


@pytest.fixture
def port(monkeypatch):
    """Where Python is asked for something with the secret `secret`; nobody is Java."""
    gateway = ClientServer(
        java_parameters=JavaParameters(),
        python_parameters=PythonParameters(port=0, eager_load=False),
    )
    ready = SimpleNamespace(ready=lambda asked, _: gateway.gateway_property.pool.put(asked, "door"))
    monkeypatch.setattr(clientserver, "do_client_auth", clientserver.do_client_auth)
    monkeypatch.setattr(driver, "launch_gateway", lambda: gateway)
    monkeypatch.setattr(driver, "JavaClass", lambda *_: ready)
    monkeypatch.setattr(
        driver,
        "ensure_callback_server_started",
        lambda gateway: gateway.start_callback_server(gateway.callback_server_parameters),
    )
    monkeypatch.setattr(driver, "_SILENT_SECONDS", 1.0)
    monkeypatch.setattr(driver._Asked, "_session", lambda *_: None)
    driver.serve("1", "secret", lambda _, what, *rest: what == "attach")
    place = gateway._callback_server.server_socket.getsockname()
    until(lambda: is_there(place))
    yield place
    gateway.shutdown_callback_server()


def is_there(place):
    with socket.socket() as client:
        return client.connect_ex(place) == 0


def asked(client, first=b""):
    """What is said to a question like those of Java."""
    client.sendall(first + b"c\ndoor\napply\nn\nsattach\tx\\n\ne\n")
    lines = client.makefile("rb")
    return [lines.readline() for _ in range(2 if first else 1)]


def test_a_client_that_says_nothing_holds_up_nobody_and_is_left(port):
    before = threading.active_count()
    silent = [socket.create_connection(port, PATIENCE) for _ in range(20)]
    with suppress(ConnectionError):
        silent[0].sendall(b"A\n")
    with socket.create_connection(port, PATIENCE) as client:
        assert asked(client, b"A\nsecret\ne\n") == [b"!yv\n", b"!ys\n"]
        for one in silent:
            with one, suppress(ConnectionError):
                assert one.recv(1) == b""
        until(lambda: threading.active_count() <= before + 1)
        # Who knows the secret may be silent, as Java is between two statements.
        assert asked(client) == [b"!ys\n"]


def test_a_python_that_is_ready_after_its_end_is_told_so(spark):
    found = classes.loader_of(spark).loadClass(driver._SIDECAR)
    [ready] = [each for each in found.getMethods() if each.getName() == "ready"]
    arguments = spark._sc._gateway.new_array(spark._jvm.java.lang.Object, 2)
    arguments[1] = 1
    with pytest.raises(Py4JJavaError, match="the driver has ended this Python"):
        ready.invoke(None, arguments)


@pytest.mark.parametrize("version", ["4.0.2", "4.0.2-amzn-0", "4.0.2.dev1"])
def test_what_a_vendor_adds_to_a_version_makes_no_other_spark(version):
    assert driver._release(version) == "4.0.2"


def test_the_lines_of_a_configuration(spark, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(classes, "_compiled", lambda _: {"A": b""})
    jar = classes.compiled_jar(spark)
    assert run("jar") == f"{jar}\n"
    lake = ["-c", "sqlite:////data/lake.db", "-d", "/data/lake/", "--name", "pond"]
    assert run("spark-conf", *lake).splitlines() == [
        f"spark.jars                        {jar}",
        "spark.plugins                     io.shelduck.Shelduck",
        "spark.sql.extensions              io.shelduck.Shelduck",
        f"spark.shelduck.python             {sys.executable}",
        "spark.sql.catalog.pond            shelduck.bridge.LakeCatalog",
        "spark.sql.catalog.pond.uri        sqlite:////data/lake.db",
        "spark.sql.catalog.pond.data-path  /data/lake/",
    ]
    assert run("spark-conf", *lake, "--spark-sql").split(" ")[:3] == [
        str(SPARK_HOME / "bin" / "spark-sql"),
        "--conf",
        f"spark.jars={jar}",
    ]
    servers = {
        "--thrift": "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2",
        "--connect": "org.apache.spark.sql.connect.service.SparkConnectServer",
    }
    for option, server in servers.items():
        command = run("spark-conf", *lake, option).split()
        assert command[1:3] == ["--class", server]
        assert command[-1] == "spark-internal"
    both = CliRunner().invoke(app, ["spark-conf", *lake, "--thrift", "--connect"])
    assert "pass one of --spark-sql, --thrift and --connect" in both.output


def test_an_address_with_a_password_is_in_no_configuration():
    found = CliRunner().invoke(app, ["spark-conf", "-c", "postgresql://ada:secret@host/lake"])
    assert str(found.exception) == (
        "Spark shows its configuration, so the address of a lake in it must have no password;"
        " keep the password in PGPASSWORD or ~/.pgpass"
    )


def run(*words):
    found = CliRunner().invoke(app, list(words))
    assert found.exit_code == 0, found.output
    return found.stdout
