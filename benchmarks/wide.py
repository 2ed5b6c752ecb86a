"""Every verb on tables of many columns: time grows no faster than the columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import shelduck
from benchmarks.harness import Section, Timing, at_most, interleaved, ratio, scratch
from benchmarks.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from shelduck import Lake

SIZES = (10, 100, 1_000, 2_000)
QUICK_SIZES = (10, 100, 400)
_ROWS = 50
_ABOUT = (
    f"{_ROWS} rows of so many INT columns, and one row that comes; none stays in the catalog."
    " MERGE: `UPDATE SET *` and `INSERT *`, one row that matches and one that does not. Load:"
    " one row into a UNIQUE KEY table. Growth: the time of a column of the"
    " widest table over that of the next."
)
_WHY = "a MERGE that inserts too runs five jobs, and an UPDATE one"
_VERBS = ("INSERT", "UPDATE one", "UPDATE all", "DELETE", "MERGE", "evolve", "load", "read")


def run(*, quick: bool) -> Section:
    sizes = QUICK_SIZES if quick else SIZES
    header = ("verb", *(f"{n:,} columns" for n in sizes), "growth")
    section = Section("Wide tables", _ABOUT, header)
    found: dict[int, dict[str, Timing]] = {}
    with (
        scratch("wide") as folder,
        session(folder) as spark,
        shelduck.connect(
            f"sqlite:///{folder}/lake.db", f"{folder}/data/", spark, progress=False
        ) as lake,
    ):
        for columns in sizes:
            subjects = _filled(lake, spark, columns)
            found[columns] = interleaved(subjects, runs=1 if quick else 3)
    *_, before, most = sizes
    growth = {
        verb: ratio(found[most][verb], found[before][verb]) / (most / before) for verb in _VERBS
    }
    for verb in _VERBS:
        cells = (str(found[columns][verb]) for columns in sizes)
        section.rows.append((verb, *cells, f"{growth[verb]:.2f}"))
    beside = {f"{most:,}": ratio(found[most]["MERGE"], found[most]["UPDATE all"])}
    section.targets = [
        at_most(1.2, growth, "a column of the widest table against one of the next"),
        at_most(3, beside, "MERGE against UPDATE of all columns", _WHY),
    ]
    return section


def _filled(lake: Lake, spark: SparkSession, columns: int) -> Mapping[str, Callable[[], object]]:
    """Make the tables, and return the verbs on them."""
    names = [f"c{n}" for n in range(columns - 1)]
    shape = ", ".join(["id INT", *(f"{name} INT" for name in names)])
    values = ", ".join(f"CAST(id + {n} AS INT) AS {name}" for n, name in enumerate(names))
    lake.sql("CALL set_option('data_inlining_row_limit', '0')")
    for name, keys in ((f"w{columns}", ""), (f"k{columns}", " UNIQUE KEY (id)")):
        lake.sql(f"CREATE TABLE {name} ({shape}){keys}")
        lake.sql(f"INSERT INTO {name} SELECT CAST(id AS INT) AS id, {values} FROM range({_ROWS})")
    table, keyed = lake.table(f"w{columns}"), lake.table(f"k{columns}")
    one = f"SELECT CAST({{}} AS INT) AS id, {', '.join(f'{n} AS {c}' for n, c in enumerate(names))}"
    fresh = count(_ROWS)

    def merge() -> None:
        rows = f"{one.format(7)} UNION ALL {one.format(next(fresh))}"
        lake.sql(
            f"MERGE INTO w{columns} t USING ({rows}) s ON t.id = s.id"
            " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    return {
        "INSERT": partial(lake.sql, f"INSERT INTO w{columns} {one.format(100_000)}"),
        "UPDATE one": lambda: table.update({"c0": "5"}, where="id = 3"),
        "UPDATE all": lambda: table.update(dict.fromkeys(names, "5"), where="id = 4"),
        "DELETE": lambda: table.delete("id = 100000"),
        "MERGE": merge,
        "evolve": lambda: table.append(spark.sql(one.format(100_000)), evolve="all"),
        "load": lambda: keyed.append(spark.sql(one.format(7))),
        "read": lambda: table.read().collect(),
    }
