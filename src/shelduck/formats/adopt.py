"""ADD FILES: existing Parquet files become part of a table where they are."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shelduck.catalog.commit.adoptions import live_paths
from shelduck.catalog.read.views_and_macros import hive_parts
from shelduck.engine.files.foreign import ForeignFile, column_places, foreign_stats, read_foreign
from shelduck.engine.files.listing import find_parquet
from shelduck.engine.session import SparkSession
from shelduck.errors import AlreadyExists, InvalidRequest, Unsupported
from shelduck.formats.report import raise_problems
from shelduck.lake.done import Counts, Done
from shelduck.lake.lookup import require_satisfied_in
from shelduck.lake.results import Result
from shelduck.model.changes.change import AppendFiles
from shelduck.model.files.adoption import Adopted, match_file
from shelduck.model.files.data_file import ColumnStats, Layout, NewDataFile
from shelduck.model.files.place import is_below, storage_path
from shelduck.model.tables.computed import COMPUTED
from shelduck.model.tables.constraints import CONSTRAINTS
from shelduck.model.tables.rollup import rollup_names
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.types.data_types import FLOATS
from shelduck.model.types.literals import Ends, bound, canonical_text, ends
from shelduck.rollups.following import refresh_by_id
from shelduck.write.appending import Written, land
from shelduck.write.hooks import refuse_followers
from shelduck.write.progress import counted
from shelduck.write.row_verbs import RowVerbs

Place = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class AdoptRules:
    """Which differences between a file and the table are accepted.

    ``hive_partitioning``: take columns from ``name=value`` directories if the names are columns
    (None), never (False), or require that there are some (True).
    """

    allow_missing: bool = False
    ignore_extra_columns: bool = False
    hive_partitioning: bool | None = None


def adopt_files(
    spark: SparkSession,
    table: TableVersion,
    places: Sequence[str],
    rules: AdoptRules,
    *,
    known: Collection[str],
    own_path: str,
    show_progress: bool | None = None,
) -> tuple[NewDataFile, ...]:
    """Return the files at these paths, checked against the table and ready for a commit.

    ``known`` are the paths of the table's files; ``own_path`` is where the lake keeps its own.
    Raises AlreadyExists for a known file, and one InvalidRequest that lists every file and column
    that does not fit. Files without rows are left out.
    """
    if table.options.encrypted:
        raise Unsupported(
            f"cannot add files to {table.full_name}: those of an encrypted lake have keys; read"
            " them, and append the rows"
        )
    files = find_parquet(places)
    taken = set(map(storage_path, known))
    again = next((f.path for f in files if storage_path(f.path) in taken), None)
    if again is not None:
        raise AlreadyExists(
            f"file {again} is already part of {table.full_name}; nothing was added", about="file"
        )
    inside = next((f.path for f in files if is_below(f.path, own_path)), None)
    if inside is not None:
        raise InvalidRequest(
            f"{inside} is below the lake's data path {own_path}, where maintenance deletes files"
            " that no snapshot uses; move it elsewhere, or read it and append the rows"
        )
    work = _Adoption(table, rules)
    told = f"adding files to {table.full_name}"
    foreign = counted(read_foreign(spark, files), told, len(files), show=show_progress)
    made = [work.adopt(file) for file in foreign]
    told = f"cannot add {len(files)} file(s) to {table.full_name}, nothing was added:"
    raise_problems(told, work.problems)
    return tuple(file for file in made if file is not None)


@dataclass
class _Adoption:
    """One call: the layouts that it found, and what does not fit."""

    table: TableVersion
    rules: AdoptRules
    problems: list[str] = field(default_factory=list)
    _matched: dict[tuple[Layout, tuple[str, ...]], Adopted] = field(default_factory=dict)

    def adopt(self, file: ForeignFile) -> NewDataFile | None:
        values = self._path_values(file.path)
        adopted = self._match(file.layout, tuple(values))
        texts = self._texts(file.path, values, adopted)
        self.problems += [f"{file.path}: {p}" for p in adopted.problems]
        metadata = file.footer.metadata
        if adopted.problems or texts is None or metadata.num_rows == 0:
            return None
        rows = metadata.num_rows
        stats = foreign_stats(metadata, adopted.leaves, column_places(metadata))
        self._check_null(file.path, stats, adopted, texts)
        absent = [ColumnStats(f.id, 0, 0, rows) for f in adopted.missing if self._reads_null(f)]
        of_path = [constant_stats(f, text, rows) for f, text in texts]
        partition_id, partition = self._partition(texts)
        return replace(
            file.adopted((*stats, *absent, *of_path), adopted.names),
            partition_id=partition_id,
            partition_values=partition,
            path_values=tuple(text for _, text in texts),
        )

    def _path_values(self, path: str) -> dict[str, str | None]:
        """Return the values of columns in the path, by their names there."""
        if self.rules.hive_partitioning is False:
            return {}
        found: dict[str, str | None] = {}
        for name, value in hive_parts(path):
            known = {n.lower() for n in found}
            if name.lower() not in known and self.table.columns.find((name,)) is not None:
                found[name] = value
        if not found and self.rules.hive_partitioning:
            self.problems.append(f"{path}: no parent directory has a name such as column=value")
        return found

    def _match(self, layout: Layout, keys: tuple[str, ...]) -> Adopted:
        known = self._matched.get((layout, keys))
        if known is None:
            known = self._matched[layout, keys] = match_file(
                layout,
                self.table.columns,
                keys,
                allow_missing=self.rules.allow_missing,
                ignore_extra=self.rules.ignore_extra_columns,
            )
        return known

    def _texts(
        self, path: str, values: Mapping[str, str | None], adopted: Adopted
    ) -> list[tuple[Field, str | None]] | None:
        """Return the path's columns with their values as DuckLake writes them."""
        found: list[tuple[Field, str | None]] = []
        for column, value in zip(adopted.from_path, values.values(), strict=True):
            if isinstance(column.shape, Kind):
                return None
            try:
                text = None if value is None else canonical_text(column.shape, value)
            except InvalidRequest:
                self.problems.append(
                    f"{path}: column {column.name!r} is {column.shape}, but {value!r} in the path"
                )
                return None
            found.append((column, text))
        return found

    def _check_null(
        self,
        path: str,
        stats: Sequence[ColumnStats],
        adopted: Adopted,
        texts: Sequence[tuple[Field, str | None]],
    ) -> None:
        nulls = {s.column_id: s.null_count for s in stats}
        nulls.update({f.id: int(text is None) for f, text in texts})
        missing = {f.id for f in adopted.missing}
        for column in self.table.columns:
            if column.nullable or column.id in missing or not column.is_leaf:
                continue
            if nulls.get(column.id) != 0:
                told = (
                    "contains NULL" if nulls.get(column.id) else "may contain NULL (no statistics)"
                )
                self.problems.append(
                    f"{path}: column {column.name!r} is NOT NULL, but the file {told}"
                )

    def _reads_null(self, leaf: Field) -> bool:
        # Writers count nested columns differently, so they get no statistics.
        return leaf.initial_default is None and leaf in self.table.columns.fields

    def _partition(
        self, texts: Sequence[tuple[Field, str | None]]
    ) -> tuple[int | None, tuple[str | None, ...]]:
        """Return the partition of the file, none if its path lacks a key."""
        by_id = {f.id: text for f, text in texts}
        keys = self.table.partition
        if not keys or any(k.transform != "identity" or k.column_id not in by_id for k in keys):
            return None, ()
        return self.table.partition_id, tuple(by_id[k.column_id] for k in keys)


