"""Requests of S3 that pyarrow does not have.

These are deletions of many files, listings page by page, and uploads that never ended. They need
boto3, the extra ``s3``. Without it, pyarrow deletes files one by one, each with three
requests, a listing is in memory as a whole, and unfinished uploads are left to the bucket's own
lifecycle rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from shelduck.engine.stores.homes import S3, home_of
from shelduck.model.files.place import Place, split_address
from shelduck.model.files.storage_settings import StorageSettings

_IN_ONE_REQUEST = 1000
_THREADS = 4
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload in parts that was begun: the path of its file, its own id, and when it began."""

    path: str
    id: str
    begun: datetime


def delete_objects(places: Iterable[Place]) -> list[Place]:
    """Delete objects, 1,000 in a request; return those of other storage, which are still there.

    Without boto3, that is all of them. Raises OSError if an object was not deleted.
    """
    others: list[Place] = []
    by_bucket: dict[tuple[str, StorageSettings], list[str]] = {}
    for place in places:
        scheme, bucket, key = split_address(str(place))
        settings = home_of(str(place)).settings if scheme in S3 else None
        if settings is None or _client(settings) is None:
            others.append(place)
        else:
            by_bucket.setdefault((bucket, settings), []).append(key)
    lots = [
        (bucket, settings, keys[start : start + _IN_ONE_REQUEST])
        for (bucket, settings), keys in by_bucket.items()
        for start in range(0, len(keys), _IN_ONE_REQUEST)
    ]
    with ThreadPoolExecutor(_THREADS) as pool:
        for _ in pool.map(lambda lot: _delete(*lot), lots):
            pass
    return others


def object_pages(directory: str) -> Iterator[list[tuple[str, int, datetime]]] | None:
    """Return pages of the objects below a directory: names, sizes and times of the last change.

    None without boto3, or elsewhere.
    """
    scheme, bucket, prefix = split_address(directory)
    client = _client(home_of(directory).settings) if scheme in S3 else None
    return None if client is None else _pages(client, bucket, prefix)


def _pages(client: Any, bucket: str, prefix: str) -> Iterator[list[tuple[str, int, datetime]]]:
    listing = client.get_paginator("list_objects_v2")
    pages = listing.paginate(Bucket=bucket, Prefix=prefix, MaxKeys=_IN_ONE_REQUEST)
    with _as_os_error(bucket):
        for page in pages:
            yield [
                (found["Key"][len(prefix) :], found["Size"], found["LastModified"].astimezone(UTC))
                for found in page.get("Contents", ())
                if found["Key"] != prefix
            ]


def unfinished_uploads(directory: str) -> Iterator[Upload]:
    """Yield the uploads below a directory that nobody ended; none without boto3, or elsewhere."""
    scheme, bucket, prefix = split_address(directory)
    client = _client(home_of(directory).settings) if scheme in S3 else None
    if client is None:
        return
    pages = client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=prefix)
    with _as_os_error(bucket):
        for page in pages:
            for found in page.get("Uploads", ()):
                path = f"{scheme}://{bucket}/{found['Key']}"
                yield Upload(path, found["UploadId"], found["Initiated"].astimezone(UTC))


def abort_upload(place: Place, number: str) -> None:
    """End an upload and delete its parts; if it has already ended, do nothing."""
    _, bucket, key = split_address(str(place))
    client = _client(home_of(str(place)).settings)
    assert client is not None
    with _as_os_error(bucket), suppress(client.exceptions.NoSuchUpload):
        client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=number)


def _delete(bucket: str, settings: StorageSettings, keys: list[str]) -> None:
    client = _client(settings)
    assert client is not None
    objects = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
    with _as_os_error(bucket):
        answer = client.delete_objects(Bucket=bucket, Delete=objects)
    for failed in answer.get("Errors", ()):
        raise OSError(
            f"AWS Error {failed['Code']} when deleting key '{failed['Key']}' in bucket '{bucket}':"
            f" {failed.get('Message', '')}"
        )


@contextmanager
def _as_os_error(bucket: str) -> Iterator[None]:
    """Raise errors of boto3 in the form of pyarrow's."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - an extra

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise OSError(f"AWS Error in bucket '{bucket}': {error}") from error


@lru_cache(maxsize=16)
def _client(settings: StorageSettings) -> Any:
    """Return a client of boto3, None if it is not installed."""
    try:
        import boto3  # noqa: PLC0415 - an extra
        from botocore import UNSIGNED  # noqa: PLC0415
        from botocore.config import Config  # noqa: PLC0415
    except ImportError:
        return None
    style = settings.path_style
    if style is None:
        style = settings.endpoint is not None
    more: dict[str, Any] = {"signature_version": UNSIGNED} if settings.anonymous else {}
    return boto3.client(
        "s3",
        endpoint_url=settings.endpoint,
        region_name=settings.region or ("us-east-1" if settings.endpoint else None),
        aws_access_key_id=settings.access_key,
        aws_secret_access_key=settings.secret_key,
        aws_session_token=settings.session_token,
        config=Config(
            retries={"max_attempts": _ATTEMPTS, "mode": "standard"},
            s3={"addressing_style": "path" if style else "auto"},
            **more,
        ),
    )
