"""The messages of the page about troubles are those of the source."""

from __future__ import annotations

import ast
import re

import pytest

from tests.support.documents import DOCS, ROOT, blocks

PAGES = (DOCS / "guides" / "troubleshooting.md", DOCS / "guides" / "upgrade.md")
QUOTED = {
    f"{page.stem}-{b.line}": b.text for page in PAGES for b in blocks(page) if b.title == "message"
}
TEXTS = (ast.Constant, ast.JoinedStr)


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
    """The texts of modules that hold all parts of a message; to parse all of src takes seconds."""
    found = set()
    wanted = [plain(message).split("…") for message in QUOTED.values()]
    for path in (ROOT / "src").rglob("*.py"):
        source = path.read_text("utf-8")
        # A long text is written in several lines.
        joined = re.sub(r"""["']\s+f?["']""", "", source)
        if any(all(part.strip() in joined for part in parts) for parts in wanted):
            tree = ast.parse(source)
            found |= {plain(text_of(node)) for node in ast.walk(tree) if isinstance(node, TEXTS)}
    return found


@pytest.mark.parametrize("name", QUOTED)
def test_a_message_is_in_the_source(name, texts):
    assert any(plain(QUOTED[name]) in text for text in texts)
