"""Addresses of catalogs: parsed here, and printed only by `Address.shown`.

An address may contain secrets: a password, in its own place or among the options, and options
unknown to Shelduck. Printed text has three stars in their place, and so has every error that a
driver raises about them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from shelduck.catalog.databases.known import DATABASES, EXPECTED
from shelduck.errors import InvalidRequest
from shelduck.model.text.names import NUL_OR_SURROGATE

_HIDDEN = "***"
_MAY_HOLD_AT = frozenset({"password", "sslpassword", "user", "options", "application_name"})
_SHORT = 4
_PORTS = 65536


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a catalog; its text is the one that may be printed."""

    url: sa.URL = field(repr=False)

    @property
    def kind(self) -> str:
        """Return the database, such as ``postgresql``."""
        return self.url.get_backend_name()

    @property
    def has_secret(self) -> bool:
        """Return whether a part of the address must not be shown."""
        return bool(self._secrets())

    def _is_plain(self, option: str) -> bool:
        """Return whether an error may show the value of an option."""
        known = DATABASES.get(self.kind)
        return known is not None and option in known.shown

    @property
    def shown(self) -> str:
        """Return the address without its secrets."""
        options = {
            key: value if self._is_plain(key) else _HIDDEN for key, value in self.url.query.items()
        }
        plain = self.url.set(drivername=self.kind, query=options)
        return plain.render_as_string(hide_password=True).replace(quote(_HIDDEN, safe=""), _HIDDEN)

    def __str__(self) -> str:
        return self.shown

    def hide(self, text: str) -> str:
        """Return a text with stars in the place of secrets."""
        for secret in self._secrets():
            for spelled in {secret, quote(secret, safe=""), quote_plus(secret), repr(secret)[1:-1]}:
                if len(spelled) >= _SHORT:
                    text = text.replace(spelled, _HIDDEN)
                elif spelled:
                    # A short secret occurs in many words that are not secret.
                    text = re.sub(rf"(?<!\w){re.escape(spelled)}(?!\w)", _HIDDEN, text)
        return text

    def hide_in(self, error: BaseException) -> None:
        """Put stars in the place of secrets in an error and in all its causes."""
        for found in _chain(error):
            found.args = tuple(self.hide(a) if isinstance(a, str) else a for a in found.args)
            for note in getattr(found, "__notes__", ()):
                found.__notes__[found.__notes__.index(note)] = self.hide(note)

    def _secrets(self) -> list[str]:
        found = [self.url.password] if self.url.password else []
        for key, value in self.url.query.items():
            if not self._is_plain(key):
                found += [value] if isinstance(value, str) else list(value)
        return sorted(map(str, found), key=len, reverse=True)


def parse_address(text: str) -> Address:
    """Parse an address; raise InvalidRequest, which shows no secret, if the text is not one."""
    if NUL_OR_SURROGATE.search(text):
        raise InvalidRequest("the catalog address has a character that no address has; check it")
    try:
        url = sa.make_url(text)
        kind = url.get_backend_name()
    except (ArgumentError, ValueError):
        # The errors of the parser show parts of the address.
        url = None
    if url is None:
        raise InvalidRequest(f"cannot parse the catalog address; {_hint(text)}")
    if url.port is not None and not 0 < url.port < _PORTS:
        raise InvalidRequest(f"the catalog address has no valid port; use 1 to {_PORTS - 1}")
    known = DATABASES.get(kind)
    if known is not None and known.is_server and _is_ambiguous(text, url):
        raise InvalidRequest(f"the catalog address is ambiguous; {_ESCAPES}")
    return Address(url)


_ESCAPES = (
    "in a user name or a password write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23, % as %25"
)


def _hint(text: str) -> str:
    return f"{EXPECTED}; {_ESCAPES}, and use a number as the port" if "://" in text else EXPECTED


def _is_ambiguous(text: str, url: sa.URL) -> bool:
    """Return whether a part of the password may have been parsed as something that is printed."""
    if "@" in (url.host or "") or "@" in (url.database or ""):
        return True
    if url.password is None:
        return False
    behind = text.partition("://")[2].partition("@")[2]
    for option in filter(None, behind.partition("?")[2].split("&")):
        key, equals, value = option.partition("=")
        if not equals or "@" in key or ("@" in value and key not in _MAY_HOLD_AT):
            return True
    return False


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all its causes and contexts, each once."""
    waiting, seen = [error], set()
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        linked = (found.__cause__, found.__context__, getattr(found, "orig", None))
        waiting += [e for e in linked if isinstance(e, BaseException)]
