"""How an object store is reached: the settings that a user gives, under names that people know."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from shelduck.errors import InvalidRequest

_CREDENTIALS = ("access_key", "secret_key", "session_token", "anonymous")
_FLAGS = ("path_style", "anonymous")


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """Where an object store is and who asks; what is None is not said. Secrets are never shown."""

    endpoint: str | None = None
    region: str | None = None
    path_style: bool | None = None
    anonymous: bool | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)

    @property
    def has_credentials(self) -> bool:
        """True if they say who asks, be it nobody."""
        return self.access_key is not None or self.anonymous is not None

    @property
    def is_empty(self) -> bool:
        """True if they say nothing."""
        return self == StorageSettings()

    def over(self, other: StorageSettings) -> StorageSettings:
        """Return these settings, and those of ``other`` where they say nothing.

        Credentials belong together: they come from one of the two.
        """
        taken = {
            name: getattr(other, name)
            for name in ("endpoint", "region", "path_style")
            if getattr(self, name) is None
        }
        if not self.has_credentials:
            taken |= {name: getattr(other, name) for name in _CREDENTIALS}
        return replace(self, **taken)


def storage_settings(given: Mapping[str, object] | None) -> StorageSettings:
    """Return what ``storage=`` says; InvalidRequest, without any value in it, for what is wrong."""
    names = [f.name for f in fields(StorageSettings)]
    found: dict[str, str | bool] = {}
    for name, value in (given or {}).items():
        if name not in names:
            near = difflib.get_close_matches(str(name), names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known names: {', '.join(names)}"
            raise InvalidRequest(f"storage has an unknown name {name!r}; {hint}")
        if value is not None:
            found[name] = _flag(name, value) if name in _FLAGS else _text(name, value)
    if ("access_key" in found) != ("secret_key" in found):
        raise InvalidRequest("storage needs access_key and secret_key together; give both")
    if "session_token" in found and "access_key" not in found:
        raise InvalidRequest("storage has a session_token, but no access_key and secret_key")
    if found.get("anonymous") and "access_key" in found:
        raise InvalidRequest("storage is anonymous, but has an access_key; leave out one of them")
    return StorageSettings(**found)  # type: ignore[arg-type]


def _text(name: str, value: object) -> str:
    # Hadoop would replace ${...} with another setting.
    if not isinstance(value, str) or not value or "${" in value or not value.isprintable():
        raise InvalidRequest(f"storage[{name!r}] must be a text without '${{' and line breaks")
    return value


def _flag(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise InvalidRequest(f"storage[{name!r}] must be true or false")
    return text == "true"
