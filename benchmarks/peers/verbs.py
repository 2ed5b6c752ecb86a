"""The verbs that we measure: each prepares its tables, runs under the clock and gives an answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from benchmarks.peers.engines import Engine

Answer = list[tuple[object, ...]]
COLUMNS = ("id", "day", "city", "amount", "weight", "price")
_TOTALS = (
    "count(*), sum(id), max(day), sum(length(city)), sum(amount), max(weight), sum(price),"
    " max(price)"
)


@dataclass(frozen=True)
class Inputs:
    """Files of rows that all engines read, as temporary views of the session.

    `base` has `rows` rows with the ids from 0 on, `source` one for each run: rows of one residue
    of 100, or of one range, each with as many rows that are new.
    """

    spark: SparkSession
    folder: Path
    rows: int

    def rows_of(self, name: str, ids: str) -> str:
        """A view of rows with the ids of a query; its name."""
        query = (
            "SELECT id, date_add(DATE '2020-01-01', CAST(id % 2000 AS INT)) AS day,"
            " concat('city-', CAST(abs(xxhash64(id)) % 500 AS STRING)) AS city,"
            " CAST(abs(xxhash64(id)) % 100000 AS INT) AS amount,"
            " CAST(abs(xxhash64(id)) % 1000 AS FLOAT) AS weight, id * 0.25D AS price"
            f" FROM ({ids})"
        )
        place = str(self.folder / name)
        self.spark.sql(query).write.parquet(place)
        self.spark.read.parquet(place).createOrReplaceTempView(name)
        return name

    def base(self) -> str:
        return self.rows_of("base", f"SELECT id FROM range(0, {self.rows}, 1, 8)")

    def scattered(self, run: int) -> str:
        """Every hundredth row, and as many new ones."""
        first = self.rows + run * (self.rows // 100)
        known = f"SELECT id FROM range(0, {self.rows}, 1, 2) WHERE id % 100 = {run}"
        new = f"SELECT id FROM range({first}, {first + self.rows // 100}, 1, 1)"
        return self.rows_of(f"scattered_{run}", f"{known} UNION ALL {new}")

    def clustered(self, run: int) -> str:
        """A hundredth of the rows side by side, and as many new ones."""
        size = self.rows // 100
        first = self.rows + (50 + run) * size
        known = f"SELECT id FROM range({run * size}, {(run + 1) * size}, 1, 2)"
        new = f"SELECT id FROM range({first}, {first + size}, 1, 1)"
        return self.rows_of(f"clustered_{run}", f"{known} UNION ALL {new}")


@dataclass
class Verb:
    """One line of the table.

    `run` is timed, and what it returns is the same for every engine; `prepare` is not timed. Both
    get the number of the run, 0 for the warm-up, so that no run repeats the work of another.
    """

    name: str
    run: Callable[[Engine, int], Answer]
    prepare: Callable[[Engine, int], object] = field(default=lambda _engine, _run: None)
    before: Callable[[int], object] = field(default=lambda _run: None)


def verbs(inputs: Inputs) -> list[Verb]:
    """All verbs in the order in which they run; the table `t` of each engine goes through them."""
    base = inputs.base()
    return [
        *_writes(base, inputs.rows),
        *_reads(inputs.rows),
        *_changes(inputs),
        *_upkeep(base, inputs.rows),
    ]


def _writes(base: str, rows: int) -> list[Verb]:
    def created(engine: Engine, _: int) -> Answer:
        engine.run(engine.created("t", f"SELECT * FROM {base}"))
        return []

    def appended(engine: Engine, _: int) -> Answer:
        some = f"SELECT * FROM {base} WHERE id < {rows // 10}"
        engine.run(f"INSERT INTO {engine.table('grown')} {some}")
        return []

    def grown(engine: Engine, run: int) -> None:
        if run == 0:
            engine.make("grown", f"SELECT * FROM {base} WHERE id < 0")

    def inserted(engine: Engine, run: int) -> Answer:
        row = f"({run}, DATE '2020-01-01', 'city-1', 1, CAST(1.5 AS FLOAT), CAST(2.5 AS DOUBLE))"
        engine.run(f"INSERT INTO {engine.table('grown')} VALUES {row}, {row}, {row}")
        return []

    return [
        Verb("CREATE TABLE AS", created, lambda engine, _: engine.drop("t")),
        Verb("append of a tenth", appended, grown),
        Verb("INSERT of 3 rows", inserted),
    ]


def _reads(rows: int) -> list[Verb]:
    def query(text: str) -> Callable[[Engine, int], Answer]:
        return lambda engine, run: engine.run(
            text.format(t=engine.table("t"), n=rows // 3 + run, m=rows // 3 + run + rows // 100)
        )

    return [
        Verb("point query", query("SELECT * FROM {t} WHERE id = {n}")),
        Verb(
            "range query, 1 %",
            query("SELECT count(*), sum(price) FROM {t} WHERE id BETWEEN {n} AND {m}"),
        ),
        Verb("count(*)", query("SELECT count(*) FROM {t}")),
        Verb("min and max", query("SELECT min(id), max(id), max(day) FROM {t}")),
        Verb("count of a range", query("SELECT count(*) FROM {t} WHERE id < {n}")),
        Verb("LIMIT 10", lambda engine, run: query("SELECT * FROM {t} LIMIT 10")(engine, run)[:0]),
        Verb("scan", _scan),
    ]


def _scan(engine: Engine, _: int) -> Answer:
    return engine.run(f"SELECT {_TOTALS} FROM {engine.table('t')}")


def _changes(inputs: Inputs) -> list[Verb]:
    rows = inputs.rows
    size = rows // 100

    def statement(text: str) -> Callable[[Engine, int], Answer]:
        def run(engine: Engine, number: int) -> Answer:
            engine.run(
                text.format(
                    t=engine.table("t"),
                    k=number,
                    n=rows // 2 + number * 7919,
                    low=rows - (number + 1) * size,
                    high=rows - number * size,
                )
            )
            return []

        return run

    merge = (
        "MERGE INTO {t} AS t USING %s_{k} AS s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET t.price = s.price + 1 WHEN NOT MATCHED THEN INSERT *"
    )
    return [
        Verb("DELETE of 1 %, scattered", statement("DELETE FROM {t} WHERE id % 100 = 60 + {k}")),
        Verb(
            "DELETE of 1 %, a range", statement("DELETE FROM {t} WHERE id >= {low} AND id < {high}")
        ),
        Verb("scan after DELETE", _scan),
        Verb(
            "UPDATE of 1 %, scattered",
            statement("UPDATE {t} SET price = price + 1 WHERE id % 100 = 30 + {k}"),
        ),
        Verb("scan after UPDATE", _scan),
        Verb("MERGE of 2 %, scattered", statement(merge % "scattered"), before=inputs.scattered),
        Verb("MERGE of 2 %, clustered", statement(merge % "clustered"), before=inputs.clustered),
        Verb("scan after MERGE", _scan),
        Verb("point UPDATE", statement("UPDATE {t} SET price = price + 1 WHERE id = {n}")),
        Verb("point DELETE", statement("DELETE FROM {t} WHERE id = {n}")),
        Verb(
            "count(*) after changes",
            lambda engine, _: engine.run(f"SELECT count(*) FROM {engine.table('t')}"),
        ),
    ]


def _upkeep(base: str, rows: int) -> list[Verb]:
    third = f"SELECT * FROM {base} WHERE id < {rows // 3}"
    known: dict[str, tuple[int, int]] = {}

    def small_files(engine: Engine, _: int) -> None:
        engine.make("small", third)
        for n in range(4):
            low = rows // 3 + n * 1000
            some = f"SELECT * FROM {base} WHERE id >= {low} AND id < {low + 1000}"
            engine.run(f"INSERT INTO {engine.table('small')} {some}")
        engine.run(f"DELETE FROM {engine.table('small')} WHERE id % 10 = 3")

    def compacted(engine: Engine, _: int) -> Answer:
        engine.compact("small")
        return []

    def updated(engine: Engine, run: int) -> None:
        if run == 0:
            engine.make("fed", third, engine.feed())
            before = engine.snapshot("fed")
            engine.run(f"UPDATE {engine.table('fed')} SET price = price + 1 WHERE id % 100 = 7")
            known[engine.name] = (before, engine.snapshot("fed"))

    def changes(engine: Engine, _: int) -> Answer:
        found = engine.changes("fed", *known[engine.name])
        return [tuple(r) for r in found.selectExpr("count(*)", "sum(id)", "sum(price)").collect()]

    def texts(engine: Engine, _: int) -> None:
        columns = ", ".join(
            "CAST(amount AS STRING) AS amount" if c == "amount" else c for c in COLUMNS
        )
        engine.make("texts", f"SELECT {columns} FROM ({third})")

    def converted(engine: Engine, _: int) -> Answer:
        engine.convert("texts", COLUMNS, "amount")
        return []

    return [
        Verb("change feed", changes, updated),
        Verb("compaction of a third", compacted, small_files),
        Verb("STRING to INT, a third", converted, texts),
    ]
