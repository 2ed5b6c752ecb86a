"""File systems by scheme and bucket, and the raw keys that they receive.

Only this module opens file systems. pyarrow parses URIs and decodes encoded parts, so it gets the
scheme and the bucket from here, and never a path.
"""

from __future__ import annotations

import os
from functools import lru_cache

import pyarrow.fs
from pyarrow import ArrowInvalid

from shelduck.errors import Unsupported
from shelduck.model.files.place import split_address

_S3 = ("s3", "s3a", "s3n")
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


def filesystem(path: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """Return the file system of a path, and the name of the path there.

    Both can be sent to the executors. Raises Unsupported for an unknown scheme.
    """
    scheme, host, key = split_address(path)
    if not scheme:
        return _local(), key
    files, base = _remote(scheme, host)
    return files, f"{base}/{key}"


@lru_cache(maxsize=1)
def _local() -> pyarrow.fs.FileSystem:
    return pyarrow.fs.LocalFileSystem()


@lru_cache(maxsize=64)
def _remote(scheme: str, host: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """Return the file system of a bucket or host, and the prefix of its keys."""
    if scheme in _S3:
        return _s3(host), host
    try:
        files, base = pyarrow.fs.FileSystem.from_uri(f"{scheme}://{host}/")
    except ArrowInvalid as error:
        raise Unsupported(f"there is no file system for {scheme}://{host}: {error}") from error
    return files, base.rstrip("/")


def _s3(bucket: str) -> pyarrow.fs.FileSystem:
    endpoint = next((found for name in _ENDPOINTS if (found := os.environ.get(name))), "")
    if endpoint:
        scheme, _, address = endpoint.rpartition("://")
        return pyarrow.fs.S3FileSystem(endpoint_override=address, scheme=scheme or "https")
    return pyarrow.fs.S3FileSystem(region=pyarrow.fs.resolve_s3_region(bucket))
