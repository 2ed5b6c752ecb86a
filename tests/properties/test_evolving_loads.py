"""The law of evolving loads: every value of the rows is read back, or nothing has changed.

Table and rows get random columns. With a rescue column, a value is in its own column or, under its
name, in the JSON beside it. Python's own types judge what the same value is.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import shelduck
from shelduck.ducklake.format import FORMATS
from tests.properties.test_evolution import SETTINGS
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.lakes import everything
from tests.support.lengths import long
from tests.support.normal import duckdb_rows, spark_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

Kind = str | dict[str, Any] | list[Any]
"""A type in Spark's words, the fields of a struct, or ``[element]`` and ``[key, value]``."""

VALUES: dict[str, list[Any]] = {
    "smallint": [0, -1, 32767],
    "int": [0, 7, 2147483647],
    "bigint": [0, 7, 2147483648, 2**53 + 1, -(2**62)],
    "double": [0.0, 1.5, -0.25, 7.0, 1e300],
    "decimal(5,2)": [Decimal("1.10"), Decimal("-999.99")],
    "decimal(20,4)": [Decimal("7.0000"), Decimal("1.1234"), Decimal("9999999999999999.0000")],
    "string": ["", "7", "1.5", "it's", "2024-02-29", "größe"],
    "date": [dt.date(1969, 12, 31), dt.date(2024, 2, 29)],
    "timestamp_ntz": [dt.datetime(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30, 0, 5)],  # noqa: DTZ001
    "boolean": [True, False],
}
KINDS = sorted(VALUES)
NAMES = ["a", "b", "c", "d"]


def kind_of(data: st.DataObject, depth: int = 0) -> Kind:
    shape = data.draw(st.sampled_from(["leaf"] * 4 + ["struct", "list", "map"] * (depth < 2)))
    if shape == "struct":
        return fields_of(data, depth + 1)
    if shape == "list":
        return [kind_of(data, depth + 1)]
    if shape == "map":
        key = data.draw(st.sampled_from(["string", "int", "bigint"]))
        return [key, kind_of(data, depth + 1)]
    return data.draw(st.sampled_from(KINDS))


def fields_of(data: st.DataObject, depth: int = 0) -> dict[str, Kind]:
    names = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    return {name: kind_of(data, depth) for name in names}


def drifted(data: st.DataObject, kind: Kind, depth: int = 0) -> Kind:
    """The type as the rows have it: mostly the same, or with other parts."""
    if data.draw(st.integers(0, 5)) == 0:
        return kind_of(data, depth)
    if isinstance(kind, dict):
        kept = {n: drifted(data, k, depth + 1) for n, k in kind.items() if data.draw(st.booleans())}
        more = {n.upper(): k for n, k in fields_of(data, depth + 1).items() if n not in kind}
        return {**kept, **more} or kind
    if isinstance(kind, list):
        return [*kind[:-1], drifted(data, kind[-1], depth + 1)]
    return data.draw(st.sampled_from([kind, *KINDS])) if data.draw(st.booleans()) else kind


def text(kind: Kind) -> str:
    if isinstance(kind, dict):
        return f"struct<{', '.join(f'{n}: {text(k)}' for n, k in kind.items())}>"
    if isinstance(kind, list):
        return f"{'map' if len(kind) > 1 else 'array'}<{', '.join(map(text, kind))}>"
    return kind


def value_of(data: st.DataObject, kind: Kind) -> Any:
    if data.draw(st.integers(0, 6)) == 0:
        return None
    if isinstance(kind, dict):
        return {name: value_of(data, k) for name, k in kind.items()}
    if isinstance(kind, list):
        if len(kind) == 1:
            return [value_of(data, kind[0]) for _ in range(data.draw(st.integers(0, 2)))]
        keys = data.draw(st.lists(st.sampled_from(VALUES[kind[0]]), max_size=2, unique=True))
        return {key: value_of(data, kind[1]) for key in keys}
    return data.draw(st.sampled_from(VALUES[kind]))


def is_kept(wrote: Any, kind: Kind, read: Any, rest: Any = None) -> bool:
    """Whether a value was read back, apart from what is in ``rest``, the JSON at its place."""
    if wrote is None:
        return read is None and rest is None
    if isinstance(kind, dict):
        if read is None:
            return _is_whole(wrote, rest)
        members = {k.lower(): v for k, v in read.asDict().items()}
        below = rest or {}
        return all(
            is_kept(wrote[n], k, members.get(n.lower()), below.get(n)) for n, k in kind.items()
        )
    if isinstance(kind, list):
        if read is None:
            return _is_whole(wrote, rest)
        if len(kind) == 1:
            rests = rest or [None] * len(wrote)
            return len(wrote) == len(read) == len(rests) and all(
                is_kept(w, kind[0], r, x) for w, r, x in zip(wrote, read, rests, strict=True)
            )
        found = {str(k): v for k, v in read.items()}
        return {str(k) for k in wrote} == set(found) and all(
            is_kept(w, kind[1], found[str(k)], (rest or {}).get(str(k))) for k, w in wrote.items()
        )
    return (rest is None and _means(wrote, read)) or (read is None and _means(wrote, rest))


