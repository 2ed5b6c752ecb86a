"""An S3 server on this machine: it knows keys as Amazon's does, counts requests, and can fail."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import socket
import struct
import threading
import urllib.request
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from urllib.parse import parse_qs, unquote

import boto3
from moto.server import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from shelduck.engine.stores.homes import forget_homes

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "lakes"
KEY, SECRET = "tester", "tester-keeps-this"
_CONTROL = "/_traffic"
_KEY_ID = re.compile(r"Credential=([^/]+)/")
_CODES = {
    "503": ("503 Slow Down", "SlowDown", "Please reduce your request rate."),
    "403": ("403 Forbidden", "InvalidAccessKeyId", "The key does not exist in our records."),
    "400": ("400 Bad Request", "ExpiredToken", "The provided token has expired."),
}


@dataclass(frozen=True)
class S3Server:
    """A running server with one bucket, `BUCKET`; its address is ``host:port``."""

    address: str
    client: Any

    @property
    def endpoint(self) -> str:
        return f"http://{self.address}"

    @property
    def duckdb_secret(self) -> str:
        """The statement that leads DuckDB's httpfs here."""
        return (
            f"CREATE SECRET (TYPE s3, KEY_ID '{KEY}', SECRET '{SECRET}', REGION 'us-east-1',"
            f" ENDPOINT '{self.address}', USE_SSL false, URL_STYLE 'path')"
        )

    def keys(self, prefix: str = "", bucket: str = BUCKET) -> list[str]:
        """The keys of all objects below a prefix but markers of directories, in order."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        found = (entry["Key"] for page in pages for entry in page.get("Contents", ()))
        return sorted(key for key in found if not key.endswith("/"))

    def put(self, key: str, content: bytes) -> None:
        """Make an object."""
        self.client.put_object(Bucket=BUCKET, Key=key, Body=content)

    def make_bucket(self) -> None:
        self.client.create_bucket(Bucket=BUCKET)


@dataclass(frozen=True)
class Fault:
    """What goes wrong: requests of a kind whose key matches, the first ``times`` of them.

    ``how`` is one of 503, 403, 400 or ``reset``; the first ``after`` such requests succeed.
    """

    kind: str
    key: str
    how: str
    times: int = 1_000_000
    after: int = 0


def counted(endpoint: str) -> dict[str, int]:
    """How many requests of each kind came since the last call, from any process."""
    return traffic(endpoint)[0]


def traffic(endpoint: str) -> tuple[dict[str, int], int]:
    """The requests of each kind since the last call, and how many bytes came with them."""
    with urllib.request.urlopen(endpoint + _CONTROL) as answer:
        requests, received = json.loads(answer.read())
        return requests, received


def fail(endpoint: str, *faults: Fault) -> None:
    """Let requests fail from now on; without faults, none."""
    text = json.dumps([vars(fault) for fault in faults]).encode()
    urllib.request.urlopen(endpoint + _CONTROL, data=text).read()


@dataclass
class _Traffic:
    """The server's application, and what happens before a request reaches it."""

    app: Any
    checks_keys: bool
    counts: Counter[str] = field(default_factory=Counter)
    received: int = 0
    faults: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, environ, start_response):
        if environ["PATH_INFO"] == _CONTROL:
            return self._controlled(environ, start_response)
        if environ["PATH_INFO"].startswith("/moto-api/"):
            return self.app(environ, start_response)
        kind = _kind(environ)
        path = unquote(environ["PATH_INFO"])
        with self.lock:
            self.counts[kind] += 1
            self.received += int(environ.get("CONTENT_LENGTH") or 0)
            how = self._fault(kind, path)
        found = _KEY_ID.search(environ.get("HTTP_AUTHORIZATION", ""))
        if self.checks_keys and (found is None or found[1] != KEY):
            how = "403"
        if how == "reset":
            _reset(environ["werkzeug.socket"])
            return []
        if how is not None:
            return _refused(how, environ, start_response)
        return self.app(environ, start_response)

    def _fault(self, kind: str, path: str) -> str | None:
        for fault in self.faults:
            if fault["kind"] in ("", kind) and re.search(fault["key"], path):
                if fault["after"]:
                    fault["after"] -= 1
                elif fault["times"]:
                    fault["times"] -= 1
                    return fault["how"]
        return None

    def _controlled(self, environ, start_response):
        with self.lock:
            if environ["REQUEST_METHOD"] == "POST":
                size = int(environ["CONTENT_LENGTH"])
                self.faults = json.loads(environ["wsgi.input"].read(size))
            answer = json.dumps([self.counts, self.received]).encode()
            self.counts, self.received = Counter(), 0
        start_response("200 OK", [("Content-Type", "application/json")])
        return [answer]


def _kind(environ) -> str:
    method, query = environ["REQUEST_METHOD"], parse_qs(environ["QUERY_STRING"], True)
    is_bucket = environ["PATH_INFO"].strip("/").count("/") == 0
    if method == "GET":
        return "LIST" if is_bucket or "uploads" in query else "GET"
    if method == "PUT" and "HTTP_X_AMZ_COPY_SOURCE" in environ:
        return "COPY"
    if method == "POST":
        return "DELETE_MANY" if "delete" in query else "MULTIPART"
    return "MULTIPART" if "uploadId" in query else method


def _reset(connection: socket.socket) -> None:
    # A socket that lingers for no time is closed by a reset.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RD)
    os.close(connection.detach())


def _refused(how: str, environ, start_response):
    status, code, text = _CODES[how]
    size = int(environ.get("CONTENT_LENGTH") or 0)
    environ["wsgi.input"].read(size)
    start_response(status, [("Content-Type", "application/xml")])
    if environ["REQUEST_METHOD"] == "HEAD":
        return []
    return [f"<Error><Code>{code}</Code><Message>{text}</Message></Error>".encode()]


def client_of(endpoint: str):
    """A client of a server, with the right keys."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
    )


@contextmanager
def running_s3(*, checks_keys: bool = False, tells: bool = True) -> Iterator[S3Server]:
    """A server, and the environment that leads pyarrow to it if ``tells``.

    With ``checks_keys``, whoever has another access key than `KEY` is refused.
    """
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    app = _Traffic(DomainDispatcherApplication(create_backend_app), checks_keys)
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.port}"
    environment = {
        "AWS_ENDPOINT_URL_S3": endpoint,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
    }
    quiet = {"AWS_EC2_METADATA_DISABLED": "true"}
    try:
        with patch.dict(os.environ, quiet | (environment if tells else {})):
            forget_homes()
            made = S3Server(f"127.0.0.1:{server.port}", client_of(endpoint))
            made.make_bucket()
            yield made
    finally:
        # The buckets of all servers of a process are the same.
        urllib.request.urlopen(f"{endpoint}/moto-api/reset", data=b"").read()
        forget_homes()
        server.shutdown()
        thread.join()
