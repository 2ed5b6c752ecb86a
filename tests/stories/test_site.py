"""Links of the documents lead somewhere, and the site needs nobody else."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.support.documents import ROOT

LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
ASSET = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)="(https?://[^"]*)"')


def anchors(page):
    """The ids that GitHub gives the headings of a page."""
    heads = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def measured(title):
    """A section of the benchmarks."""
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    return page.partition(f"## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs"])
def test_links_lead_to_files_and_headings(name):
    found = ROOT / name
    lost = []
    for page in sorted(found.rglob("*.md")) if found.is_dir() else [found]:
        for path, anchor in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
            target = page.parent / path if path else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                lost.append(f"{page.relative_to(ROOT)}: {path}#{anchor}")
    assert lost == []


def test_the_comparison_names_rows_that_the_pages_have():
    readme = (ROOT / "README.md").read_text("utf-8")
    lost = []
    for names, page in re.findall(r"\[([A-Z]\d[^]]*)\]\((docs/coverage/\w+\.md)\)", readme):
        rows = re.findall(
            r"^(?:\| |- )([A-Z]\d+)\b", (ROOT / page).read_text("utf-8"), re.MULTILINE
        )
        lost += [name for name in re.findall(r"[A-Z]\d+", names) if name not in rows]
    assert lost == []


def test_the_comparison_has_the_numbers_of_the_benchmark():
    readme = (ROOT / "README.md").read_text("utf-8")
    storm = {
        row[0]: row[1:]
        for row in re.findall(
            r"^\| (shelduck|duckdb) \| ([\d,]+) \| [\d,]+ \| ([\d,]+) \| \S+ \| (\d+) \| (\d+) \|",
            measured("Storm"),
            re.MULTILINE,
        )
    }
    writes, failed, done, _ = storm["shelduck"]
    assert f"{failed} of {writes} [fail]" in readme
    assert f"beside {done} ALTERs" in readme
    writes, failed, done, lost = storm["duckdb"]
    assert f"{failed} of {writes} [fail]" in readme
    assert f"{lost} of {int(done) + int(lost)} ALTERs" in readme


def test_the_page_of_scale_has_the_numbers_of_the_benchmarks():
    scale = (ROOT / "docs" / "scale.md").read_text("utf-8")
    rates = re.findall(r"^\| (\w+) \| ([\d.]+) \|", measured("Small commits"), re.MULTILINE)
    sqlite, postgresql = (round(float(dict(rates)[kind])) for kind in ("SQLite", "PostgreSQL"))

    assert f"{postgresql} in a second on PostgreSQL, {sqlite} on SQLite" in scale
    assert f"More than {postgresql} commits in a second" in scale
    assert f"{10_000 / postgresql:.0f} s" in scale


@pytest.mark.slow
def test_the_site_is_built_and_loads_nothing_from_elsewhere(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", tmp_path / "site"]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, check=False, cwd=ROOT, env=quiet, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 60
    assert {url for p in pages for url in ASSET.findall(p.read_text("utf-8"))} == set()