def _is_whole(wrote: Any, rest: Any) -> bool:
    """Whether JSON holds all of a value; it leaves out fields that are NULL."""
    if isinstance(wrote, dict):
        given = {str(k): v for k, v in wrote.items()}
        return isinstance(rest, dict) and all(
            _is_whole(v, rest.get(k)) if v is not None else rest.get(k) is None
            for k, v in given.items()
        )
    if isinstance(wrote, list):
        return isinstance(rest, list) and all(map(_is_whole, wrote, rest))
    return _means(wrote, rest)


def _means(wrote: Any, found: Any) -> bool:
    if isinstance(wrote, bool) or isinstance(found, bool):
        return str(wrote).lower() == str(found).lower() or (wrote, found) in ((True, 1), (False, 0))
    if isinstance(wrote, dt.date) or isinstance(found, dt.date):
        return _moment(wrote) == _moment(found)
    if wrote == found or str(wrote) == str(found):
        return True
    try:
        return Decimal(str(wrote)) == Decimal(str(found))
    except ArithmeticError:
        return False


def _moment(value: Any) -> dt.datetime:
    if isinstance(value, str | dt.date):
        return dt.datetime.fromisoformat(str(value))
    # A number as Doris reads dates.
    return dt.datetime.strptime(f"{value:08}", "%Y%m%d")  # noqa: DTZ007


def refusal_of(
    table: shelduck.Table, rows: DataFrame, evolve: str, rescue: str | None
) -> shelduck.ShelduckError | None:
    try:
        table.append(rows, evolve=evolve, rescue=rescue)
    except (shelduck.InvalidRequest, shelduck.Unsupported) as error:
        return error
    return None


def run(data: st.DataObject, spark: SparkSession, folder: Path) -> None:
    table = {"id": "int"} | fields_of(data)
    kept = {
        n: drifted(data, k, 1) for n, k in table.items() if n != "id" and data.draw(st.booleans())
    }
    more = {n.upper(): k for n, k in fields_of(data).items() if n not in table}
    columns = {"id": "int", **kept, **more}
    evolve = data.draw(st.sampled_from(["none", "add", "widen", "all"]))
    rescue = data.draw(st.sampled_from([None, "_rescued", "_rescued"]))
    given = [
        {"id": n} | {c: value_of(data, k) for c, k in columns.items() if c != "id"} for n in (1, 2)
    ]
    note(f"{text(table)} gets {text(columns)}: {given} with {evolve} and {rescue}")
    catalog, files = folder / "lake.db", folder / "data"
    version = data.draw(st.sampled_from(list(FORMATS)))
    with shelduck.connect(
        f"sqlite:///{catalog}", str(files), spark, progress=False, ducklake_version=version
    ) as lake:
        made = lake.create_table("t", {n: text(k) for n, k in table.items()})
        made.append(spark.sql("SELECT 0 AS id"))
        before, schema = everything(catalog, files), made.columns
        rows = spark.createDataFrame([*map(tuple, map(dict.values, given))], text(columns)[7:-1])
        error = refusal_of(made, rows, evolve, rescue)
        event(
            f"{'refused' if error else 'landed'} {'with' if rescue else 'without'} a rescue column"
        )
        if error is not None:
            note(f"refused: {error}")
            assert everything(catalog, files) == before
            assert rescue is None or isinstance(error, shelduck.Unsupported)
            return
        if evolve in ("none", "widen") and rescue is None:
            assert made.columns.names == schema.names
        found = {row["id"]: row for row in made.read().collect()}
        assert sorted(found) == [0, 1, 2]
        for row in given:
            read = found[row["id"]]
            told = read["_rescued"] if rescue else None
            rest = json.loads(told, parse_float=Decimal) if told else None
            assert is_kept(row, columns, read, rest), (row, read)
        with oracle_at(f"sqlite:///{catalog}") as oracle:
            assert duckdb_rows(oracle, "t") == spark_rows(made.read())


@given(st.data())
@settings(SETTINGS, max_examples=6, derandomize=True)
def test_values_of_random_rows_are_read_back_or_nothing_changes(spark, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("loads")
    run(data, spark, folder)
    shutil.rmtree(folder)


@pytest.mark.slow
@given(st.data())
@settings(SETTINGS, max_examples=long(200, 40))
def test_values_of_many_random_rows_are_read_back_or_nothing_changes(spark, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("loads")
    run(data, spark, folder)
    shutil.rmtree(folder)
