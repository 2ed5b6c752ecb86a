"""What is wrong with a storage, in one sentence: its name, its endpoint, credentials, or load."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from shelduck.errors import ShelduckError, StorageUnavailable
from shelduck.model.files.place import split_address
from shelduck.spark.stores.homes import home_of

# What pyarrow and Hadoop say, and what it means; the first that matches counts.
_MEANINGS = {
    r"NO_?SUCH_?BUCKET|bucket '?\S* ?(?:does not exist|not found)": (
        "bucket {bucket!r} does not exist at {endpoint}; check data_path and the endpoint"
    ),
    r"EXPIRED_?TOKEN|token .{0,40}expired|EXPIRED_?CREDENTIALS": (
        "the credentials for bucket {bucket!r} have expired; connect again with new ones, and"
        " repeat what failed"
    ),
    (
        r"ACCESS_?DENIED|INVALID_?ACCESS_?KEY|SIGNATURE_?DOES|INVALID_?TOKEN|CLIENT_?TOKEN|"
        r"(?:code|status)\W{1,3}40[13]\b|Forbidden|No AWS Credentials|NoAuth|Unauthorized"
    ): (
        "{endpoint} refuses {who} for bucket {bucket!r}; check access_key and secret_key, and what"
        " they may do"
    ),
    r"(?:code|status)\W{1,3}400\b|Bad ?Request": (
        "{endpoint} refuses {who} for bucket {bucket!r} with status 400, as it does when they have"
        " expired or the region is wrong; connect again, and repeat what failed"
    ),
    r"SLOW_?DOWN|SERVICE_?UNAVAILABLE|(?:code|status)\W{1,3}503\b|reduce your|THROTTL": (
        "bucket {bucket!r} at {endpoint} is too busy and refused every try; wait, and repeat what"
        " failed"
    ),
    r"PermanentRedirect|AuthorizationHeaderMalformed|(?:code|status)\W{1,3}301\b": (
        "bucket {bucket!r} is in another region; set region in storage="
    ),
    (
        r"NETWORK_?CONNECTION|curlCode|resolve host|Connection|timed? ?out|UnknownHost|Socket|"
        r"Unable to execute HTTP|INTERNAL_?FAILURE|INTERNAL_?ERROR|(?:code|status)\W{1,3}50\d\b"
    ): (
        "the endpoint {endpoint} of bucket {bucket!r} does not answer; check the endpoint and the"
        " network, and repeat what failed"
    ),
}
_FROM_STORE = re.compile(r"AWS Error|\.s3a\.|awssdk|AWSBadRequest|AWSService|AWSClientIO|S3Exc")
_KEY = re.compile(r"(?:key|object) '([^']*)'")
_FILE = re.compile(r"(?:\w[\w+.-]*://[^/\s]+/)?(\S+\.(?:parquet|puffin|json|avro))\b")
_CALL = re.compile(r"\s+at \S+\(")


@contextmanager
def told_of_storage(path: str, what: str = "") -> Iterator[None]:
    """Raise an error of an object store as StorageUnavailable: what it is about, and what to do.

    ``path`` is in the storage, and ``what`` is the work. A file that does not exist, errors of
    local disks and errors about other things stay as they are.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except Exception as error:
        failed = storage_failure(error, path, what)
        if failed is None:
            raise
        raise failed from error


def storage_failure(error: BaseException, path: str, what: str) -> StorageUnavailable | None:
    """Return an error of Python or Spark as StorageUnavailable, None if it is about other things.

    ``path`` is in the storage; ``what`` is the table that the work is for.
    """
    if isinstance(error, ShelduckError) or not split_address(path)[0]:
        return None
    if not isinstance(error, OSError) and not _FROM_STORE.search(str(error)):
        return None
    return StorageUnavailable(_sentence(str(error), path, what), about="storage")


def _sentence(text: str, path: str, what: str) -> str:
    scheme, bucket, _ = split_address(path)
    settings = home_of(path).settings
    has = settings.has_credentials
    words = {
        "bucket": bucket,
        "endpoint": settings.endpoint or f"{scheme}://{bucket}",
        "who": "these credentials" if has else "a request without credentials",
    }
    # Spark's errors end with the calls of Java, whose names mean nothing here.
    text = "\n".join(line for line in text.splitlines() if not _CALL.match(line))
    about = "".join(f"{part}: " for part in (what, _file_in(text)) if part)
    for pattern, meaning in _MEANINGS.items():
        if re.search(pattern, text, re.IGNORECASE):
            return about + meaning.format(**words)
    first = text.strip().split("\n", maxsplit=1)[0]
    return f"{about}the storage {scheme}://{bucket} failed: {first}"


def _file_in(text: str) -> str:
    found = _KEY.search(text) or _FILE.search(text)
    return "" if found is None else found[1]
