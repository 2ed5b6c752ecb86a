"""Errors, grouped by what the caller can do next.

ShelduckError
├── InvalidRequest      mend the request
│   ├── NotFound        the name does not exist: look at the nearest names in the message
│   └── AlreadyExists   the name is taken
├── Unsupported         no request of this kind can work here; the message names the way out
│   └── NewerFormat     a newer Shelduck made it: upgrade
├── Conflict            another commit got in between: read the new snapshot and try again
├── CatalogUnavailable  the catalog database cannot be reached or is locked: try again later
├── StorageUnavailable  the storage of the files does not answer or refuses: see what it says
├── SparkFailed         executors or tasks of Spark failed: see what it says, run it again
├── OutcomeUnknown      the connection broke during COMMIT: look before acting, delete no files
└── CorruptLake         the catalog or a file contradicts itself: no request mends it
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ShelduckError(Exception):
    """Root of every error that Shelduck raises on purpose.

    ``about`` is the kind of object that it concerns (``table``, ``column``, ``snapshot`` …, and
    ``text`` for a text that cannot be read, ``content`` for that of a file which has no name in the
    message yet), empty where that is of no matter.
    """

    about = ""

    def __init__(self, text: str = "", *, about: str = "") -> None:
        super().__init__(text)
        self.about = about


class InvalidRequest(ShelduckError, ValueError):
    """The request cannot be carried out as it was written."""


class NotFound(InvalidRequest):
    """A named schema, table, column or snapshot does not exist."""

    @classmethod
    def named(cls, kind: str, name: str, known: Iterable[str], where: str = "") -> NotFound:
        """Tell that ``name`` is missing and which known names come nearest."""
        names = list(known)
        lowered = {n.lower(): n for n in names}
        near = difflib.get_close_matches(name.lower(), list(lowered), n=3, cutoff=0.5)
        hint = f"; did you mean {', '.join(repr(lowered[n]) for n in near)}?" if near else ""
        if not hint and names:
            kinds = (
                f"{kind[:-1]}ies"
                if kind.endswith("y")
                else f"{kind}{'es' if kind.endswith('ch') else 's'}"
            )
            hint = f"; existing {kinds}: {', '.join(repr(n) for n in names[:12])}"
        place = f" in {where}" if where else ""
        return cls(f"{kind} {name!r} does not exist{place}{hint}", about=kind)


def missing_extra(module: str | None, extra: str) -> str:
    """Return what to say where a package of an extra is not installed."""
    return f"{module!r} is not installed; run pip install '.[{extra}]' in your checkout of Shelduck"


class AlreadyExists(InvalidRequest):
    """The name that the request wants to give is taken."""

    @classmethod
    def named(cls, kind: str, name: str, where: str = "") -> AlreadyExists:
        """Tell that ``name`` is taken."""
        place = f" in {where}" if where else ""
        return cls(f"{kind} {name!r} already exists{place}", about=kind)


class Unsupported(ShelduckError):
    """Shelduck, DuckLake or Spark has no way to do this."""


class NewerFormat(Unsupported):
    """A newer Shelduck keeps something of a table or a job that this one does not understand."""


class Conflict(ShelduckError):
    """Another commit landed first and excludes this one."""


class LakeChanged(Conflict):
    """Somebody migrated the lake to another DuckLake version; run the statement again."""


class CatalogUnavailable(ShelduckError):
    """The catalog database cannot be reached, is locked, or refused the connection."""


class StorageUnavailable(ShelduckError, OSError):
    """The storage of the files cannot be reached, is too busy, or refused the request."""


class SparkFailed(ShelduckError):
    """Spark could not end its work, such as after the loss of its executors."""


class OutcomeUnknown(ShelduckError):
    """The catalog may or may not have committed; no file was deleted."""


class CorruptLake(ShelduckError):
    """The catalog or a data file contradicts itself."""
