"""Raw keys on an object store: what is written under a key is found, read and deleted under it."""

from __future__ import annotations

import pickle
import sys
from uuid import uuid4

import pytest
from sqlalchemy import text

import shelduck
from shelduck.engine.files import s3_requests
from shelduck.engine.files.listing import find_parquet
from shelduck.engine.files.storage import (
    carry_file,
    copy_file,
    delete_directory,
    delete_file,
    delete_files,
    filesystem,
    list_data_files,
    list_everything,
    list_names,
    read_text,
    write_new_text,
    write_text,
)
from shelduck.errors import CorruptLake, Unsupported
from shelduck.model.files.place import place_below
from shelduck.model.text.names import write_directory
from tests.support.s3 import BUCKET, counted, running_s3

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
        assert [f.path for f in find_parquet([path])] == [path]
        with pytest.raises(FileExistsError):
            write_new_text(path, "")


def test_files_move_and_are_copied_between_odd_keys(s3):
    for value in ODD[::3]:
        write_text(f"{HOME}w/{value}.parquet", value)
        carry_file(f"{HOME}w/{value}.parquet", f"{HOME}t/city={value}/0.parquet")
        copy_file(f"{HOME}t/city={value}/0.parquet", f"{HOME}t/city={value}/1.parquet")
        assert read_text(f"{HOME}t/city={value}/1.parquet") == value
    delete_directory(below("w"))
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


def test_a_thousand_files_are_deleted_by_one_request(s3):
    names = [f"t/city={ODD[n % len(ODD)]}/{n}.parquet" for n in range(1001)]
    for name in (*names[::40], "t/stays.parquet"):
        s3.put(f"lake/{name}", b"")
    counted(s3.endpoint)
    delete_files([*map(below, names), below("t/missing")])
    assert counted(s3.endpoint) == {"DELETE_MANY": 2}
    assert s3.keys("lake/") == ["lake/t/stays.parquet"]


def test_without_boto3_files_are_deleted_one_by_one(s3, monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    s3_requests._client.cache_clear()
    try:
        s3.put("lake/a#b", b"")
        s3.put("lake/c", b"")
        delete_files([below("a#b"), below("c"), below("missing")])
        assert s3.keys("lake/") == []
        assert list(s3_requests.unfinished_uploads(HOME)) == []
    finally:
        s3_requests._client.cache_clear()


def test_a_small_file_is_one_request(s3):
    counted(s3.endpoint)
    write_text(f"{HOME}small", "text")
    assert counted(s3.endpoint) == {"PUT": 1}


def test_uploads_that_never_ended_are_orphans(s3, tmp_path):
    other = write_directory(str(uuid4()), 0, 0)
    with shelduck.connect(f"sqlite:///{tmp_path}/lake.db", HOME) as lake:
        lake.execute("CREATE TABLE t (id INT)")
        with lake._state.store.read() as connection:
            unique = connection.execute(text("SELECT table_uuid FROM ducklake_table")).scalar()
        write = write_directory(unique, 0, 0)
        for name in (f"{write}/part-0.parquet", f"{other}/part-0.parquet", "of-somebody.bin"):
            s3.client.create_multipart_upload(Bucket=BUCKET, Key=f"lake/main/t/{name}")
        # The server says of every upload that it began in 2010.
        found = lake.remove_orphans(older_than="0 seconds", dry_run=True)
        assert found.files == (f"{HOME}main/t/{write}/part-0.parquet",)
        assert lake.remove_orphans(older_than="0 seconds").files == found.files
        assert lake.remove_orphans(older_than="0 seconds").files == ()
        left = [upload.path.rpartition("/")[2] for upload in s3_requests.unfinished_uploads(HOME)]
        assert sorted(left) == ["of-somebody.bin", "part-0.parquet"]


def test_a_write_that_never_landed_is_found_whatever_the_pages_of_the_listing(
    s3, tmp_path, monkeypatch
):
    monkeypatch.setattr(s3_requests, "_IN_ONE_REQUEST", 2)
    with shelduck.connect(f"sqlite:///{tmp_path}/lake.db", HOME) as lake:
        lake.execute("CREATE TABLE t (id INT)")
        with lake._state.store.read() as connection:
            unique = connection.execute(text("SELECT table_uuid FROM ducklake_table")).scalar()
        write, later = write_directory(unique, 0, 0), write_directory(unique, 2**42, 0)
        names = [f"{write}/city=#/{n}.parquet" for n in range(5)] + [f"{write}/a.bin"]
        for name in (*names, f"{later}/a.parquet", f"{write_directory(str(uuid4()), 0, 0)}/a"):
            s3.put(f"lake/main/t/{name}", b"12")

        counted(s3.endpoint)
        found = lake.remove_orphans(older_than="0 seconds")

        # Eight objects, two on each page; then the uploads.
        assert counted(s3.endpoint) == {"LIST": 4 + 1, "DELETE_MANY": 3}
        assert sorted(found.files) == sorted(f"{HOME}main/t/{name}" for name in names)
        assert found.bytes == 12
        # By the clock of its writer, the other write has not begun yet.
        assert [key.split("/")[3] for key in s3.keys("lake/")][1:] == [later]


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
