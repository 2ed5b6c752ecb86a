"""Rows that no remaining snapshot sees, and their removal lot by lot.

Readers never see these rows, so the lake is sound after every lot, and the next sweep continues
where one was interrupted. If a table still exists, its ended names, columns and partitionings stay,
because older files refer to them.

Rows are found in transactions that only read. A row that nobody sees stays so, and the transaction
that removes a lot looks for its rows again, because another sweep may have been faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import sqlalchemy as sa

from shelduck import clock
from shelduck.catalog.commit.rows.file_rows import columns_of, remove_file_rows
from shelduck.catalog.commit.schedule import (
    GoneFile,
    directory_by_table,
    place_of,
    schedule_placed,
    table_directories,
)
from shelduck.catalog.databases.store import Store
from shelduck.catalog.read.inlined_rows import require_inlined_tables
from shelduck.catalog.read.queries import IDS, chunks, inlined_delete_table, present_tables
from shelduck.catalog.read.views_and_macros import resolve
from shelduck.catalog.schema import own_tables
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.catalog.upkeep.expire import Remaining
from shelduck.catalog.upkeep.few_rows import KeyPage, LotPace, RowBudget, pages
from shelduck.ducklake import tables
from shelduck.model.files.place import Place
from shelduck.model.tables.schema import TableId

# What one transaction looks at, and how many tables it asks about.
PAGE, TABLES = 2_000, 20

_f, _d = tables.data_file.c, tables.delete_file.c
_DATA = sa.select(_f.data_file_id, _f.table_id, _f.begin_snapshot, _f.end_snapshot)
# A delete file goes with its data file.
_DELETES = sa.select(
    *(_d.delete_file_id, _d.table_id, _d.begin_snapshot, _d.end_snapshot),
    _f.begin_snapshot.label("data_begin"),
    _f.end_snapshot.label("data_end"),
).outerjoin_from(tables.delete_file, tables.data_file, _f.data_file_id == _d.data_file_id)
# The rows of tables themselves go last: as long as they are there, a sweep finds the others.
_BY_TABLE = (
    tables.column,
    tables.column_tag,
    tables.table_stats,
    tables.table_column_stats,
    tables.partition_info,
    tables.partition_column,
    tables.sort_info,
    tables.sort_expression,
    tables.schema_versions,
    tables.inlined_data_tables,
    tables.table,
)


@dataclass(frozen=True, slots=True)
class Page:
    """Files that a sweep has looked at, and how many of them nobody needs any more."""

    rows: int
    gone: int


@dataclass(eq=False)
class Sweep:
    """The removal of what no remaining snapshot sees.

    Without ``removes``, it only looks.
    """

    _store: Store
    _lake: LakeInfo
    _remaining: Remaining
    _pace: LotPace
    removes: bool = True
    _widths: dict[int, int] = field(default_factory=dict, init=False)

    def count_files(self) -> int:
        """Return how many rows of files there are to look at; one statement for each kind."""
        with self._store.read() as connection:
            return sum(
                int(connection.execute(sa.select(sa.func.count()).select_from(source)).scalar_one())
                for source in (tables.delete_file, tables.data_file)
            )

    def files(self) -> Iterator[Page]:
        """Remove the rows of delete files and data files that nobody sees, and schedule them."""
        yield from self._pages(tables.delete_file, _d.delete_file_id, _DELETES)
        yield from self._pages(tables.data_file, _f.data_file_id, _DATA)

    def tables(self) -> None:
        """Remove all rows about tables that no snapshot sees under any name."""
        for ids in chunks(self._purged, TABLES):
            self._in_steps(partial(_purge, ids))

    def objects(self) -> None:
        """Remove schemas, views, macros, tags and layouts that nobody sees."""
        of_columns = self._store.format.view_column_tag
        more = () if of_columns is None else (of_columns,)
        for source in (tables.macro, tables.schema, tables.view, tables.tag, *more):
            for pairs in chunks(self._unseen_pairs(source), PAGE):
                self._in_steps(partial(_end, source, pairs))
        self._remove_layouts()

    @cached_property
    def _purged(self) -> Sequence[int]:
        """The tables that no snapshot sees under any name; one statement."""
        t = tables.table.c
        lives = sa.select(t.table_id).where(t.end_snapshot.is_(None))
        query = sa.select(t.table_id, t.begin_snapshot, t.end_snapshot).where(
            t.end_snapshot.is_not(None), t.table_id.not_in(lives)
        )
        with self._store.read() as connection:
            rows = connection.execute(query).all()
        seen = {number for number, begin, end in rows if self._remaining.see(begin, end)}
        return sorted({row.table_id for row in rows} - seen)

    @cached_property
    def _directories(self) -> dict[int, str]:
        with self._store.read() as connection:
            return directory_by_table(table_directories(connection, self._lake))

    def _pages(
        self, source: sa.Table, key: sa.Column[int], query: sa.Select[Any]
    ) -> Iterator[Page]:
        lot = _Lot()
        for page, doomed in pages(self._store, key, PAGE, partial(self._doomed, query)):
            gone = 0
            for table, ids in doomed.items():
                for number in ids:
                    if lot.is_full(table, self._widths[table], self._pace.rows):
                        gone += self._remove(source, lot)
                        lot = _Lot()
                    lot.add(table, number, self._widths[table])
            yield Page(page.rows, gone)
        yield Page(0, self._remove(source, lot))

    def _doomed(
        self, query: sa.Select[Any], connection: sa.Connection, page: KeyPage
    ) -> dict[int, list[int]]:
        """Return the ids of the files of a page that nobody sees, by table.

        It also learns how many columns have statistics in these tables.
        """
        purged = set(self._purged)
        found = query.where(page.chosen)
        if not purged:
            ends = list(query.selected_columns)[3::2]
            found = found.where(sa.or_(*(c.is_not(None) for c in ends)))
        doomed: dict[int, list[int]] = {}
        for number, table, *intervals in connection.execute(found):
            pairs = zip(intervals[::2], intervals[1::2], strict=True)
            if table in purged or not all(
                begin is None or self._remaining.see(begin, end) for begin, end in pairs
            ):
                doomed.setdefault(table, []).append(number)
        for table in doomed.keys() - self._widths.keys():
            self._widths[table] = len(columns_of(connection, TableId(table)))
        return doomed

    def _remove(self, source: sa.Table, lot: _Lot) -> int:
        """Remove a lot in one transaction; return how many files were left of it."""
        ids = [number for some in lot.files.values() for number in some]
        if not ids or not self.removes:
            return len(ids)
        is_data = source is tables.data_file
        key = _f.data_file_id if is_data else _d.delete_file_id
        # Places take most of the time, so they are computed before anybody has to wait.
        places = self._places(_OF_DATA if is_data else _OF_DELETES, ids)

        def remove(connection: sa.Connection) -> int:
            rows = connection.execute(sa.select(key).where(key.in_(IDS)), {"ids": ids})
            left = set(rows.scalars()) & places.keys()
            gone = [places[number] for number in sorted(left)]
            if is_data:
                for table, some in lot.files.items():
                    mine = [number for number in some if number in left]
                    if mine:
                        remove_file_rows(connection, TableId(table), mine)
            elif gone:
                connection.execute(sa.delete(source).where(key.in_(IDS)), {"ids": sorted(left)})
            # A path that another row still names stays, so the rows of the lot go before.
            once = {file.path: (file, place) for file, place in gone}
            schedule_placed(self._store, connection, once.values(), clock.now())
            return len(gone)

        return self._pace.write(self._store, remove)

    def _places(
        self, query: sa.Select[Any], ids: Sequence[int]
    ) -> dict[int, tuple[GoneFile, Place | None]]:
        """Return files that nobody sees, and where the lake put them, by id; one statement."""
        directories = self._directories
        found = {}
        with self._store.read() as connection:
            rows = connection.execute(query, {"ids": ids}).all()
        for number, table, path, relative, mapping in rows:
            place = resolve(directories.get(table, ""), path, relative)
            gone = GoneFile(number, place, mapping is not None)
            found[number] = gone, place_of(self._lake, gone)
        return found

    def _in_steps(self, act: Callable[[sa.Connection, RowBudget], None]) -> None:
        """Run ``act`` in transactions of their own until it does not use up its budget."""
        while self.removes:

            def step(connection: sa.Connection) -> bool:
                budget = RowBudget(self._pace.rows)
                act(connection, budget)
                return budget.is_spent

            if not self._pace.write(self._store, step):
                return

    def _unseen_pairs(self, source: sa.Table) -> list[tuple[int, int]]:
        c = source.c
        query = sa.select(c.begin_snapshot, c.end_snapshot).where(c.end_snapshot.is_not(None))
        with self._store.read() as connection:
            rows = connection.execute(query.distinct()).all()
        return [(begin, end) for begin, end in rows if not self._remaining.see(begin, end)]

    def _remove_layouts(self) -> None:
        own, of_files = own_tables.layout, own_tables.file_layout
        unused = sa.not_(sa.exists().where(of_files.c.layout_id == own.c.layout_id))
        with self._store.read() as connection:
            names = {own.name, of_files.name}
            if present_tables(connection, names) != names:
                return
            found = list(connection.execute(sa.select(own.c.layout_id).where(unused)).scalars())
        for ids in chunks(found, PAGE):
            self._in_steps(partial(_remove_rows, own, sa.and_(own.c.layout_id.in_(ids), unused)))


class _Lot:
    """Files, by table, that one transaction removes."""

    def __init__(self) -> None:
        self.files: dict[int, list[int]] = {}
        self._rows = 0

    def is_full(self, table: int, width: int, rows: int) -> bool:
        """Return whether a file of a table with so many columns is too much for these rows."""
        is_new = table not in self.files
        return bool(self.files) and (
            self._rows + width > rows or (is_new and len(self.files) == TABLES)
        )

    def add(self, table: int, number: int, width: int) -> None:
        """Add a file. It has about as many rows in the catalog as its table has columns."""
        self.files.setdefault(table, []).append(number)
        self._rows += 4 + width


_OF_DATA = sa.select(
    *(_f.data_file_id, _f.table_id, _f.path, _f.path_is_relative, _f.mapping_id)
).where(_f.data_file_id.in_(IDS))
_OF_DELETES = sa.select(
    *(_d.delete_file_id, _d.table_id, _d.path, _d.path_is_relative), sa.text("NULL")
).where(_d.delete_file_id.in_(IDS))


def _remove_rows(
    source: sa.Table, wanted: sa.ColumnElement[bool], connection: sa.Connection, budget: RowBudget
) -> None:
    budget.remove(connection, source, wanted)


def _purge(ids: Sequence[int], connection: sa.Connection, budget: RowBudget) -> None:
    """Remove all rows about tables, and their tables of inlined rows."""
    registered = tables.inlined_data_tables.c
    names = []
    query = sa.select(registered.table_id, registered.table_name)
    for table, name in connection.execute(query.where(registered.table_id.in_(ids))):
        require_inlined_tables(table, [name])
        names.append(name)
    names += [inlined_delete_table(TableId(n)) for n in ids]
    quote = connection.dialect.identifier_preparer.quote
    for name in sorted(present_tables(connection, names)):
        connection.execute(sa.text(f"DROP TABLE {quote(name)}"))
    mapping, name_mapping = tables.column_mapping, tables.name_mapping
    mappings = sa.select(mapping.c.mapping_id).where(mapping.c.table_id.in_(ids))
    budget.remove(connection, name_mapping, name_mapping.c.mapping_id.in_(mappings))
    budget.remove(connection, mapping, mapping.c.table_id.in_(ids))
    budget.remove(connection, tables.tag, tables.tag.c.object_id.in_(ids))
    for source in _BY_TABLE:
        budget.remove(connection, source, source.c.table_id.in_(ids))


def _end(
    source: sa.Table, pairs: Sequence[tuple[int, int]], connection: sa.Connection, budget: RowBudget
) -> None:
    """Remove the rows of these intervals, and what belongs to them."""
    c = source.c
    is_gone = sa.tuple_(c.begin_snapshot, c.end_snapshot).in_(pairs)
    if source is tables.macro:
        macros = sa.select(c.macro_id).where(is_gone)
        for part in (tables.macro_impl, tables.macro_parameters):
            budget.remove(connection, part, part.c.macro_id.in_(macros))
    budget.remove(connection, source, is_gone)
