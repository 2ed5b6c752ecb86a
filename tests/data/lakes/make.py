"""Makes a lake that holds a text of every kind that Shelduck keeps, for the tests of later code.

Run in a checkout of the commit whose format is to be kept: ``python tests/data/lakes/make.py NAME``
writes ``tests/data/lakes/NAME``: the catalog as SQL, with ``@LAKE@`` for the folder that the lake
lies in, its data files, and the checkpoint of a follower of ``dup``.
"""

from __future__ import annotations

import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from unittest.mock import patch

import shelduck
from shelduck.catalog.running import job_rows as catalog_jobs
from shelduck.catalog.running.writers import begin_running
from shelduck.jobs.worker import JobWorker
from shelduck.model.changes.job import JobState, JobStep
from shelduck.rollups import builder
from tests.support.oracle import DuckDBOracle
from tests.support.spark import local_session

# Each key model with rollups and rows of two loads, a struct, changed types that are forgotten, a
# view with both texts.
TABLES = """
CREATE TABLE dup (k INT, g STRING, v INT) DUPLICATE KEY (k) ROLLUP (p (v, g)) COMMENT 'plain'
  TBLPROPERTIES ('owner' = 'me', 'shelduck.allowAutomaticWidening' = 'never');
INSERT INTO dup VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 4);
CREATE MATERIALIZED VIEW m AS
  SELECT g, SUM(v) s, COUNT(v) n, COUNT(*) c, MIN(v) lo, MAX(v) hi FROM dup GROUP BY g;
INSERT INTO dup VALUES (4, 'b', 8), (5, 'c', NULL);

CREATE TABLE uni (k INT, g INT, at BIGINT, v STRING) UNIQUE KEY (k, g)
  DISTRIBUTED BY HASH (k) BUCKETS 3 ROLLUP (r (g, k, v))
  PROPERTIES ('function_column.sequence_col' = 'at');
INSERT INTO uni VALUES (1, 1, 5, 'new'), (2, 1, 1, 'x');
INSERT INTO uni VALUES (1, 1, 4, 'old'), (2, 1, 2, 'y'), (3, 2, 0, 'z');

CREATE TABLE agg (j INT, k INT, s BIGINT SUM, lo INT MIN, hi INT MAX, r STRING REPLACE,
  n STRING REPLACE_IF_NOT_NULL) AGGREGATE KEY (j, k) ROLLUP (few (j, s, hi));
INSERT INTO agg VALUES (1, 1, 1, 1, 1, 'a', 'a'), (1, 2, 2, 2, 2, 'b', 'b');
INSERT INTO agg VALUES (1, 1, 4, 4, 4, NULL, NULL), (2, 1, 8, 8, 8, 'c', 'c');

CREATE TABLE small (id INT, s STRUCT<a: INT, l: ARRAY<DECIMAL(9, 2)>>, m MAP<STRING, DATE>)
  TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
INSERT INTO small VALUES
  (1, named_struct('a', 1, 'l', array(1.5)), map('d', DATE '2024-01-01'));
ALTER TABLE small ALTER COLUMN id TYPE BIGINT;
ALTER TABLE small DROP FEATURE typeWidening;
CREATE VIEW seen AS SELECT g, v + 1 AS w FROM dup
"""
JOBS = {
    "pending": """
CREATE TABLE pending (id INT, v STRING, w STRING, old INT, s STRUCT<a: INT, t: STRING>);
INSERT INTO pending VALUES (1, '10', '1', 1, named_struct('a', 1, 't', 'x')),
  (2, '20', '2', 2, named_struct('a', 2, 't', 'y'));
ALTER TABLE pending ALTER COLUMN v TYPE INT USING v::int + 1,
  ALTER COLUMN w TYPE DECIMAL(9, 2) ON ERROR NULL,
  ADD COLUMN more ARRAY<DECIMAL(5, 1)> COMMENT 'new' AFTER id,
  ADD COLUMN n INT NOT NULL DEFAULT 7, DROP COLUMN old, RENAME COLUMN id TO number,
  ALTER COLUMN s.a SET DEFAULT 5, ALTER COLUMN w FIRST, ALTER COLUMN s.a TYPE BIGINT,
  ADD COLUMN s.b MAP<STRING, STRUCT<c: INT>>""",
    "waiting": """
CREATE TABLE waiting (id INT, v STRING);
INSERT INTO waiting VALUES (1, '10'), (2, 'x');
ALTER TABLE waiting ALTER COLUMN v TYPE INT ON ERROR NULL,
  SET TBLPROPERTIES ('owner' = 'you'), ALTER COLUMN v COMMENT 'a number'""",
    "running": """
CREATE TABLE running (id INT, v STRING);
INSERT INTO running VALUES (1, '10'), (2, '20');
ALTER TABLE running ALTER COLUMN v TYPE INT""",
    "laid_out": """
CREATE TABLE laid_out (id INT, at DATE, g STRING);
INSERT INTO laid_out VALUES (1, DATE '2024-01-01', 'a'), (2, DATE '2025-02-02', 'b');
ALTER TABLE laid_out SET PARTITIONED BY (year(at), bucket(4, g)),
  SET SORTED BY (id DESC NULLS LAST), REWRITE""",
    "rewritten": """
CREATE TABLE rewritten (id INT, v INT);
INSERT INTO rewritten VALUES (1, 1);
ALTER TABLE rewritten REWRITE""",
    "modified": """
CREATE TABLE modified (k INT, v STRING);
INSERT INTO modified VALUES (1, '10'), (2, '20');
ALTER TABLE modified MODIFY COLUMN v INT COMMENT 'm' FIRST, ORDER BY (k, v)""",
    "ended": """
CREATE TABLE ended (id INT, v STRING);
INSERT INTO ended VALUES (1, '10');
ALTER TABLE ended ALTER COLUMN v TYPE INT""",
    "failed": """
CREATE TABLE failed (id INT, v STRING);
INSERT INTO failed VALUES (1, 'x');
ALTER TABLE failed ALTER COLUMN v TYPE INT""",
    "given_up": """
CREATE TABLE given_up (id INT, v STRING);
INSERT INTO given_up VALUES (1, '10');
ALTER TABLE given_up ALTER COLUMN v TYPE INT""",
    "filling": """
CREATE TABLE filling (k INT, g STRING, v INT);
INSERT INTO filling VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 4);
ALTER TABLE filling ADD ROLLUP by_v (v, k)""",
    "sorted": """
CREATE TABLE sorted (k INT, g INT, v INT) DUPLICATE KEY (k);
INSERT INTO sorted VALUES (1, 1, 1), (2, 1, 2);
ALTER TABLE sorted ADD ROLLUP by_v (v, g) DUPLICATE KEY (v)""",
    "measured": """
CREATE TABLE measured (k INT, g INT, v INT) DUPLICATE KEY (k);
INSERT INTO measured VALUES (1, 1, 1), (2, 1, 2);
CREATE MATERIALIZED VIEW m2 AS SELECT g, SUM(v) s, COUNT(*) c FROM measured GROUP BY g""",
    "folding": """
CREATE TABLE folding (k INT, j INT, v INT SUM) AGGREGATE KEY (k, j);
INSERT INTO folding VALUES (1, 1, 1), (1, 2, 2), (2, 1, 4);
ALTER TABLE folding DROP COLUMN j""",
    "remaking": """
CREATE TABLE remaking (a INT, b INT, c INT, v INT SUM) AGGREGATE KEY (a, b, c)
  ROLLUP (r (a, b, v), r2 (b, v));
INSERT INTO remaking VALUES (1, 1, 1, 1), (2, 1, 2, 2);
ALTER TABLE remaking MODIFY COLUMN v BIGINT SUM, DROP COLUMN a FROM r""",
}


