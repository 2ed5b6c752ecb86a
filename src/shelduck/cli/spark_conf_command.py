"""``shelduck jar``, ``shelduck spark-conf``: what Spark needs where no Python session attaches."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from shelduck.cli.command_options import Catalog, DataPath
from shelduck.cli.config import NamedLake, wanted_lake
from shelduck.errors import InvalidRequest

JAR_EXAMPLE = "Example: shelduck jar | xargs cp -t /opt/spark/jars/"
CONF_EXAMPLE = """Example: shelduck spark-conf -c prod >> $SPARK_HOME/conf/spark-defaults.conf

Example: sh -c "$(shelduck spark-conf -c sqlite:////data/lake.db --spark-sql)"

Example: sh -c "$(shelduck spark-conf -c prod --connect)\""""
_ENTRY = "io.shelduck.Shelduck"
# What Spark does not show of its configuration either.
_SECRET = re.compile(r"secret|password|token|access\.?key", re.IGNORECASE)
_SPARK_SQL = "spark-sql"
_SERVERS = {
    "thrift": "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2",
    "connect": "org.apache.spark.sql.connect.service.SparkConnectServer",
}


def jar() -> None:
    """Print the path of the JAR for spark-sql, Thrift servers and Scala, and make it once."""
    typer.echo(_jar())


def spark_conf(
    catalog: Catalog,
    data_path: DataPath = None,
    name: Annotated[str, typer.Option(help="name of the catalog in Spark")] = "lake",
    *,
    spark_sql: Annotated[
        bool, typer.Option("--spark-sql", help="print the command that starts spark-sql")
    ] = False,
    thrift: Annotated[
        bool, typer.Option("--thrift", help="print the command that starts a Thrift server")
    ] = False,
    connect: Annotated[
        bool, typer.Option("--connect", help="print the command that starts a Connect server")
    ] = False,
) -> None:
    """Print the lines of spark-defaults.conf with which Spark knows a lake without Python."""
    asked = {_SPARK_SQL: spark_sql, "thrift": thrift, "connect": connect}
    programs = [program for program, is_asked in asked.items() if is_asked]
    if len(programs) > 1:
        raise typer.BadParameter("pass one of --spark-sql, --thrift and --connect")
    wanted = wanted_lake(catalog)
    _require_public(wanted, name)
    lines = _lines(wanted, name, data_path)
    if programs:
        typer.echo(shlex.join(_command(programs[0], lines)))
        return
    width = max(map(len, lines))
    for key, value in lines.items():
        typer.echo(f"{key:<{width}}  {value}")


def _command(program: str, lines: Mapping[str, str]) -> list[str]:
    from shelduck.engine.session import package_of_spark

    programs = package_of_spark() / "bin"
    settings = [part for key, value in lines.items() for part in ("--conf", f"{key}={value}")]
    if program == _SPARK_SQL:
        return [str(programs / _SPARK_SQL), *settings]
    submit = [str(programs / "spark-submit"), "--class", _SERVERS[program]]
    return [*submit, *settings, "spark-internal"]


def _lines(wanted: NamedLake, name: str, data_path: str | None) -> dict[str, str]:
    from shelduck.engine.bridge.lake_catalog import CLASS

    setting = f"spark.sql.catalog.{name}"
    place = data_path or wanted.data_path
    return {
        "spark.jars": str(_jar()),
        "spark.plugins": _ENTRY,
        "spark.sql.extensions": _ENTRY,
        "spark.shelduck.python": sys.executable,
        setting: CLASS,
        f"{setting}.uri": wanted.catalog,
        **({} if place is None else {f"{setting}.data-path": place}),
        **{key: value for key, value in wanted.conf.items() if not _SECRET.search(key)},
    }


def _require_public(wanted: NamedLake, name: str) -> None:
    from shelduck.catalog.databases.address import parse_address

    if re.fullmatch(r"\w+", name) is None:
        raise InvalidRequest(f"{name!r} cannot be the name of a catalog; use letters, digits and _")
    if parse_address(wanted.catalog).has_secret:
        raise InvalidRequest(
            "Spark shows its configuration, so the address of a lake in it must have no password;"
            " keep the password in PGPASSWORD or ~/.pgpass"
        )
    if wanted.storage or any(map(_SECRET.search, wanted.conf)):
        told = "the keys of the storage are not among them: set AWS_*, or spark.hadoop.fs.s3a.*"
        typer.echo(f"# {told}", err=True)


def _jar() -> Path:
    from shelduck.engine.bridge.classes import compiled_jar, kept_jar

    found = kept_jar()
    if found is None:
        from shelduck.engine.session import start_session

        spark = start_session({"spark.log.level": "OFF"})
        try:
            found = compiled_jar(spark)
        finally:
            spark.stop()
    return found
