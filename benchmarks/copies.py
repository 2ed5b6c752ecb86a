"""Lakes whose catalogs are copies of one another, over the same files."""

from __future__ import annotations

import shutil
from itertools import count
from typing import TYPE_CHECKING

import shelduck

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


class Copies:
    """SQLite catalogs in a folder: each run of a measurement changes a copy of its own."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self.folder = spark, folder
        self._numbers = count()

    def url(self, name: str) -> str:
        return f"sqlite:///{self.folder}/{name}.db"

    def connect(self, name: str) -> shelduck.Lake:
        """The lake of this name, which is made if it is not there."""
        return shelduck.connect(self.url(name), f"{self.folder}/data/", self._spark, progress=False)

    def copy(self, base: str, name: str | None = None) -> str:
        """Copy the catalog of a lake; return the name of the copy."""
        made = f"copy-{next(self._numbers)}" if name is None else name
        shutil.copy(self.folder / f"{base}.db", self.folder / f"{made}.db")
        return made