class Died(BaseException):
    """The process of a worker died."""


def died(*_: object) -> None:
    raise Died


def submit(lake: shelduck.Lake, script: str) -> int:
    """Run a script whose last statement begins a job; its id."""
    lake.sql(f"{script} PROPERTIES ('wait' = 'false', 'timeout' = '3000000000')")
    return lake.jobs()[0].id


def make_jobs(lake: shelduck.Lake) -> None:
    jobs = {name: lake.job(submit(lake, script)) for name, script in JOBS.items()}
    store = lake._state.store
    for name in ("waiting", "running", "filling"):
        pending = frozenset({JobState.PENDING})
        catalog_jobs.move_job(store, JobStep(jobs[name].id, pending, JobState.WAITING_TXN))
    # These die when all is made, and not shown yet.
    for name, owner, last in (
        ("running", JobWorker, "_publish"),
        ("filling", builder, "list_rollups"),
    ):
        waiting = frozenset({JobState.WAITING_TXN})
        step = JobStep(jobs[name].id, waiting, JobState.RUNNING, "")
        begin_running(store, step, jobs[name].look())
        with patch.object(owner, last, died), suppress(Died):
            jobs[name].wait()
    jobs["ended"].wait()
    with suppress(shelduck.InvalidRequest):
        jobs["failed"].wait()
    jobs["given_up"].cancel()


def make(lake: shelduck.Lake, url: str, folder: Path) -> None:
    """Make all of it; the files of every table are files."""
    lake.set_option("data_inlining_row_limit", 0)
    lake.sql(TABLES)
    make_jobs(lake)
    # A file of another writer, whose layout a later commit of ours records.
    lake.sql("CREATE TABLE theirs (id INT, s STRUCT<a: INT>, l ARRAY<DECIMAL(9, 2)>, u STRING)")
    with DuckDBOracle(url, None, {"DATA_INLINING_ROW_LIMIT": 0}) as duckdb:
        duckdb.execute("INSERT INTO theirs VALUES (1, {'a': 2}, [3.5], 'x')")
    lake.sql("SELECT * FROM theirs").collect()
    with lake.transaction(once=("nightly", 3)) as work:
        work.table("theirs").append(lake.sql("SELECT 2 AS id, struct(3 AS a) AS s"))
    follow(lake, str(folder / "follower"))


def follow(lake: shelduck.Lake, checkpoint: str) -> None:
    """Leave a batch that is begun, behind one that is done, and something that was passed over."""
    dup = lake.table("dup")
    dup.follow(lambda changes, number: None, checkpoint)
    lake.sql("INSERT INTO uni VALUES (4, 2, 0, 'w')")
    dup.follow(lambda changes, number: None, checkpoint)
    lake.sql("INSERT INTO dup VALUES (6, 'c', 16)")
    with suppress(Died):
        dup.follow(died, checkpoint)


def dump(catalog: Path, folder: Path) -> str:
    with closing(sqlite3.connect(catalog)) as connection:
        text = "\n".join(connection.iterdump())
    return text.replace(str(folder), "@LAKE@") + "\n"


def main(name: str) -> None:
    target = Path(__file__).parent / name
    with tempfile.TemporaryDirectory() as scratch, local_session(Path(scratch)) as spark:
        folder = Path(scratch) / "lake"
        folder.mkdir()
        catalog = Path(scratch) / "catalog.db"
        url = f"sqlite:///{catalog}"
        with shelduck.connect(url, f"{folder}/data", spark, progress=False) as lake:
            make(lake, url, folder)
        for hidden in folder.rglob(".*.crc"):
            hidden.unlink()
        shutil.copytree(folder, target)
        (target / "catalog.sql").write_text(dump(catalog, folder))


if __name__ == "__main__":
    main(sys.argv[1])
