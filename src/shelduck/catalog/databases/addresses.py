"""The parts of an address of a catalog: settings such as ``?timeout=30``, folders and ports."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

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


def file_at(url: URL) -> Path:
    """Return the absolute path of a catalog's file, which need not exist.

    Raises InvalidRequest if it is a folder, or if its folder does not exist.
    """
    path = Path(url.database or "").absolute()
    kind = url.get_backend_name()
    if path.is_dir():
        raise InvalidRequest(f"the {kind} catalog {path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise InvalidRequest(
            f"the folder {path.parent} of the {kind} catalog {path.name} does not exist; create it"
        )
    return path
