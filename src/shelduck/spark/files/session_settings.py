"""What a Spark session says about an object store; it is only read."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from shelduck.model.files.storage_settings import StorageSettings
from shelduck.spark.bridge.jvm import has_jvm, java_session

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
    if not has_jvm(spark):
        return lambda name: spark.conf.get(f"spark.hadoop.{name}", None)
    hadoop = java_session(spark).sessionState().newHadoopConf()

    def get(name: str) -> str | None:
        value = hadoop.get(name)
        if not value or _DEFAULTS in list(hadoop.getPropertySources(name) or ()):
            return None
        return str(value)

    return get


def _address(endpoint: str | None, scheme: str) -> str | None:
    return endpoint if not endpoint or "://" in endpoint else f"{scheme}://{endpoint}"
