"""A Delta table's versions, checked and prepared to be committed one after the other.

Nothing is written before all versions pass: the log is replayed, every footer is read, every file
is matched to the columns of every version that shows it, and every deletion vector is read. Notes
name what an import leaves out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from shelduck.engine.session import SparkSession
from shelduck.errors import InvalidRequest
from shelduck.formats.delta.delta_files import DeltaFiles, sizes_of
from shelduck.formats.delta.log import Added, DeltaLog, State
from shelduck.formats.delta.steps import READER_FEATURES, Imported, ImportStep, Planner
from shelduck.formats.report import column_of, raise_problems
from shelduck.lake.done import Counts, Done, discard
from shelduck.model.changes.change import AppendFiles, DeleteRows, FileDeletes, RowChange
from shelduck.model.files.data_file import DataFile, NewDeleteFile, deletes_seen
from shelduck.model.files.place import is_below
from shelduck.model.tables.table_version import TableVersion
from shelduck.write.deletes.position_files import write_positions
from shelduck.write.parquet.write import fresh_name

if TYPE_CHECKING:
    from pyroaring import BitMap64
import re
from collections.abc import Iterable
from typing import Any

from shelduck.formats.delta.delta_columns import Columns
from shelduck.formats.delta.delta_rules import GENERATED, IDENTITY
from shelduck.formats.delta.delta_schema import DEFAULT, LENGTH, DeltaField, is_lost
from shelduck.model.tables.constraints import SHOWN_CHECK
from shelduck.model.tables.schema import Field, with_paths

_COLLATIONS = "__COLLATIONS"
_BINARY = "UTF8_BINARY"
_COLLATED = re.compile(r"string collate (\S+)", re.IGNORECASE)
_FIELD_KEYS = frozenset(
    f"comment {DEFAULT} EXISTS_DEFAULT delta.invariants delta.typeChanges"
    f" {GENERATED} {_COLLATIONS} {LENGTH}".split()
)
_FIELD_PREFIXES = ("delta.columnMapping.", IDENTITY)
_SETTINGS = frozenset(
    "delta.appendOnly delta.enableChangeDataFeed delta.enableDeletionVectors"
    " delta.enableInCommitTimestamps delta.enableRowTracking delta.enableTypeWidening"
    " delta.minReaderVersion delta.minWriterVersion shelduck.table".split()
)
_SETTING_PREFIXES = (
    SHOWN_CHECK,
    "delta.checkpoint",
    "delta.columnMapping.",
    "delta.feature.",
    "delta.inCommitTimestamp",
    "delta.rowTracking.",
)
# Features that a reader knows, that columns and settings show, or that concern only the log.
_FEATURES = READER_FEATURES | frozenset(
    "allowColumnDefaults appendOnly changeDataFeed checkConstraints checkpointProtection collations"
    " collations-preview generatedColumns identityColumns inCommitTimestamp invariants"
    " materializePartitionColumns rowTracking".split()
)
_WITH_DOMAINS = ("clustering", "rowTracking")


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """Versions to commit in order, and what of the Delta table is not imported."""

    steps: tuple[ImportStep, ...]
    notes: tuple[str, ...]


def plan_import(
    spark: SparkSession,
    log: DeltaLog,
    known: Imported | None,
    *,
    own_path: str,
    zone: str = "",
    show_progress: bool | None = None,
) -> ImportPlan:
    """Return what to commit so that a table has every version of the log.

    ``known`` is the table if some versions are already imported; ``own_path`` is where the lake
    keeps its own files; expressions get the time ``zone``. Raises InvalidRequest (with a list of
    what does not fit), Unsupported or CorruptLake.
    """
    first, why = _first_whole(log)
    if known is not None:
        _require_told(log, known)
    start = first if known is None else max(first, known.version + 1)
    sizes = _sizes(log, start, known, own_path)
    planner = Planner(log, start, DeltaFiles.read(spark, sizes, show=show_progress), zone)
    steps = tuple(planner.steps(known))
    if planner.files.unnumbered:
        planner = Planner(log, start, planner.files, zone, has_nulls=True)
        steps = tuple(planner.steps(known))
    told = f"cannot import the Delta table at {log.root}, nothing was imported:"
    raise_problems(told, list(planner.files.problems))
    oldest = log.steps[0].version if known is None else known.version + 1
    notes = [f"versions {oldest} to {start - 1} were left out: {why}"] if start > oldest else []
    if known is None and oldest > 0:
        notes.append(f"versions before {oldest} were left out: the log no longer contains them")
    if steps:
        notes += [
            *notes_of_settings(log),
            *notes_of_columns(planner.seen),
            *_notes_of_files(planner),
        ]
    return ImportPlan(steps, tuple(notes))


def stage_step(
    step: ImportStep, table: TableVersion, files: Mapping[str, DataFile], root: str
) -> Done:
    """Return the row changes of a version for one commit, with its delete files written.

    ``table`` already has the columns of the step; ``files`` are its data files by path. If anything
    fails, the written files are removed.
    """
    directory = fresh_name(table)
    written: list[str] = []

    def dead_rows(path: str, dead: BitMap64) -> NewDeleteFile:
        written.append(f"{directory}/{len(written):05}-delete.parquet")
        positions = pa.array(dead.to_array(), pa.uint64()).cast(pa.int64())
        return write_positions(table, written[-1], path, positions)

    try:
        ended = [FileDeletes(files[p].id, deletes_seen(files[p])) for p in step.ended]
        deleted = [
            FileDeletes(files[p].id, deletes_seen(files[p]), dead_rows(p, dead))
            for p, dead in step.deletes
        ]
        same_keys = table.partition == step.columns.partition
        added = tuple(
            replace(
                one.file,
                partition_id=table.partition_id if same_keys else None,
                deletes=dead_rows(one.file.path, one.dead) if one.dead else None,
            )
            for one in step.added
        )
    except KeyError as missing:
        raise InvalidRequest(
            f"{table.full_name} does not have {missing.args[0]}, which version {step.version - 1}"
            f" of the Delta table at {root} has: it was changed during the import; import into a"
            " new table"
        ) from missing
    except BaseException:
        discard(table, written)
        raise
    changes: list[RowChange] = []
    if ended or deleted:
        changes.append(DeleteRows(table, (*ended, *deleted)))
    if added:
        changes.append(AppendFiles(table.id, added))
    counts = Counts(inserted=sum(f.record_count for f in added), files=len(added))
    return Done(table, tuple(changes), tuple(written), counts)


def _require_told(log: DeltaLog, known: Imported) -> None:
    name, first = known.table.full_name, log.steps[0].version
    if known.version > log.newest:
        raise InvalidRequest(
            f"{name} has version {known.version} of the Delta table at {log.root}, whose log ends"
            f" with version {log.newest}, so it is another table now; import into a new table"
        )
    if known.version < first:
        raise InvalidRequest(
            f"{name} has version {known.version} of the Delta table at {log.root}, whose log now"
            f" begins with version {first}, so the changes of the columns in between are unknown;"
            " import into a new table"
        )


def _first_whole(log: DeltaLog) -> tuple[int, str]:
    """Return the first version from which on all are complete, and what the one before it lacks.

    Raises InvalidRequest if the newest version is not complete.
    """
    paths = dict.fromkeys(add.path for step in log.steps for add in step.added)
    gone = {path for path, size in sizes_of(list(paths)).items() if size is None}
    first, why = log.steps[0].version, ""
    for step, state in log.replay():
        lack = _lack(state, gone)
        if lack is not None:
            first, why = step.version + 1, f"version {step.version} {lack}"
    if first > log.newest:
        raise InvalidRequest(
            f"cannot import the Delta table at {log.root}, nothing was imported: {why}"
        )
    return first, why


def _lack(state: State, gone: set[str]) -> str | None:
    if gone:
        missing = next((path for path in state.files if path in gone), None)
        if missing is not None:
            return f"needs the data file {missing}, which does not exist"
    try:
        fields = json.loads(state.metadata.schema).get("fields")
    except (ValueError, AttributeError):
        # This error is raised later, when the columns are read.
        return None
    return None if fields else "has no columns"


def _sizes(log: DeltaLog, start: int, known: Imported | None, own_path: str) -> dict[str, int]:
    """Return the files that must be matched to columns of versions from ``start`` on."""
    wanted: dict[str, Added] = {}
    before: dict[str, Added] = {}
    schema: str | None = None
    for step, state in log.replay():
        if known is not None and step.version == known.version:
            here = {f.path for f in known.files}
            before, schema = dict(state.files), state.metadata.schema
            wanted |= {p: a for p, a in before.items() if p not in here}
        if step.version < start:
            continue
        if step.version == start:
            wanted |= {p: a for p, a in state.files.items() if before.get(p) != a}
        wanted |= {add.path: add for add in step.added}
        if state.metadata.schema != schema:
            wanted |= state.files
            schema = state.metadata.schema
    inside = next((path for path in wanted if is_below(path, own_path)), None)
    if inside is not None:
        raise InvalidRequest(
            f"{inside} is below the lake's data path {own_path}, where maintenance deletes files"
            " that no snapshot uses; move the Delta table elsewhere"
        )
    return {path: size for path, size in sizes_of(list(wanted)).items() if size is not None}


def _notes_of_files(planner: Planner) -> Iterator[str]:
    """Yield what other readers must know about the files."""
    if planner.files.untold:
        yield (
            f"{len(planner.files.untold)} file(s) have partition values that are not in their"
            " path; Shelduck has them from the log, but DuckDB refuses to read these files until"
            " they are rewritten"
        )
    if planner.files.narrow:
        files = len(set().union(*planner.files.narrow.values()))
        yield (
            f"{files} file(s) hold {', '.join(sorted(planner.files.narrow))} in narrower types;"
            " DuckDB 1.5.5 reads the values correctly, but may filter them wrongly until these"
            " files are rewritten; Shelduck filters correctly"
        )
    if planner.files.by_session:
        yield (
            f"{len(planner.files.by_session)} file(s) do not say whether their timestamps are"
            " instants (INT96, as old versions of Spark write them); Shelduck reads them as the"
            " Delta table says, but DuckDB by the time zone of its session, so use SET TimeZone ="
            " 'UTC' there"
        )


def notes_of_columns(columns: Iterable[Columns]) -> list[str]:
    """Return the properties of these columns in Delta that they lose here, each one once."""
    found: dict[str, None] = {}
    for one in columns:
        for path, f in with_paths(one.schema):
            for what in _lost(one.origin[f.id], f, is_nested=len(path) > 1):
                found[f"{column_of(path)}: {what}"] = None
        found |= dict.fromkeys(one.rules.notes(one.properties, one.schema))
    return list(found)


def notes_of_settings(log: DeltaLog) -> Iterator[str]:
    """Yield what the newest settings and features require of writers, and Shelduck does not."""
    metadata = next((s.metadata for s in reversed(log.steps) if s.metadata is not None), None)
    if metadata is not None:
        yield from _of_settings(metadata.configuration)
    protocol = next((s.protocol for s in reversed(log.steps) if s.protocol is not None), None)
    if protocol is not None:
        yield from _of_features(protocol.writer_features)


def _lost(origin: DeltaField, made: Field, *, is_nested: bool) -> Iterator[str]:
    told = origin.metadata
    if is_lost(origin, made):
        yield f"its default {told['CURRENT_DEFAULT']!r} was not carried over"
    if "delta.invariants" in told:
        yield "its invariant was not carried over"
    if is_nested and not origin.nullable:
        yield "NOT NULL inside a nested column was not carried over"
    for name in _collations(origin):
        yield f"its collation {name} was not carried over: text is compared by its bytes here"
    for key in sorted(told):
        if key not in _FIELD_KEYS and not key.startswith(_FIELD_PREFIXES):
            yield f"its setting {key!r} was not carried over"


def _collations(origin: DeltaField) -> Iterator[str]:
    told: Any = origin.metadata.get(_COLLATIONS) or {}
    names = {str(name) for name in told.values()} if isinstance(told, Mapping) else {str(told)}
    match = _COLLATED.fullmatch(origin.declared)
    if match:
        names.add(match[1])
    yield from sorted(n for n in names if n.rpartition(".")[2].upper() != _BINARY)


def _of_settings(settings: Mapping[str, str]) -> Iterator[str]:
    wanted = {k for k, v in settings.items() if v.lower() == "true"}
    if "delta.enableChangeDataFeed" in wanted:
        yield "the change data feed was left out: Table.changes reads the changes of every table"
    if "delta.appendOnly" in wanted:
        yield "appendOnly was not carried over: rows can be changed and deleted"
    if "delta.enableRowTracking" in wanted:
        yield "row ids of Delta were left out: rows have row ids of DuckLake"
    others = [k for k in settings if k not in _SETTINGS and not k.startswith(_SETTING_PREFIXES)]
    if others:
        yield f"table properties were not carried over: {', '.join(sorted(others))}"


def _of_features(features: frozenset[str]) -> Iterator[str]:
    if "clustering" in features:
        yield "clustering was not carried over: ALTER TABLE … SET SORTED BY sorts files here"
    known = _FEATURES | {"clustering"}
    if any(name in features for name in _WITH_DOMAINS):
        # These two store their data in domains; other domains have no reader here.
        known |= {"domainMetadata"}
    others = sorted(features - known)
    if others:
        yield f"features that Delta requires of writers were left out: {', '.join(others)}"
