"""The log of a Delta table: its state at each of its versions.

Commits are JSON files, one for each version. Checkpoints are states, written from time to time: one
Parquet file, several, or (V2) a file of either kind with sidecars. A version can be reconstructed
if there is a checkpoint at or before it, or the start of the log, and every commit since.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from pyarrow import parquet

from shelduck.engine.files.storage import filesystem, in_threads, list_names, local_path, read_text
from shelduck.errors import CorruptLake, InvalidRequest

LOG = "_delta_log"
MODE = "delta.columnMapping.mode"
VECTOR = ("storageType", "pathOrInlineDv", "sizeInBytes", "cardinality", "offset")
"""What the log calls the parts of a `LoggedVector`, in order; only the last may be missing."""
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-f-]{36})?\.(parquet|json)"
)
_WANTED = (
    "add.path",
    "add.partitionValues",
    "add.size",
    "add.deletionVector",
    "metaData",
    "protocol",
    "sidecar",
)


@dataclass(frozen=True, slots=True)
class LoggedVector:
    """Where a deletion vector is, as in the log: its ``storage`` is i, u or p."""

    storage: str
    place: str
    size: int
    cardinality: int
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Added:
    """A data file of a version by its absolute path; partition values are the log's texts."""

    path: str
    size: int
    partition_values: Mapping[str, str | None]
    vector: LoggedVector | None = None


@dataclass(frozen=True, slots=True)
class Metadata:
    """The columns of a version and its table's settings."""

    table_id: str
    schema: str
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    description: str | None = None

    @property
    def mode(self) -> str:
        """The mode of column mapping: none, name or id."""
        return self.configuration.get(MODE, "none")


@dataclass(frozen=True, slots=True)
class Protocol:
    """The demands on a reader; ``features`` are named from reader version 3 on.

    ``writer_features`` are what writers must support, named from writer version 7 on.
    """

    reader_version: int
    features: frozenset[str]
    writer_features: frozenset[str]


@dataclass(frozen=True, slots=True)
class DeltaCommit:
    """The changes of one version; ``removed`` are paths with the deletion vector that they had."""

    version: int
    added: tuple[Added, ...]
    removed: tuple[tuple[str, LoggedVector | None], ...]
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    timestamp: int | None = None
    operation: str | None = None
    engine: str | None = None
    is_checkpoint: bool = False


@dataclass
class State:
    """A table at one version; ``files`` by path."""

    version: int
    metadata: Metadata
    protocol: Protocol
    files: dict[str, Added] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeltaLog:
    """All known versions of a table: the first step is a whole state, the others are changes."""

    root: str
    steps: tuple[DeltaCommit, ...]

    @property
    def newest(self) -> int:
        """The newest version."""
        return self.steps[-1].version

    def replay(self) -> Iterator[tuple[DeltaCommit, State]]:
        """Yield each version with the state after it, which the next one changes."""
        state: State | None = None
        for step in self.steps:
            state = _applied(self.root, state, step)
            yield step, state


def delta_root(place: str) -> str:
    """Return the absolute path of a Delta table, without a '/' at its end."""
    plain = local_path(place)
    # Not resolved: DuckDB must find the files under the same path.
    return os.path.abspath(plain) if plain is not None else place.rstrip("/")  # noqa: PTH100


def has_log(root: str) -> bool:
    """Return whether there is a Delta table at ``root``; the rest of a killed write is not one."""
    names = list_names(f"{root}/{LOG}")
    return any(_COMMIT.fullmatch(name) or _CHECKPOINT.fullmatch(name) for name in names)


