"""The way in: `connect`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, TypedDict

from shelduck.catalog.databases.store import Store, open_store
from shelduck.catalog.schema.lake_schema import (
    LakeInfo,
    absolute_data_path,
    limited_to,
    open_lake,
    open_or_create_lake,
)
from shelduck.doors.lake import Lake
from shelduck.ducklake.format import known_format
from shelduck.engine.files.reaching import (
    reach,
    require_connector,
    require_folder,
    require_known,
    require_place,
)
from shelduck.engine.session import SparkSession
from shelduck.errors import InvalidRequest, NotFound
from shelduck.lake.state import LakeState
from shelduck.model.files.storage_settings import StorageSettings, storage_settings


class NewLake(TypedDict):
    """What a lake that is made gets."""

    ducklake_version: str | None
    encrypted: bool


def connect(
    url: str,
    data_path: str | None = None,
    spark: SparkSession | None = None,
    *,
    author: str | None = None,
    progress: bool | None = None,
    timestamp: Literal["ltz", "ntz"] = "ltz",
    config: Mapping[str, str] | None = None,
    trust_views: bool = False,
    allow: Collection[str] | None = None,
    storage: Mapping[str, object] | None = None,
    ducklake_version: str | None = None,
    encrypted: bool = False,
) -> Lake:
    """Return the lake at a catalog address, and create it if there is none.

    Args:
        url: ``sqlite:////file.db``, ``postgresql://user@host/database`` or ``duckdb:////file``.
        data_path: Where files go: a folder or a URL such as ``s3://bucket/lake``. Needed to make a
            lake (a DuckDB file has a default); an existing lake knows its own.
        spark: The session that moves rows; by default the active one, or a new local one.
        author: Kept with every commit.
        progress: Show progress of long work; by default only on a terminal.
        timestamp: What the type TIMESTAMP means in `Lake.sql` and `Lake.create_table`: an instant
            (``ltz``), as in Spark, or a time without a zone (``ntz``), as in DuckDB's scripts.
        config: Settings of a session that is made, by their names in Spark.
        trust_views: Let views call any function and read any table or file; see docs/security.md.
        allow: Read files only below these places and ``data_path``; by default the catalog decides.
        storage: ``endpoint``, ``region``, ``access_key``, ``secret_key``, ``session_token``,
            ``path_style``, ``anonymous`` of an object store. The session's ``fs.s3a.*`` and then
            ``AWS_*`` in the environment say what it leaves open. It is stored nowhere.
        ducklake_version: ``1.0``, the default for new lakes, or ``1.1``, which needs DuckDB 2.0.
        encrypted: Encrypt the files of a new lake, each by a key that the catalog has.

    Raises:
        InvalidRequest: an argument cannot be used, or contradicts the lake.
        CatalogUnavailable, StorageUnavailable: catalog or files cannot be reached, and why.
        Unsupported: an unknown DuckLake version, a session without what the lake needs.
    """
    if timestamp not in ("ltz", "ntz"):
        raise InvalidRequest(f"timestamp must be 'ltz' or 'ntz', not {timestamp!r}")
    settings = storage_settings(storage)
    made = NewLake(ducklake_version=ducklake_version, encrypted=encrypted)
    with _open_store(url) as store:
        found = _opened(store, data_path, settings, spark, made)
        found = found if allow is None else limited_to(found, allow, data_path)
        state = LakeState(store, found, spark, author, show_progress=progress, storage=settings)
    state.ntz, state.trust_views, state.config = timestamp == "ntz", trust_views, {**(config or {})}
    return Lake(state)


def _opened(
    store: Store,
    data_path: str | None,
    settings: StorageSettings,
    spark: SparkSession | None,
    made: NewLake,
) -> LakeInfo:
    """Return the lake; one that does not exist is made once it is known where files can go."""
    version, encrypted = made["ducklake_version"], made["encrypted"]
    wanted = None if version is None else known_format(version)
    reached = None
    try:
        found = open_lake(store, data_path)
    except NotFound:
        if data_path is not None:
            require_folder(data_path)
            reached = absolute_data_path(data_path)
            _require_reached(reached, settings, spark, encrypted=encrypted)
        found = open_or_create_lake(store, data_path, version=version, encrypted=encrypted)
    if wanted is not None and wanted.version != found.version:
        is_newer = wanted.after(known_format(found.version))
        migrate = ", or migrate the lake (shelduck migrate)" if is_newer else ""
        raise InvalidRequest(
            f"the lake in {store.where} has DuckLake version {found.version!r}, not {version!r};"
            f" leave out ducklake_version{migrate}"
        )
    if encrypted and not found.encrypted:
        raise InvalidRequest(
            f"the lake in {store.where} is not encrypted, and only a new lake can be; leave out"
            " encrypted, or copy its tables to another lake"
        )
    if found.data_path != reached:
        _require_reached(found.data_path, settings, spark, encrypted=found.encrypted)
    return found


def _require_reached(
    data_path: str, settings: StorageSettings, spark: SparkSession | None, *, encrypted: bool
) -> None:
    """Raise an error that says what is wrong if Python or Spark cannot reach the data path."""
    require_known(data_path, settings)
    reach(data_path, settings, spark)
    if spark is not None:
        # A session that is not given is looked at when it is needed.
        require_connector(spark, data_path, encrypted=encrypted)
    require_place(data_path)


def connect_existing(
    url: str,
    *,
    config: Mapping[str, str] | None = None,
    storage: Mapping[str, object] | None = None,
) -> Lake:
    """Return the lake at a catalog address; NotFound when there is none: it is not created."""
    with _open_store(url) as store:
        found = open_lake(store)
        settings = storage_settings(storage)
        require_known(found.data_path, settings)
        reach(found.data_path, settings, None)
    state = LakeState(store, found, storage=settings)
    state.config.update(config or {})
    return Lake(state)


@contextmanager
def _open_store(url: str) -> Iterator[Store]:
    """Open a store; its connections are closed if opening the lake fails."""
    store = open_store(url)
    try:
        yield store
    except BaseException:
        store.close()
        raise
