"""Small lakes on SQLite: copied before each test, compared byte for byte after a refusal."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import shelduck

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

Row = tuple[Any, ...]


class Base:
    """A lake that tests begin with; each gets a copy of its catalog over the same files."""

    def __init__(
        self,
        folder: Path,
        spark: SparkSession,
        statements: list[str],
        data_path: str = "",
        version: str | None = None,
    ) -> None:
        self.folder = folder
        self.version = version
        self.data_path = data_path or f"{folder}/data/"
        self.spark = spark
        self.catalog = folder / "base.db"
        self._copies = 0
        with self.connect(self.catalog) as lake:
            for statement in statements:
                lake.sql(statement)

    def connect(self, catalog: Path) -> shelduck.Lake:
        return shelduck.connect(
            f"sqlite:///{catalog}", self.data_path, self.spark, ducklake_version=self.version
        )

    def copy(self) -> tuple[Path, shelduck.Lake]:
        """A catalog of its own, and the lake in it."""
        self._copies += 1
        catalog = self.folder / f"copy-{self._copies}.db"
        shutil.copy(self.catalog, catalog)
        return catalog, self.connect(catalog)

    def copy_with_files(self, folder: Path) -> shelduck.Lake:
        """The lake again, with files of its own: ``lake.db`` and ``data`` in a folder."""
        data = lake_with_files(self.catalog, Path(self.data_path), folder)
        return shelduck.connect(f"sqlite:///{folder}/lake.db", data, self.spark)


def lake_with_files(catalog: Path, files: Path, folder: Path) -> str:
    """The data path of a copy of a lake on SQLite: ``lake.db`` and ``data`` in a folder."""
    data = f"{folder}/data/"
    if files.exists():
        shutil.copytree(files, data)
    shutil.copy(catalog, folder / "lake.db")
    with closing(sqlite3.connect(folder / "lake.db")) as connection, connection:
        moved = "UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path'"
        connection.execute(moved, [data])
    return data


def rows(found: DataFrame) -> list[Row]:
    """The rows as plain tuples, structs and maps inside them too."""
    return [tuple(_plain(v) for v in row) for row in found.collect()]


def newest(lake: shelduck.Lake) -> int:
    """The id of the newest snapshot."""
    return lake.snapshots()[-1].id


def everything(catalog: Path, data: Path) -> tuple[list[str], set[Path]]:
    """All rows of all tables of a SQLite catalog, and the files below a folder."""
    with closing(sqlite3.connect(catalog)) as connection:
        return list(connection.iterdump()), {p for p in data.rglob("*") if p.is_file()}


def catalog_files(catalog: Path, *, live: bool) -> set[str]:
    """The paths below the data path that a SQLite catalog names: of live files, or of all."""
    query = (
        "SELECT s.path || t.path || f.path FROM {} f JOIN ducklake_table t USING (table_id)"
        " JOIN ducklake_schema s USING (schema_id)"
    ) + " WHERE f.end_snapshot IS NULL" * live
    with closing(sqlite3.connect(catalog)) as connection:
        sources = ("ducklake_data_file", "ducklake_delete_file")
        return {path for s in sources for (path,) in connection.execute(query.format(s))}


def refusal(
    kind: type[shelduck.ShelduckError], act: Callable[[], object], catalog: Path, data: Path
) -> str:
    """The message of a refusal, after making sure that it left catalog and files as they were."""
    before = everything(catalog, data)
    with pytest.raises(kind) as caught:
        act()
    assert type(caught.value) is kind
    assert everything(catalog, data) == before
    return str(caught.value)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_plain(v) for v in value)
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return bytes(value) if isinstance(value, bytearray) else value
