"""How a lake on an object store is reached: one configuration, checked when it is connected."""

from __future__ import annotations

import logging
import sqlite3
import sys

import pytest
from typer.testing import CliRunner

import shelduck
from shelduck.cli.app import app
from shelduck.engine.files.reaching import settings_of_session, speaks_for_itself
from shelduck.engine.files.storage import write_text
from shelduck.engine.stores.homes import (
    Home,
    forget_homes,
    hide_secrets_in_log,
    home_of,
    own_home,
    put_home,
    settings_of_environment,
    spark_options,
    spark_path,
)
from shelduck.errors import InvalidRequest, StorageUnavailable, Unsupported
from shelduck.model.files.storage_settings import StorageSettings, storage_settings
from tests.support.s3 import BUCKET, KEY, SECRET, Fault, fail, running_s3

HOME = f"s3://{BUCKET}/lake/"


@pytest.fixture(scope="module")
def s3():
    with running_s3(checks_keys=True, tells=False) as server:
        yield server


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch, tmp_path):
    forget_homes()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))


def settings(s3, **other):
    return {"endpoint": s3.endpoint, "access_key": KEY, "secret_key": SECRET} | other


def connect(tmp_path, data_path=HOME, **storage):
    return shelduck.connect(f"sqlite:///{tmp_path}/lake.db", data_path, storage=storage)


def test_storage_is_enough_for_python(s3, tmp_path):
    with connect(tmp_path, **settings(s3)):
        write_text(f"{HOME}a#b", "there")
    assert s3.keys("lake/") == ["lake/a#b"]


def test_who_connects_without_storage_keeps_what_was_given_before(s3, tmp_path):
    with connect(tmp_path, **settings(s3)):
        with connect(tmp_path):
            write_text(f"{HOME}second", "there")
        write_text(f"{HOME}first", "there")
    assert {"lake/first", "lake/second"} <= set(s3.keys("lake/"))


