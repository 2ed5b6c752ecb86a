"""File systems by scheme and bucket, and the raw keys that they receive.

Only this module opens file systems. pyarrow parses URIs and decodes encoded parts, so it gets the
scheme and the bucket from here, and never a path.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow.fs
from pyarrow import ArrowInvalid

from shelduck.engine.stores.homes import S3, home_of
from shelduck.errors import Unsupported
from shelduck.model.files.place import require_path, split_address
from shelduck.model.files.storage_settings import StorageSettings

_ATTEMPTS = 5
_ATTEMPTS_OF_CHECKS = 2
_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 30.0


def filesystem(path: str, *, is_check: bool = False) -> tuple[pyarrow.fs.FileSystem, str]:
    """Return the file system of a path, and the name of the path there.

    Both can be sent to the executors. A check gets its answer soon: it does not wait for a storage
    that is busy. Raises Unsupported for an unknown scheme, and InvalidRequest for a text that no
    file system takes for a path.
    """
    require_path(path)
    scheme, host, key = split_address(path)
    if not scheme:
        return _local(), key
    attempts = _ATTEMPTS_OF_CHECKS if is_check else _ATTEMPTS
    files, base = _remote(scheme, host, home_of(path).settings, attempts)
    return files, f"{base}/{key}"


@lru_cache(maxsize=1)
def _local() -> pyarrow.fs.FileSystem:
    return pyarrow.fs.LocalFileSystem()


@lru_cache(maxsize=64)
def _remote(
    scheme: str, host: str, settings: StorageSettings, attempts: int
) -> tuple[pyarrow.fs.FileSystem, str]:
    """Return the file system of a bucket or host, and the prefix of its keys."""
    if scheme in S3:
        return _s3(host, settings, attempts), host
    try:
        files, base = pyarrow.fs.FileSystem.from_uri(f"{scheme}://{host}/")
    except ArrowInvalid as error:
        raise Unsupported(f"there is no file system for {scheme}://{host}: {error}") from error
    return files, base.rstrip("/")


def _s3(bucket: str, settings: StorageSettings, attempts: int) -> pyarrow.fs.FileSystem:
    given: dict[str, Any] = {
        "access_key": settings.access_key,
        "secret_key": settings.secret_key,
        "session_token": settings.session_token,
        "anonymous": bool(settings.anonymous),
        "force_virtual_addressing": settings.path_style is False,
        # A small file is one request instead of three.
        "allow_delayed_open": True,
        "connect_timeout": _CONNECT_SECONDS,
        "request_timeout": _ANSWER_SECONDS,
        "retry_strategy": pyarrow.fs.AwsStandardS3RetryStrategy(max_attempts=attempts),
    }
    if settings.endpoint:
        scheme, _, address = settings.endpoint.rpartition("://")
        given |= {"endpoint_override": address, "scheme": scheme or "https"}
        given["region"] = settings.region or "us-east-1"
    else:
        given["region"] = _region(bucket, settings)
    return pyarrow.fs.S3FileSystem(**given)


def _region(bucket: str, settings: StorageSettings) -> str | None:
    """Return where a bucket of Amazon is; the one that is said if it cannot be asked."""
    try:
        return str(pyarrow.fs.resolve_s3_region(bucket))
    except OSError:
        if settings.region is None:
            raise
        return settings.region
