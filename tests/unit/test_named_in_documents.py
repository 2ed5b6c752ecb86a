"""Documents about the code name files, folders and names that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.guard

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DECISIONS = sorted((DOCS / "decisions").glob("*.md"))
PAGES = [ROOT / "CONTRIBUTING.md", *(DOCS / f"{n}.md" for n in ("architecture", "extending"))]
PAGES.append(DOCS / "glossary.md")
FILES = [p for folder in ("src", "tests", "java") for p in (ROOT / folder).rglob("*.*")]
FILES += (ROOT / "docs").rglob("*.*")
PLACES = {str(p.relative_to(ROOT)) for path in FILES for p in (path, path.parent)}
# Names of examples.
MADE_UP = {"AppendComment"}
_FILE = re.compile(r"[\w./*-]+\.(py|java)")
_FOLDER = re.compile(r"[a-z_]+(/[a-z_]+)+")
_NAME = re.compile(r"_?[A-Za-z]+_\w+|[A-Z]?[a-z]+[A-Z]\w+")
_PAIRS = (
    re.compile(r"`(?P<file>[\w/]+\.py)`: `(?P<name>\w+)`"),
    re.compile(r"`(?P<name>\w+)`(?:,\s`\w+`)* (?:in|of)\s`(?P<file>[\w/]+\.py)`"),
)


def quoted(page, form):
    """What stands between backticks on a page and has a form, outside of its code."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {found for found in re.findall(r"`([^`]+)`", text) if form.fullmatch(found)}


def is_there(name):
    """Whether a file or folder is in the checkout or the package, by its path or its end."""
    if "*" in name:
        return any(ROOT.glob(name))
    return any(f"/{path}/".endswith(f"/{name}/") for path in PLACES)


@pytest.mark.parametrize("page", [*PAGES, *DECISIONS], ids=lambda page: page.stem)
def test_files_and_folders_that_a_page_names_are_there(page):
    named = quoted(page, _FILE) | quoted(page, _FOLDER)

    assert sorted(name for name in named if not is_there(name)) == []


def test_names_that_a_page_gives_to_code_are_there():
    code = "\n".join(p.read_text("utf-8") for p in FILES if p.suffix in (".py", ".java"))

    missing = {
        page.stem: {n for n in quoted(page, _NAME) - MADE_UP if not re.search(rf"{n}\b", code)}
        for page in PAGES
    }

    assert {page: names for page, names in missing.items() if names} == {}


def test_a_file_has_the_name_that_a_page_finds_in_it():
    found = {
        (pair["file"], pair["name"])
        for page in PAGES
        for form in _PAIRS
        for pair in form.finditer(page.read_text(encoding="utf-8"))
    }

    assert len(found) > 20
    for file, name in sorted(found):
        places = [path for path in FILES if f"/{path}".endswith(f"/{file}")]
        texts = [path.read_text(encoding="utf-8") for path in places]
        assert any(re.search(rf"\b{name}\b", text) for text in texts), (file, name)