def test_a_named_lake_has_the_settings_of_its_store(s3, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THE_SECRET", SECRET)
    (tmp_path / "shelduck.toml").write_text(
        f"""[lakes.prod]
        catalog = "sqlite:///lake.db"
        data_path = "{HOME}"
        [lakes.prod.storage]
        endpoint = "{s3.endpoint}"
        access_key = "{KEY}"
        secret_key = "${{THE_SECRET}}"
        """
    )
    made = CliRunner().invoke(app, ["sql", "CREATE TABLE t (id INT)", "-c", "prod"])
    assert made.exit_code == 0, made.output
    # A worker opens the lake without a check, and reaches its files all the same.
    forget_homes()
    assert CliRunner().invoke(app, ["jobs", "run", "--once", "-c", "prod"]).exit_code == 0
    assert home_of(HOME).settings.endpoint == s3.endpoint
    assert home_of(HOME).settings.secret_key == SECRET


def test_the_environment_is_enough(s3, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    (tmp_path / "credentials").write_text(
        f"[team]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    )
    monkeypatch.setenv("AWS_PROFILE", "team")
    with connect(tmp_path, f"s3a://{BUCKET}/profile/"):
        write_text(f"s3n://{BUCKET}/profile/x", "there")
    assert s3.keys("profile/") == ["profile/x"]
    assert settings_of_environment() == StorageSettings(
        endpoint=s3.endpoint, access_key=KEY, secret_key=SECRET
    )


def test_a_profile_has_an_endpoint_and_a_region(tmp_path, monkeypatch):
    (tmp_path / "config").write_text(
        "[default]\nregion = eu-north-1\n[profile x]\nregion = eu-west-2\nendpoint_url = http://h\n"
    )
    assert settings_of_environment() == StorageSettings(region="eu-north-1")
    monkeypatch.setenv("AWS_PROFILE", "x")
    assert settings_of_environment() == StorageSettings(region="eu-west-2", endpoint="http://h")
    monkeypatch.setenv("AWS_REGION", "eu-south-1")
    assert settings_of_environment().region == "eu-south-1"


def test_a_session_says_how_a_bucket_is_reached():
    said = {
        "fs.s3a.endpoint": "minio:9000",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "a",
        "fs.s3a.secret.key": "b",
        "fs.s3a.bucket.other.access.key": "c",
    }
    assert settings_of_session(said.get, "lakes") == StorageSettings(
        endpoint="http://minio:9000", path_style=True, access_key="a", secret_key="b"
    )
    assert settings_of_session(said.get, "other").access_key == "c"
    assert speaks_for_itself(said.get, "s3", "lakes")
    assert not speaks_for_itself({"fs.s3a.threads.max": "9"}.get, "s3", "lakes")
    public = {"fs.s3a.aws.credentials.provider": "x.AnonymousAWSCredentialsProvider"}
    assert settings_of_session(public.get, "lakes") == StorageSettings(anonymous=True)


def test_spark_gets_the_settings_with_each_read_under_a_scheme_of_its_own():
    first = StorageSettings(endpoint="http://h:9000", access_key="a", secret_key="b")
    put_home("s3a://lakes/one/", own_home("lakes", first))
    put_home("s3://lakes/two/", Home(StorageSettings(), "s3a"))
    put_home("s3://lakes/one/inside/", own_home("lakes", StorageSettings(anonymous=True)))

    scheme, _, rest = spark_path("s3n://lakes/one/x#y").partition("://")
    assert rest == "lakes/one/x#y"
    options = spark_options(["/local/x", "s3://lakes/one/a", "s3://lakes/one/b"])
    assert options[f"fs.{scheme}.impl"] == "org.apache.hadoop.fs.s3a.S3AFileSystem"
    assert {k: v for k, v in options.items() if k.endswith((".key", "endpoint", "access"))} == {
        "fs.s3a.bucket.lakes.endpoint": "http://h:9000",
        "fs.s3a.bucket.lakes.path.style.access": "true",
        "fs.s3a.bucket.lakes.access.key": "a",
        "fs.s3a.bucket.lakes.secret.key": "b",
    }
    assert spark_path("s3://lakes/two/x") == "s3a://lakes/two/x"
    assert spark_options(["s3://lakes/two/x"]) == {}
    assert spark_path("s3://lakes/one/inside/x").partition("://")[0] not in ("s3", "s3a", scheme)
    assert spark_path("/a b/c") == "file:///a b/c"


def test_files_elsewhere_are_reached_as_the_lake_is():
    said = StorageSettings(endpoint="http://h:9000", access_key="a", secret_key="b")
    put_home("s3a://lakes/one/", own_home("lakes", said))
    assert home_of("s3://others/x").settings == said
    assert spark_options(["s3://others/x"])["fs.s3a.bucket.others.access.key"] == "a"
    put_home("s3a://third/", own_home("third", StorageSettings(anonymous=True)))
    assert home_of("s3://others/x").settings == StorageSettings()


def test_secrets_are_not_shown(s3, tmp_path):
    with connect(tmp_path, **settings(s3)) as lake:
        shown = [repr(lake), repr(lake._state), repr(home_of(HOME)), str(vars(lake._state))]
        assert not [text for text in shown if SECRET in text]
    content = (tmp_path / "lake.db").read_bytes()
    assert SECRET.encode() not in content
    assert s3.endpoint.encode() not in content


def test_py4j_logs_no_secret_that_is_sent_to_spark(spark, caplog):
    said = StorageSettings(access_key="a", secret_key="Gehe1m-key", session_token="Gehe1m-token")
    hide_secrets_in_log()
    put_home("s3a://lakes/one/", own_home("lakes", said))
    with caplog.at_level(logging.DEBUG, "py4j"):
        spark.read.options(**spark_options(["s3://lakes/one/a"]))
    assert "fs.s3a.bucket.lakes.secret.key" in caplog.text
    assert "***" in caplog.text
    assert "Gehe1m" not in caplog.text


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"acces_key": "x"}, "unknown name 'acces_key'; did you mean 'access_key'"),
        ({"access_key": "x"}, "access_key and secret_key together"),
        ({"session_token": "x"}, "session_token, but no access_key"),
        ({"anonymous": True, "access_key": "x", "secret_key": "y"}, "anonymous, but"),
        ({"endpoint": "${x}"}, "must be a text"),
        ({"path_style": "maybe"}, "true or false"),
    ],
)
def test_storage_is_checked(given, told):
    with pytest.raises(InvalidRequest, match=told.replace("{", "\\{")):
        storage_settings(given)


