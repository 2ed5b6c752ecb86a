"""TPC-H: its tables made by DuckDB, its queries as DuckDB's extension gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.harness import timed
from benchmarks.peers.verbs import Answer
from tests.support.oracle import duckdb_with

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.peers.engines import Engine

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


def queries(known: list[Engine], folder: Path, *, scale: float) -> dict[str, list[float]]:
    """The seconds of all queries after a warm-up, by engine; the answers must be equal."""
    texts = _made(folder / "tpch", scale)
    for table in TABLES:
        view = f"tpch_{table}"
        known[0].spark.read.parquet(str(folder / "tpch" / table)).createOrReplaceTempView(view)
        for engine in known:
            engine.make(table, f"SELECT * FROM {view}")
    total = {engine.name: 0.0 for engine in known}
    for number, text in enumerate(texts, start=1):
        for is_timed in (False, True):
            answers: dict[str, Answer] = {}
            for engine in list(reversed(known)) if is_timed else known:
                engine.spark.sql(f"USE {engine.schema}")
                taken, answers[engine.name] = _timed(engine, text)
                if is_timed:
                    total[engine.name] += taken
            if any(answer != answers["Shelduck"] for answer in answers.values()):
                raise AssertionError(f"query {number} of TPC-H: the engines answer differently")
    return {name: [seconds] for name, seconds in total.items()}


def _made(folder: Path, scale: float) -> list[str]:
    """Write the tables as Parquet, in two files each, and return the queries."""
    connection = duckdb_with(("tpch",))
    connection.execute(f"CALL dbgen(sf = {scale})")
    for table in TABLES:
        place = folder / table
        place.mkdir(parents=True)
        for part in range(2):
            rows = f"SELECT * FROM {table} WHERE rowid % 2 = {part}"
            connection.execute(f"COPY ({rows}) TO '{place}/{part}.parquet'")
    return [text for (text,) in connection.execute("SELECT query FROM tpch_queries()").fetchall()]


def _rounded(row: tuple[object, ...]) -> tuple[object, ...]:
    """Sums of doubles depend on the order of the rows."""
    return tuple(round(v, 2) if isinstance(v, float) else v for v in row)


def _timed(engine: Engine, text: str) -> tuple[float, Answer]:
    answers: list[Answer] = []
    taken = timed(lambda: answers.append([_rounded(row) for row in engine.run(text)]))
    return taken, answers[0]
