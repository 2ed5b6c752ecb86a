"""Statements that SQLAlchemy has compiled, for all catalogs of a process.

Each engine keeps its own. A lake of a test would compile every statement again, and that costs more
than to run it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Engine
from sqlalchemy.util import LRUCache

_COMPILED: LRUCache[Any, Any] = LRUCache(5000)


class SharedCache:
    """What an engine takes for its cache: keys name the kind of a dialect instead of its object."""

    def get(self, key: Any) -> Any:
        return _COMPILED.get(_shared(key))

    def __setitem__(self, key: Any, compiled: Any) -> None:
        _COMPILED[_shared(key)] = compiled


def _shared(key: Any) -> Any:
    dialect, *rest = key
    return (type(dialect), dialect.server_version_info, dialect.paramstyle, *rest)


def share_compiled_statements() -> None:
    """Let all engines have one cache."""
    shared = SharedCache()
    Engine._compiled_cache = property(lambda _: shared, lambda _, given: None)  # type: ignore[assignment]
