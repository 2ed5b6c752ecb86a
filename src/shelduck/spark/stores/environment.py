"""Settings of the environment about an object store; it is only read."""

from __future__ import annotations

import configparser
import os
from pathlib import Path

from shelduck.model.files.storage_settings import StorageSettings


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
