"""The project of the guide, built twice with a change of type in between, while readers read."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dbt.adapters.shelduck.connections import Lakes, ShelduckCredentials
from dbt.adapters.spark.connections import SparkConnectionMethod
from dbt.cli.main import dbtRunner
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

import shelduck
from tests.support.documents import DOCS, blocks
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Iterator

GUIDE = DOCS / "guides" / "dbt.md"
QUERY = "SELECT typeof(id), count(*), sum(amount) FROM lake.main.orders GROUP BY 1"


@pytest.fixture
def here(lake: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The files of the guide in the working directory."""
    monkeypatch.chdir(tmp_path)
    for block in blocks(GUIDE):
        if block.title:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.text, encoding="utf-8")
    yield tmp_path
    Lakes.leave()


def built(folder: Path, *more: str) -> str:
    """Run what the guide runs; return what dbt tells."""
    told: list[str] = []
    runner = dbtRunner(callbacks=[lambda event: told.append(event.info.msg)])
    place = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    found = runner.invoke(["build", *place, *more])
    assert found.success, "\n".join(told)
    return "\n".join(told)


# A process of its own: two libraries of SQLite in one would lose each other's locks.
READER = """
import sys
from pathlib import Path
from tests.support.oracle import DuckDBOracle
url, query = sys.argv[1:]
found = set()
while not Path("stop").exists():
    with DuckDBOracle(url) as oracle:
        found.update(map(tuple, oracle.sql(query)))
print(sorted((kind, count, str(amount)) for kind, count, amount in found))
"""


def test_the_project_of_the_guide_changes_a_type_while_a_reader_reads(here: Path) -> None:
    built(here)
    command = [sys.executable, "-c", READER, f"sqlite:///{here}/shop.db", QUERY]
    # The process runs in another directory, and needs the modules of the tests.
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=own, stdout=subprocess.PIPE, text=True) as reader:
        try:
            told = built(here, "--vars", "{id_type: bigint, country: true}")
        finally:
            Path("stop").touch()
        seen, _ = reader.communicate(timeout=60)

    [shown] = [b.text.strip() for b in blocks(GUIDE) if b.language == "console"]
    assert shown in told
    assert reader.returncode == 0
    found = ast.literal_eval(seen)
    assert {kind for kind, *_ in found} <= {"VARCHAR", "BIGINT"}
    assert {row[1:] for row in found} == {(3, "22.15")}
    spark = SparkSession.getActiveSession()
    with shelduck.connect(f"sqlite:///{here}/shop.db", spark=spark) as lake:
        [job] = lake.jobs()
        assert (job.id, job.state.name) == (1, "FINISHED")
        assert lake.sql("SELECT DISTINCT customer.country AS c FROM orders").collect() == [("NZ",)]
        assert lake.sql("DESCRIBE orders").collect()[0]["comment"] == "the number on the invoice"


def test_a_run_of_ci_builds_into_a_branch_that_nobody_else_sees(here: Path) -> None:
    built(here)
    for _ in range(2):
        told = built(here, "--target", "ci", "--vars", "{id_type: bigint, country: true}")
    assert "main." not in told
    query = "SELECT typeof(id), count(*), sum(amount) FROM lake.{}.orders GROUP BY 1"
    with DuckDBOracle(f"sqlite:///{here}/shop.db") as oracle:
        assert oracle.sql(query.format("main")) == [("VARCHAR", 3, Decimal("22.15"))]
        assert oracle.sql(query.format("ci")) == [("BIGINT", 3, Decimal("22.15"))]
        assert oracle.sql("SELECT name FROM lake.ci.customers ORDER BY 1") == [("ada",), ("bo",)]
    spark = SparkSession.getActiveSession()
    with shelduck.connect(f"sqlite:///{here}/shop.db", spark=spark) as lake:
        assert [(b.name, b.source) for b in lake.branches()] == [("ci", "main")]
        found = {table.table: table for table in lake.branch_diff("ci").tables}
    assert found["main.orders"].clauses == (
        "ALTER COLUMN id TYPE int64",
        "ADD COLUMN customer.country varchar",
    )
    assert found["main.by_day"].change == "replaced"


def test_a_schema_that_is_no_branch_is_not_built_into(here: Path) -> None:
    with shelduck.connect("sqlite:///shop.db", "shop-data/") as lake:
        lake.create_schema("ci")
    place = ["--project-dir", str(here), "--profiles-dir", str(here), "--target", "ci"]
    found = dbtRunner().invoke(["build", *place])
    assert "schema 'ci' already exists" in str(found.exception)


def test_a_server_makes_its_branches_itself() -> None:
    with pytest.raises(DbtRuntimeError, match="`lake_branch` is for the method session"):
        ShelduckCredentials(
            method=SparkConnectionMethod.THRIFT, host="h", schema="main", lake_branch="ci"
        )
