"""ducklakepy as the oracle of DuckLake 1.1, with the face of `DuckDBOracle`.

ducklakepy knows no SQL. A DuckDB without extensions computes here what a statement says: which
rows it adds, which it hits, what a query returns. ducklakepy alone reads and writes the lake.
"""

from __future__ import annotations

import re
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any
from unittest import mock

import ducklakepy
import pyarrow as pa
import sqlglot
from ducklakepy import types as lake_types
from ducklakepy._arrow import align_to_schema
from ducklakepy.partitioning import __dict__ as partition_words
from ducklakepy.partitioning import as_key, bucket
from ducklakepy.schema import Schema
from hypothesis import note
from sqlalchemy import create_engine
from sqlglot import exp

from shelduck.catalog.schema import lake_schema
from shelduck.ducklake.format import FORMATS
from tests.support.ducklakepy_reader import NAME, LakeReader, lake_option
from tests.support.ducklakepy_words import (
    dotted,
    given,
    lake_type,
    named,
    quoted,
    sql_type,
    unquoted,
    writable,
)
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ducklakepy.catalog import Table

Row = tuple[Any, ...]


@contextmanager
def made_by_ducklakepy(folder):
    """A new lake of DuckLake 1.1 below a folder, as ducklakepy has it open; it inlines no rows."""
    found = ducklakepy.load_catalog(url=f"sqlite:///{folder}/lake.db", data_path=f"{folder}/data/")
    with closing(found):
        found.initialize()
        found.set_option("data_inlining_row_limit", 0)
        yield found


class DuckLakePyOracle(LakeReader):
    """A lake of DuckLake 1.1 in SQLite or PostgreSQL, read and written by ducklakepy.

    `data_path` is needed where the lake does not exist yet; `version` is that of the lake it makes.
    `options` are those of DuckDB's ATTACH, as far as ducklakepy has them.
    """

    def execute(self, statement: str, parameters: object = None) -> None:
        """Run a statement whose rows do not matter, one commit."""
        assert parameters is None
        for pattern, act in _acts():
            found = re.fullmatch(pattern, statement.strip(), re.IGNORECASE | re.DOTALL)
            if found:
                act(self, *found.groups())
                return
        raise NotImplementedError(statement)

    def table(self, name: str) -> Table:
        """A table as it is now."""
        return self.catalog.load_table(named(name))

    def _create(self, name: str, columns: str) -> None:
        self._local.execute(f"CREATE OR REPLACE TEMP TABLE made ({columns})")
        self._make(name, "made")

    def _create_as(self, name: str, query: str) -> None:
        self._local.execute(f"CREATE OR REPLACE TEMP TABLE made AS {self._bound(query)}")
        self._make(name, "made")
        self._append(self.table(name), "SELECT * FROM made")

    def _make(self, name: str, local: str) -> None:
        kinds = {n: k for n, k, *_ in self._local.execute(f"SELECT * FROM {local}").description}
        columns = []
        for column, _, nulls, _, default, _ in self._local.execute(f"DESCRIBE {local}").fetchall():
            value = None
            if default is not None:
                [(value,)] = self._local.execute(f"SELECT ({default})::VARCHAR").fetchall()
            kind = lake_type(kinds[column])
            columns.append(
                lake_types.Column(column, kind, required=nulls == "NO", default_value=value)
            )
        self.catalog.create_table(named(name), schema=Schema(*columns))

    def _insert(self, name: str, rest: str) -> None:
        table = self.table(name)
        local = self._copied(table, name)
        before = self._local.execute(f"SELECT count(*) FROM {local}").fetchone()[0]
        self._local.execute(f"INSERT INTO {local} {self._bound(rest)}")
        self._append(table, f"SELECT * FROM {local} OFFSET {before}")

    def _append(self, table: Table, query: str) -> None:
        table.append(self._arrow(query, table.schema()))

    def _arrow(self, query: str, schema: Schema) -> pa.Table:
        """Rows of a local query as ducklakepy takes them."""
        listed = ", ".join(given(column) for column in schema.fields)
        rows = self._local.execute(f"SELECT {listed} FROM ({query})").to_arrow_table()
        return writable(rows, schema)

    def _condition(self, condition: str, schema: Schema) -> Callable[[pa.Table], pa.Array]:
        """A condition in SQL as ducklakepy asks for one."""

        def holds(rows: pa.Table) -> pa.Array:
            names = [column.name for column in schema.fields]
            self._fill("hit", schema, rows.select(names))
            found = self._local.execute(f"SELECT coalesce({condition}, false) FROM hit").fetchall()
            return pa.array([hit for (hit,) in found], pa.bool_())

        return holds

    def _delete(self, statement: str) -> None:
        parsed = sqlglot.parse_one(statement, dialect="duckdb")
        table = self.table(parsed.this.sql("duckdb"))
        where = parsed.args.get("where")
        table.delete(self._condition(self._local_text(where), table.schema()))

    def _update(self, statement: str) -> None:
        parsed = sqlglot.parse_one(statement, dialect="duckdb")
        table = self.table(parsed.this.sql("duckdb"))
        where = parsed.args.get("where")
        condition = self._local_text(where)
        holds = self._condition(condition, table.schema())
        new_values = {e.this.name.lower(): self._local_text(e) for e in parsed.expressions}
        columns = table.schema().fields
        names = [column.name for column in columns]
        listed = ", ".join(
            f"({new_values.get(c.name.lower(), quoted(c.name))})::{sql_type(c.field_type)}"
            f" AS {quoted(c.name)}"
            for c in columns
        )

        def assigned(rows: pa.Table, *_: object, **__: object) -> pa.Table:
            self._fill("old", table.schema(), rows.select(names))
            return align_to_schema(
                self._arrow(f"SELECT {listed} FROM old", table.schema()), table.schema()
            )

        hit = f"SELECT {listed} FROM {self._copied(table, table.name)} WHERE {condition} LIMIT 1"
        first = self._arrow(hit, table.schema())
        if first.num_rows:
            set_to = [name for name in names if name.lower() in new_values]
            # ducklakepy sets all rows to one value; here each has its own.
            with mock.patch("ducklakepy.transaction._assigned", assigned):
                table.update(holds, {name: first.column(name)[0] for name in set_to})

    def _local_text(self, part: Any) -> str:
        """The condition of WHERE, or the value of SET, with queries over local copies."""
        inner = exp.true() if part is None else part.args.get("expression") or part.this
        return self._bound(str(inner.sql("duckdb")))

    def _alter(self, name: str, act: Callable[[Any], object]) -> None:
        update = self.table(name).update_schema()
        act(update)
        update.commit()

    def _add(self, name: str, path: str, kind: str, default: str | None) -> None:
        value = None
        if default is not None:
            [(value,)] = self._local.execute(f"SELECT ({default})::{kind}").fetchall()
        self._alter(name, lambda u: u.add_column(dotted(path), self._type(kind), default=value))

    def _set_default(self, name: str, path: str, default: str) -> None:
        kind = dict(self.columns(name))[dotted(path)[0]]
        [(value,)] = self._local.execute(f"SELECT ({default})::{kind}").fetchall()
        self._alter(name, lambda u: u.set_default(dotted(path), value))

    def _type(self, text: str) -> Any:
        return lake_type(self._local.execute(f"SELECT NULL::{text}").description[0][1])

    def _partition(self, name: str, keys: str) -> None:
        self.table(name).set_partitioning(*(_key(key) for key in re.split(r",(?![^(]*\))", keys)))

    def _flush(self, schema: str | None = None, table: str | None = None) -> None:
        assert schema is None
        for found in self.tables() if table is None else [("main", table)]:
            if self.catalog.table_exists(found):
                self.catalog.flush_inlined_data(found)

    def _view(self, replaces: str | None, name: str, query: str) -> None:
        self.catalog.create_view(named(name), query, replace=replaces is not None)


