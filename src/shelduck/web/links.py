"""Addresses of pages with a changed part of their query."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.requests import Request

from shelduck.errors import InvalidRequest


class Here:
    """The address of a page: its path and the query that was asked for, with one value each."""

    def __init__(self, path: str, query: Mapping[str, str]) -> None:
        self.path = path
        self.query = dict(query)

    def but(self, **changed: object) -> str:
        """Return the address with other values; None and "" remove a value."""
        query = self.query | {name: str(value) for name, value in changed.items()}
        gone = {name for name, value in changed.items() if value is None or value == ""}
        left = sorted((name, value) for name, value in query.items() if name not in gone)
        return f"{self.path}?{urlencode(left)}" if left else self.path


def here(request: Request) -> Here:
    """Return where a request is."""
    return Here(request.url.path, {k: v for k, v in request.query_params.items() if v})


def asked_number(request: Request, name: str) -> int | None:
    """Return a whole number of the query, None without it; InvalidRequest for text."""
    text = request.query_params.get(name, "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidRequest(f"{name} must be a whole number from 0, not {text[:40]!r}")
    return int(text)
