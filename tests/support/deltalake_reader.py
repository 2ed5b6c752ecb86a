"""What deltalake reads of a table on S3, in a process of its own.

It holds Python's lock while it reads, and the server may be in the process that asks.

    python -m tests.support.deltalake_reader PLACE VERSION ENDPOINT QUERY
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tests.support.s3 import KEY, SECRET

if TYPE_CHECKING:
    from tests.support.s3 import S3Server

Row = tuple[Any, ...]


def read_on_s3(s3: S3Server, place: str, query: str, version: int | None = None) -> list[Row]:
    """The rows of a query over the version as `t`; structs are dicts."""
    words = (place, str(-1 if version is None else version), s3.endpoint, query)
    command = [sys.executable, "-m", "tests.support.deltalake_reader", *words]
    done = subprocess.run(command, check=False, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    with pa.ipc.open_stream(done.stdout) as found:
        return [tuple(row.values()) for row in found.read_all().to_pylist()]


def main(place: str, version: int, endpoint: str, query: str) -> None:
    options = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }
    table = DeltaTable(place, version if version >= 0 else None, storage_options=options)
    found = pa.table(QueryBuilder().register("t", table).execute(query).read_all())
    with pa.ipc.new_stream(sys.stdout.buffer, found.schema) as out:
        out.write_table(found)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
