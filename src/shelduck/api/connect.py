"""The way in: `connect`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from shelduck.api.lake import Lake
from shelduck.catalog.databases.store import Store, open_store
from shelduck.catalog.schema.create import open_lake, open_or_create_lake
from shelduck.errors import InvalidRequest
from shelduck.spark.session import SparkSession
from shelduck.work.state import LakeState


def connect(
    url: str,
    data_path: str | None = None,
    spark: SparkSession | None = None,
    *,
    author: str | None = None,
    progress: bool | None = None,
    timestamp: Literal["ltz", "ntz"] = "ltz",
    config: Mapping[str, str] | None = None,
) -> Lake:
    """Return the lake at a catalog address, and create it if there is none.

    Args:
        url: ``sqlite:////file.db``, ``postgresql://user@host/database`` or ``duckdb:////file``.
        data_path: Where files go: a folder or a URL such as ``s3a://bucket/lake``. Needed to make a
            lake (a DuckDB file has a default); an existing lake knows its own.
        spark: The session that moves rows, used as it is. By default the active session, or a local
            one that is created when it is first needed.
        author: Kept with every commit.
        progress: Show progress of long work; by default only on a terminal.
        timestamp: What the type TIMESTAMP means in `Lake.sql` and `Lake.create_table`: an instant
            (``ltz``), as in Spark, or a time without a zone (``ntz``), as in DuckDB. Pass ``ntz``
            to run DuckDB's scripts as they are. TIMESTAMP_NTZ and TIMESTAMPTZ mean the same always.
        config: Settings of a session that is made, by their names in Spark.

    Raises:
        InvalidRequest: the URL or data_path cannot be used, or contradicts the lake.
        CatalogUnavailable: the database cannot be reached.
        Unsupported: the lake has another DuckLake version, or is encrypted.
    """
    if timestamp not in ("ltz", "ntz"):
        raise InvalidRequest(f"timestamp must be 'ltz' or 'ntz', not {timestamp!r}")
    store = open_store(url)
    with _closed_on_error(store):
        found = open_or_create_lake(store, data_path)
    state = LakeState(store, found, spark, author, show_progress=progress, ntz=timestamp == "ntz")
    state.config.update(config or {})
    return Lake(state)


def connect_existing(url: str, *, config: Mapping[str, str] | None = None) -> Lake:
    """Return the lake at a catalog address; NotFound when there is none: it is not created."""
    store = open_store(url)
    with _closed_on_error(store):
        found = open_lake(store)
    state = LakeState(store, found)
    state.config.update(config or {})
    return Lake(state)


@contextmanager
def _closed_on_error(store: Store) -> Iterator[None]:
    """Close the connections of a store if opening the lake fails."""
    try:
        yield
    except BaseException:
        store.close()
        raise