def read_log(root: str) -> DeltaLog:
    """Return the log of the Delta table at ``root``; JSON commits are read in parallel.

    Raises InvalidRequest if there is none, CorruptLake if its files are missing or broken.
    """
    names = list_names(f"{root}/{LOG}")
    commits = {int(m[1]): m[0] for name in names if (m := _COMMIT.fullmatch(name))}
    checkpoints = _checkpoints(names)
    if not commits and not checkpoints:
        raise InvalidRequest(
            f"there is no Delta table at {root}: it has no {LOG} with commits or checkpoints"
        )
    newest = max([*commits, *checkpoints])
    _require_newest(root, names, newest)
    first = _first_told(root, commits, checkpoints, newest)
    steps: list[DeltaCommit] = []
    if first in checkpoints:
        steps.append(_read_checkpoint(root, first, checkpoints[first], commits.get(first)))
    wanted = [v for v in sorted(commits) if v >= first + len(steps)]
    steps += in_threads(lambda v: _read_commit(root, v, commits[v]), wanted)
    return DeltaLog(root, tuple(steps))


def absolute(root: str, path: str) -> str:
    """Return the absolute path of a file from its URI in the log, which may be relative."""
    plain = unquote(path)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", plain):
        return local_path(plain) or plain
    return plain if plain.startswith("/") else f"{root}/{plain}"


def _checkpoints(names: Iterable[str]) -> dict[int, list[str]]:
    """Return the files of each complete checkpoint, by its version."""
    whole: dict[int, list[str]] = {}
    parts: dict[tuple[int, int], list[str]] = defaultdict(list)
    for name in sorted(names):
        match = _CHECKPOINT.fullmatch(name)
        if match is None:
            continue
        if match[3] is None:
            whole.setdefault(int(match[1]), [name])
        else:
            parts[int(match[1]), int(match[3])].append(name)
    for (version, count), found in parts.items():
        if len(found) == count:
            whole.setdefault(version, found)
    return whole


def _require_newest(root: str, names: Iterable[str], newest: int) -> None:
    """Raise CorruptLake if the log says that it has a newer checkpoint than there is."""
    if "_last_checkpoint" not in names:
        return
    try:
        told = json.loads(read_text(f"{root}/{LOG}/_last_checkpoint")).get("version")
    except (ValueError, AttributeError):
        # It is a hint, which some writers do not write atomically.
        return
    if isinstance(told, int) and told > newest:
        raise CorruptLake(
            f"the Delta log at {root} refers to a checkpoint of version {told}, but its newest"
            f" version is {newest}, so files of the log are missing; restore them"
        )


def _first_told(
    root: str, commits: Mapping[int, str], checkpoints: Mapping[int, Any], newest: int
) -> int:
    """Return the oldest version from which on every version can be reconstructed."""
    first = newest
    while first in commits:
        first -= 1
    # All commits after ``first`` exist, without a gap.
    if first == -1:
        return 0
    known = sorted(v for v in checkpoints if v >= first)
    if known:
        return known[0]
    raise CorruptLake(
        f"the Delta log at {root} has no version {first}, and no checkpoint between it and version"
        f" {newest}; restore {first:020}.json"
    )


def _read_commit(root: str, version: int, name: str) -> DeltaCommit:
    path = f"{root}/{LOG}/{name}"
    try:
        return _commit(root, version, _lines(read_text(path)))
    except (ValueError, KeyError, TypeError, AttributeError) as broken:
        raise CorruptLake(f"{path} is not a commit of a Delta table: {broken!r}") from broken


def _read_checkpoint(
    root: str, version: int, names: Sequence[str], commit_name: str | None
) -> DeltaCommit:
    """Return the state in a checkpoint; its version's commit, if present, has the changes."""
    actions = [a for name in names for a in _checkpoint_actions(f"{root}/{LOG}/{name}")]
    for sidecar in [a["sidecar"] for a in actions if a.get("sidecar")]:
        place = unquote(sidecar["path"])
        inside = place if "/" in place else f"_sidecars/{place}"
        path = inside if ":/" in inside or inside.startswith("/") else f"{root}/{LOG}/{inside}"
        actions += _checkpoint_actions(path)
    try:
        found = _commit(root, version, actions)
    except (KeyError, TypeError, ValueError) as broken:
        raise CorruptLake(
            f"cannot read the checkpoint of version {version} of {root}: {broken!r}"
        ) from broken
    bare = DeltaCommit(version, (), ())
    told = bare if commit_name is None else _read_commit(root, version, commit_name)
    return replace(
        told,
        added=found.added,
        removed=(),
        metadata=found.metadata,
        protocol=found.protocol,
        is_checkpoint=True,
    )


