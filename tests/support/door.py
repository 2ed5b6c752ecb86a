"""Drivers without Python that know a lake by their configuration: spark-sql and a Thrift server."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from shelduck.engine.bridge.classes import compiled_jar
from tests.support.connect import plain_client
from tests.support.processes import (
    SPARK_HOME,
    environment,
    free_port,
    is_listening,
    running,
    wait_until,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

SOURCES = Path(__file__).parents[2] / "src"
_MARK = "-- answered"
_THRIFT = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
# Where Spark or JDBC put a class, a condition of Hive, or a place before or behind a sentence.
_BEFORE = re.compile(r"^(.*?Exception: |Error running query: |Error in query: |\[\w{5}\] )+")
_NOISE = re.compile(r"WARNING|Spark master|Using |Setting |To adjust |\d\d/\d\d/\d\d ")
_FILE = re.compile(r"/\S+\.parquet")
_BEHIND = re.compile(r"( SQLSTATE: \w{5})?(; line \d+ pos \d+)?;?$")


@dataclass(frozen=True)
class Answer:
    """What a statement answers: rows as text, or the first line of an error."""

    rows: tuple[tuple[str, ...], ...] = ()
    error: str = ""
    columns: tuple[tuple[str, str], ...] = ()


def sentence(told: str) -> str:
    """The sentence of an error, without what a client puts around it."""
    text = _BEFORE.sub("", told.strip()).strip()
    return _BEHIND.sub("", _FILE.sub("FILE", text.split("\n", 1)[0]))


def in_process(run: Callable[[str], DataFrame], statement: str) -> Answer:
    """The answer of `spark.sql` of a session to which the lake is attached."""
    try:
        found = run(statement)
        rows = tuple(tuple(map(text_of, row)) for row in found.collect())
    except Exception as error:  # noqa: BLE001 - its sentence is the answer
        return Answer(error=sentence(str(error)))
    return Answer(rows, columns=tuple(found.dtypes))


# The client has none of our modules, so it sends plain values.
_ASKED = """
import pickle
told = []
for text in {statements!r}:
    try:
        found = spark.sql(text)
        told.append(([tuple(row) for row in found.collect()], found.dtypes, ""))
    except Exception as error:
        told.append(([], [], str(error)))
print(pickle.dumps(told).hex())
"""


def over_connect(url: str, statements: list[str]) -> list[Answer]:
    """The answers to a client of a Connect server that has no Shelduck."""
    printed = plain_client(url, _ASKED.format(statements=statements))
    return [
        Answer(tuple(tuple(map(text_of, row)) for row in rows), sentence(error), tuple(columns))
        for rows, columns, error in pickle.loads(bytes.fromhex(printed.split()[-1]))
    ]


def text_of(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)


def settings(spark: SparkSession, folder: Path, url: str, data: str) -> dict[str, str]:
    """The configuration of a driver that knows the lake; its files lie below a folder."""
    return {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.shuffle.partitions": "2",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:{folder}/metastore;create=true",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
        "spark.jars": str(compiled_jar(spark)),
        "spark.plugins": "io.shelduck.Shelduck",
        "spark.sql.extensions": "io.shelduck.Shelduck",
        "spark.shelduck.python": sys.executable,
        "spark.sql.catalog.lake": "shelduck.bridge.LakeCatalog",
        "spark.sql.catalog.lake.uri": url,
        "spark.sql.catalog.lake.data-path": data,
    }


def given(conf: dict[str, str]) -> list[str]:
    """The settings as arguments of Spark's programs."""
    return [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]


def spark_sql(folder: Path, conf: dict[str, str], statements: list[str]) -> list[Answer]:
    """The answers of `spark-sql -f` to each of some statements; it goes on after errors."""
    folder.mkdir(exist_ok=True)
    file = folder / "statements.sql"
    # To Spark 4.0 and 4.1, the end of a line behind a statement is a line of the next one.
    file.write_text("".join(f"{text};\nSELECT '{_MARK}';" for text in statements))
    conf = conf | {"spark.hadoop.hive.cli.errors.ignore": "true"}
    printed = _run(folder, ["spark-sql", *given(conf), "-f", str(file)])
    return [_read(part) for part in f"\n{printed}".split(f"\n{_MARK}\n")[:-1]]


def spark_submit(folder: Path, conf: dict[str, str], program: str) -> list[str]:
    """The lines that a program in Python prints, whose driver has these settings."""
    folder.mkdir(exist_ok=True)
    file = folder / "program.py"
    file.write_text(program)
    printed = _run(folder, ["spark-submit", *given(conf), str(file)])
    return [line for line in printed.split("\n") if line and not _NOISE.match(line)]


