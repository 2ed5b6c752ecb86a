"""The pages are those of the tests."""

from __future__ import annotations

import pytest

from tests.coverage.pages import FOLDER, README, all_pages, with_table
from tests.support import everyday

PAGES = all_pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_lists_the_rows_of_its_tests(page):
    assert (FOLDER / f"{page.name}.md").read_text() == page.markdown(), "run make coverage"


def test_the_readme_counts_the_rows():
    readme = README.read_text()
    assert with_table(readme, PAGES) == readme, "run make coverage"


def test_the_page_of_other_words_lists_the_day():
    assert everyday.PAGE.read_text() == everyday.page(), "run make coverage"
