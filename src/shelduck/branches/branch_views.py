"""Views and macros of branches: copied with the texts of their source, and merged by their names.

On a branch, the texts name the tables of the branch. A view that shows a table in the columns of
another snapshot stays where it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from shelduck.branches.branch_diff import TableDiff
from shelduck.branches.merging import THEIRS, MergeConflict, Merging, Resolution
from shelduck.catalog.read import read
from shelduck.catalog.read.read import Connection
from shelduck.catalog.read.views_and_macros import macros, views_in
from shelduck.errors import Conflict, NotFound, Unsupported
from shelduck.lake.followed_views import Defined, follow_pairs
from shelduck.lake.results import TableName
from shelduck.lake.unit import UnitOfWork
from shelduck.model.tables.table_version import SchemaInfo, Snapshot, TableVersion
from shelduck.model.tables.twin import Branch
from shelduck.model.tables.view import MacroBody, MacroKind, ViewVersion
from shelduck.text.query.translate import Move, moved

Key = tuple[str, str]
"""What something is, ``view``, ``macro`` or ``table macro``, and its name in lower case."""


def definitions_in(
    unit: UnitOfWork, connection: Connection, schema: SchemaInfo, at: Snapshot
) -> dict[Key, Defined]:
    """Return the views and macros of a schema at a snapshot; up to four statements."""
    found: list[Defined] = [*views_in(connection, at, schema, unit.state.info)]
    found += [m for m in macros(connection, at, unit.state.info) if m.schema.id == schema.id]
    return {(kind_of(each), each.name.lower()): each for each in found}


def kind_of(found: Defined) -> str:
    """Return the word for a view or a macro."""
    if isinstance(found, ViewVersion):
        return "view"
    return "macro" if found.kind is MacroKind.SCALAR else "table macro"


def _is_movable(found: Defined) -> bool:
    return not isinstance(found, ViewVersion) or (
        found.definition.pin is None and found.dialect == "duckdb"
    )


def _moved(found: Defined, move: Move) -> Defined:
    """Return a view or macro whose texts name tables of another schema; raises Unsupported."""
    try:
        if isinstance(found, ViewVersion):
            made = found.definition
            spark = None if made.spark_sql is None else moved(made.spark_sql, "spark", move)
            made = replace(made, sql=moved(made.sql, "duckdb", move), spark_sql=spark)
            return replace(found, definition=made)
        bodies = (_moved_body(body, move, found.kind) for body in found.bodies)
        return replace(found, bodies=tuple(bodies))
    except Unsupported as error:
        raise Unsupported(
            f"cannot take {kind_of(found)} {found.full_name} into another schema: {error}; create"
            " it there"
        ) from error


def _moved_body(body: MacroBody, move: Move, kind: MacroKind) -> MacroBody:
    is_scalar = kind is MacroKind.SCALAR
    spark = body.spark_sql
    return replace(
        body,
        sql=moved(body.sql, body.dialect, move, is_scalar=is_scalar),
        spark_sql=None if spark is None else moved(spark, "spark", move, is_scalar=is_scalar),
    )


def _same(one: Defined | None, other: Defined | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.name, _text(one)) == (other.name, _text(other))


def _stays(was: Defined | None, now: Defined | None) -> bool:
    """Tell whether nobody has changed something of one schema.

    A view that only follows names of what it reads keeps its id: it follows those of a merge, too.
    """
    if not (isinstance(was, ViewVersion) and isinstance(now, ViewVersion) and was.id == now.id):
        return _same(was, now)
    old, new = was.definition, now.definition
    followed = replace(old, sql=new.sql, spark_sql=new.spark_sql)
    return (was.name, followed) == (now.name, new)


def _text(found: Defined) -> object:
    return found.definition if isinstance(found, ViewVersion) else found.bodies


def copies(
    known: Mapping[Key, Defined], chosen: Mapping[Key, Defined], move: Move
) -> list[Defined]:
    """Return views and macros as a new branch has them; what nobody can copy is left out.

    ``known`` are all of the source, of which the branch is to have the ``chosen`` ones. The move
    leaves the tables that it lacks.
    """
    some = {key: each for key, each in chosen.items() if _is_movable(each)}
    while True:
        left = {key[1] for key in known if key[0] == "view" and key not in some}
        made, missed = [], []
        for key, each in some.items():
            try:
                made.append(_moved(each, replace(move, left={*move.left, *left})))
            except Unsupported:
                missed.append(key)
        if not missed:
            return made
        for key in missed:
            del some[key]


def stage_definition(unit: UnitOfWork, schema: SchemaInfo, made: Defined) -> None:
    """Stage that a schema gets a view or a macro of another one."""
    name = TableName(schema.name, made.name)
    if isinstance(made, ViewVersion):
        unit.workspace.create_view(name, made.definition)
    else:
        unit.workspace.create_macro(name, made.kind, made.bodies)


def _drop(unit: UnitOfWork, found: Defined) -> None:
    if isinstance(found, ViewVersion):
        unit.workspace.drop_view(found)
    else:
        unit.workspace.drop_macro(found)


@dataclass(frozen=True, slots=True)
class _Step:
    """What happens to one name: the source has ``old``, and gets ``new``; None for nothing."""

    old: Defined | None
    new: Defined | None


class ViewMerge:
    """What a merge, or its undo, does to views and macros of the source."""

    def __init__(self, unit: UnitOfWork, source: SchemaInfo) -> None:
        self._unit, self._source = unit, source
        self._steps: list[_Step] = []
        self.conflicts: list[MergeConflict] = []
        self.told: list[TableDiff] = []
        self.names: set[str] = set()
        self.is_decided = False
        """True if a resolution lets the source keep something that the branch changed."""

    @property
    def changed(self) -> list[str]:
        """The names of what it changes."""
        return [self._named(known) for step in self._steps if (known := step.new or step.old)]

    @property
    def dropped(self) -> set[str]:
        """The names, in lower case, that no view has any more."""
        return {step.old.name.lower() for step in self._steps if step.old and not step.new}

    def look(
        self,
        connection: Connection,
        schema: SchemaInfo,
        branch: Branch,
        resolutions: Sequence[Resolution],
    ) -> None:
        """Compare what the branch has with what it had, and so for the source.

        Raises Conflict if nobody knows it any more, and Unsupported for a text that nobody reads.
        """
        now = self._unit.workspace.base
        sides = [definitions_in(self._unit, connection, s, now) for s in (self._source, schema)]
        ours, theirs = sides
        if ours or theirs:
            before = self._then(connection, self._source, branch.base)
            begun = self._then(connection, schema, branch.since)
            self.names = {each.name for side in (*sides, begun) for each in side.values()}
        else:
            before, begun = {}, {}
        for key in dict.fromkeys((*begun, *theirs)):
            was, made = begun.get(key), theirs.get(key)
            known = made or was
            if known is None or _stays(was, made) or not _is_movable(known):
                continue
            word = "changed" if was and made else "created" if made else "dropped"
            self.told.append(TableDiff(self._named(known), f"{key[0]} {word}"))
            new = None if made is None else _moved(made, Move(schema.name, self._source.name))
            about = [one for one in resolutions if one.is_about(known.name)]
            self._take(known, before.get(key), ours.get(key), new, about)

    def look_back(self, connection: Connection, at: int) -> None:
        """Compare with what the source had before the merge that made the snapshot ``at``."""
        now = definitions_in(self._unit, connection, self._source, self._unit.workspace.base)
        before, then = (self._then(connection, self._source, n) for n in (at - 1, at))
        for key in dict.fromkeys((*before, *then)):
            was, made = then.get(key), before.get(key)
            known = made or was
            if known is not None and not _stays(was, made):
                self._take(known, was, now.get(key), made)

    def _take(
        self,
        known: Defined,
        base: Defined | None,
        ours: Defined | None,
        new: Defined | None,
        resolutions: Sequence[Resolution] = (),
    ) -> None:
        """Note that the source gets something new, or a conflict, if it has changed it, too."""
        if _same(ours, new):
            return
        if not _stays(base, ours):
            merging = Merging(self._named(known), resolutions)
            side = merging.decided()
            if side is None:
                merging.refuse(kind_of(known), known.name, *map(_shown, (base, ours, new)))
            elif side != THEIRS:
                self.is_decided = True
                return
            self.conflicts += merging.conflicts
        self._steps.append(_Step(ours, new))

    def _named(self, known: Defined) -> str:
        return str(TableName(self._source.name, known.name))

    def _then(self, connection: Connection, schema: SchemaInfo, number: int) -> dict[Key, Defined]:
        try:
            at = read.snapshot(connection, version=number)
        except NotFound as error:
            raise Conflict(
                f"snapshot {number}, with which a merge compares the views and macros of"
                f" {schema.text}, has expired; expire snapshots with Shelduck, which keeps it, and"
                " create them again by CREATE OR REPLACE"
            ) from error
        return definitions_in(self._unit, connection, schema, at)

    def require_free(self, gone: Collection[str]) -> None:
        """Note new views whose names tables have; ``gone`` are those of tables that go."""
        for step in self._steps:
            if step.old is None and isinstance(step.new, ViewVersion):
                name = TableName(self._source.name, step.new.name)
                if name.name.lower() not in gone and self._unit.workspace.has_table(name):
                    told = "", "a table", _shown(step.new)
                    self.conflicts.append(MergeConflict(str(name), "view", name.name, *told))

    def stage_drops(self) -> None:
        """Stage what goes, or is replaced."""
        for step in self._steps:
            if step.old is not None:
                _drop(self._unit, step.old)

    def stage(self, pairs: Iterable[tuple[TableVersion, TableVersion]] = ()) -> None:
        """Stage what comes; columns have the names in the ``pairs`` of their tables."""
        made = [step.new for step in self._steps if step.new is not None]
        if made:
            here = [replace(each, schema=self._source) for each in made]
            made = follow_pairs(here, pairs, [self._source])
        for each in made:
            stage_definition(self._unit, self._source, each)


def _shown(found: Defined | None) -> str:
    """Return DuckDB's text of a view or a macro."""
    if found is None:
        return ""
    if isinstance(found, ViewVersion):
        return found.definition.sql
    return ", ".join(f"{body} AS {body.sql}" for body in found.bodies)
