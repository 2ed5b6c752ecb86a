"""Which lake a command means, and how it is opened; names for lakes are in ``shelduck.toml``.

With such names, ``-c prod`` is enough.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shelduck.errors import InvalidRequest, NotFound

if TYPE_CHECKING:
    from shelduck.doors.connect import NewLake
    from shelduck.doors.lake import Lake


FILE = "shelduck.toml"
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_IN_A_FILE = re.compile(r"(sqlite|duckdb):///([^/].*)", re.DOTALL)
_KINDS = {bool: "true or false", int: "a number", float: "a number", list: "a list"}


@dataclass(frozen=True, slots=True)
class NamedLake:
    """A lake of a file: its address, where its files go, and how to reach them.

    ``conf`` are settings of the Spark session, ``storage`` those of `connect`.
    """

    catalog: str = field(repr=False)
    data_path: str | None = None
    conf: dict[str, str] = field(default_factory=dict, repr=False)
    storage: dict[str, str] = field(default_factory=dict, repr=False)


def named_lake(name: str, given: Path | None = None) -> NamedLake:
    """Return the lake that a file calls ``name``; a variable ``${NAME}`` is replaced by its value.

    Without ``given``, the files are `shelduck.toml` of the working directory or the nearest
    directory above it that has one, then that of ``~/.config/shelduck``. Relative paths are
    relative to their file.

    Raises NotFound, listing the known names, and InvalidRequest, naming file and key, for a file
    that cannot be understood.
    """
    lakes = _lakes(given)
    if name not in lakes:
        raise _unknown(name, list(lakes), given)
    place, entry = lakes[name]
    return _Entry(place, name, entry).lake()


def lake_names(given: Path | None = None) -> list[str]:
    """Return the names that `named_lake` knows."""
    return list(_lakes(given))


def _lakes(given: Path | None) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Return the entries by name, each with its file; the nearest file wins."""
    found: dict[str, tuple[Path, dict[str, Any]]] = {}
    for place in [given] if given is not None else list(_places()):
        for name, entry in _read(place).items():
            found.setdefault(name, (place, entry))
    return found


def _places() -> Iterator[Path]:
    here = Path.cwd()
    nearest = next((p for d in (here, *here.parents) if (p := d / FILE).is_file()), None)
    own = Path.home() / ".config" / "shelduck" / FILE
    if nearest is not None:
        yield nearest
    if own.is_file() and own != nearest:
        yield own


def _read(place: Path) -> dict[str, dict[str, Any]]:
    try:
        found = tomllib.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"cannot read {place}: {error}") from None
    lakes = _table(place, "lakes", found.pop("lakes", {}))
    if found:
        raise _wrong(place, next(iter(found)), "is not a known key; write [lakes.NAME]")
    for name, entry in lakes.items():
        _check(place, _key(name), _table(place, _key(name), entry))
    return lakes


def _check(place: Path, key: str, entry: Mapping[str, Any]) -> None:
    for part, value in entry.items():
        if part not in _PARTS:
            known = "catalog, data_path, conf and storage"
            raise _wrong(place, f"{key}.{part}", f"is not a known key; the keys are {known}")
        _PARTS[part](place, f"{key}.{part}", value)
    if "catalog" not in entry:
        raise _wrong(place, key, 'has no catalog; add catalog = "ADDRESS"')


def _key(name: str) -> str:
    """Return the key of a lake as TOML spells it."""
    return f"lakes.{name if re.fullmatch('[A-Za-z0-9_-]+', name) else json.dumps(name)}"


