"""An S3 server on this machine, which knows keys as Amazon's does."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unittest.mock import patch

import boto3
from moto.server import ThreadedMotoServer

from shelduck.spark.files import file_systems

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "lakes"


@dataclass(frozen=True)
class S3Server:
    """A running server with one bucket, `BUCKET`; its address is ``host:port``."""

    address: str

    def keys(self, prefix: str = "") -> list[str]:
        """The keys of all objects below a prefix but markers of directories, in order."""
        pages = (
            self._client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        )
        found = (entry["Key"] for page in pages for entry in page.get("Contents", ()))
        return sorted(key for key in found if not key.endswith("/"))

    def put(self, key: str, content: bytes) -> None:
        """Make an object."""
        self._client().put_object(Bucket=BUCKET, Key=key, Body=content)

    def make_bucket(self) -> None:
        self._client().create_bucket(Bucket=BUCKET)

    def _client(self):
        return boto3.client("s3", endpoint_url=f"http://{self.address}", region_name="us-east-1")


@contextmanager
def running_s3() -> Iterator[S3Server]:
    """A server, and the environment that leads pyarrow to it."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ENDPOINT_URL_S3": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "tester",
        "AWS_SECRET_ACCESS_KEY": "tester",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    try:
        with patch.dict(os.environ, environment):
            file_systems._remote.cache_clear()
            made = S3Server(f"{host}:{port}")
            made.make_bucket()
            yield made
    finally:
        file_systems._remote.cache_clear()
        server.stop()