def _checkpoint_actions(path: str) -> list[dict[str, Any]]:
    if path.endswith(".json"):
        try:
            return _lines(read_text(path))
        except ValueError as broken:
            raise CorruptLake(f"cannot read the Delta checkpoint {path}") from broken
    files, name = filesystem(path)
    try:
        with files.open_input_file(name) as source:
            file = parquet.ParquetFile(source)
            paths = {file.schema.column(n).path for n in range(len(file.schema))}
            known = [w for w in _WANTED if any(p == w or p.startswith(f"{w}.") for p in paths)]
            rows = file.read(columns=known).to_pylist()
    except (FileNotFoundError, OSError, ValueError) as broken:
        raise CorruptLake(f"cannot read {path}, a part of a Delta checkpoint") from broken
    return [{k: v for k, v in row.items() if v is not None} for row in rows]


def _lines(text: str) -> list[dict[str, Any]]:
    # Texts may contain other line endings, which JSON does not escape.
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _commit(root: str, version: int, actions: Iterable[Mapping[str, Any]]) -> DeltaCommit:
    added: list[Added] = []
    removed: list[tuple[str, LoggedVector | None]] = []
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    info: Mapping[str, Any] = {}
    for action in actions:
        if add := action.get("add"):
            added.append(_added(root, add))
        elif remove := action.get("remove"):
            removed.append((absolute(root, remove["path"]), _vector(remove)))
        elif found := action.get("metaData"):
            metadata = _metadata(found)
        elif found := action.get("protocol"):
            protocol = Protocol(
                int(found["minReaderVersion"]),
                frozenset(found.get("readerFeatures") or ()),
                frozenset(found.get("writerFeatures") or ()),
            )
        elif found := action.get("commitInfo"):
            info = found
    stamp = info.get("inCommitTimestamp", info.get("timestamp"))
    return DeltaCommit(
        *(version, tuple(added), tuple(removed), metadata, protocol),
        stamp if isinstance(stamp, int) else None,
        info.get("operation"),
        info.get("engineInfo"),
    )


def _added(root: str, add: Mapping[str, Any]) -> Added:
    values = _pairs(add.get("partitionValues"))
    return Added(absolute(root, add["path"]), int(add["size"]), values, _vector(add))


def _vector(action: Mapping[str, Any]) -> LoggedVector | None:
    found = action.get("deletionVector")
    if not found:
        return None
    storage, place, size, cardinality = (found[name] for name in VECTOR[:-1])
    return LoggedVector(storage, place, int(size), int(cardinality), found.get("offset"))


def _metadata(found: Mapping[str, Any]) -> Metadata:
    settings = {k: v for k, v in _pairs(found.get("configuration")).items() if v is not None}
    return Metadata(
        found["id"],
        found["schemaString"],
        tuple(found.get("partitionColumns") or ()),
        settings,
        found.get("description"),
    )


def _pairs(found: Any) -> dict[str, Any]:
    # Parquet's maps are returned as lists of pairs.
    return dict(found or {})


def _applied(root: str, state: State | None, step: DeltaCommit) -> State:
    if state is None or step.is_checkpoint:
        if step.metadata is None or step.protocol is None:
            raise CorruptLake(
                f"version {step.version} of the Delta table at {root} has no metaData or no"
                " protocol; restore the log"
            )
        state = State(step.version, step.metadata, step.protocol)
    state.version = step.version
    state.metadata = step.metadata or state.metadata
    state.protocol = step.protocol or state.protocol
    for path, vector in step.removed:
        known = state.files.get(path)
        if known is not None and known.vector == vector:
            del state.files[path]
    for add in step.added:
        state.files[add.path] = add
    return state
