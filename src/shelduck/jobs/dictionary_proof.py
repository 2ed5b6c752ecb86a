"""What the dictionary pages of files prove about texts and floats before a job converts them.

A page holds the different values of a column in a row group. If all of them can be converted, so
can the rows. If one cannot, some row had it once, so rows are read before anything is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from shelduck.catalog.read.files.data_files import name_mappings
from shelduck.catalog.read.files.numbers import deletes_of_files
from shelduck.catalog.read.files.outside import UnprovenFile, bytes_of_large_files, files_unproven
from shelduck.catalog.read.holdings import holdings_of
from shelduck.catalog.read.inlined_rows import inlined_rows
from shelduck.engine.bridge import Engine, engine_for
from shelduck.engine.named_errors import SparkError, data_fault
from shelduck.engine.session import DataFrame
from shelduck.jobs.convert import told_of_expression
from shelduck.lake.evolution.alter_plan import AlterPlan
from shelduck.lake.preflight import MOST_TOLD, ColumnProof, Preflight
from shelduck.lake.unit import UnitOfWork
from shelduck.model.files.data_file import InlinedRows, NameMapping
from shelduck.model.files.resolve import is_own
from shelduck.model.shadows.shadows import Shadow, of_dictionaries
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion, shadow_name
from shelduck.read.scan.column_values import (
    OF_FILE,
    DictionaryFile,
    dictionary_values,
    with_rows,
    with_values,
)
from shelduck.read.scan.scan_frames import Origin
from shelduck.read.table_rows import TableRows, some_rows
from shelduck.write import shadow_rows
from shelduck.write.merge.load_rows import different_keys, repeated_keys

# Opening a file costs as much as converting some hundred kB, so smaller ones are not worth it.
_SMALL = 1 << 20
# A look takes a tenth of a second or two. The job on so many bytes takes less than a second.
_WORTH = 64 << 20
# A lake that never had more files than this is not even asked how large they are.
_FEW = 4


def with_dictionaries(
    unit: UnitOfWork, table: TableVersion, plan: AlterPlan, found: Preflight | None
) -> Preflight | None:
    """Return what was found by bounds, and what dictionaries prove about texts and floats.

    A Spark job for each column, which reads footers and dictionary pages, and more if a value
    fails. None for small tables, over Spark Connect, and if something is refused already.
    """
    shadows = of_dictionaries(plan.shadows)
    staged = unit.workspace.staged_rows(table)
    if not shadows or table.id < 0 or (staged is not None and staged.has_changes):
        return found
    if table.snapshot.next_file_id <= _FEW or (found is not None and found.is_refused):
        return found
    if unit.state.store.ask(bytes_of_large_files, table, _SMALL) <= _WORTH:
        return found
    engine = engine_for(unit.state.spark)
    if not engine.has_jvm:
        return found
    judged = [s for s in shadows if shadow_rows.judges_alone(engine.spark, table, s)]
    looks = (_Looking(unit, engine, table, s, s in plan.meeting).proof() for s in judged)
    columns = [proof for proof in looks if proof is not None]
    known = () if found is None else found.columns
    return Preflight(table, [*known, *columns], is_whole=False) if columns else found


@dataclass
class _Looking:
    """One look at the files of a table for one column."""

    unit: UnitOfWork
    engine: Engine
    table: TableVersion
    shadow: Shadow
    is_key: bool = False
    _files: dict[int, UnprovenFile] = field(default_factory=dict)
    _mappings: dict[int, NameMapping] = field(default_factory=dict)
    _empty: set[int] = field(default_factory=set)
    _inlined: list[InlinedRows] = field(default_factory=list)
    _dead: set[int] = field(default_factory=set)

    def proof(self) -> ColumnProof | None:
        """Return what is proven about the column, None if nothing can be."""
        self._ask()
        looked = self._worth()
        if not looked:
            return None
        values = dictionary_values(self.engine, self.table, self.shadow.old, looked)
        rows = sum(len(part.rows) for part in self._inlined)
        kept = TableRows(self.unit.state.store, self.table, (), {}, tuple(self._inlined))
        frame = with_rows(values, self._frame(kept)) if rows else values
        proof = ColumnProof(self.shadow, len(self._files), len(self._empty), rows=rows)
        try:
            judged = shadow_rows.judged_values(frame, self.shadow, OF_FILE)
        except SparkError as error:
            if data_fault(error) is None:
                raise
            return self._failed(proof, looked)
        proof = self._judged(proof, judged, len(looked))
        if self.is_key and proof.is_proven:
            known = shadow_rows.with_converted(with_values(frame), [self.shadow])
            old, made = self.shadow.old, self.shadow.field
            keys = [old], [replace(made, name=shadow_name(made))]
            proof = replace(proof, apart=different_keys(repeated_keys(known, *keys), *keys) is None)
        return proof

    def _ask(self) -> None:
        """Ask the catalog: which files there are, which of them have only NULL, and more rows."""
        with self.unit.state.store.read() as connection:
            known = holdings_of(connection, self.table.id)
            _, files = files_unproven(connection, self.table, self.shadow.old.id, None)
            for file in files:
                # Two rows of statistics contradict each other.
                if file.id not in self._files and file.bounds.is_empty:
                    self._empty.add(file.id)
                elif file.id in self._files:
                    self._empty.discard(file.id)
                self._files[file.id] = file
            mapped = {file.mapping_id for file in self._files.values()}
            self._mappings = name_mappings(connection, mapped)
            self._inlined = inlined_rows(connection, self.table, known)
            self._dead = set(deletes_of_files(connection, self.table, known))

    def _worth(self) -> list[DictionaryFile]:
        """Return the files to look at: all with values, or large ones if most files are small."""
        files = [f for f in self._files.values() if f.id not in self._empty]
        if sum(f.size or 0 for f in files) < _SMALL * len(files):
            files = [f for f in files if (f.size or 0) >= _SMALL]
        found = []
        for file in files:
            mapping = None if file.mapping_id is None else self._mappings[file.mapping_id]
            name = None if mapping is None else _name(mapping, self.shadow.old)
            if mapping is None or name is not None:
                found.append(DictionaryFile(file.id, file.place(self.table), name))
        return found

    def _judged(
        self, proof: ColumnProof, judged: shadow_rows.JudgedValues, looked: int
    ) -> ColumnProof:
        """Return what is proven if no expression failed."""
        failing = {file: example for file, _, example in judged.failing if file is not None}
        rows = [(count, text) for file, count, text in judged.failing if file is None]
        bad = [text for count, text in rows for _ in range(count)]
        proof = replace(
            proof,
            proven=proof.proven + looked - judged.unread - len(failing),
            fitting_rows=proof.rows - len(bad),
            failing_rows=bad,
        )
        certain = [file for file in failing if self._is_certain(file)]
        if failing and not proof.may_be_null:
            # A file whose rows certainly have the values of its dictionary comes first.
            first = (certain or list(failing))[0]
            example = self._failing_row(first)
            if example is None:
                return proof
            failing[first] = example
            certain = certain or [first]
        told = [
            (self._files[file].place(self.table), failing[file]) for file in certain[:MOST_TOLD]
        ]
        return replace(proof, failing=len(certain), examples=told)

    def _is_certain(self, number: int) -> bool:
        """Return whether each value in the dictionary of a file is that of a row of the table.

        Other writers may put values there that no row has.
        """
        file = self._files[number]
        is_whole = file.bounds.is_whole and number not in self._dead
        return is_whole and file.mapping_id is None and is_own(self.table, file.place(self.table))

    def _failing_row(self, number: int) -> str | None:
        """Return a value that fails of a row in a file, None if no row has one."""
        bad = shadow_rows.bad_values(self._frame(self._rows(number), Origin.FILE_ID), self.shadow)
        return bad[0].example if bad else None

    def _rows(self, number: int) -> TableRows:
        """Return the rows that the table has in a file."""
        state = self.unit.state
        return some_rows(state.store, self.table, state.layouts, [number])

    def _frame(self, rows: TableRows, *origins: Origin) -> DataFrame:
        return rows.frame(self.engine.spark, [self.shadow.old.name], origins)

    def _failed(self, proof: ColumnProof, looked: Sequence[DictionaryFile]) -> ColumnProof:
        """Return what is proven if an expression failed: for which row, if one has the value."""

        def first(count: int) -> DataFrame:
            some = looked[:count]
            return with_values(dictionary_values(self.engine, self.table, self.shadow.old, some))

        number = shadow_rows.failing_part(len(looked), first, self.shadow)
        if number is None:
            return proof
        file = looked[number]
        found = self._rows(file.id)
        rows = self._frame(found, Origin.POSITION)
        last = sum(f.record_count or 1 for f in found.files) - 1
        failing = shadow_rows.failing_value(rows, last, self.shadow) if last >= 0 else None
        if failing is None:
            return proof
        return replace(
            proof,
            failing=1,
            examples=[(file.path, failing.example or "NULL")],
            told=told_of_expression(self.shadow, failing, file.path),
        )


def _name(mapping: NameMapping, column: Field) -> str | None:
    """Return the name of a top-level column in files of a mapping, None if they have none."""
    found = [m for m in mapping.names if m.field_id == column.id and not m.is_partition]
    return found[0].source_name if len(found) == 1 else None
