"""A walk over all public calls, with a secret wherever one can stand; what was seen becomes files.

    python -m tests.support.secret_walk FOLDER POSTGRES S3 [encrypted]

Spark has its interface on, and its log and those of Python tell all they can. Secrets on purpose
are in FOLDER/private alone; FOLDER/told has a file for each place that shows something.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import traceback
import warnings
from pathlib import Path

import boto3
from pyspark.sql import SparkSession

import shelduck
from shelduck import metrics
from shelduck.doors.connect import connect_existing
from shelduck.web.application import make_app
from shelduck.web.guard import Guard
from tests.support.jars import locked
from tests.support.s3 import BUCKET, KEY
from tests.support.secret_calls import BY_OPTION, ENTRIES, World
from tests.support.secret_places import (
    MARK,
    every_text,
    rest_of_spark,
    settings_of,
    shown,
    tables_of,
)
from tests.support.spark import QUICK, settings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

PORT = 8765
LOG4J = """
rootLogger.level = debug
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {folder}/told/log4j.txt
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %c: %m%n%ex
# They log the headers of requests, which have the token.
logger.amazon.name = software.amazon.awssdk
logger.amazon.level = info
logger.http.name = org.apache.http
logger.http.level = info
logger.codegen.name = org.apache.spark.sql.catalyst.expressions.codegen
logger.codegen.level = info
"""


def telling_session(folder: Path) -> SparkSession:
    """A session with the connector of S3 that shows and logs whatever it does."""
    log = folder / "log4j2.properties"
    log.write_text(LOG4J.format(folder=folder))
    builder = SparkSession.builder.master("local[2]").appName("shelduck-secrets")
    own = {
        "spark.jars": ",".join(str(jar.path) for jar in locked("s3")),
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(folder / "told"),
        "spark.eventLog.compress": "false",
        "spark.sql.ui.explainMode": "extended",
        "spark.sql.ui.retainedExecutions": "100000",
        # A user's own setting, for another bucket.
        "spark.hadoop.fs.s3a.bucket.others.secret.key": f"{MARK}-setting",
        "spark.driver.extraJavaOptions": (
            f"{QUICK['spark.driver.extraJavaOptions']} -Dlog4j2.configurationFile=file:{log}"
        ),
    }
    for key, value in (settings(folder) | QUICK | own).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def prepared(
    folder: Path, postgres: str, endpoint: str, spark: SparkSession, *, encrypted: bool
) -> World:
    """A lake on PostgreSQL and S3 that is catalog ``lake`` of the session, and its page."""
    address = postgres.replace("postgres@", f"postgres:{MARK}-password@")
    address += f"&sslpassword={MARK}-sslpassword"
    storage: dict[str, object] = {
        "endpoint": endpoint,
        "access_key": KEY,
        "secret_key": f"{MARK}-secret-key",
        "session_token": f"{MARK}-session-token",
    }
    _write_private(folder / "private", address, storage)
    lake = shelduck.attach(
        *(spark, "lake", address, f"s3://{BUCKET}/lake/"),
        author="me",
        storage=storage,
        encrypted=encrypted,
    )
    lake.sql("CREATE TABLE t (id INT, v STRING); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    lake.sql("CREATE TABLE keyed (id INT, v INT SUM) AGGREGATE KEY(id)")
    lake.sql("CREATE TABLE rolled (id INT, v INT); INSERT INTO rolled VALUES (1, 2)")
    lake.table("rolled").add_rollup("r", ["id"], {"total": ("sum", "v")}).wait()
    lake.sql("CREATE TABLE parted (id INT, v STRING, w INT) PARTITIONED BY (v)")
    lake.sql("CREATE VIEW seen AS SELECT id FROM t")
    for name in ("adopted", "adopted-by-call", "more-by-call"):
        spark.range(3).selectExpr("CAST(id AS INT) id").write.parquet(f"{folder}/{name}")
    delta = folder / "delta"
    shutil.copytree(Path(__file__).parents[1] / "data/delta/delta-type-widening", delta)
    world = World(spark, lake, folder, address, storage, delta)
    world.page = Pages(world)
    return world


def _write_private(private: Path, address: str, storage: dict[str, object]) -> None:
    private.mkdir()
    listed = "\n".join(f'{name} = "{value}"' for name, value in storage.items())
    config = private / "shelduck.toml"
    config.write_text(f'[lakes.prod]\ncatalog = "{address}"\n[lakes.prod.storage]\n{listed}\n')
    passwords = private / "passwords"
    passwords.write_text(f"*:*:*:*:{MARK}-passfile\n")
    passwords.chmod(0o600)
    os.environ |= {
        "SHELDUCK_CONFIG": str(config),
        "PGPASSFILE": str(passwords),
        "PGPASSWORD": f"{MARK}-variable",
    }


class Pages:
    """The page of a lake, without a server."""

    def __init__(self, world: World) -> None:
        self._lake = world.lake
        guard = Guard(PORT, True, "the-token")
        state = world.lake._state
        app = make_app(state, guard, world.address)
        self._client = TestClient(app, base_url=f"http://127.0.0.1:{PORT}")

    def id_of(self, name: str) -> int:
        rows = self._lake.execute("CALL table_info()").rows
        return next(row[2] for row in rows if row[0] == name)

    def text(self, path: str) -> str:
        return self._client.get(path).text


def wrong_calls(world: World) -> dict[str, object]:
    """Calls that fail, by name; each must, and its errors are searched."""
    spark, lake, folder = world.spark, world.lake, world.folder
    closed = f"postgresql://u:{MARK}-closed@127.0.0.1:1/db"
    given = closed.replace("-closed", BY_OPTION)
    bad = world.storage | {"access_key": "nobody"}
    far = world.storage | {"endpoint": "http://127.0.0.1:9"}
    return {
        "no server": lambda: shelduck.connect(closed),
        "no server for the session": lambda: shelduck.attach(spark, "x", closed),
        "at": lambda: shelduck.connect(f"postgresql://u:a@{MARK}-at@127.0.0.1:1/db"),
        "option": lambda: shelduck.connect(f"postgresql://u@h/db?password={MARK}-option&x=1"),
        "not the place": lambda: shelduck.connect(world.address, "/elsewhere"),
        "refused": lambda: shelduck.connect(
            f"sqlite:///{folder}/r.db", f"s3://{BUCKET}/r/", storage=bad
        ),
        "no endpoint": lambda: shelduck.connect(
            f"sqlite:///{folder}/r.db", f"s3://{BUCKET}/r/", storage=far
        ),
        "half of the storage": lambda: shelduck.connect(
            world.address, storage={"secret_key": f"{MARK}-alone"}
        ),
        "no flag": lambda: shelduck.connect(world.address, storage={"anonymous": f"{MARK}-flag"}),
        "existing": lambda: connect_existing(f"{closed}?sslmode=sometimes"),
        "no table": lambda: lake.table("nowhere").read(),
        "no statement": lambda: lake.sql("SELEC 1"),
        "no column": lambda: lake.sql("SELECT nothing FROM t"),
        "no column in Spark": lambda: spark.sql("SELECT nothing FROM lake.main.t"),
        "a value": lambda: lake.sql("SELECT CAST(v AS INT) FROM t").collect(),
        "a lost file": lambda: _without_files(world),
        "format": lambda: spark.read.format("shelduck").option("catalog", given).load("t"),
        "stream": lambda: spark.readStream.format("shelduck").option("catalog", given).load("t"),
        "conversion": lambda: lake.sql("ALTER TABLE t ALTER COLUMN v TYPE INT"),
    }


def _without_files(world: World) -> object:
    table = world.table(rows=200)
    client = boto3.client(
        "s3",
        endpoint_url=str(world.storage["endpoint"]),
        aws_access_key_id=KEY,
        aws_secret_access_key="x",
        region_name="us-east-1",
    )
    for file in table.files().collect():
        client.delete_object(Bucket=BUCKET, Key=file["path"].partition(f"{BUCKET}/")[2])
    return table.read().collect()


def main(folder: Path, postgres: str, endpoint: str, *how: str) -> None:
    told = folder / "told"
    told.mkdir()
    logging.basicConfig(level=logging.DEBUG, filename=told / "python.txt")
    spark = telling_session(folder)
    world = prepared(folder, postgres, endpoint, spark, encrypted=how == ("encrypted",))
    measured: list[metrics.Measurement] = []
    metrics.subscribe(measured.append)
    failed: dict[str, str] = {}
    seen: dict[str, list[str]] = {}
    for name, act in ENTRIES.items():
        try:
            seen[name] = list(shown(act(world)))
        except Exception as error:  # noqa: BLE001 - it is told below
            failed[name] = every_text(error)
            traceback.print_exc()
    for name, act in wrong_calls(world).items():
        try:
            seen[f"wrong: {name}"] = list(shown(act()))  # type: ignore[operator]
            failed[f"wrong: {name}"] = "it succeeded"
        except Exception as error:  # noqa: BLE001 - as it must
            seen[f"wrong: {name}"] = [every_text(error)]
    mine = ("spark.hadoop.fs.s3a.bucket.others.", "fs.s3a.bucket.others.")
    seen |= {f"spark: {name}": [text] for name, text in rest_of_spark(spark)}
    seen["settings"] = list(map(str, settings_of(spark, lambda key: key.startswith(mine))))
    seen |= {f"catalog: {name}": [text] for name, text in tables_of(postgres)}
    seen["metrics"] = list(map(repr, measured))
    seen["lake"] = list(shown(world.lake)) + list(shown(world.lake._state))
    spark.stop()
    (told / "seen.json").write_text(json.dumps(seen))
    (folder / "failed.json").write_text(json.dumps(failed))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
