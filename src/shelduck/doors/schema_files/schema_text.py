"""Schema as code: what a file of SQL declares, a table, a view or options.

A comment ``-- id: 3`` behind a column or a struct field says which one of the table it is, so a
changed name is a rename. ``-- renamed from: x`` says it by the older name. Without both, its name
says it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from shelduck.doors.sql.parse import parse, pieces
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.changes.schema_change import SetComment, SetDefault
from shelduck.model.tables.rollup import AddRollup, RollupSpec
from shelduck.model.tables.schema import Default, Field, FieldId, Path, path_text
from shelduck.model.text.names import split_name
from shelduck.model.types.data_types import DataType, Struct, members_of
from shelduck.objects.statement.create_table import CreateTableStatement
from shelduck.objects.statement.views import CreateViewStatement, PinView
from shelduck.text.tokens.lexer import Token, tokenize
from shelduck.text.tokens.parts import Call

_ID = re.compile(r"--\s*id:\s*(\d+)\s*$", re.MULTILINE)
_WAS = re.compile(r"--\s*renamed from:\s*(`(?:[^`]|``)*`|\w+)\s*$", re.MULTILINE)
_CLOSING = {"(": ")", "<": ">"}
_DECLARING = (AddRollup, SetDefault, SetComment)


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file that declares a table; ``text`` makes the table where there is none.

    ``ids`` and ``older_names`` are by the path of a column or a struct field, as comments tell
    them. ``defaults`` and ``comments`` are those of struct fields, by path: they have statements of
    their own behind CREATE TABLE. ``options`` set options of the table.
    """

    text: str
    table: CreateTableStatement
    rollups: tuple[RollupSpec, ...] = ()
    ids: Mapping[Path, int] = field(default_factory=dict)
    older_names: Mapping[Path, str] = field(default_factory=dict)
    defaults: Mapping[Path, Default | None] = field(default_factory=dict)
    comments: Mapping[Path, str | None] = field(default_factory=dict)
    options: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class ViewFile:
    """A file that declares a view, or one that is pinned to a table; ``text`` is its statement."""

    text: str
    view: CreateViewStatement | PinView


@dataclass(frozen=True, slots=True)
class OptionsFile:
    """A file that sets options, of the lake or of its schemas."""

    options: tuple[Call, ...]


SchemaFile = TableFile | ViewFile | OptionsFile


def read_schema_file(text: str, where: str) -> SchemaFile:
    """Return what a file declares; InvalidRequest, naming the file, if it is nothing of these."""
    try:
        return _read(text)
    except (InvalidRequest, Unsupported) as error:
        raise InvalidRequest(f"{where}: {error}") from error


def _read(text: str) -> SchemaFile:
    statements = parse(text)
    options = tuple(s for s in statements if isinstance(s, Call) and s.procedure == "set_option")
    others = [s for s in statements if s not in options]
    match others:
        case [] if options:
            return OptionsFile(options)
        case [CreateViewStatement() | PinView() as view] if not options:
            return ViewFile(pieces(text)[0].strip(), view)
        case [CreateTableStatement(as_query=None) as created, *more]:
            texts = [p for p, s in zip(pieces(text), statements, strict=True) if s not in options]
            return _table(text, [t.strip() for t in texts], created, more, options)
    raise InvalidRequest(
        "the first statement must be CREATE TABLE with columns, or the only one CREATE VIEW, or all"
        " of them CALL set_option"
    )


