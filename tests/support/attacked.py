"""Lakes whose catalog names files of others, on a local disk or on S3, and what deletes there."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import shelduck
from shelduck import CorruptLake
from tests.support.s3 import BUCKET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tests.support.lakes import Base
    from tests.support.s3 import S3Server

STATEMENTS = [
    "CREATE TABLE t (id BIGINT, v STRING)",
    *(f"INSERT INTO t SELECT id, 'v' FROM range({n}, {n + 20}, 1, 1)" for n in (0, 20)),
    "CREATE TABLE u (id BIGINT)",
    "INSERT INTO u SELECT id FROM range(0, 90, 1, 1)",
    "DELETE FROM u WHERE id < 60",
]
WRITE = "0198c0de-0000-7000-8000-{}"


class Attacked:
    """A lake of its own, a victim beside its files, and the way into its catalog.

    `data` and `victim` are the paths of directories, without a slash at the end.
    """

    def __init__(self, folder: Path, base: Base, data: str, victim: str) -> None:
        self.folder, self.data, self.victim, self.spark = folder, data, victim, base.spark
        shutil.copy(base.catalog, folder / "lake.db")
        self.run("UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path'", f"{data}/")
        uuid = self.one("SELECT table_uuid FROM ducklake_table WHERE table_name = 't'")
        self.write = WRITE.format(uuid.replace("-", "")[-12:])
        table = "SELECT table_id FROM ducklake_table WHERE table_name = 't'"
        self.live = self.one(f"SELECT path FROM ducklake_data_file WHERE table_id = ({table})")

    @property
    def of_victim(self) -> list[str]:
        """The names of the victim's files; some look like those of a write to the table."""
        write = self.write
        return ["a.txt", "ducklake-1.parquet", f"{write}/0.parquet", f"{write}-0.parquet"]

    def run(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.folder / "lake.db")) as connection, connection:
            connection.execute(statement, values)

    def one(self, query: str) -> str:
        with closing(sqlite3.connect(self.folder / "lake.db")) as connection:
            return str(connection.execute(query).fetchone()[0])

    def dump(self) -> str:
        with closing(sqlite3.connect(self.folder / "lake.db")) as connection:
            return "".join(connection.iterdump())

    def schedule(self, path: str, *, relative: bool = True) -> None:
        self.run(
            "INSERT INTO ducklake_files_scheduled_for_deletion VALUES (99, ?, ?, '2020-01-01')",
            path,
            relative,
        )

    def table_path(self, path: str, *, relative: bool = True) -> None:
        self.run(
            "UPDATE ducklake_table SET path = ?, path_is_relative = ? WHERE table_name = 't'",
            path,
            relative,
        )

    def file_row(self, source: str, path: str, *, relative: bool = True) -> None:
        self.run(f"UPDATE ducklake_{source} SET path = ?, path_is_relative = ?", path, relative)

    def connect(self) -> shelduck.Lake:
        return shelduck.connect(f"sqlite:///{self.folder}/lake.db", spark=self.spark)

    def has_adopted_victim(self) -> bool:
        """Whether some row names a victim plainly, as one of an adopted file does."""
        return f"'{self.victim}/" in self.dump()

    def victims(self) -> dict[str, bytes]:
        """The files of the victim."""
        raise NotImplementedError

    def there(self) -> Iterable[str]:
        """The paths of the data files of the lake."""
        raise NotImplementedError

    def lives(self) -> set[str]:
        """The files that some row names."""
        named = self.dump()
        return {path for path in self.there() if path.rpartition("/")[2] in named}


class AttackedOnDisk(Attacked):
    """Files of a local disk, on which there may be links."""

    def __init__(self, folder: Path, base: Base) -> None:
        super().__init__(folder, base, f"{folder}/data", f"{folder}/victim")
        shutil.copytree(base.folder / "data", self.data)
        for name in self.of_victim:
            file = Path(self.victim, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"of somebody else")

    def victims(self) -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in Path(self.victim).rglob("*") if p.is_file()}

    def there(self) -> Iterable[str]:
        return map(str, Path(self.data, "main").rglob("*.parquet"))


class AttackedOnS3(Attacked):
    """Objects of a server; another bucket has a victim, too."""

    others = "others"

    def __init__(self, folder: Path, base: Base, s3: S3Server, name: str) -> None:
        super().__init__(folder, base, f"s3://{BUCKET}/{name}/data", f"s3://{BUCKET}/{name}/victim")
        self.s3, self.name = s3, name
        source = base.data_path.removeprefix(f"s3://{BUCKET}/")
        for key in s3.keys(source):
            target = f"{name}/data/{key.removeprefix(source)}"
            place = {"Bucket": BUCKET, "Key": key}
            s3.client.copy_object(CopySource=place, Bucket=BUCKET, Key=target)
        for file in self.of_victim:
            for bucket in (BUCKET, self.others):
                key = f"{name}/victim/{file}"
                s3.client.put_object(Bucket=bucket, Key=key, Body=b"of somebody else")

    def has_adopted_victim(self) -> bool:
        return super().has_adopted_victim() or f"'s3://{self.others}/" in self.dump()

    def victims(self) -> dict[str, bytes]:
        return {
            f"{bucket}/{key}": self.s3.client.get_object(Bucket=bucket, Key=key)["Body"].read()
            for bucket in (BUCKET, self.others)
            for key in self.s3.keys(f"{self.name}/victim/", bucket)
        }

    def there(self) -> Iterable[str]:
        return self.s3.keys(f"{self.name}/data/main/")