def _table(place: Path, key: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(place, key, f"must be a table, not {_kind(value)}")
    return value


def _text(place: Path, key: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise _wrong(place, key, f"must be text, not {_kind(value)}")


def _settings(place: Path, key: str, value: object) -> None:
    for name, setting in _table(place, key, value).items():
        if not isinstance(setting, str | int | float | bool):
            told = f"must be text, a number or true or false, not {_kind(setting)}"
            raise _wrong(place, f'{key}."{name}"', told)


_PARTS: dict[str, Callable[[Path, str, object], None]] = {
    "catalog": _text,
    "data_path": _text,
    "conf": _settings,
    "storage": _settings,
}


def _kind(value: object) -> str:
    """Return what a value is, without the value, which may be secret."""
    if isinstance(value, str):
        return "text" if value else "an empty text"
    return "a table" if isinstance(value, dict) else _KINDS.get(type(value), "a time")


def _wrong(place: Path, key: str, told: str) -> InvalidRequest:
    return InvalidRequest(f"{place}: {key} {told}")


def _unknown(name: str, known: list[str], given: Path | None) -> NotFound:
    if known:
        told = f"named lakes: {', '.join(map(repr, known))}"
    else:
        where = f"{given} has none" if given is not None else f"no {FILE} was found"
        told = f"{where}; name lakes there"
    return NotFound(
        f"lake {name!r} does not exist; {told}, or use an address such as sqlite:////data/lake.db",
        about="lake",
    )


class _Entry:
    """One entry of a file, whose variables and paths are to be resolved."""

    def __init__(self, place: Path, name: str, entry: Mapping[str, Any]) -> None:
        self._place = place
        self._key = _key(name)
        self._entry = entry

    def lake(self) -> NamedLake:
        catalog = self._filled("catalog", self._entry["catalog"])
        in_file = _IN_A_FILE.fullmatch(catalog)
        if in_file is not None:
            catalog = f"{in_file[1]}:///{self._beside(in_file[2])}"
        data_path = self._entry.get("data_path")
        if data_path is not None:
            data_path = self._filled("data_path", data_path)
            data_path = data_path if "://" in data_path else self._beside(data_path)
        return NamedLake(catalog, data_path, self._settings("conf"), self._settings("storage"))

    def _settings(self, part: str) -> dict[str, str]:
        return {
            key: self._filled(f'{part}."{key}"', _setting(value))
            for key, value in self._entry.get(part, {}).items()
        }

    def _beside(self, path: str) -> str:
        return str(self._place.absolute().parent / path)

    def _filled(self, part: str, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            found = os.environ.get(match[1])
            if found is None:
                told = f"uses the environment variable {match[1]}, which is not set; set it"
                raise _wrong(self._place, f"{self._key}.{part}", told)
            return found

        return _VARIABLE.sub(value, text)


def _setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# The command prints an error once, in words; Spark stays silent.
_QUIET = {"spark.log.level": "OFF"}
config_file: ContextVar[Path | None] = ContextVar("config_file", default=None)
"""The file that ``--config`` gives, None without it."""


def wanted_lake(catalog: str) -> NamedLake:
    """Return the lake of an address, or of a name in ``shelduck.toml``."""
    if re.search("[:/@]", catalog):
        return NamedLake(catalog)
    return named_lake(catalog, config_file.get())


def connect(catalog: str, data_path: str | None, conf: Sequence[str], made: NewLake) -> Lake:
    """Return the lake of an address or a name, and create it if there is none.

    ``conf`` are settings ``key=value`` for the Spark session that a command starts; ``made`` is
    what a lake that is made gets.
    """
    from shelduck.doors import connect as api

    wanted, how = _reached(catalog, conf)
    place = data_path or wanted.data_path
    return api.connect(wanted.catalog, place, **how, **made)


def connect_existing(catalog: str, conf: Sequence[str] = ()) -> Lake:
    """Return the lake of an address or a name; NotFound if there is none."""
    from shelduck.doors import connect as api

    wanted, how = _reached(catalog, conf)
    return api.connect_existing(wanted.catalog, **how)


def _reached(catalog: str, conf: Sequence[str]) -> tuple[NamedLake, dict[str, Any]]:
    """Return the lake that a command means, and the settings with which it is reached."""
    found = {}
    for text in conf:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InvalidRequest(
                f"--conf {text!r} is not a setting; write key=value, such as spark.driver.memory=4g"
            )
        found[key.strip()] = value.strip()
    wanted = wanted_lake(catalog)
    return wanted, {"config": _QUIET | wanted.conf | found, "storage": wanted.storage}
