"""The fault of a storage, in one sentence: its name, credentials, load, space, or access."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from shelduck.engine.named_errors import SparkError
from shelduck.engine.stores.homes import home_of
from shelduck.errors import ShelduckError, StorageUnavailable
from shelduck.model.files.place import split_address

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
# What a local disk says, in Python and in Java; the first that matches counts.
_DISKS = {
    r"No space left|not enough space": (
        "there is no space left on the disk of {place}, or of Spark's spark.local.dir; free some,"
        " and repeat what failed"
    ),
    r"quota exceeded": (
        "the quota of this user on the disk of {place} is used up; free some space, and repeat what"
        " failed"
    ),
    r"Read-only file system": (
        "the disk of {place} is read-only; mount it so that it can be written"
    ),
    r"Permission denied|Operation not permitted|AccessControlException|AccessDeniedException": (
        "this user may not do that: {line}; give the user of Python and of Spark access to {place}"
    ),
    r"Mkdirs failed|mkdir of|Not a directory|Is a directory|ParentNotDirectory": (
        "something else is in the way: {line}; move it away from {place}"
    ),
    r"Input/output error|Stale file handle|Too many open files|File too large|Transport endpoint": (
        "the disk of {place} failed: {line}; mend that, and repeat what failed"
    ),
}
_FROM_STORE = re.compile(r"AWS Error|\.s3a\.|awssdk|AWSBadRequest|AWSService|AWSClientIO|S3Exc")
_KEY = re.compile(r"(?:key|object) '([^']*)'")
_FILE = re.compile(r"(?:\w[\w+.-]*://[^/\s]+/)?(\S+\.(?:parquet|puffin|json|avro))\b")
_CLASS = re.compile(r"^(Caused by: |[\w.]+(Exception|Error): )+")
_CALL = re.compile(r"\s+at \S+\(")


@contextmanager
def told_of_storage(path: str, what: str = "") -> Iterator[None]:
    """Raise an error of a storage as StorageUnavailable: what it is about, and what to do.

    ``path`` is in the storage, and ``what`` is the work. A file that does not exist, or that exists
    and should not, and errors about other things stay as they are.
    """
    try:
        yield
    except (FileNotFoundError, FileExistsError):
        raise
    except StorageUnavailable as error:
        if not what or what in str(error):
            raise
        raise StorageUnavailable(f"{what}: {error}", about=error.about) from error
    except Exception as error:
        failed = storage_failure(error, path, what)
        if failed is None:
            raise
        raise failed from error


def storage_failure(error: BaseException, path: str, what: str) -> StorageUnavailable | None:
    """Return an error of Python or Spark as StorageUnavailable, None if it is about other things.

    ``path`` is in the storage; ``what`` is the table that the work is for.
    """
    if isinstance(error, ShelduckError):
        return None
    # Spark's errors end with the calls of Java, whose names mean nothing here.
    text = "\n".join(line for line in str(error).splitlines() if not _CALL.match(line))
    if not split_address(path)[0]:
        if not isinstance(error, (OSError, *SparkError)):
            return None
        told = _first(_DISKS, text, {"place": path, "line": _line(text)})
        if told is None:
            return None
        return StorageUnavailable(f"{what}: {told}" if what else told, about="storage")
    if not isinstance(error, OSError) and not _FROM_STORE.search(str(error)):
        return None
    scheme, bucket, _ = split_address(path)
    first = text.strip().split("\n", maxsplit=1)[0]
    told = meaning_of(text, path) or f"the storage {scheme}://{bucket} failed: {first}"
    about = "".join(f"{part}: " for part in (what, _file_in(text)) if part)
    return StorageUnavailable(about + told, about="storage")


def meaning_of(text: str, path: str) -> str | None:
    """Return what an error of an object store means, None if that is not known."""
    scheme, bucket, _ = split_address(path)
    if not scheme:
        return None
    settings = home_of(path).settings
    has = settings.has_credentials
    words = {
        "bucket": bucket,
        "endpoint": settings.endpoint or f"{scheme}://{bucket}",
        "who": "these credentials" if has else "a request without credentials",
    }
    return _first(_MEANINGS, text, words)


def _first(meanings: Mapping[str, str], text: str, words: Mapping[str, str]) -> str | None:
    for pattern, meaning in meanings.items():
        if re.search(pattern, text, re.IGNORECASE):
            return meaning.format(**words)
    return None


def _line(text: str) -> str:
    """Return the line of a text that tells what a disk says."""
    lines = [line.strip() for line in text.splitlines()]
    found = [line for line in lines if any(re.search(p, line, re.IGNORECASE) for p in _DISKS)]
    return _CLASS.sub("", found[-1]) if found else lines[0] if lines else ""


def _file_in(text: str) -> str:
    found = _KEY.search(text) or _FILE.search(text)
    return "" if found is None else found[1]
