"""Files that a commit names are looked at, at the least of requests, by everyone who commits."""

from __future__ import annotations

import ast
from pathlib import Path

import pyarrow.fs
import pytest

import shelduck
from shelduck.engine.files import listing
from shelduck.engine.files.listing import absent_files

SOURCE = Path(shelduck.__file__).parent


def files_in(folder: Path, count: int) -> list[tuple[str, int]]:
    folder.mkdir()
    for n in range(count):
        (folder / f"{n}.parquet").write_bytes(b"x" * (n + 1))
    return [(f"{folder}/{n}.parquet", n + 1) for n in range(count)]


def test_files_that_are_gone_or_of_another_size_are_told(tmp_path):
    found = files_in(tmp_path / "a", 3)
    (tmp_path / "a" / "1.parquet").unlink()
    (tmp_path / "a" / "2.parquet").write_bytes(b"much longer")
    assert absent_files(found) == [
        f"{tmp_path}/a/1.parquet is missing",
        f"{tmp_path}/a/2.parquet has 11 bytes instead of 3",
    ]
    assert absent_files([(f"{tmp_path}/none/0.parquet", 1)]) == [
        f"{tmp_path}/none/0.parquet is missing"
    ]
    assert absent_files([]) == []


class Counted:
    """A storage that is no local disk, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, path: str):
        return self, path

    def get_file_info(self, what):
        self.asked += 1
        return pyarrow.fs.LocalFileSystem().get_file_info(what)


@pytest.mark.parametrize(("count", "requests"), [(0, 0), (1, 1), (16, 16), (17, 1), (300, 1)])
def test_a_directory_of_many_files_is_one_request(tmp_path, monkeypatch, count, requests):
    found = files_in(tmp_path / "a", count)
    store = Counted()
    monkeypatch.setattr(listing, "local_path", lambda _: None)
    monkeypatch.setattr(listing, "filesystem", store)
    assert absent_files(found) == []
    assert store.asked == requests
    if count:
        (tmp_path / "a" / "0.parquet").unlink()
        assert absent_files(found) == [f"{tmp_path}/a/0.parquet is missing"]


def test_everyone_who_commits_looks_before():
    commits = []
    for path in sorted(SOURCE.rglob("*.py")):
        source = path.read_text()
        # Parsing all of them takes seconds.
        if "catalog.commit.commit" not in source:
            continue
        tree = ast.parse(source)
        names = {a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)
                 and n.module == "shelduck.catalog.commit.commit" for a in n.names}  # fmt: skip
        if "commit" in names:
            called = {
                n.func.id
                for n in ast.walk(tree)
                if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
            }
            commits.append((path.name, "require_files" in called))
    # A repair adds no files.
    looks = [("check.py", False), ("job_record.py", True), ("jobs.py", True), ("unit.py", True)]
    assert sorted(commits) == looks
