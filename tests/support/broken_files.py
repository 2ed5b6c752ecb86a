"""Lakes with one broken file, drawn by a seed, and what Shelduck says about them."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import shelduck
from shelduck import ShelduckError
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle
from tests.support.time_limit import limited

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession


OURS = [
    "CREATE TABLE t (id BIGINT, v STRING, d DOUBLE)",
    "CREATE TABLE u (id STRING, x INT)",
    "CALL set_option('data_inlining_row_limit', '0')",
    "INSERT INTO u SELECT concat('u', id), id FROM range(20)",
    *(
        f"INSERT INTO t SELECT id, concat('v', id % 7), id / 2 FROM range({n}, {m}, 1, 1)"
        for n, m in ((0, 20), (20, 41), (41, 63))
    ),
    "DELETE FROM t WHERE id IN (3, 4, 25)",
    "DELETE FROM t WHERE id = 26",
]
# Files without checksums of pages, with dictionaries, and a delete file that knows snapshots.
DUCKDB = [
    (
        "CREATE TABLE w (id INTEGER, v VARCHAR, n DECIMAL(9, 2), ts TIMESTAMP, l INTEGER[],"
        " s STRUCT(a INTEGER, b VARCHAR))"
    ),
    (
        "INSERT INTO w SELECT i, 'w' || i % 5, i / 4, TIMESTAMP '2024-01-01' + to_hours(i::INT),"
        " [i, i + 1], {a: i, b: 'x'} FROM range(300) r(i)"
    ),
    "INSERT INTO w SELECT i, NULL, NULL, NULL, NULL, NULL FROM range(300, 310) r(i)",
    "DELETE FROM w WHERE id IN (5, 6)",
    "DELETE FROM w WHERE id = 7",
]
_READS: dict[str, Callable[[shelduck.Lake, str], object]] = {
    "rows": lambda lake, t: rows(lake.table(t).read()),
    "sum": lambda lake, t: rows(lake.sql(f"SELECT sum(id), max(v), count(*) FROM {t}")),
    "filter": lambda lake, t: rows(lake.sql(f"SELECT id, v FROM {t} WHERE id BETWEEN 2 AND 30")),
    "count": lambda lake, t: lake.table(t).read().where("v = 'v1'").count(),
    "arrow": lambda lake, t: lake.table(t).read().toArrow().to_pylist(),
    "travel": lambda lake, t: rows(lake.table(t).read(version=lake.snapshots()[-2].id)),
    "changes": lambda lake, t: rows(lake.table(t).changes(lake.snapshots()[1].id)),
}
_WRITES: dict[str, Callable[[shelduck.Lake, str], object]] = {
    "delete": lambda lake, t: lake.sql(f"DELETE FROM {t} WHERE id % 5 = 1"),
    "update": lambda lake, t: lake.sql(f"UPDATE {t} SET v = 'x' WHERE id % 7 = 3"),
    "merge": lambda lake, t: lake.sql(
        f"MERGE INTO {t} USING (SELECT 2 AS id) s ON {t}.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = 'm'"
    ),
    "rewrite": lambda lake, t: lake.sql(f"CALL rewrite_data_files('{t}', delete_threshold => 0)"),
    "compact": lambda lake, t: lake.sql(f"CALL merge_adjacent_files('{t}')"),
    "convert": lambda lake, t: lake.sql(f"ALTER TABLE {t} ALTER COLUMN id TYPE STRING"),
    "copy": lambda lake, t: lake.sql(f"INSERT INTO u SELECT v, id FROM {t}"),
    "restore": lambda lake, t: lake.table(t).restore(version=lake.snapshots()[-2].id),
    "overwrite": lambda lake, t: lake.sql(f"INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id < 40"),
}


@dataclass(frozen=True)
class Fault:
    """One fault: a file of a table, and what happens to it."""

    table: str
    kind: str
    number: int
    fault: str
    seed: int

    def __str__(self) -> str:
        return f"{self.fault} in {self.kind} file {self.number} of {self.table}"

    @property
    def may_go_unnoticed(self) -> bool:
        """Whether some files with this fault are possible files with other content.

        Files of DuckDB have no checksums of their pages, and no footer has one. Another file of the
        table with as many rows, or other positions, is a possible file, too.
        """
        if self.fault in ("page byte", "page block"):
            return self.table == "w"
        return self.fault in ("footer byte", "other positions")


class BrokenFiles:
    """A small lake; each seed gets a copy with one broken file."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self._folder = folder
        self._spark = spark
        self._base = folder / "base"
        self._base.mkdir()
        url = f"sqlite:///{self._base}/lake.db"
        with shelduck.connect(url, f"{self._base}/data/", spark) as lake:
            for statement in OURS:
                lake.sql(statement)
        with DuckDBOracle(url, options={"DATA_INLINING_ROW_LIMIT": 0}) as oracle:
            for statement in DUCKDB:
                oracle.execute(statement)
        # Object stores have no such files beside the data.
        for checksum in self._base.rglob(".*.crc"):
            checksum.unlink()
        self._answers: dict[tuple[str, str], object] = {}

    def fault(self, seed: int) -> Fault:
        """The fault of a seed."""
        draw = random.Random(seed)
        table = draw.choice("ttw")
        kind = draw.choice(("data", "data", "delete"))
        number = draw.randrange(len(_files(self._base, table, kind)))
        kinds = [*_FAULTS, *(POSITIONS if kind == "delete" else _ROWS)]
        return Fault(table, kind, number, draw.choice(kinds), seed)

    def outcomes(self, fault: Fault) -> dict[str, str]:
        """What each verb does: ``right``, ``refused``, ``unnoticed``, or a raw error in words."""
        draw = random.Random(fault.seed + 1)
        reads = ["rows", *draw.sample(sorted(_READS.keys() - {"rows"}), 1)]
        found = {}
        folder = self._copy()
        try:
            _break(folder, fault)
            for verb in (*reads, draw.choice(sorted(_WRITES))):
                found[verb] = self._outcome(folder, fault.table, verb)
        finally:
            shutil.rmtree(folder)
        return found

    def _outcome(self, folder: Path, table: str, verb: str) -> str:
        right = self._right(table, verb)
        try:
            with limited():
                found = self._told(folder, table, verb)
        except ShelduckError as error:
            self.last = str(error)
            return "refused"
        except Exception as error:  # noqa: BLE001 - any other error is what the test looks for
            return f"{type(error).__name__}: {error}"
        return "right" if found == right else "unnoticed"

    def _told(self, folder: Path, table: str, verb: str) -> object:
        with self._connect(folder) as lake:
            if verb in _READS:
                return _normal(_READS[verb](lake, table))
            _WRITES[verb](lake, table)
            other = [rows(lake.table("u").read())] if verb == "copy" else []
            return _normal([*other, *rows(lake.table(table).read())])

    def _right(self, table: str, verb: str) -> object:
        if (table, verb) not in self._answers:
            folder = self._copy()
            self._answers[table, verb] = self._told(folder, table, verb)
            shutil.rmtree(folder)
        return self._answers[table, verb]

    def _copy(self) -> Path:
        """A copy of the lake; a new path for each, for executors remember delete files."""
        folder = self._folder / f"case-{random.randrange(2**60)}"
        shutil.copytree(self._base, folder)
        with closing(sqlite3.connect(folder / "lake.db")) as connection, connection:
            connection.execute(
                "UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path'",
                [f"{folder}/data/"],
            )
        return folder

    def _connect(self, folder: Path) -> shelduck.Lake:
        return shelduck.connect(
            f"sqlite:///{folder}/lake.db", f"{folder}/data/", self._spark, progress=False
        )


