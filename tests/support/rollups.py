"""Tables with rollups: planned ones without a lake, and real ones that two engines compare."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shelduck import TableName
from shelduck.lake.unit import UnitOfWork
from shelduck.model.tables.keys import KeyModel, KeySpec, resolve_keys, with_keys
from shelduck.rollups.following import is_fresh
from shelduck.rollups.rollup_plan import plan_rollup
from shelduck.rollups.rollup_tables import rollups_of
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.lakes import newest
from tests.support.normal import collected
from tests.support.oracle import at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from shelduck import Lake
    from shelduck.model.tables.keys import Aggregation
    from shelduck.model.tables.rollup import RollupSpec
    from shelduck.model.tables.table_version import TableVersion

Bag = Counter[tuple[Any, ...]]
Held = dict[str, Bag]


def keyed(
    of: TableVersion,
    model: KeyModel,
    *keys: str,
    values: Mapping[str, Aggregation] | None = None,
    **more: Any,
) -> TableVersion:
    """A table with a key model, sorted by its keys; an AGGREGATE one only has what is named."""
    columns = of.columns
    if model is KeyModel.AGGREGATE:
        named = {*keys, *(values or {})}
        columns = replace(columns, fields=tuple(f for f in columns if f.name in named))
    spec = KeySpec(model, keys, tuple((values or {}).items()), **more)
    found = resolve_keys(spec, columns, of.full_name)
    sort = tuple(f'"{k}" ASC NULLS LAST' if " " in k else f"{k} ASC NULLS LAST" for k in keys)
    return replace(of, columns=columns, properties=with_keys({"owner": "me"}, found), sort=sort)


def made(base: TableVersion, spec: RollupSpec, number: int = 2) -> TableVersion:
    """A rollup as the catalog would have it."""
    planned = plan_rollup(base, spec)
    return replace(
        base,
        id=number,
        name=f"{base.name}${spec.name}",
        uuid=spec.name,
        columns=planned.columns,
        properties=planned.properties,
        sort=planned.arrangement.sort_texts,
        max_column_id=max(f.id for f in planned.columns),
        first_names={f.id: f.name for f in planned.columns},
    )


class Followed:
    """A table and what its rollups should hold: queries over it, which DuckDB answers.

    In a query ``{t}`` stands for the base. DuckDB knows of no rollups, so what it says of the base
    comes from the base.
    """

    def __init__(self, lake: Lake, url: str, base: str, rollups: Mapping[str, str]) -> None:
        self.lake, self.url, self.base = lake, url, base
        self.queries = dict(rollups)
        self.seen: dict[int, Held] = {}

    def duckdb(self, *statements: str, inline: int = 0) -> None:
        """Let DuckDB do something."""
        with oracle_at(self.url, None, {"DATA_INLINING_ROW_LIMIT": inline}) as duckdb:
            for statement in statements:
                duckdb.execute(statement)

    def write(self, act: str | Callable[[], object]) -> Held:
        """Do something that makes one snapshot, and make sure that all rollups follow."""
        before = newest(self.lake)
        if isinstance(act, str):
            self.lake.sql(act)
        else:
            act()
        assert newest(self.lake) == before + 1
        return self.check()

    def check(self) -> Held:
        """Assert that base and rollups are what both engines find, and that rollups are fresh."""
        assert self.fresh() == dict.fromkeys(self.queries, True)
        return self.agree()

    def agree(self) -> Held:
        """Assert that rollups hold what their queries say; return all rows by table."""
        found, wanted = self.held(), self.wanted()
        assert found == wanted
        self.seen[newest(self.lake)] = found
        return found

    def rows(self) -> Bag:
        """The rows of the base as both engines find them."""
        return self.held()[self.base]

    def held(self, version: int | None = None) -> Held:
        """What Shelduck finds in the base and in the tables of the rollups."""
        return {
            name: bag(self.lake.table(name).read(version=version).collect()) for name in self.tables
        }

    def wanted(self, version: int | None = None) -> Held:
        """What DuckDB finds in the base, and makes of it; what it finds in rollups is the same."""
        with oracle_at(self.url) as duckdb:
            base = self.base if version is None else at(self.base, version)
            found = {self.base: bag(duckdb.rows(self.base, version=version))}
            for name, query in self.queries.items():
                table = f"{self.base}${name}"
                found[table] = bag(duckdb.sql(query.format(t=base)))
                assert bag(duckdb.rows(f'"{table}"', version=version)) == found[table]
            return found

    @property
    def tables(self) -> list[str]:
        """The base, and the tables of its rollups."""
        return [self.base, *(f"{self.base}${name}" for name in self.queries)]

    def fresh(self) -> dict[str, bool]:
        """Which rollups the base has, and whether queries may be answered from them."""
        state = self.lake._state
        unit = UnitOfWork(state, state.commit_info())
        table = unit.workspace.table(TableName("main", self.base))
        return {
            found.name.removeprefix(f"{self.base}$"): is_fresh(unit, table, found)
            for found in rollups_of(unit, table)
        }

    def check_history(self) -> None:
        """Assert that both engines find at older snapshots what was there."""
        every = [(name, version) for version, held in self.seen.items() for name in held]
        read = "SELECT * FROM `{}` VERSION AS OF {}"
        found = collected({each: self.lake.sql(read.format(*each)) for each in every})
        with oracle_at(self.url) as duckdb:
            for name, version in every:
                rows = self.seen[version][name]
                assert bag(duckdb.rows(f'"{name}"', version=version)) == rows
                assert bag(found[name, version]) == rows


def bag(rows: Iterable[Iterable[Any]]) -> Bag:
    """Rows in any order; sums are whole numbers to one engine and decimals to the other."""
    return Counter(tuple(row) for row in rows)
