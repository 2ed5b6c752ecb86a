"""Values shown to people: in short at a prompt, and as HTML in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, fields
from html import escape
from typing import Any


def html_table(names: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """Return rows as a table in HTML; None is an empty cell, and every text is escaped."""
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows
    )
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_text(text: str) -> str:
    """Return a text as it is, in HTML."""
    return f"<pre>{escape(text)}</pre>"


def _cell(value: object) -> str:
    return "" if value is None else escape(str(value))


class Shown:
    """A dataclass that shows only what is not as by default; declare it with ``repr=False``."""

    __slots__ = ()

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self._told())
        return f"{type(self).__name__}({told})"

    def _repr_html_(self) -> str:
        told = self._told()
        names, values = [name for name, _ in told], [value for _, value in told]
        return html_table(names, [values], type(self).__name__)

    def _told(self) -> list[tuple[str, Any]]:
        every = [(f, getattr(self, f.name)) for f in fields(self)]  # type: ignore[arg-type]
        return [(f.name, value) for f, value in every if f.default is MISSING or value != f.default]
