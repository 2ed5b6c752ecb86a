"""Logs at DEBUG: py4j tells all that Python sends to the JVM, and botocore the headers of requests.

Both have the keys and tokens of storages.
"""

from __future__ import annotations

import logging

from shelduck.spark.stores.homes import secrets

_LOGGERS = (
    *("py4j.clientserver", "py4j.java_gateway"),
    *("botocore.auth", "botocore.endpoint", "botocore.hooks"),
)
_HIDDEN = "***"


class _HideSecrets(logging.Filter):
    """Puts stars in the place of secrets; only called for records that are logged."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        for secret in secrets():
            text = text.replace(secret, _HIDDEN)
        record.msg, record.args = text, ()
        return True


_FILTER = _HideSecrets()


def hide_secrets_in_log() -> None:
    """Hide the secrets of all storages in these logs; calling it again changes nothing."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_FILTER)