def spark_shell(folder: Path, conf: dict[str, str], program: str) -> list[str]:
    """What a program in Scala prints behind the word TOLD."""
    folder.mkdir(exist_ok=True)
    printed = _run(folder, ["spark-shell", *given(conf)], program)
    return re.findall(r"TOLD (.*)", printed)


_IN_SCALA = r"""
import org.apache.spark.sql.execution.HiveResult.hiveResultString
{
for (text <- scala.io.Source.fromFile("statements.sql").mkString.split("%(mark)s\n")) {
  val shown = scala.util.Try(hiveResultString(spark.sql(text).queryExecution.executedPlan))
  println("%(mark)s\n" + shown.fold(_.getMessage, _.mkString("\n")))
}
println("%(mark)s\n")
System.exit(0)
}
"""


def scala(folder: Path, conf: dict[str, str], statements: list[str]) -> list[Answer]:
    """The answers to a program in Scala, as `spark-sql` prints rows."""
    folder.mkdir(exist_ok=True)
    (folder / "statements.sql").write_text(f"{_MARK}\n".join(statements))
    program = _IN_SCALA % {"mark": _MARK}
    conf = conf | {"spark.ui.showConsoleProgress": "false"}
    printed = _run(folder, ["spark-shell", *given(conf)], program)
    return [_read(part.rstrip("\n")) for part in printed.split(f"{_MARK}\n")[1:-1]]


def _run(folder: Path, command: list[str], typed: str = "") -> str:
    program, *arguments = command
    done = subprocess.run(
        [str(SPARK_HOME / "bin" / program), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        input=typed,
        env=environment() | {"PYTHONPATH": str(SOURCES)},
        cwd=folder,
        text=True,
        timeout=500,
        check=False,
    )
    return done.stdout


def _read(printed: str) -> Answer:
    lines = [line for line in printed.split("\n") if line and not line.startswith("Time taken")]
    lines = [
        line
        for line in lines
        if not re.match(r"WARNING|Spark master|Using |Setting|To adj|\d\d/", line)
    ]
    return Answer(tuple(tuple(line.split("\t")) for line in lines))


@contextmanager
def thrift_server(folder: Path, conf: dict[str, str]) -> Iterator[ThriftServer]:
    """A Thrift server of Spark on loopback."""
    port = free_port()
    conf = conf | {
        "spark.hadoop.hive.server2.thrift.port": str(port),
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
    }
    command = ["spark-submit", "--class", _THRIFT, *given(conf), "spark-internal"]
    more = {"PYTHONPATH": str(SOURCES)}
    with running("thrift", command, folder, memory="1g", more=more) as process:
        wait_until(lambda: is_listening(port), "the Thrift server", folder, process)
        yield ThriftServer(port, process.pid)


@dataclass(frozen=True)
class ThriftServer:
    """A running server."""

    port: int
    group: int

    def sidecar(self) -> int:
        """The process of the lakes, once there is one."""
        for _ in range(300):
            found = subprocess.run(
                ["pgrep", "-g", str(self.group), "-f", "shelduck.doors.sidecar"],
                capture_output=True,
                text=True,
                check=False,
            ).stdout.split()
            if found:
                return int(found[0])
            time.sleep(0.1)
        raise AssertionError("there is no sidecar")

    def connect(self, spark: SparkSession) -> Jdbc:
        """A connection by JDBC, which the JVM of a session makes."""
        jvm: Any = spark._jvm
        jvm.java.lang.Class.forName("org.apache.hive.jdbc.HiveDriver")
        address = f"jdbc:hive2://127.0.0.1:{self.port}/"
        return Jdbc(jvm.java.sql.DriverManager.getConnection(address, "tests", ""))


@dataclass(frozen=True)
class Jdbc:
    """A connection to a Thrift server."""

    java: Any

    def ask(self, statement: str) -> Answer:
        made = self.java.createStatement()
        try:
            if not made.execute(statement):
                return Answer()
            found = made.getResultSet()
            about = found.getMetaData()
            width = range(1, about.getColumnCount() + 1)
            columns = tuple((about.getColumnName(n), about.getColumnTypeName(n)) for n in width)
            rows = []
            while found.next():
                rows.append(tuple(_cell(found, n) for n in width))
            return Answer(tuple(rows), columns=columns)
        except Py4JJavaError as error:
            return Answer(error=sentence(str(error.java_exception.getMessage())))
        finally:
            made.close()


def _cell(found: Any, number: int) -> str:
    value = found.getString(number)
    return "NULL" if value is None else str(value)