def constant_stats(column: Field, text: str | None, rows: int) -> ColumnStats:
    """Return the statistics of a column that has one value in all rows of a file."""
    if text is None:
        return ColumnStats(column.id, 0, 0, rows)
    value = bound(column.leaf, text)
    found = Ends() if value is None else ends(column.leaf, value, value)
    nan = text == "nan" if str(column.leaf) in FLOATS else None
    return ColumnStats(column.id, 0, rows, 0, contains_nan=nan, **found._asdict())


class AdoptVerbs(RowVerbs):
    """Adopting existing files without a copy."""

    def add_files(
        self,
        paths: Place | Sequence[Place],
        *,
        allow_missing: bool = False,
        ignore_extra_columns: bool = False,
        hive_partitioning: bool | None = None,
    ) -> Result:
        """Make existing Parquet files part of the table, in place; nothing is copied.

        Columns are matched by name, ignoring case, in every file before any is added. From then on
        the files must not change. Shelduck never deletes them, but DuckDB may: its
        ``merge_adjacent_files`` and ``cleanup_old_files`` treat them as the lake's own.

        Args:
            paths: Files, directories (their ``.parquet`` files at any depth) and patterns with
                ``*``, ``?``, ``[...]`` and ``**``.
            allow_missing: Read columns that a file lacks as their default, or NULL.
            ignore_extra_columns: Ignore columns that the table does not have.
            hive_partitioning: Whether ``column=value`` directories are columns: if the names are
                columns of the table (None), never (False), or in every path (True).

        Raises:
            InvalidRequest: a file does not exist or does not fit; all of these are listed.
            AlreadyExists: a file is already part of the table.
            Conflict: another commit changed the columns; nothing was added.
        """
        places = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        if not places:
            raise InvalidRequest(f"add_files to {self.name} needs a file, directory or pattern")
        rules = AdoptRules(allow_missing, ignore_extra_columns, hive_partitioning)
        planned = self._version()
        refuse_followers(planned)
        files = adopt_files(
            self._state.spark,
            planned,
            [os.fspath(place) for place in places],
            rules,
            known=self._known_paths(planned),
            own_path=self._state.info.data_path,
            show_progress=self._state.show_progress,
        )
        if not files:
            return land(self._state, self._unit, Written(Done(planned)))
        self._require_rules(planned, files)
        size = sum(f.file_size_bytes for f in files)
        counts = Counts(sum(f.record_count for f in files), files=len(files), bytes=size)
        return self._followed(Done(planned, (AppendFiles(planned.id, files, planned),), (), counts))

    def _require_rules(self, table: TableVersion, files: Sequence[NewDataFile]) -> None:
        """Raise an error unless rows in the files are as a table with rules has them."""
        if COMPUTED in table.properties:
            raise Unsupported(
                f"add_files to {table.full_name} cannot compute its columns; read the files, and"
                " append the rows"
            )
        if CONSTRAINTS in table.properties:
            require_satisfied_in(self._state, table, files)

    def _followed(self, done: Done) -> Result:
        """Commit added files; rollups, which the commit does not update, catch up afterwards."""
        result = land(self._state, self._unit, Written(done))
        if self._unit is None and rollup_names(done.table):
            refresh_by_id(self._state, done.table)
        return result

    def _known_paths(self, table: TableVersion) -> set[str]:
        """Return the paths of adopted files that are part of the table, including staged ones."""
        staged = self._unit.workspace.staged_rows(table) if self._unit is not None else None
        known = {f.path for f in staged.files if f is not None} if staged else set()
        if table.id >= 0:
            known |= self._state.store.ask(live_paths, table)
        return known
