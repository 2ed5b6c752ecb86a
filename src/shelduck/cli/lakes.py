"""Which lake a command means, and how it is opened."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from shelduck.cli.config import NamedLake, named_lake
from shelduck.errors import InvalidRequest

if TYPE_CHECKING:
    from shelduck.api.lake import Lake


# The command prints an error once, in words; Spark stays silent.
_QUIET = {"spark.log.level": "OFF"}
config_file: ContextVar[Path | None] = ContextVar("config_file", default=None)
"""The file that ``--config`` gives, None without it."""


def wanted_lake(catalog: str) -> NamedLake:
    """Return the lake of an address, or of a name in ``shelduck.toml``."""
    if re.search("[:/@]", catalog):
        return NamedLake(catalog)
    return named_lake(catalog, config_file.get())


def connect(
    catalog: str, data_path: str | None = None, conf: Sequence[str] = (), version: str | None = None
) -> Lake:
    """Return the lake of an address or a name, and create it if there is none.

    ``conf`` are settings ``key=value`` for the Spark session that a command starts; ``version`` is
    that of DuckLake for a lake that is made.
    """
    from shelduck.api import connect as api

    settings = _settings(conf)
    wanted = wanted_lake(catalog)
    place = data_path or wanted.data_path
    config = _QUIET | wanted.conf | settings
    storage = wanted.storage
    return api.connect(
        wanted.catalog, place, config=config, storage=storage, ducklake_version=version
    )


def connect_existing(catalog: str, conf: Sequence[str] = ()) -> Lake:
    """Return the lake of an address or a name; NotFound if there is none."""
    from shelduck.api import connect as api

    settings = _settings(conf)
    wanted = wanted_lake(catalog)
    config = _QUIET | wanted.conf | settings
    return api.connect_existing(wanted.catalog, config=config, storage=wanted.storage)


def _settings(conf: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in conf:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InvalidRequest(
                f"--conf {text!r} is not a setting; write key=value, such as spark.driver.memory=4g"
            )
        found[key.strip()] = value.strip()
    return found