def _table(
    text: str,
    told_apart: Sequence[str],
    created: CreateTableStatement,
    others: Sequence[object],
    options: tuple[Call, ...],
) -> TableFile:
    rollups = list(created.rollups)
    defaults: dict[Path, Default | None] = {}
    comments: dict[Path, str | None] = {}
    for statement, told in zip(others, told_apart[1:], strict=True):
        # CREATE MATERIALIZED VIEW makes a rollup.
        changes = getattr(statement, "changes", ())
        if not changes or not all(isinstance(c, _DECLARING) for c in changes):
            raise InvalidRequest(
                f"{told!r} declares nothing; behind CREATE TABLE are rollups, and the"
                " defaults and comments of struct fields"
            )
        rollups += [change.spec for change in changes if isinstance(change, AddRollup)]
        defaults |= {c.path: c.default for c in changes if isinstance(c, SetDefault)}
        comments |= {c.path: c.comment for c in changes if isinstance(c, SetComment)}
    paths = [list(_declared(c.type, (c.name,))) for c in created.columns]
    fields = {path for of_column in paths for path in of_column[1:]}
    parts = {path for c in created.columns for path in _parts(c.type, (c.name,))}
    for path in (
        *(p for p in defaults if p not in fields),
        *(p for p in comments if p not in parts),
    ):
        raise InvalidRequest(
            f"{path_text(path)!r} is not a struct field; declare the default and the comment of"
            " a column in CREATE TABLE"
        )
    ids = {path: int(value) for path, value in _told(text, _ID, paths)}
    older = {path: split_name(value)[0] for path, value in _told(text, _WAS, paths)}
    return TableFile(
        ";\n".join(told_apart), created, tuple(rollups), ids, older, defaults, comments, options
    )


def _declared(kind: DataType, path: Path) -> Iterator[Path]:
    """Yield the path of a column and of each struct field in it, in the order of their text."""
    yield path
    yield from _fields(kind, path)


def _fields(kind: DataType, path: Path) -> Iterator[Path]:
    inside = _declared if isinstance(kind, Struct) else _fields
    for part in members_of(kind):
        yield from inside(part.type, (*path, part.name))


def _parts(kind: DataType, path: Path) -> Iterator[Path]:
    """Yield the path of each part of a type, also of elements, keys and values."""
    for part in members_of(kind):
        yield (*path, part.name)
        yield from _parts(part.type, (*path, part.name))


def _told(
    text: str, comment: re.Pattern[str], paths: Sequence[Sequence[Path]]
) -> Iterator[tuple[Path, str]]:
    """Yield what comments say, each with the path of the column or field that it stands behind."""
    tokens = tokenize(text)[:-1]
    places = list(_places(tokens))
    for match in comment.finditer(text):
        if any(t.start <= match.start() < t.end for t in tokens):
            continue
        before = [place for t, place in zip(tokens, places, strict=True) if t.end <= match.start()]
        place = before[-1] if before else None
        if place is None or place[0] >= len(paths) or place[1] >= len(paths[place[0]]):
            raise InvalidRequest(f"{match[0].strip()!r} does not stand behind a column")
        yield paths[place[0]][place[1]], match[1]


@dataclass(slots=True)
class _Bracket:
    """An open bracket: ``defines`` if names of columns or fields are in it.

    ``owner`` is the column or field whose definition it belongs to, ``last`` the last one in it.
    """

    closing: str
    defines: bool
    owner: tuple[int, int] | None
    last: tuple[int, int] | None = None

    @property
    def place(self) -> tuple[int, int] | None:
        """The column or field that a comment here stands behind."""
        return self.last or self.owner


def _places(tokens: Sequence[Token]) -> Iterator[tuple[int, int] | None]:
    """Yield for each token the column or field whose definition it is in or has just ended.

    It is the number of the column, and the number of the field in the text of that column.
    """
    brackets: list[_Bracket] = []
    column, fields, begins, is_closed = -1, 0, False, False
    for before, token in zip([None, *tokens], tokens, strict=False):
        if begins:
            column, fields = (column + 1, 0) if len(brackets) == 1 else (column, fields + 1)
            brackets[-1].last = column, fields
            begins = False
        if opens := _opened(before, token, is_first=not brackets):
            owner = brackets[-1].place if brackets else None
            brackets.append(_Bracket(_CLOSING[token.key], opens == "names", owner))
            begins = opens == "names" and not is_closed
        elif brackets and token.key == brackets[-1].closing:
            brackets.pop()
            is_closed = is_closed or not brackets
        elif token.key == "," and brackets:
            begins = brackets[-1].defines and not is_closed
        yield brackets[-1].place if brackets and not is_closed else None


