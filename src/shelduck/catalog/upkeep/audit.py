"""A look at every row of a catalog: what reads of a table do not see, because they choose rows."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.commit.kinds.repairs import equal_rows, low_counters
from shelduck.catalog.commit.schedule import directory_by_table, table_directories
from shelduck.catalog.databases.known import INLINED_TABLE, Misnamed, dialect_of, misnamed_tables
from shelduck.catalog.read import queries
from shelduck.catalog.read.inlined_rows import require_inlined_tables
from shelduck.catalog.read.views_and_macros import resolve
from shelduck.catalog.schema import own_tables
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.ducklake import rules, tables
from shelduck.ducklake.checked import RESTORE, BrokenValue, is_broken, row_text
from shelduck.ducklake.descriptions import column_names, column_of, setting_of, sort_key_of
from shelduck.ducklake.format import format_of
from shelduck.errors import CorruptLake
from shelduck.model.changes.change import parse_entries
from shelduck.model.changes.problem import Problem
from shelduck.model.tables.options import table_options
from shelduck.model.tables.partition import parse_sort_key
from shelduck.model.tables.twin import BRANCH, TWIN

_inlined = tables.inlined_data_tables
_REPAIR = "run shelduck check --repair"
_SHOWN = 20
"""How many rows with one fault are listed."""


def audit_rows(connection: sa.Connection, *, every: bool = False) -> list[Problem]:
    """Return what is wrong in the rows of a catalog, in all snapshots: `shelduck.ducklake.rules`.

    With ``every``, all rows that a repair mends are listed, otherwise the first ones. A few
    statements for each table of the catalog; all rows are read.
    """
    ducklake: list[sa.Table] = list(format_of(connection).metadata.tables.values())
    names = set(connection.execute(sa.text(dialect_of(connection).tables)).scalars())
    missing = [t.name for t in ducklake if t.name not in names]
    if missing:
        remedy = "restore the catalog from a backup"
        return [Problem("", "table", name, "the table is missing", remedy) for name in missing]
    own = [each for each in own_tables.OWN.tables.values() if each.name in names]
    found = [p for source in (*ducklake, *own) for p in _values(connection, source)]
    if found:
        # Statements that compare values need numbers where numbers belong.
        return found
    registered = set(connection.execute(sa.select(_inlined.c.table_name)).scalars())
    misnamed = [each for each in misnamed_tables(connection) if each.table in registered]
    kept = _kept(connection, names - {each.table for each in misnamed}, registered)
    found = [_misnamed(each, format_of(connection).version) for each in misnamed]
    wrong = [p for source in kept for p in _values(connection, source)]
    if wrong:
        return found + wrong
    found += _equal(connection, None if every else _SHOWN)
    for source in (*ducklake, *kept):
        found += _intervals(connection, source)
    checks = (_versions, _twice, _dangling, _homeless, _numbers, _early, _logs, _texts)
    found += [problem for check in checks for problem in check(connection)]
    return found + list(_unregistered(connection, names - registered))


def _kept(connection: sa.Connection, names: set[str], registered: set[str]) -> list[sa.TableClause]:
    """Return the tables of inlined rows, and those of deleted positions, that are there."""
    known = format_of(connection)
    rows = [known.inlined(n) for n in sorted(names & registered) if INLINED_TABLE.fullmatch(n)]
    deletes = sorted(n for n in names if re.fullmatch(r"ducklake_inlined_delete_\d+", n))
    return rows + [queries.inlined_deletes(name) for name in deletes]


def _values(connection: sa.Connection, source: sa.FromClause) -> Iterator[Problem]:
    """Return one problem for each column with a wrong value."""
    try:
        for _ in connection.execute(sa.select(source)):
            pass
    except BrokenValue:
        for column in source.c:
            try:
                for _ in connection.execute(sa.select(column)):
                    pass
            except BrokenValue as error:
                error.locate(connection)
                wrong, _, remedy = str(error).partition("; ")
                yield Problem("", "value", f"{error.table}.{error.column}", wrong, remedy)


def _equal(connection: sa.Connection, most: int | None) -> Iterator[Problem]:
    """Find rows that are equal in every column; the other checks take them for one."""
    for equal in equal_rows(connection, most):
        wrong = f"there are {equal.count} rows"
        yield _problem("row", equal.source, equal.row, wrong, "keeps one of the equal rows")


def _intervals(connection: sa.Connection, source: sa.FromClause) -> Iterator[Problem]:
    """Find rows without an interval, and those of snapshots that do not exist yet."""
    newest = sa.select(sa.func.max(tables.snapshot.c.snapshot_id)).scalar_subquery()
    named = [source.c[name] for name in rules.SNAPSHOTS if name in source.c]
    lost = [each > newest for each in named]
    if {"begin_snapshot", "end_snapshot"} <= set(source.c.keys()):
        lost.append(is_broken(source))
    for row in _rows(connection, source, sa.or_(*lost)) if lost else ():
        wrong = f"it goes from snapshot {' to '.join(str(row[each.name]) for each in named[:2])}"
        if row.get("partial_max") is not None:
            wrong += f", with rows up to snapshot {row['partial_max']}"
        yield _problem("interval", source, row, wrong)


def _versions(connection: sa.Connection) -> Iterator[Problem]:
    """Find rows of which a snapshot must have one, and has two."""
    for source, names in _ruled(connection, rules.ONCE_IN_A_SNAPSHOT):
        c = _distinct(source)
        begin, end = c["begin_snapshot"], c["end_snapshot"]
        same = [sa.func.lower(c[n]) if n.endswith("_name") else c[n] for n in names]
        after = sa.func.lead(begin).over(partition_by=same, order_by=(begin, end))
        shown = sa.or_(end.is_(None), end > begin)
        known = sa.select(*c.values(), after.label("next_begins")).where(shown).subquery()
        ends, then = known.c.end_snapshot, known.c.next_begins
        twice = sa.and_(then.is_not(None), sa.or_(ends.is_(None), ends > then))
        for row in _rows(connection, known, twice):
            wrong = f"another row has the same {', '.join(names)} in the same snapshots"
            yield _problem("interval", source, row, wrong)


def _twice(connection: sa.Connection) -> Iterator[Problem]:
    """Find rows that must be the only one of their kind, and keys of a place that have another."""
    for source, names in _ruled(connection, rules.ONCE.items()):
        own = _distinct(source)
        keys = [own[n] for n in names]
        count = sa.func.count().label("rows")
        query = sa.select(*keys, count).group_by(*keys).having(sa.func.count() > 1).limit(_SHOWN)
        for row in connection.execute(query).mappings():
            yield _problem("row", source, dict(row), f"there are {row['rows']} rows")
    for source, (owner, place) in _ruled(connection, rules.COUNTED):
        own = _distinct(source)
        number, last = own[owner], sa.func.max(own[place])
        gaps = sa.select(number).group_by(number).having(last != sa.func.count() - 1).limit(_SHOWN)
        for row in connection.execute(gaps).mappings():
            yield _problem("row", source, dict(row), f"{place} does not count from 0 on")


def _dangling(connection: sa.Connection) -> Iterator[Problem]:
    for columns, sources, others in rules.REFERENCES:
        targets = list(_ruled(connection, others.items()))
        for source, names in _ruled(connection, ((name, columns) for name in sources.split())):
            values = [source.c[name] for name in names]
            known = sa.or_(*(_is_in(values, target, of) for target, of in targets))
            given = sa.and_(*(value.is_not(None) for value in values))
            if source.name == tables.tag.name:
                # A branch that DuckDB drops leaves its tag.
                given = sa.and_(given, source.c.key.is_distinct_from(BRANCH))
            for row in _rows(connection, source, sa.and_(given, sa.not_(known))):
                wrong = " of ".join(f"{n} {row[n]}" for n in reversed(names))
                yield _problem("reference", source, row, f"{wrong} does not exist")


def _is_in(
    values: Sequence[sa.ColumnElement[Any]], target: sa.Table, names: Sequence[str]
) -> sa.ColumnElement[bool]:
    """Return the condition that a row of a table, which may be their own, has these values."""
    known = target.alias("known").c
    return sa.exists().where(*(known[n] == value for n, value in zip(names, values, strict=True)))


def _ruled(
    connection: sa.Connection, ruled: Iterable[tuple[str, ...]]
) -> Iterator[tuple[sa.Table, list[str]]]:
    """Return the tables of rules that this version has, each with the columns that it has."""
    known = format_of(connection).metadata.tables
    for name, *columns in ruled:
        source = known.get(f"ducklake_{name}")
        if source is not None:
            yield source, [each for each in " ".join(columns).split() if each in source.c]


def _homeless(connection: sa.Connection) -> Iterator[Problem]:
    """Find schemas in schemas that do not exist or that are inside each other."""
    known = format_of(connection)
    if known.nests:
        source = known.table(tables.schema)
        lost = source.c.schema_id.not_in(sa.select(known.schemas.c.schema_id))
        for row in _rows(connection, source, lost):
            wrong = f"parent_schema_id {row['parent_schema_id']} leads to no schema of the lake"
            yield _problem("reference", source, row, wrong)


def _misnamed(found: Misnamed, version: str) -> Problem:
    """Tell of a table of inlined rows whose columns have the names of another DuckLake."""
    wrong = f"its columns {', '.join(found.names)} do not have the names of DuckLake {version}"
    if found.taken is None:
        return Problem("", "names", found.table, wrong, _REPAIR, "renames its columns")
    wrong += f", and a column has the name {found.taken}"
    return Problem("", "names", found.table, wrong, RESTORE)


def _numbers(connection: sa.Connection) -> Iterator[Problem]:
    """Find counters that would give an id or a row id a second time."""
    if connection.execute(sa.select(tables.snapshot.c.snapshot_id).limit(1)).first() is None:
        yield Problem("", "number", "ducklake_snapshot", "the lake has no snapshot", RESTORE)
        return
    for low in low_counters(connection):
        name = "ducklake_snapshot (the newest)"
        if low.table is not None:
            name = f"ducklake_table_stats (table_id {low.table})"
        wrong = f"{low.name} is {low.now}, and ids up to {low.wanted - 1} are in use"
        repair = f"raises it to {low.wanted}" if low.is_mendable else ""
        yield Problem("", "number", name, wrong, RESTORE, repair)


def _unregistered(connection: sa.Connection, names: Iterable[str]) -> Iterator[Problem]:
    """Find tables of inlined rows that hold rows, of those that no row registers."""
    for name in sorted(names):
        if INLINED_TABLE.fullmatch(name):
            count = connection.execute(
                sa.select(sa.func.count()).select_from(sa.table(name))
            ).scalar()
            if count:
                wrong = f"it has {count} row(s), and ducklake_inlined_data_tables has no row of it"
                yield Problem("", "reference", name, wrong, RESTORE)


def _early(connection: sa.Connection) -> Iterator[Problem]:
    """Find rows of a table that begin before the table."""
    table, tag = tables.table.c, tables.tag.c
    for source in (tables.data_file, tables.delete_file, tables.column):
        made = sa.select(sa.func.min(table.begin_snapshot)).where(
            table.table_id == source.c.table_id
        )
        before = source.c.begin_snapshot < made.scalar_subquery()
        if source is tables.delete_file:
            # DuckDB lets one begin with the oldest delete that it has, also of a twin's source.
            twin = sa.exists().where(tag.object_id == source.c.table_id, tag.key == TWIN)
            before = sa.and_(before, ~twin)
        for row in _rows(connection, source, before):
            yield _problem("interval", source, row, "it begins before its table")


def _logs(connection: sa.Connection) -> Iterator[Problem]:
    c = tables.snapshot_changes.c
    told = sa.exists().where(c.snapshot_id == tables.snapshot.c.snapshot_id)
    for row in _rows(connection, tables.snapshot, sa.not_(told)):
        yield _problem("log", tables.snapshot, row, "ducklake_snapshot_changes has no row of it")


def _texts(connection: sa.Connection) -> Iterator[Problem]:
    """Find rows with a text that cannot be read, or with values that contradict each other."""
    for source, kind, read in _READ:
        for row in connection.execute(sa.select(source)):
            try:
                read(row)
            except CorruptLake as error:
                wrong, _, remedy = str(error).partition("; ")
                name = f"{source.name} ({row_text(dict(row._mapping))})"  # noqa: SLF001 - it is public
                yield Problem("", kind, name, wrong, remedy or RESTORE)


def _option(row: Any) -> None:
    setting = setting_of(row)
    table_options([setting], schema_id=setting.scope_id, table_id=setting.scope_id)


_READ: tuple[tuple[sa.Table, str, Callable[[Any], object]], ...] = (
    (tables.snapshot_changes, "log", lambda row: parse_entries(row.changes_made)),
    (tables.column, "value", lambda row: column_of(row, f"table {row.table_id}")),
    (tables.sort_expression, "value", lambda row: parse_sort_key(sort_key_of(row))),
    (tables.view, "value", lambda row: column_names(row.column_aliases)),
    (tables.metadata, "value", _option),
    (_inlined, "reference", lambda r: require_inlined_tables(r.table_id, [r.table_name])),
)


def _distinct(source: sa.Table) -> Mapping[str, sa.ColumnElement[Any]]:
    """Return the columns of a table without rows that are equal to others."""
    columns = sa.select(source).distinct().subquery().c
    return {column.name: column for column in columns}


def _rows(
    connection: sa.Connection, source: sa.FromClause, condition: sa.ColumnElement[bool]
) -> list[dict[str, object]]:
    query = sa.select(source).where(condition).limit(_SHOWN)
    return [dict(row) for row in connection.execute(query).mappings()]


def _problem(
    kind: str, source: sa.FromClause, row: Mapping[str, object], wrong: str, repair: str = ""
) -> Problem:
    return Problem("", kind, f"{source} ({row_text(row)})", wrong, RESTORE, repair)


def older_files(connection: sa.Connection, lake: LakeInfo) -> dict[int, list[tuple[str, int]]]:
    """Return path and size of files of older snapshots, by table id, of dropped tables too."""
    by_table = directory_by_table(table_directories(connection, lake))
    found: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for source in (tables.data_file, tables.delete_file):
        c = source.c
        columns = (c.table_id, c.path, c.path_is_relative, c.file_size_bytes)
        query = sa.select(*columns).where(c.end_snapshot.is_not(None))
        for number, path, relative, size in connection.execute(query):
            found[number].append((resolve(by_table.get(number, ""), path, relative), size))
    return found
