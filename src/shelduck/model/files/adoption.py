"""How a foreign file fits a table: by name, every column checked before the file is adopted.

The rules are those of DuckLake's ``add_data_files``: names match without case, a struct part by
part, lists and maps by position; ``name=value`` directories are columns, and override columns of
the file. It is stricter in one point: a column is refused unless its values read correctly as they
are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from shelduck.model.files.data_file import (
    ROW_ID_FIELD,
    SNAPSHOT_FIELD,
    Layout,
    MappedName,
    PhysicalField,
)
from shelduck.model.files.readable import How, reading
from shelduck.model.tables.schema import Field, Kind, Path, Schema, path_text
from shelduck.model.types.data_types import SIGNED, UNSIGNED, Decimal, Leaf

_INTEGERS = (SIGNED.keys() | UNSIGNED.keys()) - {"int128", "uint128"}
_WIDENED = frozenset({("float32", "float64"), ("json", "varchar"), ("timestamp_ms", "timestamp")})
_UNSURE = frozenset({"timetz", "unknown"})


@dataclass(frozen=True, slots=True)
class Adopted:
    """How files of one layout fit: ``names`` is their name mapping.

    ``leaves`` are the leaves that the files have: their field, how they are stored, and the path in
    the file's own schema. ``missing`` are leaves that the files lack; ``from_path`` are columns
    whose value is in the file's path. ``problems`` say what does not fit; it is empty if everything
    fits.
    """

    names: tuple[MappedName, ...]
    leaves: tuple[tuple[Field, PhysicalField, str], ...]
    missing: tuple[Field, ...]
    from_path: tuple[Field, ...]
    problems: tuple[str, ...]


def holds_alike(stored: PhysicalField, target: Leaf) -> bool:
    """Return whether every reader reads the same values from a stored leaf, and loses none.

    This excludes casts that depend on the time zone of a session (``timestamp`` to
    ``timestamptz``), and everything that DuckDB's own ``add_data_files`` refuses, except text as
    JSON.
    """
    leaf = stored.shape
    found = reading(stored, target)
    if isinstance(leaf, Kind) or found is None or found.how is How.CHECKED_CAST:
        return False
    if leaf == target:
        return str(leaf) not in _UNSURE
    if isinstance(leaf, Decimal) or isinstance(target, Decimal):
        return isinstance(leaf, Decimal) and isinstance(target, Decimal)
    return (leaf.name, target.name) in _WIDENED or {leaf.name, target.name} <= _INTEGERS


def holds_widened(stored: PhysicalField, target: Leaf) -> bool:
    """Return whether a stored leaf reads correctly as ``target`` if another format widened types.

    Instants may be stored in either way: the flag in the file agrees with the schema of its table
    or, for INT96, is absent.
    """
    found = reading(stored, target)
    if found is None:
        return False
    whole = str(stored.shape) in SIGNED and isinstance(target, Decimal)
    as_it_is = found.how in (None, How.NULL_OF_VARIANT)
    return as_it_is or (found.how is How.CAST and whole)


@dataclass
class _Match:
    allow_missing: bool
    ignore_extra: bool
    called: Callable[[Field], str | None]
    holds: Callable[[PhysicalField, Leaf], bool]
    leaves: list[tuple[Field, PhysicalField, str]] = field(default_factory=list)
    missing: list[Field] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def match_file(
    layout: Layout,
    columns: Schema,
    path_keys: Sequence[str] = (),
    *,
    allow_missing: bool = False,
    ignore_extra: bool = False,
    called: Callable[[Field], str | None] = lambda field: field.name,
    holds: Callable[[PhysicalField, Leaf], bool] = holds_alike,
) -> Adopted:
    """Return how a file of that layout, with these keys in its path, fits the columns.

    ``called`` returns the name of a column or struct field in the file, None if the file lacks it;
    ``holds`` says which stored leaves are values of which type.
    """
    match = _Match(allow_missing, ignore_extra, called, holds)
    _refuse_reserved(layout, match)
    by_path = {f.id: key for key in path_keys if (f := columns.find((key,))) is not None}
    for number in by_path:
        found = columns.by_id(number)
        if found is not None and not found.is_leaf:
            match.problems.append(f"column {found.name!r} is nested and cannot be in a path")
    open_columns = [f for f in columns if f.id not in by_path]
    taken = {f.name.lower() for f in columns if f.id in by_path}
    stored = [p for p in layout.fields if p.name.lower() not in taken]
    names = _match_level(match, stored, open_columns, (), "")
    names += [MappedName(key, number, is_partition=True) for number, key in by_path.items()]
    return Adopted(
        tuple(names),
        tuple(match.leaves),
        tuple(match.missing),
        tuple(f for number in by_path if (f := columns.by_id(number)) is not None),
        tuple(match.problems),
    )


def same_names(one: Sequence[MappedName], other: Sequence[MappedName]) -> bool:
    """Return whether two mappings are equal, whatever the order of names in one level.

    The order of partition names matters, because the values of files follow it.
    """
    return _identity(one) == _identity(other)


def _identity(names: Sequence[MappedName]) -> tuple[object, ...]:
    plain = frozenset(
        (n.source_name, n.field_id, _identity(n.children)) for n in names if not n.is_partition
    )
    return plain, tuple((n.source_name, n.field_id) for n in names if n.is_partition)


def _refuse_reserved(layout: Layout, match: _Match) -> None:
    for stored in layout.fields:
        if stored.id in (ROW_ID_FIELD, SNAPSHOT_FIELD):
            match.problems.append(
                f"column {stored.name!r} contains row ids or snapshots of another lake, so the file"
                " cannot be mapped by name; select the other columns into a new file"
            )


def _match_level(
    match: _Match, stored: Sequence[PhysicalField], fields: Sequence[Field], path: Path, place: str
) -> list[MappedName]:
    """Match the parts of one level by name, in the order of the file."""
    known: Mapping[str, Field] = {
        name.lower(): f for f in fields if (name := match.called(f)) is not None
    }
    names: list[MappedName] = []
    counts = Counter(p.name.lower() for p in stored)
    for part in stored:
        target = known.get(part.name.lower())
        here = path_text((*path, part.name))
        if target is None:
            # A nested column for Shelduck's own use that no reader asks for is left out, too.
            if not match.ignore_extra and part.id not in (ROW_ID_FIELD, SNAPSHOT_FIELD):
                match.problems.append(
                    f"column {here!r} is in the file but not in the table"
                    " (ignore_extra_columns=True leaves it out)"
                )
        elif counts[part.name.lower()] > 1:
            match.problems.append(
                f"column {here!r} is in the file more than once, if case is ignored"
            )
        else:
            found = _match_node(match, part, target, path, place)
            if found is not None:
                names.append(found)
    for target in fields:
        name = match.called(target)
        if name is None or name.lower() not in counts:
            _miss(match, target, path)
    return names


def _miss(match: _Match, target: Field, path: Path) -> None:
    here = path_text((*path, target.name))
    if not match.allow_missing:
        match.problems.append(
            f"column {here!r} is in the table but not in the file (allow_missing=True reads its"
            " default, or NULL)"
        )
    elif not path and not target.nullable and target.initial_default is None:
        match.problems.append(f"column {here!r} is NOT NULL but not in the file")
    match.missing.extend(target.leaves())


def _match_node(
    match: _Match, stored: PhysicalField, target: Field, path: Path, place: str
) -> MappedName | None:
    if isinstance(stored.shape, Kind) or isinstance(target.shape, Kind):
        if stored.shape is not target.shape:
            match.problems.append(_mismatch(stored, target, path))
            return None
        return _match_parts(match, stored, target, path, place)
    if not match.holds(stored, target.shape):
        match.problems.append(_mismatch(stored, target, path))
        return None
    match.leaves.append((target, stored, place + stored.name))
    return MappedName(stored.name, target.id, is_partition=False)


def _match_parts(
    match: _Match, stored: PhysicalField, target: Field, path: Path, place: str
) -> MappedName | None:
    below, inside = (*path, target.name), f"{place}{stored.name}."
    if target.shape is Kind.STRUCT:
        children = _match_level(match, stored.children, target.children, below, inside)
        if not children:
            here = path_text(below)
            match.problems.append(f"no part of column {here!r} is in the file")
            return None
        return MappedName(stored.name, target.id, is_partition=False, children=tuple(children))
    if _hides_structs(stored, target):
        match.problems.append(
            f"column {path_text(below)!r} is a list of structs in the layout of old writers, which"
            " DuckDB reads as NULL; rewrite the file"
        )
        return None
    if stored.group and stored.encoding != "two-level":
        inside += f"{stored.group}."
    children = []
    for part, child in zip(stored.children, target.children, strict=True):
        found = _match_node(match, part, child, below, inside)
        if found is None:
            return None
        # DuckDB knows the elements of a list by the name of the repeated group.
        name = stored.group if target.shape is Kind.LIST and stored.group else part.name
        children.append(MappedName(name, found.field_id, False, found.children))
    return MappedName(stored.name, target.id, is_partition=False, children=tuple(children))


def _hides_structs(stored: PhysicalField, target: Field) -> bool:
    """Return whether a list of structs has a layout other than the Parquet standard's."""
    if target.shape is not Kind.LIST or (stored.group == "list" and not stored.encoding):
        return False
    return any(part.shape is Kind.STRUCT for part in target.walk())


def _mismatch(stored: PhysicalField, target: Field, path: Path) -> str:
    here = path_text((*path, target.name))
    return f"column {here!r} is {target.shape} in the table but {stored.stored_as} in the file"
