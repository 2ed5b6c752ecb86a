"""Places of files: one spelling, nothing that leaves its root, and one layer that deletes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import shelduck
from shelduck.catalog.schema.lake_schema import absolute_data_path
from shelduck.errors import CorruptLake
from shelduck.model.files.place import (
    Place,
    is_below,
    joined,
    normal,
    place_below,
    place_in,
    place_of_stranger,
    split_address,
    storage_path,
)

PLAIN = ["/a/b", "/a/b/", "/", "s3a://bucket/a b#%2B+?&/x", "hdfs://host:8020/x", "/a:b", "/é/😀"]


@pytest.mark.parametrize("path", PLAIN)
def test_a_plain_path_stays_letter_for_letter(path):
    assert normal(path) == path


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("/a/./b//c", "/a/b/c"),
        ("/a/x/../b/", "/a/b/"),
        ("/a/b/.", "/a/b/"),
        ("/../a", "/a"),
        ("file:///a/b", "/a/b"),
        ("FILE:/a//b", "/a/b"),
        ("S3A://Bucket/Key", "s3a://Bucket/Key"),
        ("s3://bucket", "s3://bucket/"),
        ("s3://bucket//a/../b", "s3://bucket/b"),
        ("s3://bucket/../../other/b", "s3://bucket/other/b"),
    ],
)
def test_every_spelling_has_one_plain_one(path, plain):
    assert normal(path) == plain
    assert normal(plain) == plain


def test_names_of_one_storage_are_equal():
    found = {storage_path(f"{s}://b/x//y") for s in ("s3", "s3a", "S3N")}
    assert found == {"s3://b/x/y"}


def test_an_address_is_taken_apart_without_decoding():
    assert split_address("s3a://b/a%2Fb?c#d") == ("s3a", "b", "a%2Fb?c#d")
    assert split_address("/a%20b://c") == ("", "", "/a%20b://c")


@pytest.mark.parametrize(
    ("path", "key"),
    [("a/b", "a/b"), ("./a//b", "a/b"), ("/a", "a"), ("x/../a", "a"), ("a/.", "a"), ("...", "...")],
)
def test_a_place_below_a_root_has_one_key(path, key):
    assert place_below("/lake/", path) == Place("/lake/", key)
    assert joined("/lake/", path) == f"/lake/{key}" + "/" * path.endswith("/")


@pytest.mark.parametrize(
    "path", ["", ".", "..", "../x", "a/../..", "a/../../x", "a/", "a ", "b /c"]
)
@pytest.mark.parametrize("root", ["/lake/", "s3a://bucket/lake/"])
def test_what_names_no_file_below_the_root_is_no_place(path, root):
    with pytest.raises(CorruptLake):
        place_below(root, path)


@pytest.mark.parametrize(("root", "key"), [("/lake", "a"), ("/x/../lake/", "a"), ("/lake/", "./a")])
def test_a_place_cannot_be_made_by_hand_of_another_spelling(root, key):
    with pytest.raises(CorruptLake):
        Place(root, key)


def test_a_path_is_inside_by_its_plain_spelling():
    assert place_in("s3a://b/lake/", "S3://b/lake//x") == Place("s3a://b/lake/", "x")
    for outside in ("/lake/../x", "/lakes/x", "/lake/", "/lake", "s3://lake/x"):
        assert place_in("/lake/", outside) is None


@pytest.mark.parametrize("path", ["a", "./a", "/a/../b", "/a//b", "/a/", "file:///a"])
def test_a_file_of_somebody_else_is_named_plainly_or_not_at_all(path):
    with pytest.raises(CorruptLake):
        place_of_stranger(path)
    assert str(place_of_stranger("s3://b/x#y")) == "s3://b/x#y"


def test_a_data_path_is_stored_plainly(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert absolute_data_path("data/../x") == f"{tmp_path}/x/"
    assert absolute_data_path("file:///a/b") == "/a/b/"
    assert absolute_data_path("S3A://bucket/a//b") == "s3a://bucket/a/b/"
    assert absolute_data_path("s3a://bucket/a%2Bb") == "s3a://bucket/a%2Bb/"


# Who may call what opens, lists, copies or deletes; what is there for another purpose is named.
LAYER = {"engine/files/storage.py", "engine/files/s3_requests.py"}
OTHERS = {
    "engine/bridge/classes.py": {"unlink"},  # compiled classes in a cache of the user
    "catalog/databases/duckdb.py": {"unlink"},  # a new catalog that is not in its place yet
    "catalog/databases/duckdb_lease.py": {"unlink"},  # the wish beside a catalog, no file of a lake
}
VERBS = {
    *("from_uri", "LocalFileSystem", "S3FileSystem", "delete_dir", "delete_dir_contents"),
    *("unlink", "rmtree", "rmdir", "removedirs", "abort_multipart_upload"),
}


def test_one_layer_opens_and_deletes():
    root = Path(shelduck.__file__).parent
    found = set()
    for file in root.rglob("*.py"):
        name = file.relative_to(root).as_posix()
        calls = (n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Call))
        verbs = {n.func.attr for n in calls if isinstance(n.func, ast.Attribute)} & VERBS
        if name not in LAYER:
            found |= {(name, verb) for verb in verbs - OTHERS.get(name, set())}
    assert not found


def test_only_places_are_deleted():
    file = Path(shelduck.__file__).parent / "engine" / "files" / "storage.py"
    functions = [n for n in ast.parse(file.read_text()).body if isinstance(n, ast.FunctionDef)]
    taken = {
        f.name: ast.unparse(f.args.args[0].annotation)
        for f in functions
        if f.name.startswith("delete_")
    }
    assert taken == {
        "delete_directory": "Place",
        "delete_file": "Place",
        "delete_files": "Iterable[Place]",
    }


def test_a_path_is_below_a_directory_under_each_name_of_the_storage():
    for path in ("s3://b/lake/x", "S3A://b//lake/x", "s3n://b/lake/y/../x"):
        assert is_below(path, "s3a://b/lake/")
    for path in ("s3://b/lakes/x", "s3://c/lake/x", "s3://b/lake/../x", "/lake/x"):
        assert not is_below(path, "s3a://b/lake/")
