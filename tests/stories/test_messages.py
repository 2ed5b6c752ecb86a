"""The messages of the page about troubles are those of the source."""

from __future__ import annotations

import ast
import re

import pytest

from tests.support.documents import DOCS, ROOT, blocks

PAGES = (DOCS / "guides" / "troubleshooting.md", DOCS / "guides" / "upgrade.md")
QUOTED = [
    pytest.param(b.text, id=f"{page.stem}-{b.line}")
    for page in PAGES
    for b in blocks(page)
    if b.title == "message"
]


def plain(text):
    """A text with single blanks, and one … for parts that follow each other."""
    return re.sub("…+", "…", " ".join(text.split()))


def text_of(node):
    """A text of the source, with … for each part that is computed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
    return ""


@pytest.fixture(scope="module")
def texts():
    trees = [ast.parse(p.read_text("utf-8")) for p in (ROOT / "src").rglob("*.py")]
    return {plain(text_of(node)) for tree in trees for node in ast.walk(tree)}


@pytest.mark.parametrize("message", QUOTED)
def test_a_message_is_in_the_source(message, texts):
    assert any(plain(message) in text for text in texts)