@cache
def _acts() -> list[tuple[str, Callable[..., object]]]:
    """What each form of a statement does, in the order in which they are tried."""
    n, p, oracle = rf"({NAME}(?:\.{NAME})*)", r"([^\s(),]+)", DuckLakePyOracle
    alter, column = rf"ALTER TABLE {n} ", r"(?:COLUMN )?"
    return [
        (rf"CREATE SCHEMA {n}", lambda o, s: o.catalog.create_namespace(dotted(s))),
        (rf"DROP SCHEMA {n}( CASCADE)?",
         lambda o, s, c: o.catalog.drop_namespace(dotted(s), cascade=c is not None)),
        (rf"CREATE TABLE {n} AS (.*)", oracle._create_as),
        (rf"CREATE TABLE {n}\s*\((.*)\)", oracle._create),
        (rf"DROP TABLE {n}", lambda o, t: o.catalog.drop_table(named(t))),
        (rf"CREATE( OR REPLACE)? VIEW {n} AS (.*)", oracle._view),
        (rf"DROP VIEW {n}", lambda o, v: o.catalog.drop_view(named(v))),
        (rf"INSERT INTO {n} (.*)", oracle._insert),
        (r"(DELETE FROM .*)", oracle._delete),
        (r"(UPDATE .*)", oracle._update),
        (rf"TRUNCATE {n}", lambda o, t: o._delete(f"DELETE FROM {t}")),
        (rf"ALTER VIEW {n} RENAME TO {n}",
         lambda o, v, new: o.catalog.load_view(named(v)).rename(unquoted(new))),
        (rf"{alter}ADD {column}{p} (.*?)(?: DEFAULT (.*))?", oracle._add),
        (rf"{alter}DROP {column}{p}",
         lambda o, t, c: o._alter(t, lambda u: u.drop_column(dotted(c)))),
        (rf"{alter}RENAME TO {n}", lambda o, t, new: o.table(t).rename(unquoted(new))),
        (rf"{alter}RENAME {column}{p} TO {p}",
         lambda o, t, c, new: o._alter(t, lambda u: u.rename_column(dotted(c), unquoted(new)))),
        (rf"{alter}ALTER {column}{p} (?:SET DATA )?TYPE (.*)",
         lambda o, t, c, kind: o._alter(t, lambda u: u.set_column_type(dotted(c), o._type(kind)))),
        (rf"{alter}ALTER {column}{p} SET DEFAULT (.*)", oracle._set_default),
        (rf"{alter}ALTER {column}{p} DROP DEFAULT",
         lambda o, t, c: o._alter(t, lambda u: u.drop_default(dotted(c)))),
        (rf"{alter}ALTER {column}{p} SET NOT NULL",
         lambda o, t, c: o._alter(t, lambda u: u.set_not_null(dotted(c)))),
        (rf"{alter}ALTER {column}{p} DROP NOT NULL",
         lambda o, t, c: o._alter(t, lambda u: u.drop_not_null(dotted(c)))),
        (rf"{alter}SET PARTITIONED BY \((.*)\)", oracle._partition),
        (rf"{alter}RESET PARTITIONED BY", lambda o, t: o.table(t).reset_partitioning()),
        (rf"{alter}SET SORTED BY \((.*)\)",
         lambda o, t, keys: o.table(t).set_sort_order(*(_sort_key(k) for k in keys.split(",")))),
        (rf"{alter}RESET SORTED BY", lambda o, t: o.table(t).reset_sort_order()),
        (rf"COMMENT ON TABLE {n} IS (?:'(.*)'|NULL)", lambda o, t, c: o.table(t).set_comment(c)),
        (r"COMMENT ON COLUMN (\w+)\.([\w.]+) IS (?:'(.*)'|NULL)",
         lambda o, t, c, said: o.table(t).set_comment(said, column=dotted(c))),
        (r"CALL ducklake_flush_inlined_data\('lake'(?:, '(\w+)', '(\w+)')?\)", oracle._flush),
        (r"CALL ducklake_flush_inlined_data\('lake', table_name => '(\w+)'\)",
         lambda o, t: o._flush(table=t)),
        (r"CALL ducklake_merge_adjacent_files\('lake'.*\)",
         lambda o: o.catalog.merge_adjacent_files()),
        (r"CALL ducklake_rewrite_data_files\('lake'(?:, '(\w+)')?, delete_threshold => ([\d.]+)\)",
         lambda o, t, d: o.catalog.rewrite_data_files(t and named(t), delete_threshold=float(d))),
        (r"CALL ducklake_expire_snapshots\('lake', versions => \[(.*)\]\)",
         lambda o, v: o.catalog.expire_snapshots(versions=[int(n) for n in v.split(",")])),
        (r"CALL ducklake_expire_snapshots\('lake', older_than => now\(\)\)",
         lambda o: o.catalog.expire_snapshots(older_than=datetime.now(UTC))),
        (r"CALL ducklake_cleanup_old_files\('lake', cleanup_all => true\)",
         lambda o: o.catalog.cleanup_old_files(older_than=timedelta(0), exclusive=True)),
        (r"CALL lake\.set_option\('(\w+)', (.*)\)",
         lambda o, key, value: o.catalog.set_option(key, value.strip("'"))),
        # Each statement is a commit of its own.
        (r"BEGIN|COMMIT", lambda _: None),
        (r"CHECKPOINT", lambda o: o.catalog.checkpoint(exclusive=True)),
    ]  # fmt: skip


