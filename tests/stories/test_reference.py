"""The pages of the reference say what there is: statements, procedures, options, tables."""

from __future__ import annotations

import itertools
import re
import sqlite3
from contextlib import closing

import pytest

import shelduck
from shelduck.doors.sql.calls.procedures import PROCEDURES
from shelduck.doors.sql.parse import OPERATIONS, pieces
from shelduck.lake.operation import phrases
from shelduck.metrics import METRICS
from shelduck.model.tables import properties
from shelduck.model.tables.options import OPTION_NAMES, TableOptions
from shelduck.model.text.intervals import Interval
from tests.support.documents import DOCS, Reader, blocks, outputs

REFERENCE = DOCS / "reference"
SQL = REFERENCE / "sql.md"


def statements():
    """The statements of the page, with single blanks."""
    found = [s for b in blocks(SQL) if b.language == "sql" for s in pieces(b.text)]
    return [" ".join(s.split()) for s in found]


@pytest.mark.parametrize(
    "name", [pytest.param("sql", marks=pytest.mark.slow), "metadata-tables", "options", "metrics"]
)
def test_the_statements_of_a_page_run(name, here):
    page = REFERENCE / f"{name}.md"

    assert Reader(page).read() == outputs(page)


@pytest.mark.parametrize(
    "operation", [each for each in OPERATIONS.values() if each.readers], ids=lambda each: each.title
)
def test_each_statement_has_an_example(operation):
    words = [" ".join(found) for text in operation.readers for found in phrases(text)]
    assert any(s.upper().startswith(tuple(words)) for s in statements())


@pytest.mark.parametrize("name", sorted(PROCEDURES))
def test_each_procedure_has_an_example(name):
    assert any(re.match(rf"CALL {name}\(", s) for s in statements())


def table_below(page, heading):
    """The cells of the first table below a heading, without its head."""
    text = page.read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    rows = itertools.takewhile(
        lambda line: line.startswith("|"),
        itertools.dropwhile(lambda line: not line.startswith("|"), text.splitlines()),
    )
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows][2:]


def test_the_page_of_metrics_has_them_all():
    rows = table_below(REFERENCE / "metrics.md", "## What there is")

    assert rows == [[f"`{m.name}`", f"`{m.unit}`", m.description] for m in METRICS.values()]


def first_cells(page, heading):
    return [row[0].strip("`") for row in table_below(page, heading)]


def test_the_catalog_page_has_the_tables_and_columns_of_a_new_lake(tmp_path):
    page = REFERENCE / "catalog.md"
    with shelduck.connect(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data"):
        pass
    with closing(sqlite3.connect(tmp_path / "lake.db")) as connection:
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'shelduck_*'"
        )
        made = {
            name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
            for (name,) in names.fetchall()
        }
    told = re.findall(r"^## (shelduck_\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE)

    assert {name: first_cells(page, f"## {name}") for name in told} == made


def test_the_metadata_page_has_the_columns_of_each_table(lake, spark):
    page = REFERENCE / "metadata-tables.md"
    for name in ("files", "partitions", "column_stats", "snapshots", "history"):
        shown = lake.sql(f"SELECT * FROM t.{name}").columns
        assert first_cells(page, f"## {name}") == shown, name


@pytest.fixture
def lake(sqlite_url, data_path, spark):
    with shelduck.connect(sqlite_url, data_path, spark) as found:
        found.sql("CREATE TABLE t (id BIGINT)")
        yield found


def test_the_options_page_has_each_option_with_its_default():
    told = {
        row[0].strip("`"): row[1] for row in table_below(REFERENCE / "options.md", "## Options")
    }
    defaults = {name: getattr(TableOptions(), name) for name in OPTION_NAMES}

    def text(value):
        if isinstance(value, Interval):
            return f"{value.rest.days} days"
        return "none" if value == () else str(value).lower()

    assert told == {name: text(value) for name, value in defaults.items()}


def test_the_options_page_has_each_property():
    told = {
        row[0].strip("`"): tuple(re.findall(r"`(\w+)`", row[1]))
        for row in table_below(REFERENCE / "options.md", "## Table properties")
    }
    assert told == properties._VALUES


def test_the_python_page_has_every_public_name():
    text = (REFERENCE / "python.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^::: shelduck\.(\w+)$|^ {8}- (\w+)$", text, re.MULTILINE))
    names = {a or b for a, b in told} - {"errors"}
    errors = {n for n in shelduck.__all__ if n in vars(shelduck.errors)}

    assert names | errors == set(shelduck.__all__)
