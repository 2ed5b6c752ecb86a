"""Statements that show the history of a table, and its partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from shelduck.catalog.read.overview.partitions import partition_rows
from shelduck.errors import InvalidRequest
from shelduck.model.tables.partition import NULL_DIRECTORY
from shelduck.spark.session import DataFrame
from shelduck.sql.statements import statements as st
from shelduck.sql.statements.upkeep_statements import DescribeHistory
from shelduck.statements.runner import Answer, Runner
from shelduck.verbs.table.metadata_tables import history
from shelduck.work.results import PlainRows


def describe_history(runner: Runner, statement: DescribeHistory) -> DataFrame:
    """DESCRIBE HISTORY, newest first, with the columns of Delta that apply here."""
    return history(runner.state, runner.version(statement.name), statement.limit)


def show_partitions(runner: Runner, statement: st.ShowPartitions) -> PlainRows:
    """SHOW PARTITIONS, with the column that Spark gives: ``key=value/key=value``."""
    table = runner.version(statement.name)
    if not table.partition:
        raise InvalidRequest(f"table {table.full_name} is not partitioned")
    with runner.state.store.read() as connection:
        rows = partition_rows(connection, table)
    texts = ["/".join(_directory(key, value) for key, value in row[0]) for row in rows if row[0]]
    return PlainRows("partition string", [(t,) for t in sorted(set(texts))])


def _directory(key: str, value: str | None) -> str:
    return f"{key}={NULL_DIRECTORY if value is None else quote(value, safe=' ')}"


RUN: dict[type, Callable[[Runner, Any], Answer]] = {
    DescribeHistory: describe_history,
    st.ShowPartitions: show_partitions,
}