def oracle_at(
    url: str,
    data_path: str | Path | None = None,
    options: Mapping[str, str | int | bool] | None = None,
) -> DuckDBOracle | DuckLakePyOracle:
    """The oracle for the version of the lake at an address, or of the lake that it is to make."""
    known = lake_schema.DEFAULT.version
    if not url.startswith("duckdb"):
        engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        known = lake_option(engine, "version") or known
        engine.dispose()
    kind = DuckDBOracle if known == "1.0" else DuckLakePyOracle
    return kind(url, data_path, options)


def drawn_form(pick: Callable[[list[Any]], Any], *, encrypted: bool = False) -> dict[str, Any]:
    """What a law tells `connect` of a lake that an oracle reads; that of 1.1 knows no keys."""
    version = "1.0" if encrypted else pick(list(FORMATS))
    is_encrypted = encrypted or pick([False, True] if version == "1.0" else [False])
    note(f"DuckLake {version}, {'encrypted' if is_encrypted else 'plain'}")
    return {"ducklake_version": version, "encrypted": is_encrypted}


def _key(text: str) -> Any:
    found = re.fullmatch(r"\s*(\w+)\((?:(\d+), )?([^)]*)\)\s*", text)
    if found is None:
        return as_key(unquoted(text.strip()))
    word, count, column = found.groups()
    if word == "bucket":
        return bucket(column, int(count))
    return partition_words[word](column)


def _sort_key(text: str) -> Any:
    column, *words = text.split()
    first = [w.upper() for w in words][-2:] == ["NULLS", "FIRST"]
    return ducklakepy.SortKey(unquoted(column), "DESC" in map(str.upper, words), first)
