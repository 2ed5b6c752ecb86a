"""What a change of a source's columns means for the table that follows it; no I/O.

The columns of the stream, before and after, are given the ids of the columns that they fill. Then
both are merged with the columns of the sink as a branch is with its source: what only the source
changed is changed in the sink, and what the sink changed by itself stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shelduck.branches.merging import OURS, Merging, Resolution, merged_columns
from shelduck.branches.table_clauses import column_changes
from shelduck.carry.flow import Output
from shelduck.errors import InvalidRequest
from shelduck.model.changes.modify import TableChange
from shelduck.model.changes.schema_change import AddColumn, SetDefault
from shelduck.model.tables.keys import table_keys
from shelduck.model.tables.schema import Default, Field, FieldId, Path, Schema, with_paths
from shelduck.model.tables.table_version import TableVersion

Comments = Mapping[FieldId | None, str]


@dataclass(frozen=True, slots=True)
class StreamColumns:
    """The columns of a stream at one version of its source, with the comments of that."""

    outputs: Sequence[Output]
    comments: Comments


@dataclass(frozen=True, slots=True)
class SinkChanges:
    """The changes of a sink, in order, and the paths that parts of the stream fill afterwards."""

    changes: tuple[TableChange, ...]
    paths: Mapping[str, Path]


@dataclass
class _Ids:
    """The ids of the sink for parts of the stream: known ones, or such that nothing has yet."""

    next: int
    pairs: Mapping[str, int]
    given: dict[str, FieldId] = field(default_factory=dict)

    def of(self, key: str, name: str, among: Sequence[Field]) -> FieldId:
        """Return the id of the field that a part fills: the paired one, or one of its name.

        That must not be paired with another part, which had the name before.
        """
        if key not in self.given:
            paired = self.pairs.get(key)
            found = next((f for f in among if f.id == paired), None)
            free = (f for f in among if f.id not in self.pairs.values())
            found = found or next((f for f in free if f.name.lower() == name.lower()), None)
            self.given[key] = FieldId(self.next) if found is None else found.id
            self.next += found is None
        return self.given[key]


def sink_changes(
    sink: TableVersion,
    before: StreamColumns | None,
    now: StreamColumns,
    pairs: Mapping[str, int],
    *,
    keeps: bool = False,
) -> SinkChanges:
    """Return what a sink gets when the columns of its stream change.

    Without ``before``, the stream is new, or its text is: columns that the sink has stay as they
    are, and it gets the others. ``pairs`` has the ids that parts of the stream fill. With
    ``keeps``, columns that the source drops stay, and later rows have NULL in them.
    """
    shown = (*now.outputs, *(before.outputs if before else ()))
    known = {key for one in shown for key, _ in one.parts()}
    ids = _Ids(sink.max_column_id + 1, {k: n for k, n in pairs.items() if k in known})
    columns, comments = _translated(sink, now, ids)
    given = dict(ids.given)
    if before is None:
        base = {f.id: f for f in sink.columns}
        columns = tuple(base.get(f.id, f) for f in columns)
        then = tuple(f for f in columns if f.id in base)
        there = {f.id for top in then for f in top.walk()}
        comments = dict(sink.comments) | {n: t for n, t in comments.items() if n not in there}
        comments_then: Comments = sink.comments
    else:
        then, comments_then = _translated(sink, before, ids)
        if keeps:
            columns = _with_kept(then, columns)
            comments = dict(comments_then) | dict(comments)
    merging = Merging(sink.full_name, (Resolution(OURS),))
    sides = (then, sink.columns.fields, columns)
    made = merged_columns(merging, *map(sink.columns.with_fields, sides))
    clashes = [one for one in merging.conflicts if one.base == ""]
    if clashes:
        raise InvalidRequest(
            f"{sink.full_name} cannot follow: its column {clashes[0].item!r} has the name of"
            f" another column of the stream; rename it with ALTER TABLE {sink.full_name} RENAME"
            " COLUMN"
        )
    told = merging.mapping("comment", str, (comments_then, sink.comments, comments))
    after = replace(sink, columns=made, comments=told)
    paths = {f.id: path for path, f in with_paths(made)}
    return SinkChanges(
        tuple(_with_older_rows(column_changes(sink, after), made)),
        {key: paths[number] for key, number in given.items() if number in paths},
    )


def _translated(
    sink: TableVersion, shown: StreamColumns, ids: _Ids
) -> tuple[tuple[Field, ...], dict[FieldId | None, str]]:
    """Return the columns of a stream, and their comments, under the ids of its sink."""
    comments: dict[FieldId | None, str] = {}

    def of(output: Output, key: str, one: Field, among: Sequence[Field]) -> Field:
        number = ids.of(key, one.name, among)
        own = next((f for f in among if f.id == number), None)
        if not output.computed and one.id in shown.comments:
            comments[number] = shown.comments[one.id]
        below = () if own is None else own.children
        children = (of(output, output.key_below(key, c), c, below) for c in one.children)
        found = replace(one, id=number, children=tuple(children))
        # Nobody changed what rows without the column read, and its number among its siblings.
        kept = own or one
        return replace(found, initial_default=kept.initial_default, order=kept.order)

    found = [of(one, one.key, one.field, sink.columns.fields) for one in shown.outputs]
    keys = table_keys(sink)
    if keys is not None:
        # The sink has its keys first, whatever order the source has.
        found.sort(key=lambda f: f.id not in keys.columns)
    return tuple(found), comments


def _with_kept(then: Sequence[Field], now: Sequence[Field]) -> tuple[Field, ...]:
    """Return fields with those that went, which may be NULL from now on."""
    known = {f.id: f for f in then}
    found = [
        replace(f, children=_with_kept(known[f.id].children, f.children)) if f.id in known else f
        for f in now
    ]
    for place, one in enumerate(then):
        numbers = [f.id for f in found]
        if one.id not in numbers:
            at = numbers.index(then[place - 1].id) + 1 if place else 0
            found.insert(at, replace(one, nullable=True))
    return tuple(found)


def _with_older_rows(changes: Iterator[TableChange], made: Schema) -> Iterator[TableChange]:
    """Yield the changes so that older rows read in new columns what they read in the source."""
    for change in changes:
        if not isinstance(change, AddColumn):
            yield change
            continue
        column = made.get(change.path)
        first = column.initial_default
        default = None if first is None else Default(first)
        yield replace(change, default=default, nullable=column.nullable or first is None)
        if default != column.default:
            yield SetDefault(change.path, column.default)
