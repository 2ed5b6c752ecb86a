"""Where the lakes of this process have their files, and how Python and Spark reach them.

Spark gets the settings of an object store with each read and write. Hadoop keeps one file system
for each scheme and bucket, whatever the settings are, so files that are reached with settings of
our own have a scheme of their own in Spark: they neither take nor change what other users of the
session reach. The catalog never has that scheme.
"""

from __future__ import annotations

import configparser
import hashlib
import hmac
import logging
import os
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from functools import lru_cache
from pathlib import Path

from shelduck.model.files.place import split_address, storage_path
from shelduck.model.files.storage_settings import StorageSettings

S3 = ("s3", "s3a", "s3n")
S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_PROVIDERS = "org.apache.hadoop.fs.s3a"
# Bounds of retries, of Amazon's client inside those of Hadoop: a request that never succeeds fails
# within a minute.
_BOUNDS = {
    "attempts.maximum": "2",
    "retry.limit": "4",
    "retry.interval": "200ms",
    "retry.throttle.limit": "5",
    "retry.throttle.interval": "200ms",
    "connection.establish.timeout": "10s",
}
# Files get names that nobody had before, so nothing is looked up before they are written.
_DIRECT = {"performance.flags": "create,delete,mkdir", "create.performance": "true"}
# Names of schemes tell nothing about the settings behind them.
_SALT = os.urandom(16)
_lock = threading.Lock()
_homes: dict[tuple[str, str], dict[str, Home]] = {}
_LOGGERS = (
    *("py4j.clientserver", "py4j.java_gateway"),
    *("botocore.auth", "botocore.endpoint", "botocore.hooks", "sqlalchemy.engine.Engine"),
)
_HIDDEN = "***"
# The key of an encrypted file is 16 or 32 bytes in base64.
_KEYS = re.compile(r"[\w+/]{43}=|[\w+/]{22}==")


@dataclass(frozen=True, slots=True)
class Home:
    """How files below one place are reached: by Python with ``settings``, and by Spark.

    ``scheme`` is what Spark calls the storage, and ``options`` are the settings that it gets with
    each read and write; there are none if those of the session are enough.
    """

    settings: StorageSettings
    scheme: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    is_given: bool = False
    """Whether somebody passed the settings, so that what the process says does not count."""


def given_home(data_path: str) -> Home | None:
    """Return how a data path is reached if somebody passed the settings for it."""
    scheme, host, key = split_address(storage_path(data_path))
    found = _homes.get((scheme, host), {}).get(key)
    return found if found is not None and found.is_given else None


def put_home(data_path: str, home: Home) -> None:
    """Reach everything below a data path in this way from now on."""
    scheme, host, key = split_address(storage_path(data_path))
    with _lock:
        known = _homes.get((scheme, host), {}) | {key: home}
        longest_first = sorted(known.items(), key=lambda item: -len(item[0]))
        _homes[scheme, host] = dict(longest_first)


def home_of(path: str) -> Home:
    """Return how a path is reached.

    Files elsewhere, such as those that a lake adopted, are reached as the lakes of this process
    are; if these differ, as the environment says.
    """
    scheme, host, key = split_address(path)
    scheme = "s3" if scheme in S3 else scheme
    below = _homes.get((scheme, host))
    if below:
        for prefix, home in below.items():
            if key.startswith(prefix):
                return home
        return next(iter(below.values()))
    if scheme != "s3":
        return Home(StorageSettings(), scheme)
    of_s3 = [at for (known, _), at in list(_homes.items()) if known == "s3"]
    others = {home for at in of_s3 for home in at.values()}
    if len({home.settings for home in others}) != 1:
        return _strange_home(host)
    home = others.pop()
    return own_home(host, home.settings) if home.options else home


@lru_cache(maxsize=64)
def _strange_home(bucket: str) -> Home:
    return own_home(bucket, settings_of_environment())


def secrets() -> set[str]:
    """Return the keys and tokens with which places are reached, which nobody may see."""
    homes = [home for at in list(_homes.values()) for home in at.values()]
    found = [(h.settings.secret_key, h.settings.session_token) for h in homes]
    return {secret for pair in (*found, *_of_environment()) for secret in pair if secret}


@lru_cache(maxsize=1)
def _of_environment() -> list[tuple[str | None, str | None]]:
    settings = settings_of_environment()
    return [(settings.secret_key, settings.session_token)]


