"""The look of `connect` at a data path: how it is reached, and whether it can be.

What the Spark session says about an object store is only read.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.fs
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from shelduck.engine.bridge import engine_for
from shelduck.engine.bridge.jvm import java_class
from shelduck.engine.files.storage import delete_file, filesystem, write_text
from shelduck.engine.stores.homes import (
    S3,
    S3A,
    Home,
    given_home,
    hide_secrets_in_log,
    home_of,
    own_home,
    put_home,
    settings_of_environment,
)
from shelduck.engine.stores.store_errors import told_of_storage
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.files.place import place_below, require_path, split_address
from shelduck.model.files.storage_settings import StorageSettings

_REMOTE = (*S3, "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
_PROBE = ".shelduck-probe-"
# Connectors that are not a part of Spark, by scheme; {} is the version of Spark's Hadoop.
_ARTIFACTS = {
    **dict.fromkeys(S3, "org.apache.hadoop:hadoop-aws:{}"),
    **dict.fromkeys(("abfs", "abfss"), "org.apache.hadoop:hadoop-azure:{}"),
    "gs": "com.google.cloud.bigdataoss:gcs-connector",
}
_written: set[tuple[str, Home]] = set()


def require_known(data_path: str, given: StorageSettings) -> None:
    """Raise InvalidRequest if no files can be at a data path, before anything is made for it."""
    require_path(data_path)
    scheme, host, _ = split_address(data_path)
    if scheme and scheme not in _REMOTE:
        known = ", ".join(f"{name}://" for name in ("s3", "gs", "abfss", "hdfs"))
        raise InvalidRequest(
            f"data_path {data_path!r} has the scheme {scheme}://, which Shelduck does not know; use"
            f" a folder, or one of {known}"
        )
    if scheme and not host and scheme not in ("hdfs", "viewfs"):
        raise InvalidRequest(
            f"data_path {data_path!r} names no bucket; write {scheme}://bucket/folder"
        )
    if not given.is_empty and scheme not in S3:
        raise InvalidRequest(
            f"storage= is for data paths on s3://, but data_path is {data_path!r}; set what"
            " it needs in the environment, and in the settings of the Spark session"
        )


def require_folder(path: str) -> None:
    """Raise InvalidRequest if a data path on a local disk cannot be a folder."""
    scheme, _, key = split_address(path)
    if scheme:
        return
    if path.split("/", maxsplit=1)[0].startswith("~"):
        raise InvalidRequest(f"data_path {path!r} begins with '~'; write the whole path")
    place = Path(key).absolute()
    there = next(p for p in (place, *place.parents) if p.exists())
    if not there.is_dir():
        raise InvalidRequest(f"data_path {path!r} cannot be a folder: {there} is a file")
    if there != place and not os.access(there, os.W_OK | os.X_OK):
        raise InvalidRequest(
            f"data_path {path!r} does not exist and cannot be made in {there}, which this user may"
            " not write; check the spelling"
        )


def reach(data_path: str, given: StorageSettings, spark: SparkSession | None) -> None:
    """Let Python and Spark reach files below a data path, and whatever its lake adopts.

    What ``given`` leaves open, the settings of the session say, and then the environment. If
    nothing is given, what this process gave for the data path before stays; otherwise a session
    that speaks for itself is left alone. Without ``spark``, the active session counts, if there is
    one.
    """
    scheme, bucket, _ = split_address(data_path)
    if scheme not in S3:
        return
    hide_secrets_in_log()
    if given.is_empty and given_home(data_path) is not None:
        return
    home = _home(scheme, bucket, given, spark)
    put_home(data_path, replace(home, is_given=not given.is_empty))


def _home(scheme: str, bucket: str, given: StorageSettings, spark: SparkSession | None) -> Home:
    environment = settings_of_environment()
    spark = spark or SparkSession.getActiveSession()
    if spark is None:
        return own_home(bucket, given.over(environment))
    get = settings_getter(spark)
    settings = given.over(settings_of_session(get, bucket)).over(environment)
    if given.is_empty and speaks_for_itself(get, scheme, bucket):
        return Home(settings, scheme if get(f"fs.{scheme}.impl") else "s3a")
    return own_home(bucket, settings)


def require_connector(spark: SparkSession, data_path: str, *, encrypted: bool = False) -> None:
    """Raise Unsupported if Spark has no connector for a data path; Connect cannot be asked."""
    if encrypted and not engine_for(spark).has_jvm:
        raise Unsupported(
            f"the lake in {data_path} is encrypted, and Spark Connect has no way for the keys of"
            " files that nobody sees; use a driver with a JVM"
        )
    scheme = split_address(data_path)[0]
    hadoop = engine_for(spark).hadoop() if scheme else None
    if hadoop is None:
        return
    name = "s3a" if scheme in S3 and not hadoop.get(f"fs.{scheme}.impl") else scheme
    if name == "s3a" and not hadoop.get("fs.s3a.impl"):
        hadoop.set("fs.s3a.impl", S3A)
    files = java_class(spark, "org.apache.hadoop.fs.FileSystem")
    try:
        files.getFileSystemClass(name, hadoop)
    except Py4JJavaError as error:
        version = java_class(spark, "org.apache.hadoop.util.VersionInfo").getVersion()
        artifact = _ARTIFACTS.get(scheme, "").format(version)
        what = f"start it with spark.jars.packages={artifact}" if artifact else "add its JAR to it"
        raise Unsupported(
            f"the Spark session has no connector for {scheme}://, where the lake has its files;"
            f" {what}"
        ) from error


def require_place(data_path: str) -> None:
    """Raise StorageUnavailable, which says what is wrong, if a data path cannot be listed."""
    if not split_address(data_path)[0]:
        return
    with told_of_storage(data_path):
        files, name = filesystem(data_path, is_check=True)
        with contextlib.suppress(FileNotFoundError):
            files.get_file_info(pyarrow.fs.FileSelector(name.rstrip("/")))
            return
        # Nothing is there yet, or the bucket itself does not exist.
        bucket = name.partition("/")[0]
        if files.get_file_info(bucket).type == pyarrow.fs.FileType.NotFound:
            raise OSError(f"bucket {bucket!r} not found")


def require_writable(directory: str) -> None:
    """Write and delete a small object in a directory, once for each bucket and its settings.

    Raises StorageUnavailable, which says what is wrong.
    """
    scheme, host, _ = split_address(directory)
    key = host, home_of(directory)
    if not scheme or key in _written:
        return
    name = f"{_PROBE}{uuid.uuid4().hex}"
    with told_of_storage(directory):
        write_text(directory + name, "")
        delete_file(place_below(directory, name))
    _written.add(key)


_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_DEFAULTS = "core-default.xml"
_TELLING = ("access.key", "endpoint", "aws.credentials.provider", "assumed.role.arn")
Getter = Callable[[str], str | None]


def settings_of_session(get: Getter, bucket: str) -> StorageSettings:
    """Return what settings ``fs.s3a.*`` say about a bucket."""

    def say(name: str) -> str | None:
        return get(f"fs.s3a.bucket.{bucket}.{name}") or get(f"fs.s3a.{name}") or None

    access, secret = say("access.key"), say("secret.key")
    has_keys = bool(access and secret)
    style = say("path.style.access")
    is_plain = say("connection.ssl.enabled") == "false"
    is_anonymous = (say("aws.credentials.provider") or "").endswith(_ANONYMOUS)
    return StorageSettings(
        endpoint=_address(say("endpoint"), "http" if is_plain else "https"),
        region=say("endpoint.region"),
        path_style=None if style is None else style == "true",
        anonymous=True if is_anonymous and not has_keys else None,
        access_key=access if has_keys else None,
        secret_key=secret if has_keys else None,
        session_token=say("session.token") if has_keys else None,
    )


def speaks_for_itself(get: Getter, scheme: str, bucket: str) -> bool:
    """Return whether a session knows by its own settings how to reach a bucket."""
    prefixes = ("fs.s3a.", f"fs.s3a.bucket.{bucket}.")
    return any(get(p + n) for p in prefixes for n in _TELLING) or bool(get(f"fs.{scheme}.impl"))


def settings_getter(spark: SparkSession) -> Getter:
    """Return a function that finds a setting of Hadoop that somebody made for the session."""
    hadoop = engine_for(spark).hadoop()
    if hadoop is None:
        return lambda name: spark.conf.get(f"spark.hadoop.{name}", None)

    def get(name: str) -> str | None:
        value = hadoop.get(name)
        if not value or _DEFAULTS in list(hadoop.getPropertySources(name) or ()):
            return None
        return str(value)

    return get


def _address(endpoint: str | None, scheme: str) -> str | None:
    return endpoint if not endpoint or "://" in endpoint else f"{scheme}://{endpoint}"
