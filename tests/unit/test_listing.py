"""Parquet files by path, directory and pattern."""

from __future__ import annotations

import pytest

from shelduck.engine.files.listing import find_parquet
from shelduck.errors import InvalidRequest


@pytest.fixture
def tree(tmp_path):
    for name in ("a.parquet", "b.parquet", "p=1/c.parquet", "p=2/q=x/d.parquet", "n.txt"):
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"0123456789")
    for name in ("_temporary/e.parquet", ".f.parquet", "_g.parquet", "_p=3/h.parquet"):
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"")
    return tmp_path


def found(tree, *places):
    return [f.path.removeprefix(f"{tree}/") for f in find_parquet([f"{tree}/{p}" for p in places])]


def test_a_directory_means_its_parquet_files_at_any_depth_but_hidden_ones(tree):
    # A partition column may begin with an underscore.
    assert found(tree, "") == [
        "_p=3/h.parquet",
        "a.parquet",
        "b.parquet",
        "p=1/c.parquet",
        "p=2/q=x/d.parquet",
    ]


def test_a_file_is_taken_whatever_its_name_and_comes_with_its_size(tree):
    assert [(f.path, f.size) for f in find_parquet([f"{tree}/n.txt"])] == [(f"{tree}/n.txt", 10)]


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("*.parquet", [".f.parquet", "_g.parquet", "a.parquet", "b.parquet"]),
        ("[ab].parquet", ["a.parquet", "b.parquet"]),
        ("[!_b.]*.parquet", ["a.parquet"]),
        ("?.parquet", ["a.parquet", "b.parquet"]),
        ("p=*/*.parquet", ["p=1/c.parquet"]),
        ("p=*/**/*.parquet", ["p=1/c.parquet", "p=2/q=x/d.parquet"]),
        ("**/d.parquet", ["p=2/q=x/d.parquet"]),
    ],
)
def test_a_pattern_means_the_files_that_fit_it(tree, pattern, files):
    assert found(tree, pattern) == files


def test_several_places_give_each_file_once(tree):
    assert found(tree, "a.parquet", "*.parquet", "p=1") == [
        ".f.parquet",
        "_g.parquet",
        "a.parquet",
        "b.parquet",
        "p=1/c.parquet",
    ]


@pytest.mark.parametrize("place", ["nothing", "nothing/*.parquet", "p=9*"])
def test_a_place_without_files_is_refused(tree, place):
    with pytest.raises(InvalidRequest, match="there is no Parquet file at"):
        find_parquet([f"{tree}/{place}"])


def test_a_directory_without_parquet_files_is_refused(tmp_path):
    with pytest.raises(InvalidRequest, match="there is no Parquet file at"):
        find_parquet([str(tmp_path)])


def test_a_relative_path_becomes_an_absolute_one(tree, monkeypatch):
    monkeypatch.chdir(tree / "p=1")

    assert [f.path for f in find_parquet(["../a.parquet", f"file://{tree}/a.parquet"])] == [
        f"{tree}/a.parquet"
    ]


def test_a_file_that_spark_cannot_open_is_refused_by_name(tree):
    (tree / "p=a:b").mkdir()
    (tree / "p=a:b" / "c.parquet").write_bytes(b"")
    assert found(tree, "p=a:b") == ["p=a:b/c.parquet"]
    (tree / "p=a:b" / "12:30.parquet").write_bytes(b"")
    with pytest.raises(InvalidRequest, match=r"12:30\.parquet because its name contains a colon"):
        found(tree, "p=a:b")
