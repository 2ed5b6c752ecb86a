"""Pages as trees, so that tests can say where a number stands."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, TreeBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINES = frozenset({"br", "li", "p", "h1", "h2", "h3", "td", "th", "div", "dd", "dt"})
_VOID = frozenset({"meta", "link", "input", "br", "img", "hr", "wbr"})


class _Tree(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.builder = TreeBuilder()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.builder.start(tag, {name: value or "" for name, value in attrs})
        if tag in _VOID:
            self.builder.end(tag)
        else:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.builder.start(tag, {name: value or "" for name, value in attrs})
        self.builder.end(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes another element"
        self.builder.end(tag)

    def handle_data(self, data: str) -> None:
        self.builder.data(data)


def tree(text: str) -> Element:
    """The root element of a page whose elements are all closed."""
    parser = _Tree()
    parser.feed(text.partition("<!doctype html>")[2].strip())
    parser.close()
    assert parser.open == []
    return parser.builder.close()


def words(element: Element) -> str:
    """The text of an element with single blanks, also where a line or an item ends."""

    def parts(at: Element) -> Iterator[str]:
        yield at.text or ""
        for child in at:
            yield from parts(child)
            yield " " if child.tag in _LINES else ""
            yield child.tail or ""

    return " ".join("".join(parts(element)).split())


def rows(page: Element, caption: str) -> list[list[str]]:
    """The cells of the body of the table whose caption begins like this."""
    found = [t for t in page.iter("table") if words(t.find("caption")).startswith(caption)]
    assert len(found) == 1, f"{len(found)} tables are called {caption!r}"
    return [[words(cell) for cell in row] for row in found[0].find("tbody")]


def of_class(page: Element, name: str) -> list[Element]:
    """The elements with a class, in order."""
    return [e for e in page.iter() if name in e.get("class", "").split()]


def figures(page: Element) -> dict[str, str]:
    """The large numbers of a page by their labels."""
    return {words(f.find("dt")): words(f.find("dd")) for f in of_class(page, "figure")}
