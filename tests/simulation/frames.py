"""What stands in for Spark: rows in memory, and files of them in the simulated store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from shelduck.lake.done import Done
from shelduck.model.changes.change import AppendFiles
from shelduck.model.changes.feed_plan import FeedFile
from shelduck.model.changes.staged_rows import StagedRows
from shelduck.model.files.data_file import (
    ROW_ID_FIELD,
    SNAPSHOT_FIELD,
    Layout,
    NewDataFile,
    NewDeleteFile,
    PhysicalField,
)
from shelduck.model.tables.rollup import Measure, rollup_of
from shelduck.model.tables.table_version import shadow_name
from shelduck.model.types.data_types import Primitive
from shelduck.read.table_rows import TableRows
from shelduck.write.changes.append import Placing
from shelduck.write.changes.edits import deleted, truncate_rows
from shelduck.write.changes.overwrite import overwrite_table
from shelduck.write.deletes.delete_files import DeadRows
from shelduck.write.parquet.write import (
    NEW_ROWS,
    Writing,
    WrittenFiles,
    _removed_if_failed,
    _Write,
    fresh_name,
)
from tests.simulation.files import StandIn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from shelduck.lake.done import Loaded
    from shelduck.model.files.data_file import DataFile
    from shelduck.model.tables.table_version import TableVersion
    from shelduck.rollups.rollup_rows import RollupRows
    from shelduck.write.parquet.write import Register
    from tests.simulation.run import Simulation


@dataclass(frozen=True)
class Place:
    """Where a row comes from: its id, its snapshot, its data file and its position there."""

    row_id: int
    snapshot: int
    file: int
    position: int


@dataclass(frozen=True)
class Rows:
    """Rows by the names of their columns, as far as the product asks a DataFrame."""

    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    places: tuple[Place, ...] = ()

    @property
    def schema(self) -> Rows:
        return self

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def select(self, *names: str) -> Rows:
        return replace(self, columns=tuple(n.strip("`") for n in names))


class StandInSpark:
    """Functions that take the place of those which run Spark jobs."""

    def __init__(self, simulation: Callable[[], Simulation]) -> None:
        self._simulation = simulation

    def frame(
        self, rows: TableRows, _spark: object, names: Sequence[str] | None = None, **_: Any
    ) -> Rows:
        """Take the place of `TableRows.frame`."""
        store = self._simulation().files
        fields = rows.table.columns.fields
        if names is not None:
            fields = tuple(f for n in names for f in fields if f.name == n)
        found: list[dict[str, Any]] = []
        places: list[Place] = []
        for file in rows.files:
            content = store.read(file.path)
            dead = self._dead(file)
            for position, row in enumerate(content.rows):
                if position not in dead:
                    found.append({f.name: row.get(f.id) for f in fields})
                    places.append(_place(file, content, position))
        return Rows(tuple(f.name for f in fields), tuple(found), tuple(places))

    def _dead(self, file: DataFile) -> set[int]:
        dead = set(file.inlined_deletes)
        if file.delete_file is not None:
            dead |= self._simulation().files.read(file.delete_file.path).dead.keys()
        return dead

    def write_files(
        self, _spark: object, rows: Rows, table: TableVersion, how: Writing = NEW_ROWS, **_: Any
    ) -> WrittenFiles:
        """Take the place of `write_files`: one file, which takes its time."""
        if not rows.rows:
            return WrittenFiles((), 0, 0)
        directory = fresh_name(table)
        with _removed_if_failed(None, table, _Write(directory, None)):
            made = self._written(directory, rows, table, len(how.lineage))
        return WrittenFiles((made,), len(rows.rows), made.file_size_bytes)

    def _written(
        self, directory: str, rows: Rows, table: TableVersion, lineage: int
    ) -> NewDataFile:
        fields = table.columns.fields
        content = StandIn(
            tuple({f.id: row.get(f.name) for f in fields} for row in rows.rows),
            tuple(p.row_id for p in rows.places) if lineage else None,
            tuple(p.snapshot for p in rows.places) if lineage > 1 else None,
        )
        path = f"{directory}/0.parquet"
        size = self._put(table.path + path, content)
        layout = _layout(tuple((f.name, f.id, str(f.type)) for f in fields), lineage)
        return NewDataFile(path, len(rows.rows), size, 40, (), layout)

    def _put(self, path: str, content: StandIn) -> int:
        """Write a file as the first of several tasks: the others take their time after it."""
        simulation = self._simulation()
        simulation.at_work()
        size = simulation.files.put(path, content)
        simulation.at_work()
        return size

    def write_together(
        self, spark: object, parts: Sequence[Rows], table: TableVersion, *, snapshots: bool
    ) -> list[tuple[NewDataFile, ...]]:
        """Take the place of `write_together`."""
        how = Writing(lineage=("row", "snapshot") if snapshots else ("row",))
        return [self.write_files(spark, p, table, how).files for p in parts]

    def add_shadows(self, rows: Rows, shadows: Sequence[Any], *, counted: bool = False) -> Rows:
        """Take the place of `add_shadows`: a number becomes its text, or the other way round."""
        kinds = {shadow_name(s.field): (s.old.name, str(s.field.type)) for s in shadows}
        made = tuple(
            row | {new: _converted(row[old], kind) for new, (old, kind) in kinds.items()}
            for row in rows.rows
        )
        return replace(rows, columns=(*rows.columns, *kinds), rows=made)

    def add_recalled(
        self, rows: Rows, old: Rows, then: Rows, shadows: Sequence[Any], **_: Any
    ) -> Rows:
        """Take the place of `add_recalled`: unchanged rows get the values that they had."""
        columns = [s for s in shadows if s.conversion.recalls]
        before, after = (
            {p.row_id: r for r, p in zip(f.rows, f.places, strict=True)} for f in (old, then)
        )
        made = self.add_shadows(rows, shadows)
        found = []
        for row, place in zip(made.rows, rows.places, strict=True):
            past = before.get(place.row_id), after.get(place.row_id)
            back = {
                shadow_name(s.field): past[0][had]
                for s, had, has in zip(columns, old.columns, then.columns, strict=True)
                if past[0] is not None and past[1] is not None and past[1][has] == row[s.old.name]
            }
            found.append(row | back)
        return replace(made, rows=tuple(found))

    def delete_rows(
        self, _spark: object, rows: TableRows, where: Any, *, register: Register, few: int = 0
    ) -> Done:
        """Take the place of `delete_rows`: a delete file for each file, or the end of the file."""
        chosen = int(where.condition.removeprefix("op = "))
        found = self.frame(rows, None)
        dead: dict[int, list[int]] = {}
        for row, place in zip(found.rows, found.places, strict=True):
            if row["op"] == chosen:
                dead.setdefault(place.file, []).append(place.position)
        by_id = {f.id: f for f in rows.files}
        made = {
            n: self._dead_rows(rows.table, by_id[n], gone, few, register)
            for n, gone in dead.items()
        }
        return deleted(rows, made, ())

    def _dead_rows(
        self, table: TableVersion, file: DataFile, gone: Sequence[int], few: int, register: Register
    ) -> DeadRows:
        if len(gone) + file.dead_rows == file.record_count:
            return DeadRows(len(gone))
        if len(gone) <= few:
            return DeadRows(len(gone), positions=tuple(gone))
        register(table)
        directory = fresh_name(table)
        path = f"{directory}/{file.id}-dead.parquet"
        dead = dict.fromkeys([*gone, *self._dead(file)])
        with _removed_if_failed(None, table, _Write(directory, None)):
            size = self._put(table.path + path, StandIn(dead=dead))
        made = NewDeleteFile(path, len(dead), size, 40)
        return DeadRows(len(gone), made, takes_inlined=bool(file.inlined_deletes))

    def write_deaths(
        self, table: TableVersion, path: str, _data: str, deaths: dict[int, int]
    ) -> NewDeleteFile:
        """Take the place of `write_deaths`: a delete file with the snapshots of its positions."""
        with _removed_if_failed(None, table, _Write(path.rpartition("/")[0], None)):
            size = self._put(table.path + path, StandIn(dead=dict(deaths)))
        return NewDeleteFile(path, len(deaths), size, 40, min(deaths.values()))

    def first_deaths(self, source: FeedFile, _table: str) -> dict[int, int]:
        """Take the place of `first_deaths`."""
        found = dict(source.positions)
        for stored in source.deletes:
            for position, at in self._simulation().files.read(stored.file.path).dead.items():
                died = stored.begin_snapshot if at is None else at
                found[position] = min(found.get(position, died), died)
        return found

    def added(self, _spark: object, rows: TableRows, rollup: RollupRows, loaded: Loaded) -> Done:
        """Take the place of `added`: the rollup as it was, and what the new files add."""
        new = [f for c in loaded.done.changes if isinstance(c, AppendFiles) for f in c.files]
        files = tuple(StagedRows(files=list(new)).over(rollup.base, []))
        more = self.frame(replace(rows, table=rollup.base, files=files), None)
        parts = [*self.frame(rows, None).rows, *_parts(rollup, more.rows)]
        return self._made_of(rows, rollup, parts)

    def followed(
        self,
        _spark: object,
        rows: TableRows,
        rollup: RollupRows,
        base: TableRows,
        touched: Sequence[Rows],
    ) -> Done:
        """Take the place of `followed`: the groups of touched rows are computed again."""
        [key] = [f.name for f in rollup.key_fields]
        keys = {row[key] for rows_of in touched for row in rows_of.rows}
        if not keys:
            return Done(rows.table)
        old = [row for row in self.frame(rows, None).rows if row[key] not in keys]
        now = [row for row in self.frame(base, None).rows if row[key] in keys]
        return self._made_of(rows, rollup, [*old, *_parts(rollup, now)])

    def made_anew(
        self, _spark: object, rows: TableRows, rollup: RollupRows, base: TableRows
    ) -> Done:
        """Take the place of `made_anew`."""
        return self._made_of(rows, rollup, _parts(rollup, self.frame(base, None).rows))

    def touched_rows(self, _spark: object, before: TableRows, after: TableRows) -> list[Rows]:
        """Take the place of `touched_rows`: rows that only one of the two has, by their places."""
        was, now = self.frame(before, None), self.frame(after, None)
        places = [{(p.file, p.position) for p in rows.places} for rows in (was, now)]
        return [_without(was, places[1]), _without(now, places[0])]

    def _made_of(
        self, rows: TableRows, rollup: RollupRows, parts: Iterable[dict[str, Any]]
    ) -> Done:
        folded = tuple(_folded(rollup, parts))
        if not folded:
            return truncate_rows(None, rows)
        return overwrite_table(
            None, rows, Rows(tuple(folded[0]), folded), Placing(show_progress=False)
        )


def assign(rows: Rows, table: TableVersion, **_: Any) -> Rows:
    """Take the place of `assign`: the rows fit."""
    return rows.select(*table.columns.names)


def under(named: Any, now: TableVersion, replaced: Mapping[int, int]) -> Any:
    """Take the place of `NamedRows.under`: columns follow their ids, values their types."""
    before, after = named.planned.columns, now.columns
    rows = []
    for row in named.df.rows:
        made = {}
        for name, value in row.items():
            field = before.find((name,))
            number = None if field is None else replaced.get(field.id, field.id)
            new = None if number is None else after.by_id(number)
            if new is not None:
                made[new.name] = _converted(value, str(new.type))
        rows.append(made)
    frame = Rows(tuple(rows[0]), tuple(rows))
    return replace(named, df=frame, planned=now)


def _converted(value: Any, kind: str) -> Any:
    if value is None:
        return None
    return str(value) if kind == "varchar" else int(value)


def _place(file: DataFile, content: StandIn, position: int) -> Place:
    row_id = content.row_ids[position] if content.row_ids else (file.row_id_start or 0) + position
    snapshot = content.snapshots[position] if content.snapshots else file.begin_snapshot
    return Place(row_id, snapshot, file.id, position)


@cache
def _layout(columns: tuple[tuple[str, int, str], ...], lineage: int) -> Layout:
    fields = [PhysicalField(name, number, Primitive(kind)) for name, number, kind in columns]
    extra = [("_row_id", ROW_ID_FIELD), ("_snapshot_id", SNAPSHOT_FIELD)][:lineage]
    fields += [PhysicalField(name, number, Primitive("int64")) for name, number in extra]
    return Layout(tuple(fields))


def _without(rows: Rows, places: set[tuple[int, int]]) -> Rows:
    both = zip(rows.rows, rows.places, strict=True)
    kept = [(r, p) for r, p in both if (p.file, p.position) not in places]
    return replace(rows, rows=tuple(r for r, _ in kept), places=tuple(p for _, p in kept))


def _parts(rollup: RollupRows, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each row of a base as a row of its rollup."""
    names = {}
    for column in rollup.rollup.columns:
        target = rollup.table.columns.by_id(column.id)
        source = rollup.base.columns.by_id(column.source or 0)
        assert target is not None
        names[target.name] = None if source is None else source.name
    return [{new: 1 if old is None else row[old] for new, old in names.items()} for row in rows]


def _folded(rollup: RollupRows, parts: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    [key] = [f.name for f in rollup.key_fields]
    told = rollup_of(rollup.table)
    assert told is not None
    assert all(c.measure in (None, Measure.SUM, Measure.COUNT) for c in told.columns)
    groups: dict[Any, dict[str, Any]] = {}
    for part in parts:
        known = groups.get(part[key])
        if known is None:
            groups[part[key]] = dict(part)
            continue
        for name, value in part.items():
            if name != key:
                known[name] += value
    return groups.values()