def _files(folder: Path, table: str, kind: str) -> list[Path]:
    query = (
        f"SELECT f.path FROM ducklake_{kind}_file f JOIN ducklake_table t USING (table_id)"
        f" WHERE t.table_name = ? AND f.end_snapshot IS NULL ORDER BY f.{kind}_file_id"
    )
    with closing(sqlite3.connect(folder / "lake.db")) as connection:
        found = connection.execute(query, [table]).fetchall()
    return [folder / "data" / "main" / table / path for (path,) in found]


def _break(folder: Path, fault: Fault) -> None:
    path = _files(folder, fault.table, fault.kind)[fault.number]
    draw = random.Random(fault.seed + 2)
    if fault.fault in _FAULTS:
        _FAULTS[fault.fault](path, draw, folder)
        return
    change = (POSITIONS if fault.kind == "delete" else _ROWS)[fault.fault]
    table = pq.ParquetFile(path).read()
    pq.write_table(change(table, draw), path)


def _missing(path: Path, _: random.Random, __: Path) -> None:
    path.unlink()


def _directory(path: Path, _: random.Random, __: Path) -> None:
    path.unlink()
    path.mkdir()


def _bytes(change: Callable[[bytes, random.Random], bytes]) -> Callable[..., None]:
    def write(path: Path, draw: random.Random, _: Path) -> None:
        path.write_bytes(change(path.read_bytes(), draw))

    return write


