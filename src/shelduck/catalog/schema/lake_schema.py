"""Creating a lake in a catalog database, and opening an existing one."""

from __future__ import annotations

import os
import uuid
from collections.abc import Collection
from dataclasses import dataclass, replace
from importlib import metadata as distributions

import sqlalchemy as sa
from sqlalchemy.schema import CreateTable

from shelduck import clock
from shelduck.catalog.databases.database import Contention
from shelduck.catalog.databases.store import Store
from shelduck.catalog.schema.own_tables import ensure_own_tables
from shelduck.ducklake import tables
from shelduck.ducklake.checked import RESTORE
from shelduck.ducklake.format import DEFAULT, FORMATS, VERSIONS, known_format
from shelduck.errors import AlreadyExists, CorruptLake, InvalidRequest, NotFound, Unsupported
from shelduck.model.files.place import normal, require_allowed, split_address, storage_path
from shelduck.model.tables.options import ENCRYPTED


def _created_by() -> str:
    try:
        return f"Shelduck {distributions.version('shelduck')}"
    except distributions.PackageNotFoundError:
        return "Shelduck"


CREATED_BY = _created_by()
"""What writes now, with its version, as the metadata of a lake tells it."""


@dataclass(frozen=True, slots=True)
class LakeInfo:
    """The whole lake as the catalog describes it; ``data_path`` is absolute and ends in '/'.

    ``roots`` are the directories below which its user lets files be read, None for any.
    """

    data_path: str
    version: str
    created_by: str
    roots: tuple[str, ...] | None = None
    encrypted: bool = False


def create_lake(
    store: Store,
    data_path: str | None = None,
    *,
    version: str | None = None,
    encrypted: bool = False,
) -> LakeInfo:
    """Create an empty lake and return it; tables of others in the database are left alone.

    ``version`` is that of DuckLake, by default 1.0. The files of an ``encrypted`` lake are.

    ``data_path`` is where the files go: a folder or a URL such as ``s3://bucket/lake``. Only a
    DuckDB file has a default, ``<file>.files/``. Raises AlreadyExists if there is already a lake,
    even if another process creates it at the same moment.
    """
    path = data_path or store.database.default_data_path
    if not path:
        raise InvalidRequest(f"creating a lake in {store.where} needs a data_path")
    path = absolute_data_path(path)
    made = known_format(version or DEFAULT.version)
    try:
        with store.write() as connection:
            present = store.table_names(connection)
            if tables.metadata.name in present:
                raise _has_one(store)
            _refuse_half_a_lake(store, present)
            for table in made.metadata.tables.values():
                connection.execute(CreateTable(table))
            _insert_first_rows(connection, path, made.version, encrypted=encrypted)
            ensure_own_tables(store, connection)
    except Contention:
        # DuckDB does not take our lock: it may have created its lake in between.
        if tables.metadata.name not in store.ask(store.table_names):
            raise
        raise _has_one(store) from None
    store.use(made)
    return LakeInfo(path, made.version, created_by=CREATED_BY, encrypted=encrypted)


def open_lake(store: Store, data_path: str | None = None) -> LakeInfo:
    """Return the lake in a catalog database after checking that it can be used.

    Raises NotFound (no lake here), InvalidRequest (its files are not at ``data_path``), Unsupported
    (another DuckLake version), CorruptLake.
    """
    if not store.exists():
        raise NotFound(f"there is no lake in {store.where}: the file does not exist", about="lake")
    options = _read_options(store)
    version = _option(store, options, "version")
    if version not in FORMATS:
        raise Unsupported(
            f"the lake in {store.where} has DuckLake version {version!r}, but Shelduck supports"
            f" only {VERSIONS} (DuckDB creates it with DUCKLAKE_VERSION {DEFAULT.version!r})"
        )
    stored = absolute_data_path(_required_path(store, _option(store, options, "data_path")))
    if data_path and storage_path(absolute_data_path(data_path)) != storage_path(stored):
        raise InvalidRequest(
            f"the lake in {store.where} has its files in {stored!r}, not in"
            f" {absolute_data_path(data_path)!r}; leave out data_path"
        )
    store.use(FORMATS[version])
    created_by, encrypted = options.get("created_by", ""), options.get(ENCRYPTED) == "true"
    return LakeInfo(stored, version, created_by=created_by, encrypted=encrypted)