def forget_homes() -> None:
    """Forget all places and what the environment said."""
    with _lock:
        _homes.clear()
    _strange_home.cache_clear()
    _of_environment.cache_clear()


@lru_cache(maxsize=64)
def own_home(bucket: str, settings: StorageSettings) -> Home:
    """Return how a bucket is reached with settings that Spark gets with each read and write."""
    text = repr((bucket, astuple(settings))).encode()
    scheme = f"s3-{hmac.new(_SALT, text, hashlib.sha256).hexdigest()[:8]}"
    own = _BOUNDS | _DIRECT | _s3a(settings)
    options = {f"fs.s3a.bucket.{bucket}.{name}": value for name, value in own.items()}
    return Home(settings, scheme, options | {f"fs.{scheme}.impl": S3A})


def _s3a(settings: StorageSettings) -> dict[str, str]:
    """Return settings in the words of Hadoop's S3A."""
    style = settings.path_style
    if style is None:
        # As pyarrow does: servers other than Amazon's rarely have a host for each bucket.
        style = settings.endpoint is not None
    provider = "TemporaryAWSCredentialsProvider" if settings.session_token else ""
    if settings.anonymous:
        provider = "AnonymousAWSCredentialsProvider"
    elif settings.access_key and not provider:
        provider = "SimpleAWSCredentialsProvider"
    endpoint = settings.endpoint
    region = settings.region or ("us-east-1" if endpoint else None)
    found = {
        "endpoint": endpoint,
        "endpoint.region": region,
        "connection.ssl.enabled": "false" if (endpoint or "").startswith("http://") else "true",
        "path.style.access": "true" if style else "false",
        "access.key": settings.access_key,
        "secret.key": settings.secret_key,
        "session.token": settings.session_token,
        "aws.credentials.provider": f"{_PROVIDERS}.{provider}" if provider else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def spark_path(path: str) -> str:
    """Return a path of a lake for Spark: a path without a scheme is local."""
    if path.startswith("/"):
        return f"file://{path}"
    return listed_path(path)


def listed_path(path: str) -> str:
    """Return the same for a file that the bridge lists: a local path stays as it is."""
    if path.startswith("/"):
        return path
    scheme = split_address(path)[0]
    if scheme not in S3:
        return path
    return f"{home_of(path).scheme}{path[len(scheme) :]}"


def spark_options(paths: Iterable[str]) -> dict[str, str]:
    """Return the options with which Spark reads or writes files at these paths."""
    found: dict[str, str] = {}
    known = set()
    for path in paths:
        if path.startswith("/") or split_address(path)[0] not in S3:
            continue
        home = home_of(path)
        if home.scheme not in known:
            known.add(home.scheme)
            found |= home.options
    return found


class _HideSecrets(logging.Filter):
    """Puts stars in the place of secrets; only called for records that are logged."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        for secret in secrets():
            text = text.replace(secret, _HIDDEN)
        text = _KEYS.sub(_HIDDEN, text)
        record.msg, record.args = text, ()
        return True


_FILTER = _HideSecrets()


def hide_secrets_in_log() -> None:
    """Hide the secrets of all storages in these logs; calling it again changes nothing."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_FILTER)


def settings_of_environment() -> StorageSettings:
    """Return what the variables ``AWS_*`` say, or else the user's profile for the AWS tools."""
    profile = _profile()
    keys = tuple(
        os.environ.get(name)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    )
    if not (keys[0] and keys[1]):
        names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        keys = tuple(profile.get(name) for name in names)
    # Without keys, Spark and pyarrow ask for a role, each by itself.
    access, secret, token = keys if keys[0] and keys[1] else (None, None, None)
    return StorageSettings(
        endpoint=_first("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") or profile.get("endpoint_url"),
        region=_first("AWS_REGION", "AWS_DEFAULT_REGION") or profile.get("region"),
        access_key=access,
        secret_key=secret,
        session_token=token or None,
    )


def _first(*names: str) -> str | None:
    return next((found for name in names if (found := os.environ.get(name))), None)


def _profile() -> dict[str, str]:
    """Return the profile that the AWS tools would use; a file that cannot be read says nothing."""
    name = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
    found: dict[str, str] = {}
    for variable, usual, section in (
        ("AWS_CONFIG_FILE", "config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name),
    ):
        place = Path(os.environ.get(variable) or f"~/.aws/{usual}").expanduser()
        parser = configparser.RawConfigParser()
        try:
            parser.read(place, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue
        if parser.has_section(section):
            found |= dict(parser.items(section))
    return found