def _opened(before: Token | None, token: Token, *, is_first: bool) -> str:
    """Return what is in the brackets that a token opens: names, values, or '' if it opens none."""
    word = "" if before is None else before.key
    if token.key == "(":
        return "names" if is_first or word in ("STRUCT", "ROW") else "values"
    if token.key == "<" and word in ("STRUCT", "ROW"):
        return "names"
    return "values" if token.key == "<" and word in ("ARRAY", "LIST", "MAP") else ""


Matched = dict[str, Field | None]
"""The column or field of the table for each name of the file, None for a new one."""


@dataclass(frozen=True, slots=True)
class Matching:
    """How columns of a file are found in the table ``name``.

    ``replaced`` are ids of columns that jobs converted, with the ids of their replacements: files
    may have the older ones.
    """

    file: TableFile
    name: str
    replaced: Mapping[int, int]

    def of(
        self, fields: Sequence[Field], names: Sequence[str], above: Path, *, knows_ids: bool = True
    ) -> Matched:
        """Return which of sibling ``fields`` each of ``names`` below ``above`` is.

        Without ``knows_ids`` the ids of the file are those of a column before its conversion, and
        names decide. Raises InvalidRequest for an unknown id, for one that stands twice, and if it
        is unclear what is new and what is renamed.
        """
        there = {f.id: f for f in fields}
        by_name = {f.name.lower(): f for f in fields}
        found: Matched = {}
        for name in names:
            path = (*above, name)
            told = self._current(path, there) if knows_ids else None
            older = self.file.older_names.get(path)
            if told is not None:
                found[name] = there[told]
            elif older is not None and older.lower() in by_name:
                found[name] = by_name[older.lower()]
            else:
                # Once it is renamed, the comment about the older name means nothing.
                found[name] = by_name.get(name.lower())
        for name in (name for name, known in found.items() if known is None):
            self._require_no_ids((*above, name))
        self._require_clear(fields, found, above)
        return found

    def is_replaced(self, path: Path, field: Field) -> bool:
        """Return whether the file has the id that a column had before a job converted it."""
        return self.file.ids.get(path, field.id) != field.id

    def _current(self, path: Path, there: Mapping[FieldId, Field]) -> FieldId | None:
        told = self.file.ids.get(path)
        while told is not None and told in self.replaced and FieldId(told) not in there:
            told = self.replaced[told]
        if told is not None and FieldId(told) not in there:
            above = f"{path_text(path[:-1])} of {self.name}" if path[:-1] else self.name
            what = "field" if path[:-1] else "column"
            raise InvalidRequest(
                f"{what} {path[-1]!r} has the id {told}, which no {what} of {above} has; leave the"
                f" comment out of a new {what}"
            )
        return None if told is None else FieldId(told)

    def _require_no_ids(self, path: Path) -> None:
        """Refuse ids of fields in a column or a field that is new."""
        below = next((p for p in self.file.ids if p[: len(path)] == path), None)
        if below is not None:
            raise InvalidRequest(
                f"field {path_text(below)!r} has the id {self.file.ids[below]}, but"
                f" {path_text(path)!r} is new in {self.name}; leave the comment out"
            )

    def _require_clear(self, fields: Sequence[Field], found: Matched, above: Path) -> None:
        what = "fields" if above else "columns"
        taken = [f.id for f in found.values() if f is not None]
        doubled = next((f for f in fields if taken.count(f.id) > 1), None)
        if doubled is not None:
            raise InvalidRequest(
                f"two {what} of the file are {what[:-1]} {path_text((*above, doubled.name))!r} (id"
                f" {doubled.id}) of {self.name}"
            )
        new = [name for name, field in found.items() if field is None]
        lost = [f.name for f in lost_of(fields, found)]
        if new and lost and not self.file.ids:
            raise InvalidRequest(
                f"{self.name}: is {path_text((*above, new[0]))!r} a new {what[:-1]}, or"
                f" {lost[0]!r} with a new name? Write `-- renamed from: {lost[0]}` or `-- id: N`"
                f" behind the {what}, as `schema pull` does"
            )


def lost_of(fields: Sequence[Field], matched: Matched) -> list[Field]:
    """Return the fields that no name of the file is."""
    kept = {f.id for f in matched.values() if f is not None}
    return [f for f in fields if f.id not in kept]
