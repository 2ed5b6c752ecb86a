"""A catalog that names files of others: what deletes, deletes the lake's dead files alone."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import shelduck
from shelduck import CorruptLake
from tests.support.lakes import Base

STATEMENTS = [
    "CREATE TABLE t (id BIGINT, v STRING)",
    *(f"INSERT INTO t SELECT id, 'v' FROM range({n}, {n + 20}, 1, 1)" for n in (0, 20)),
    "CREATE TABLE u (id BIGINT)",
    "INSERT INTO u SELECT id FROM range(0, 90, 1, 1)",
    "DELETE FROM u WHERE id < 60",
]
WRITE = "0198c0de-0000-7000-8000-{}"


class Lake:
    """A lake of its own, a victim beside its files, and the way into its catalog."""

    def __init__(self, folder: Path, base: Base) -> None:
        self.folder, self.data, self.victim = folder, folder / "data", folder / "victim"
        self.spark = base.spark
        shutil.copytree(base.folder / "data", self.data)
        shutil.copy(base.catalog, folder / "lake.db")
        self.victim.mkdir()
        self.run("UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path'", f"{self.data}/")
        uuid = self.one("SELECT table_uuid FROM ducklake_table WHERE table_name = 't'")
        write = WRITE.format(uuid.replace("-", "")[-12:])
        for name in ("a.txt", "ducklake-1.parquet", f"{write}/0.parquet", f"{write}-0.parquet"):
            (self.victim / name).parent.mkdir(exist_ok=True)
            (self.victim / name).write_bytes(b"of somebody else")
        self.write = write
        table = "SELECT table_id FROM ducklake_table WHERE table_name = 't'"
        self.live = self.one(f"SELECT path FROM ducklake_data_file WHERE table_id = ({table})")

    def run(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.folder / "lake.db")) as connection, connection:
            connection.execute(statement, values)

    def one(self, query: str) -> str:
        with closing(sqlite3.connect(self.folder / "lake.db")) as connection:
            return str(connection.execute(query).fetchone()[0])

    def schedule(self, path: str, *, relative: bool = True) -> None:
        self.run(
            "INSERT INTO ducklake_files_scheduled_for_deletion VALUES (99, ?, ?, '2020-01-01')",
            path,
            relative,
        )

    def connect(self) -> shelduck.Lake:
        return shelduck.connect(f"sqlite:///{self.folder}/lake.db", spark=self.spark)

    def has_adopted_victim(self) -> bool:
        """Whether some row names a victim plainly, as one of an adopted file does."""
        with closing(sqlite3.connect(self.folder / "lake.db")) as connection:
            return f"'{self.victim}/" in "".join(connection.iterdump())

    def victims(self) -> dict[str, bytes]:
        files = (p for p in self.victim.rglob("*") if p.is_file())
        return {str(p.relative_to(self.victim)): p.read_bytes() for p in files}

    def lives(self) -> set[Path]:
        """The files that some row names."""
        with closing(sqlite3.connect(self.folder / "lake.db")) as connection:
            named = "".join(connection.iterdump())
        return {p for p in (self.data / "main").rglob("*.parquet") if p.name in named}


def linked(lake: Lake, name: str, target: Path) -> None:
    (lake.data / "main" / name).symlink_to(target, target_is_directory=True)


def table_path(lake: Lake, path: str, *, relative: bool = True) -> None:
    lake.run("UPDATE ducklake_table SET path = ?, path_is_relative = ? WHERE table_name = 't'",
             path, relative)  # fmt: skip


def through_a_link(lake: Lake, name: str, path: str) -> None:
    linked(lake, name, lake.victim)
    lake.schedule(path)


def alias_by_a_link(lake: Lake) -> None:
    linked(lake, "same", lake.data / "main" / "t")
    lake.schedule(f"main/same/{lake.live}")


def write_is_a_link(lake: Lake) -> None:
    (lake.data / "main" / "t" / lake.write).symlink_to(lake.victim, target_is_directory=True)


def table_is_a_link(lake: Lake) -> None:
    shutil.move(lake.data / "main" / "t", lake.folder / "moved")
    linked(lake, "t", lake.victim)


def file_row(lake: Lake, source: str, path: str, *, relative: bool = True) -> None:
    lake.run(f"UPDATE ducklake_{source} SET path = ?, path_is_relative = ?", path, relative)


# What refuses it: a message of CorruptLake, or nothing where the file is just left alone.
ATTACKS = {
    "up": (lambda k: k.schedule("../victim/a.txt"), "'../victim/a.txt' as file 99"),
    "up inside": (lambda k: k.schedule("main/../../victim/a.txt"), "main/../../victim/a.txt"),
    "up absolute": (lambda k: k.schedule(f"{k.data}/../victim/a.txt", relative=False), ""),
    "the directory": (lambda k: k.schedule("main/t/"), "'main/t/' as file 99"),
    "the root": (lambda k: k.schedule("."), "'.' as file 99"),
    "nothing": (lambda k: k.schedule(""), "path is '' in the row with data_file_id 99"),
    "a link": (lambda k: through_a_link(k, "w", "main/w/a.txt"), "symbolic link"),
    "a blank": (lambda k: k.schedule(f"main/t/{k.live} "), "as file 99"),
    "live, dot": (lambda k: k.schedule(f"main/t/./{k.live}"), ""),
    "live, slashes": (lambda k: k.schedule(f"main//t/{k.live}"), ""),
    "live, slash first": (lambda k: k.schedule(f"/main/t/{k.live}"), ""),
    "live, to and fro": (lambda k: k.schedule(f"main/t/../t/{k.live}"), ""),
    "live, absolute": (lambda k: k.schedule(f"{k.data}/main/t/{k.live}", relative=False), ""),
    "live, URI": (lambda k: k.schedule(f"FILE://{k.data}/main/t/{k.live}", relative=False), ""),
    "live, link": (alias_by_a_link, "symbolic link"),
    "a write is a link": (write_is_a_link, ""),
    "a table is a link": (table_is_a_link, ""),
    "a table up": (lambda k: table_path(k, "../../victim/"), "leaves"),
    "a table elsewhere": (lambda k: table_path(k, f"{k.victim}/", relative=False), ""),
    "a schema up": (
        lambda k: k.run("UPDATE ducklake_schema SET path = '../victim/'"),
        "leaves",
    ),
    "a file up": (lambda k: file_row(k, "data_file", "../../../victim/a.txt"), ""),
    "a file up, absolute": (
        lambda k: file_row(k, "data_file", f"{k.data}/../victim/a.txt", relative=False),
        "",
    ),
    "deletes up": (lambda k: file_row(k, "delete_file", "../../../victim/a.txt"), ""),
    "deletes elsewhere": (
        lambda k: file_row(k, "delete_file", f"{k.victim}/a.txt", relative=False),
        "",
    ),
}


@pytest.fixture
def attacked(base, tmp_path, request):
    lake = Lake(tmp_path, base)
    ATTACKS[request.param][0](lake)
    lake.told = ATTACKS[request.param][1]
    return lake


every_attack = pytest.mark.parametrize("attacked", ATTACKS, indirect=True)


def clean(lake):
    lake.cleanup_old_files(cleanup_all=True)


def clean_adopted(lake):
    lake.cleanup_old_files(cleanup_all=True, include_adopted=True)


def orphans(lake):
    lake.remove_orphans(older_than="0 seconds", duckdb_files=True)


def drop(lake):
    lake.sql("DROP TABLE t; DROP TABLE u")


def expire(lake):
    lake.expire_snapshots(versions=[s.id for s in lake.snapshots()[:-1]])


def fail(lake):
    lake.sql("INSERT INTO t SELECT id, raise_error('no') FROM range(99)")


def compact(lake):
    lake.table("t").compact()


def checkpoint(lake):
    lake.set_option("expire_older_than", "0 seconds")
    lake.set_option("delete_older_than", "0 seconds")
    lake.checkpoint()


def told_by(lake, attacked, acts):
    """Do what deletes, and return what was refused; nothing of the victim's is ever gone."""
    told = []
    before = attacked.victims()
    for act in acts:
        try:
            act(lake)
        except CorruptLake as error:
            told.append(str(error))
        except Exception:  # noqa: BLE001 - Spark does not read what is no Parquet file
            assert act in (fail, compact, checkpoint), act
        assert attacked.victims().items() >= before.items(), act.__name__
    return told


@pytest.mark.sampled(18)
@every_attack
def test_cleaning_leaves_the_files_of_others_and_live_files(attacked):
    lives = attacked.lives()
    # An adopted file without tricks in its path goes when somebody says so.
    more = [] if attacked.has_adopted_victim() else [clean_adopted]
    with attacked.connect() as lake:
        told = told_by(lake, attacked, [clean, orphans, *more])
        assert attacked.lives() >= lives
        told += told_by(lake, attacked, [drop, expire, clean, orphans])
    assert any(attacked.told in text for text in told) or not attacked.told, told


@pytest.mark.slow
@every_attack
def test_writing_and_compacting_leave_the_files_of_others(attacked):
    with attacked.connect() as lake:
        told_by(lake, attacked, [fail, compact, checkpoint])