@pytest.mark.parametrize(
    ("data_path", "storage", "told"),
    [
        ("ftp://host/lake", {}, "scheme ftp://, which Shelduck does not know"),
        ("s3:/bucket/lake", {}, "names no bucket; write s3://bucket/folder"),
        ("gs://bucket/lake", {"region": "x"}, "storage= is for data paths on s3://"),
        ("~/lake", {}, "begins with '~'"),
        (f"{sys.executable}/lake", {}, "is a file"),
    ],
)
def test_a_data_path_that_cannot_be_is_refused_before_anything_is_made(
    tmp_path, data_path, storage, told
):
    with pytest.raises(InvalidRequest, match=told):
        connect(tmp_path, data_path, **storage)
    _nothing_made(tmp_path)


def _nothing_made(tmp_path):
    if not (tmp_path / "lake.db").exists():
        return
    with sqlite3.connect(tmp_path / "lake.db") as made:
        assert made.execute("SELECT name FROM sqlite_master").fetchall() == []


def test_the_error_says_what_is_wrong(s3, tmp_path):
    with pytest.raises(StorageUnavailable, match="bucket 'nobodys' does not exist at http://127"):
        connect(tmp_path, "s3://nobodys/lake", **settings(s3))
    wrong = settings(s3, access_key="someone", secret_key="not-to-be-shown")
    with pytest.raises(StorageUnavailable, match="refuses these credentials for bucket") as refused:
        connect(tmp_path, **wrong)
    assert "not-to-be-shown" not in str(refused.value)
    nobody = settings(s3, endpoint="http://127.0.0.1:9")
    with pytest.raises(StorageUnavailable, match=r"endpoint http://127.0.0.1:9 .* does not answer"):
        connect(tmp_path, **nobody)
    _nothing_made(tmp_path)


def test_an_expired_token_and_a_busy_bucket_have_errors_of_their_own(s3, tmp_path):
    try:
        fail(s3.endpoint, Fault("LIST", "", "400"))
        with pytest.raises(StorageUnavailable, match="have expired; connect again"):
            connect(tmp_path, **settings(s3, session_token="old"))
        fail(s3.endpoint, Fault("LIST", "", "503", times=1))
        connect(tmp_path, **settings(s3)).close()
    finally:
        fail(s3.endpoint)


def test_three_words_mean_one_place(s3, tmp_path):
    connect(tmp_path, f"s3a://{BUCKET}/lake", **settings(s3)).close()
    with connect(tmp_path, f"s3://{BUCKET}/lake/", **settings(s3)) as lake:
        assert lake.data_path == f"s3a://{BUCKET}/lake/"
    with pytest.raises(InvalidRequest, match="leave out data_path"):
        connect(tmp_path, f"s3://{BUCKET}/another/", **settings(s3))


def test_a_session_without_the_connector_is_told_which(spark, s3, tmp_path):
    version = spark._jvm.org.apache.hadoop.util.VersionInfo.getVersion()
    url = f"sqlite:///{tmp_path}/lake.db"
    with pytest.raises(Unsupported, match=f"packages=org.apache.hadoop:hadoop-aws:{version}"):
        shelduck.connect(url, HOME, spark, storage=settings(s3))
    _nothing_made(tmp_path)
    with pytest.raises(Unsupported, match="hadoop-azure:"):
        shelduck.connect(url, "abfss://box@account.dfs.core.windows.net/lake", spark)
    with pytest.raises(Unsupported, match="gcs-connector"):
        shelduck.connect(url, "gs://bucket/lake", spark)
