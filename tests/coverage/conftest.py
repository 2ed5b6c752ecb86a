"""A lake for each row, and the pages, which `pytest tests/coverage --write-pages` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import shelduck
from tests.coverage.pages import FOLDER, README, all_pages, with_table
from tests.support import everyday
from tests.support.cases import DorisCase

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-pages", action="store_true", help="write docs/coverage and README")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write the pages if all of their rows passed."""
    if session.config.getoption("--write-pages", default=False) and exitstatus == 0:
        pages = all_pages()
        for page in pages:
            (FOLDER / f"{page.name}.md").write_text(page.markdown())
        README.write_text(with_table(README.read_text(), pages))
        everyday.PAGE.write_text(everyday.page())


@pytest.fixture
def case(tmp_path: Path, spark) -> Iterator[DorisCase]:
    """An empty lake that keeps every row in files, read by both engines."""
    catalog = tmp_path / "catalog.db"
    data = tmp_path / "data"
    with shelduck.connect(f"sqlite:///{catalog}", f"{data}/", spark) as lake:
        lake.sql("CALL set_option('data_inlining_row_limit', '0')")
        yield DorisCase(catalog, lake, data)
