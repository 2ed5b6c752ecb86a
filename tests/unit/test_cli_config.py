"""``shelduck.toml``: which lake a name means, and what is told about a file that is wrong."""

from __future__ import annotations

import pytest

from shelduck.cli.config import lake_names, named_lake, wanted_lake
from shelduck.errors import InvalidRequest, NotFound


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home directory and a working directory without files."""
    (tmp_path / "home").mkdir()
    (tmp_path / "project" / "deep").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "project" / "deep")
    return tmp_path


def write(place, text):
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


def test_the_nearest_file_wins_over_that_of_the_user(home):
    write(
        home / "home/.config/shelduck/shelduck.toml",
        '[lakes.prod]\ncatalog = "postgresql://home"\n[lakes.mine]\ncatalog = "postgresql://mine"',
    )
    write(home / "project/shelduck.toml", '[lakes.prod]\ncatalog = "postgresql://project"')
    write(home / "shelduck.toml", '[lakes.far]\ncatalog = "postgresql://far"')

    assert named_lake("prod").catalog == "postgresql://project"
    assert named_lake("mine").catalog == "postgresql://mine"
    assert lake_names() == ["prod", "mine"]
    with pytest.raises(NotFound) as told:
        named_lake("far")
    assert str(told.value) == (
        "lake 'far' does not exist; named lakes: 'prod', 'mine', or use an address such as"
        " sqlite:////data/lake.db"
    )


def test_a_given_file_is_the_only_one(home):
    write(home / "project/shelduck.toml", '[lakes.prod]\ncatalog = "postgresql://project"')
    other = write(home / "other.toml", '[lakes.test]\ncatalog = "postgresql://test"')

    assert named_lake("test", other).catalog == "postgresql://test"
    with pytest.raises(NotFound, match="named lakes: 'test', or use an address"):
        named_lake("prod", other)


def test_without_a_file_the_error_says_so(home):
    with pytest.raises(NotFound, match=r"'prod' does not exist; no shelduck\.toml was found"):
        named_lake("prod")
    empty = write(home / "empty.toml", "")
    with pytest.raises(NotFound, match=r"empty\.toml has none; name lakes there"):
        named_lake("prod", empty)


def test_paths_are_relative_to_the_file_and_variables_are_filled(home, monkeypatch):
    monkeypatch.setenv("PASSWORD", "s3cret")
    write(
        home / "project/shelduck.toml",
        """
        [lakes.here]
        catalog = "sqlite:///lake.db"
        data_path = "files"
        conf = { "spark.driver.memory" = "4g", "spark.x" = true, "spark.y" = 3 }
        storage = { endpoint = "http://minio:9000", path_style = true }
        [lakes.there]
        catalog = "postgresql://me:${PASSWORD}@host/lake"
        data_path = "s3a://bucket/lake"
        [lakes."any where"]
        catalog = "duckdb:////data/lake.ducklake"
        """,
    )
    here, there = named_lake("here"), named_lake("there")

    assert here.catalog == f"sqlite:///{home}/project/lake.db"
    assert here.data_path == f"{home}/project/files"
    assert here.conf == {"spark.driver.memory": "4g", "spark.x": "true", "spark.y": "3"}
    assert here.storage == {"endpoint": "http://minio:9000", "path_style": "true"}
    assert there.catalog == "postgresql://me:s3cret@host/lake"
    assert there.data_path == "s3a://bucket/lake"
    assert "s3cret" not in repr(there)
    assert named_lake("any where").catalog == "duckdb:////data/lake.ducklake"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("lakes = 1", "lakes must be a table, not a number"),
        ("[lakes]\nprod = 's'", "lakes.prod must be a table, not text"),
        ("[lake.prod]", "lake is not a known key; write [lakes.NAME]"),
        ("[lakes.prod]", 'lakes.prod has no catalog; add catalog = "ADDRESS"'),
        ("[lakes.prod]\ncatalog = ''", "lakes.prod.catalog must be text, not an empty text"),
        ("[lakes.prod]\ncatalog = ['s']", "lakes.prod.catalog must be text, not a list"),
        (
            "[lakes.prod]\nurl = 'secret'",
            "lakes.prod.url is not a known key; the keys are catalog, data_path, conf and storage",
        ),
        (
            "[lakes.prod]\ncatalog = 'x://y'\ndata_path = true",
            "lakes.prod.data_path must be text, not true or false",
        ),
        (
            "[lakes.'a b']\ncatalog = 'x://y'\nconf = { 'spark.a' = [] }",
            'lakes."a b".conf."spark.a" must be text, a number or true or false, not a list',
        ),
        (
            "[lakes.prod]\ncatalog = 'x://${NOPE}'",
            "lakes.prod.catalog uses the environment variable NOPE, which is not set; set it",
        ),
    ],
)
def test_a_wrong_file_is_one_error_with_file_and_key(home, text, told):
    place = write(home / "project/shelduck.toml", text)

    with pytest.raises(InvalidRequest) as error:
        named_lake("prod")
    assert str(error.value) == f"{place}: {told}"


def test_a_file_that_is_no_toml_is_told_with_its_line(home):
    place = write(home / "project/shelduck.toml", "[lakes.prod]\ncatalog postgresql")

    with pytest.raises(InvalidRequest) as error:
        named_lake("prod")
    assert str(error.value).startswith(f"cannot read {place}: ")
    assert "line 2" in str(error.value)
    with pytest.raises(InvalidRequest, match=r"cannot read .*none.toml: .*No such file"):
        named_lake("prod", home / "none.toml")


def test_an_address_is_never_a_name(home):
    write(home / "project/shelduck.toml", '[lakes."duckdb:///a"]\ncatalog = "postgresql://no"')

    assert wanted_lake("duckdb:///a").catalog == "duckdb:///a"
    assert wanted_lake("me:secret@host").catalog == "me:secret@host"