def open_or_create_lake(
    store: Store,
    data_path: str | None = None,
    *,
    version: str | None = None,
    encrypted: bool = False,
) -> LakeInfo:
    """Return the lake, creating it if there is none; safe if several processes do this at once."""
    try:
        return open_lake(store, data_path)
    except NotFound:
        pass
    try:
        return create_lake(store, data_path, version=version, encrypted=encrypted)
    except AlreadyExists:
        return open_lake(store, data_path)


def limited_to(found: LakeInfo, allow: Collection[str], data_path: str | None) -> LakeInfo:
    """Return a lake whose files are read only below these places, and below a given data path.

    Raises InvalidRequest if the lake keeps its own files elsewhere.
    """
    roots = tuple(absolute_data_path(path) for path in (data_path, *allow) if path)
    require_allowed(found.data_path, roots, f"the data path {found.data_path!r} of the lake")
    return replace(found, roots=roots)


def absolute_data_path(path: str) -> str:
    """Return a data path as a lake stores it: absolute, in its plain spelling, ending in '/'."""
    scheme, _, key = split_address(path)
    plain = normal(path) if scheme else os.path.abspath(key)  # noqa: PTH100
    return plain if plain.endswith("/") else plain + "/"


def _has_one(store: Store) -> AlreadyExists:
    return AlreadyExists(f"there is already a lake in {store.where}", about="lake")


def _refuse_half_a_lake(store: Store, present: set[str]) -> None:
    leftovers = sorted(set(tables.DUCKLAKE.tables) & present)
    if leftovers:
        raise CorruptLake(
            f"{store.where} has {', '.join(leftovers)} but no ducklake_metadata, so the lake is"
            " incomplete; drop these tables or restore the missing one"
        )


def _insert_first_rows(
    connection: sa.Connection, data_path: str, version: str, *, encrypted: bool
) -> None:
    options = {
        "version": version,
        "created_by": CREATED_BY,
        "data_path": data_path,
        ENCRYPTED: "true" if encrypted else "false",
    }
    connection.execute(
        sa.insert(tables.metadata), [{"key": key, "value": value} for key, value in options.items()]
    )
    first = {"snapshot_id": 0, "schema_version": 0, "next_catalog_id": 1, "next_file_id": 0}
    connection.execute(sa.insert(tables.snapshot), {**first, "snapshot_time": clock.now()})
    connection.execute(
        sa.insert(tables.snapshot_changes),
        {"snapshot_id": 0, "changes_made": 'created_schema:"main"'},
    )
    main = {"schema_id": 0, "schema_uuid": str(uuid.uuid4()), "begin_snapshot": 0}
    where = {"schema_name": "main", "path": "main/", "path_is_relative": True}
    connection.execute(sa.insert(tables.schema), {**main, **where})


def _read_options(store: Store) -> dict[str, str]:
    t = tables.metadata.c
    with store.read() as connection:
        if tables.metadata.name not in store.table_names(connection):
            raise NotFound(
                f"there is no lake in {store.where}: it has no table ducklake_metadata",
                about="lake",
            )
        found: dict[str, str] = {}
        for row in connection.execute(sa.select(t.key, t.value).where(t.scope.is_(None))):
            if found.setdefault(row.key, row.value) != row.value:
                raise CorruptLake(
                    f"ducklake_metadata in {store.where} has two values of {row.key!r},"
                    f" {found[row.key]!r} and {row.value!r}; delete the wrong one"
                )
        return found


def _required_path(store: Store, path: str) -> str:
    """Return a stored data path; Unsupported for keys of an object store that Spark cannot name."""
    if not path:
        raise CorruptLake(f"ducklake_metadata in {store.where} has an empty data_path; {RESTORE}")
    scheme, host, key = split_address(path)
    if scheme and normal(path) != f"{scheme}://{host}/{key}":
        raise Unsupported(
            f"the lake in {store.where} has its files in {path!r}, but Spark cannot find files"
            " below a path with '//', '.' or '..'; move them, and correct data_path in"
            " ducklake_metadata"
        )
    return path


def _option(store: Store, options: dict[str, str], key: str) -> str:
    if key not in options:
        raise CorruptLake(f"ducklake_metadata in {store.where} has no row {key!r}")
    return options[key]