def _footer(content: bytes) -> int:
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


def _flipped(content: bytes, place: int, draw: random.Random) -> bytes:
    return content[:place] + bytes([content[place] ^ draw.randrange(1, 256)]) + content[place + 1 :]


def _in_footer(content: bytes, draw: random.Random) -> bytes:
    return _flipped(content, draw.randrange(_footer(content), len(content) - 8), draw)


def _in_page(content: bytes, draw: random.Random) -> bytes:
    return _flipped(content, draw.randrange(4, _footer(content)), draw)


def _block(content: bytes, draw: random.Random) -> bytes:
    end = _footer(content)
    first = draw.randrange(4, end)
    length = min(draw.randrange(1, 200), end - first)
    return content[:first] + draw.randbytes(length) + content[first + length :]


def _other_table(path: Path, _: random.Random, folder: Path) -> None:
    shutil.copy(_files(folder, "u", "data")[0], path)


def _other_file(path: Path, _: random.Random, folder: Path) -> None:
    """The file of the other kind, or the other data file of the same table."""
    table = path.relative_to(folder / "data" / "main").parts[0]
    others = [p for p in _files(folder, table, "data") if p != path]
    shutil.copy(others[0], path)


_FAULTS: dict[str, Callable[[Path, random.Random, Path], None]] = {
    "missing": _missing,
    "directory": _directory,
    "empty": _bytes(lambda _, __: b""),
    "truncated": _bytes(lambda b, draw: b[: draw.randrange(1, len(b))]),
    "longer": _bytes(lambda b, draw: b + draw.randbytes(draw.randrange(1, 20))),
    "text": _bytes(lambda _, __: b"no Parquet file\n" * 20),
    "head": _bytes(lambda b, _: b"PAR9" + b[4:]),
    "tail": _bytes(lambda b, _: b[:-4] + b"PAR9"),
    "length": _bytes(lambda b, draw: b[:-8] + draw.randbytes(4) + b[-4:]),
    "footer byte": _bytes(_in_footer),
    "page byte": _bytes(_in_page),
    "page block": _bytes(_block),
    "other table": _other_table,
    "other file": _other_file,
}
_ROWS: dict[str, Callable[[pa.Table, random.Random], pa.Table]] = {
    "fewer rows": lambda t, draw: t.slice(draw.randrange(1, len(t))),
    "more rows": lambda t, _: pa.concat_tables([t, t.slice(0, 1)]),
    "renamed column": lambda t, _: t.rename_columns(["other", *t.column_names[1:]]),
    "dropped column": lambda t, _: t.drop_columns([t.column_names[1]]),
    "other types": lambda t, _: t.set_column(
        0, t.field(0).name, pa.array(["text"] * len(t), pa.string())
    ),
    "other order": lambda t, _: t.select(list(reversed(t.column_names))),
}


def _with_positions(change: Callable[[list[int], random.Random], list[int | None]]) -> Any:
    def changed(table: pa.Table, draw: random.Random) -> pa.Table:
        place = table.column_names.index("pos")
        made = pa.array(change(table["pos"].to_pylist(), draw), pa.int64())
        rest = table.slice(0, len(made))
        while len(rest) < len(made):
            rest = pa.concat_tables([rest, table.slice(0, 1)])
        return rest.set_column(place, table.field(place).with_nullable(True), made)

    return changed


POSITIONS: dict[str, Callable[[pa.Table, random.Random], pa.Table]] = {
    "out of range": _with_positions(lambda p, draw: [*p[:-1], 400 + draw.randrange(10**6)]),
    "negative": _with_positions(lambda p, draw: [-1 - draw.randrange(10**6), *p[1:]]),
    "twice": _with_positions(lambda p, _: [*p[1:], p[-1]]),
    "NULL": _with_positions(lambda p, _: [*p[1:], None]),
    "fewer positions": _with_positions(lambda p, _: [*p[1:]]),
    "more positions": _with_positions(lambda p, _: [*p, 9]),
    "no positions": lambda t, _: t.drop_columns(["pos"]),
    "other positions": _with_positions(lambda p, _: [n + 1 for n in p]),
}


def _normal(found: object) -> object:
    """Rows in one order; NaN equals itself."""
    return sorted(map(repr, found)) if isinstance(found, list) else repr(found)
