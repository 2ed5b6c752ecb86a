"""Settings in the address of a catalog: ``?timeout=30``."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import URL

from shelduck.errors import InvalidRequest


def refuse_settings(url: URL, known: Collection[str]) -> None:
    """Raise InvalidRequest for a setting that the database does not know, and name it."""
    for name in url.query:
        if name not in known:
            listed = f"known settings: {', '.join(known)}" if known else "there are no settings"
            raise InvalidRequest(
                f"the address of a {url.get_backend_name()} catalog does not support the setting"
                f" {name!r}; leave it out ({listed})"
            )