# By the name of an attack: what it does, and what refuses it: a message of CorruptLake, or nothing
# where the file is just left alone.
Attacks = dict[str, tuple["Callable[[Attacked], None]", str]]
ANYWHERE: Attacks = {
    "up": (lambda k: k.schedule("../victim/a.txt"), "'../victim/a.txt' as file 99"),
    "up inside": (lambda k: k.schedule("main/../../victim/a.txt"), "main/../../victim/a.txt"),
    "up absolute": (lambda k: k.schedule(f"{k.data}/../victim/a.txt", relative=False), ""),
    "up, escaped": (lambda k: k.schedule("main/%2e%2e/%2E%2E/victim/a.txt"), ""),
    "the directory": (lambda k: k.schedule("main/t/"), "'main/t/' as file 99"),
    "the root": (lambda k: k.schedule("."), "'.' as file 99"),
    "nothing": (lambda k: k.schedule(""), "path is '' in the row with data_file_id 99"),
    "a blank": (lambda k: k.schedule(f"main/t/{k.live} "), "as file 99"),
    "live, dot": (lambda k: k.schedule(f"main/t/./{k.live}"), ""),
    "live, slashes": (lambda k: k.schedule(f"main//t/{k.live}"), ""),
    "live, slash first": (lambda k: k.schedule(f"/main/t/{k.live}"), ""),
    "live, to and fro": (lambda k: k.schedule(f"main/t/../t/{k.live}"), ""),
    "live, escaped": (lambda k: k.schedule(f"main/t/{k.live.replace('-', '%2D')}"), ""),
    "live, absolute": (lambda k: k.schedule(f"{k.data}/main/t/{k.live}", relative=False), ""),
    "a table up": (lambda k: k.table_path("../../victim/"), "leads out of"),
    "a table elsewhere": (lambda k: k.table_path(f"{k.victim}/", relative=False), ""),
    "a schema up": (
        lambda k: k.run("UPDATE ducklake_schema SET path = '../victim/'"),
        "leads out of",
    ),
    "a file up": (lambda k: k.file_row("data_file", "../../../victim/a.txt"), ""),
    "a file up, absolute": (
        lambda k: k.file_row("data_file", f"{k.data}/../victim/a.txt", relative=False),
        "",
    ),
    "deletes up": (lambda k: k.file_row("delete_file", "../../../victim/a.txt"), ""),
    "deletes elsewhere": (
        lambda k: k.file_row("delete_file", f"{k.victim}/a.txt", relative=False),
        "",
    ),
}


def clean(lake: shelduck.Lake) -> None:
    lake.cleanup_old_files(cleanup_all=True)


def clean_adopted(lake: shelduck.Lake) -> None:
    lake.cleanup_old_files(cleanup_all=True, include_adopted=True)


def orphans(lake: shelduck.Lake) -> None:
    lake.remove_orphans(older_than="0 seconds", duckdb_files=True)


def drop(lake: shelduck.Lake) -> None:
    lake.execute("DROP TABLE t; DROP TABLE u")


def expire(lake: shelduck.Lake) -> None:
    lake.expire_snapshots(versions=[s.id for s in lake.snapshots()[:-1]])


def told_by(
    lake: shelduck.Lake,
    attacked: Attacked,
    acts: Sequence[Callable[[shelduck.Lake], None]],
    may_fail: Sequence[object] = (),
) -> list[str]:
    """Do what deletes, and return what was refused; nothing of the victim's is ever gone."""
    told = []
    before = attacked.victims()
    for act in acts:
        try:
            act(lake)
        except CorruptLake as error:
            told.append(str(error))
        except Exception:  # noqa: BLE001 - Spark does not read what is no Parquet file
            assert act in may_fail, act
        assert attacked.victims().items() >= before.items(), act.__name__
    return told


def clean_all(attacked: Attacked, told: str) -> None:
    """Do all that deletes: the victim's files and those that a row names stay, and it is told."""
    lives = attacked.lives()
    assert lives
    # An adopted file without tricks in its path goes when somebody says so.
    more = [] if attacked.has_adopted_victim() else [clean_adopted]
    with attacked.connect() as lake:
        found = told_by(lake, attacked, [clean, orphans, *more])
        assert attacked.lives() >= lives
        found += told_by(lake, attacked, [drop, expire, clean, orphans])
    assert any(told in text for text in found) or not told, found
