"""Tables of every kind, and what changes no row of them, by every door."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import shelduck

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from shelduck.objects.catalog_verbs import Table

    Verb = Callable[[Table, DataFrame], object]

COLUMNS = "id INT, y INT, at TIMESTAMP, v INT"
KINDS: Mapping[str, str] = {
    "plain": f"({COLUMNS})",
    "partitioned": f"({COLUMNS}) PARTITIONED BY (y)",
    "bucket": f"({COLUMNS}) PARTITIONED BY (bucket(2, id))",
    "year": f"({COLUMNS}) PARTITIONED BY (year(at))",
    "month": f"({COLUMNS}) PARTITIONED BY (year(at), month(at))",
    "day": f"({COLUMNS}) PARTITIONED BY (days(at))",
    "hour": f"({COLUMNS}) PARTITIONED BY (hour(at))",
    "sorted": f"({COLUMNS}) SORTED BY (v)",
    "partitioned and sorted": f"({COLUMNS}) PARTITIONED BY (y) SORTED BY (v)",
    "duplicate keys": f"({COLUMNS}) DUPLICATE KEY (id)",
    "unique keys": f"({COLUMNS}) UNIQUE KEY (id)",
    "partitioned, unique keys": f"({COLUMNS}) UNIQUE KEY (id, y) PARTITIONED BY (y)",
    "aggregate keys": "(id INT, y INT, at TIMESTAMP, v INT SUM) AGGREGATE KEY (id, y, at)",
    "partitioned, aggregate keys": "(id INT, y INT, at TIMESTAMP, v INT SUM)"
    " AGGREGATE KEY (id, y, at) PARTITIONED BY (y)",
    "rollup": f"({COLUMNS}) DUPLICATE KEY (id)",
    "partitioned, rollup": f"({COLUMNS}) DUPLICATE KEY (id) PARTITIONED BY (y)",
    "job": f"({COLUMNS})",
    "partitioned, job": f"({COLUMNS}) PARTITIONED BY (y)",
}
"""How each kind of table is made; a rollup and a job follow."""

_ROWS = "VALUES (1, 1, TIMESTAMP'2024-01-01 01:00:00', 1), (2, 2, NULL, 2), (3, NULL, NULL, 3)"
_MANY = (
    "SELECT CAST(10 + id AS INT) AS id, CAST(id % 2 AS INT) AS y,"
    " TIMESTAMP'2024-02-01 02:00:00' AS at, CAST(id AS INT) AS v FROM range(40)"
)
FILLS: Mapping[str, tuple[str, ...]] = {
    "files": (f"INSERT INTO t {_MANY}",),
    "catalog": (f"INSERT INTO t {_ROWS}",),
    "both": (f"INSERT INTO t {_MANY}", f"INSERT INTO t {_ROWS}"),
    "empty": (),
    "all deleted": (
        f"INSERT INTO t {_MANY}",
        f"INSERT INTO t {_ROWS}",
        "DELETE FROM t WHERE id > 0",
    ),
}

_COLUMNS = "CAST(-1 AS INT) AS id, 1 AS y, CAST(NULL AS TIMESTAMP) AS at, 1 AS v"
NONE = f"SELECT {_COLUMNS} WHERE false"
_OTHER = f"SELECT {_COLUMNS}"
_SAME = "SELECT * FROM t"


def _merge(source: str, *clauses: str, evolving: str = "") -> str:
    on = "t.id <=> s.id AND t.y <=> s.y AND t.at <=> s.at"
    return f"MERGE {evolving} INTO t USING ({source}) s ON {on} WHEN {' WHEN '.join(clauses)}"


_UPDATE, _INSERT = "MATCHED THEN UPDATE SET v = s.v", "NOT MATCHED THEN INSERT *"
ROWS: Mapping[str, str] = {
    "UPDATE false": "UPDATE t SET v = 5 WHERE false",
    "UPDATE by key": "UPDATE t SET v = 5 WHERE id = -1",
    "UPDATE by columns": "UPDATE t SET v = 5 WHERE v = 1000 AND y IS NOT NULL",
    "UPDATE FROM": f"UPDATE t SET v = s.v FROM ({_OTHER}) s WHERE t.id = s.id",
    "DELETE false": "DELETE FROM t WHERE false",
    "DELETE by key": "DELETE FROM t WHERE id = -1",
    "DELETE by columns": "DELETE FROM t WHERE v = 1000 AND y IS NOT NULL",
    "MERGE of nothing": _merge(NONE, _UPDATE, _INSERT),
    "MERGE inserts what is there": _merge(_SAME, _INSERT),
    "MERGE updates none": _merge(_OTHER, _UPDATE),
    "MERGE AND false": _merge(_SAME, "MATCHED AND false THEN UPDATE SET v = s.v"),
    "MERGE deletes none": _merge(_OTHER, "MATCHED THEN DELETE"),
    "MERGE BY SOURCE deletes none": _merge(_SAME, "NOT MATCHED BY SOURCE THEN DELETE"),
    "MERGE BY SOURCE updates none": _merge(_SAME, "NOT MATCHED BY SOURCE THEN UPDATE SET v = 0"),
    "MERGE evolving": _merge(NONE, _UPDATE, _INSERT, evolving="WITH SCHEMA EVOLUTION"),
    "INSERT": f"INSERT INTO t {NONE}",
    "INSERT BY NAME": f"INSERT INTO t BY NAME {NONE}",
    "INSERT of columns": f"INSERT INTO t (id, y, at, v) {NONE}",
    "REPLACE WHERE": f"INSERT INTO t REPLACE WHERE id = -1 {NONE}",
}
"""Statements of rows that change none, whatever rows `t` has."""

UPKEEP: Mapping[str, str] = {
    "compact": "CALL compact('t', min_files => 9)",
    "rewrite_data_files": "CALL rewrite_data_files('t', delete_threshold => 1)",
    "OPTIMIZE": "OPTIMIZE t WHERE id = -1",
    "expire_snapshots": "CALL expire_snapshots(older_than => TIMESTAMP'2000-01-01 00:00:00')",
    "cleanup_old_files": "CALL cleanup_old_files()",
    "remove_orphans": "CALL remove_orphans(table => 't')",
    "VACUUM": "VACUUM",
    "refresh_rollups": "CALL refresh_rollups('t')",
    "ADD COLUMN": "ALTER TABLE t ADD COLUMN IF NOT EXISTS v INT",
    "DROP COLUMN": "ALTER TABLE t DROP COLUMN IF EXISTS nosuch",
    "CREATE TABLE": "CREATE TABLE IF NOT EXISTS t (id INT)",
    "DROP TABLE": "DROP TABLE IF EXISTS nosuch",
}
"""Statements that find nothing to do."""

FOR_EMPTY: Mapping[str, str] = {
    "TRUNCATE": "TRUNCATE TABLE t",
    "DELETE": "DELETE FROM t",
    "UPDATE": "UPDATE t SET v = 5",
    "MERGE BY SOURCE": _merge(NONE, "NOT MATCHED BY SOURCE THEN DELETE"),
    "INSERT OVERWRITE": f"INSERT OVERWRITE t {NONE}",
    "compact every file": "CALL compact('t', min_files => 1)",
}
"""Statements that would change any row, of tables without one."""

FOR_NEW: Mapping[str, str] = {
    "flush_inlined_data": "CALL flush_inlined_data('t')",
    "rewrite every delete": "CALL rewrite_data_files('t', delete_threshold => 0)",
}
"""Statements that move rows of older snapshots too, of tables that never had one."""

VERBS: Mapping[str, Verb] = {
    "delete": lambda t, _: t.delete("id = -1"),
    "update": lambda t, _: t.update({"v": "5"}, where="id = -1"),
    "append": lambda t, none: t.append(none),
    "overwrite": lambda t, none: t.overwrite(none, where="id = -1"),
    "overwrite_partitions": lambda t, none: t.overwrite_partitions(none),
    "merge": lambda t, none: t.merge(
        none,
        ["id", "y", "at"],
        shelduck.when_matched_update({"v": "s.v"}),
        shelduck.when_not_matched_insert_all(),
    ),
    "compact": lambda t, _: t.compact(min_files=9),
    "rewrite_deletes": lambda t, _: t.rewrite_deletes(1),
}
"""Calls with a frame of no row."""


def made(spark: SparkSession, folder: Path, kind: str, fill: str) -> shelduck.Lake:
    """A lake with a table of a kind, and what belongs to it."""
    lake = shelduck.connect(f"sqlite:///{folder}/lake.db", f"{folder}/data/", spark)
    for statement in (f"CREATE TABLE t {KINDS[kind]}", *FILLS[fill]):
        lake.sql(statement)
    if "rollup" in kind:
        lake.sql("ALTER TABLE t ADD ROLLUP r (y, v)")
        lake.run_jobs()
    if "job" in kind:
        lake.sql("ALTER TABLE t ALTER COLUMN v TYPE STRING PROPERTIES ('wait' = 'false')")
        assert lake.jobs()[0].look().is_open
    return lake


def state(lake: shelduck.Lake) -> tuple[int, set[Path]]:
    """The newest snapshot, and the files below the data path."""
    return lake.snapshots()[-1].id, {p for p in Path(lake.data_path).rglob("*") if p.is_file()}
