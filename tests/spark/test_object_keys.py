"""Raw keys on an object store: what is written under a key is found, read and deleted under it."""

from __future__ import annotations

import pickle

import pytest

from shelduck.errors import CorruptLake, Unsupported
from shelduck.model.files.place import place_below
from shelduck.spark.files.file_systems import filesystem
from shelduck.spark.files.listing import find_parquet
from shelduck.spark.files.storage import (
    copy_file,
    delete_directory,
    delete_file,
    delete_files,
    list_data_files,
    list_everything,
    list_names,
    move_file,
    read_tail,
    read_text,
    write_new_text,
    write_text,
)
from tests.support.s3 import BUCKET, running_s3

# Keys that a URI parser takes for something else, or apart.
ODD = [
    *("A+B", "A%2BB", "a%b", "%", "%%", "New York", " x", "Zürich", "Zu\u0308rich", "😀", "日本"),
    *("#", "a#b", "?", "a?b=c&d", "a:b", "a;b", "a@b", "a,b", "a=b", "[x]", "{x}", "*", "a\\b"),
    *("a'b", 'a"b', "a`b", "<x>", "a|b", "a^b", "~", "!", "$x", "(x)", "a&b", "..."),
]
HOME = f"s3a://{BUCKET}/lake/"


@pytest.fixture(scope="module")
def s3():
    with running_s3() as server:
        yield server


@pytest.fixture(autouse=True)
def empty(s3):
    yield
    delete_directory(place_below(f"s3a://{BUCKET}/", "lake"))


def below(name):
    return place_below(HOME, name)


def test_every_verb_takes_keys_letter_for_letter(s3):
    written = [f"{HOME}w/city={value}/0.parquet" for value in ODD]
    for path in written:
        write_text(path, path)
    assert s3.keys("lake/w/") == sorted(f"lake/w/city={value}/0.parquet" for value in ODD)
    assert {f.name for f in list_data_files(f"{HOME}w")} == {f"city={v}/0.parquet" for v in ODD}
    assert set(list_names(f"{HOME}w")) == {f"city={value}" for value in ODD}
    assert {e.name for e in list_everything(f"{HOME}w/") if not e.is_directory} == {
        f"city={value}/0.parquet" for value in ODD
    }
    for path in written:
        assert read_text(path) == path
        assert read_tail(path, len(path.encode()), 9) == b"0.parquet"
        assert [f.path for f in find_parquet([path])] == [path]
        with pytest.raises(FileExistsError):
            write_new_text(path, "")


def test_files_move_and_are_copied_between_odd_keys(s3):
    for value in ODD[::3]:
        write_text(f"{HOME}w/{value}.parquet", value)
        move_file(f"{HOME}w/{value}.parquet", f"{HOME}t/city={value}/0.parquet")
        copy_file(f"{HOME}t/city={value}/0.parquet", f"{HOME}t/city={value}/1.parquet")
        assert read_text(f"{HOME}t/city={value}/1.parquet") == value
    assert s3.keys("lake/") == sorted(
        f"lake/t/city={value}/{n}.parquet" for value in ODD[::3] for n in (0, 1)
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("value", ["#", "?", "%", "A+B", "x y", "..."])
def test_a_deletion_takes_nothing_but_what_it_names(s3, value):
    for name in (value, "A B", "A%2BB", "x%20y", ""):
        s3.put(f"lake/t/city={name}/0.parquet", b"")
    s3.put("lake/t/0.parquet", b"")
    everything = set(s3.keys("lake/"))

    delete_file(below(f"t/city={value}/0.parquet"))
    assert everything - set(s3.keys("lake/")) == {f"lake/t/city={value}/0.parquet"}

    s3.put(f"lake/t/city={value}/0.parquet", b"")
    delete_directory(below(f"t/city={value}"))
    assert everything - set(s3.keys("lake/")) == {f"lake/t/city={value}/0.parquet"}

    delete_files([below("t/city=A B/0.parquet"), below("t/missing")])
    assert f"lake/t/city={value}/0.parquet" not in s3.keys("lake/")
    assert "lake/t/0.parquet" in s3.keys("lake/")


@pytest.mark.parametrize("key", ["", "..", "../other/x", "t/../../x"])
def test_what_leaves_the_root_is_not_deleted(s3, key):
    s3.put("lake/t/0.parquet", b"")
    with pytest.raises(CorruptLake):
        delete_directory(below(key))
    assert s3.keys("lake/") == ["lake/t/0.parquet"]


def test_a_bucket_has_one_file_system_which_goes_to_the_executors(s3):
    files, key = filesystem(f"{HOME}a#b")
    assert key == f"{BUCKET}/lake/a#b"
    assert filesystem(f"{HOME}c")[0] is files
    write_text(f"{HOME}a#b", "there")
    copy = pickle.loads(pickle.dumps(files))
    assert copy.get_file_info(key).size == 5


def test_a_scheme_that_nobody_knows_is_refused():
    with pytest.raises(Unsupported, match="nobodys://host"):
        filesystem("nobodys://host/a")
