"""The demo: real rows in several batches, and a schema that changes between them."""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from shelduck.api.changes import add_column, change_type, drop_column, rename_column
from shelduck.api.connect import connect
from shelduck.api.lake import Lake
from shelduck.catalog.databases.duckdb_view import DuckDBMissing, duckdb_rows
from shelduck.errors import InvalidRequest
from shelduck.jobs.jobs import SchemaChangeJob
from shelduck.model.changes.schema_change import SchemaChange
from shelduck.model.text.quoting import quote_name
from shelduck.spark.session import DataFrame
from shelduck.verbs.table.table import Table
from shelduck.work.results import Result, Staged

_MOVIELENS = Path("data/mllib/als/sample_movielens_ratings.txt")
_WIDER = {"int8": "int16", "int16": "int32", "int32": "int64", "float32": "float64"}
_BATCHES = 6


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the report."""

    what: str
    milliseconds: float
    rows: int
    files: int
    touched: int
    snapshot: int


def run_demo(console: Console, source: Path | None, keep: Path | None) -> None:
    """Run the story on rows of ``source`` (MovieLens without) and print what happened.

    The lake lives in ``keep``, or in a folder that is removed at the end.
    """
    if keep is not None and keep.exists():
        raise InvalidRequest(f"{keep} already exists; choose a new folder for the lake")
    if source is not None:
        _kind(source)
    with tempfile.TemporaryDirectory(prefix="shelduck-demo-") as scratch:
        folder = keep or Path(scratch) / "lake"
        folder.mkdir(parents=True)
        url = f"sqlite:///{folder.absolute()}/lake.db"
        console.print(f"A new lake: [bold]{url}[/], files in {folder.absolute()}/files")
        with connect(url, str(folder.absolute() / "files"), progress=False) as lake:
            _tell(console, lake, source)
        _show_duckdb(console, url)
        if keep:
            console.print(f"The lake is kept. Try: shelduck history -c {url}")


def _tell(console: Console, lake: Lake, source: Path | None) -> None:
    rows = _rows(lake, source)
    batches = iter(rows.randomSplit([1.0] * _BATCHES, seed=7))
    story = _Story(lake, lake.create_table("events", rows.schema), batches)
    console.print(f"Rows from {source or 'the MovieLens sample in the pyspark package'}")
    lines = list(story.run())
    grid = Grid("what happened", "ms", "rows", "files written", "old files touched", "snapshot")
    for line in lines:
        counts = (line.rows, line.files, line.touched, line.snapshot)
        grid.add_row(escape(line.what), f"{line.milliseconds:.1f}", *map(str, counts))
    console.print(grid)
    console.print("\n[bold]The table as of each snapshot[/] (nothing was rewritten):")
    for line in lines:
        console.print(f"\nversion {line.snapshot}, after: {escape(line.what)}")
        story.table.read(version=line.snapshot).show(3, truncate=False)


class _Story:
    """Batches and schema changes in turn; every step is measured."""

    def __init__(self, lake: Lake, table: Table, batches: Iterator[DataFrame]) -> None:
        self.lake = lake
        self.table = table
        self.batches = batches
        self.first = table.columns.fields[0].name
        self.key = self.first
        names = table.columns.names
        self.origin, self.device = _free_name("origin", names), _free_name("device", names)

    def run(self) -> Iterator[_Line]:
        """Yield one line per step as it is done."""
        yield self._load()
        yield self._alter(add_column(self.origin, "varchar", default="import"))
        yield self._load(f"'web' AS {self.origin}")
        self.key = _free_name(f"{self.first}_key", self.table.columns.names)
        yield self._alter(rename_column(quote_name(self.first), self.key))
        yield self._load()
        wider = next((f for f in self.table.columns if str(f.type) in _WIDER), None)
        if wider is not None:
            yield self._alter(change_type(quote_name(wider.name), _WIDER[str(wider.type)]))
        yield self._load()
        yield self._alter(
            add_column(self.device, "struct<os: string>"),
            add_column(f"{self.device}.version", "int", default=1),
        )
        yield self._load(f"named_struct('os', 'linux', 'version', 2) AS {self.device}")
        yield self._alter(
            drop_column(self.origin), add_column(self.origin, "varchar", default="again")
        )
        yield self._load()

    def _load(self, *more: str) -> _Line:
        rows = next(self.batches).withColumnRenamed(self.first, self.key)
        return self._timed("load a batch", lambda: self.table.append(rows.selectExpr("*", *more)))

    def _alter(self, *changes: SchemaChange) -> _Line:
        return self._timed("; ".join(map(str, changes)), lambda: self.table.alter(*changes))

    def _timed(self, what: str, step: Callable[[], Result | SchemaChangeJob]) -> _Line:
        before = _files(self.lake)
        start = time.perf_counter()
        result = step()
        spent = (time.perf_counter() - start) * 1000
        # The tour's changes are light and land at once.
        assert not isinstance(result, Staged | SchemaChangeJob)
        after = _files(self.lake)
        touched = sum(after.get(path) != state for path, state in before.items())
        return _Line(what, spent, result.rows, result.files, touched, result.snapshot)


def _free_name(name: str, taken: Collection[str]) -> str:
    """Return ``name``, with underscores where a column of the user's rows has it already."""
    lowered = {t.lower() for t in taken}
    while name.lower() in lowered:
        name += "_"
    return name


def _files(lake: Lake) -> dict[Path, tuple[int, int]]:
    """Return every data file with its size and time of change: a file that is rewritten differs."""
    found = Path(lake.data_path).rglob("*.parquet")
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in found}


def _rows(lake: Lake, source: Path | None) -> DataFrame:
    if source is None:
        spec = importlib.util.find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        lines = lake.spark.read.text(str(Path(spec.origin).parent / _MOVIELENS))
        parts = "split(value, '::')"
        return lines.selectExpr(
            f"CAST({parts}[0] AS INT) AS user_id",
            f"CAST({parts}[1] AS INT) AS movie_id",
            f"CAST({parts}[2] AS FLOAT) AS rating",
            f"timestamp_seconds(CAST({parts}[3] AS BIGINT)) AS rated_at",
        )
    reader = lake.spark.read
    kind = _kind(source)
    if kind == "csv":
        return reader.csv(str(source), header=True, inferSchema=True)
    return reader.json(str(source)) if kind == "json" else reader.parquet(str(source))


def _kind(source: Path) -> str:
    if not source.exists():
        raise InvalidRequest(f"--input {source} does not exist")
    names = (
        [source.name] if source.is_file() else [p.name for p in source.rglob("*") if p.is_file()]
    )
    for kind in ("csv", "json", "parquet"):
        if any(kind in Path(name).suffixes or f".{kind}" in name.lower() for name in names):
            return kind
    raise InvalidRequest(f"--input {source} is not a CSV, JSON or Parquet file or folder")


def _show_duckdb(console: Console, url: str) -> None:
    """Show the table as DuckDB's own extension reads it, when DuckDB is installed with it."""
    console.print("\n[bold]The same table as DuckDB's ducklake extension sees it[/]")
    try:
        rows = duckdb_rows(url, "SELECT * FROM events LIMIT 3", "SELECT count(*) FROM events")
    except DuckDBMissing as error:
        console.print(f"(skipped: {error})")
        return
    for row in rows:
        console.print(str(row), highlight=False)
