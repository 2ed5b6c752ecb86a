"""Queries over a table that a rollup of it answers, chosen while Spark plans them.

The optimizer rule `RollupRule` of the bridge reports what a query needs from the table's relation,
with the names of the columns in its files. Here this becomes a `Wanted`, a chooser decides, and the
rule gets a plan to read instead.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pyspark.sql import DataFrame, SparkSession

from shelduck.engine.bridge import Engine, engine_for
from shelduck.engine.bridge.classes import warn
from shelduck.engine.bridge.classic import chosen
from shelduck.engine.bridge.codec import field_rows
from shelduck.model.tables.rollup import Measure
from shelduck.model.tables.schema import FieldId
from shelduck.read.plan.rollup_choice import MeasureKey, RollupChoice, Wanted
from shelduck.read.plan.scan import ScanPlan
from shelduck.read.plan.scan_groups import Column

# RollupRule reads the property by this name.
_COLLECTED = "shelduck.rollup.choices"
_collecting: dict[str, list[str]] = {}


@dataclass(frozen=True)
class RollupFrame:
    """A rollup to read instead of its base.

    ``columns`` has the name in ``frame`` of each necessary column of the base. With ``groups``, one
    row represents many rows of the base, and ``measures`` has the names of all necessary measures;
    for a COUNT of a column, that column and COUNT(*) are enough.
    """

    frame: DataFrame
    columns: Mapping[FieldId, str]
    reason: str
    measures: Mapping[MeasureKey, str] = field(default_factory=dict)
    groups: bool = False

    @classmethod
    def of(
        cls, choice: RollupChoice, frame: DataFrame, names: Mapping[FieldId, str]
    ) -> RollupFrame:
        """Return the frame of a choice; ``names`` are those of the rollup's columns in it."""
        return cls(
            frame,
            {base: names[i] for base, i in choice.columns.items()},
            choice.reason,
            {key: names[i] for key, i in choice.measures.items()},
            choice.groups,
        )


Chooser = Callable[[Wanted], RollupFrame | None]
"""Says what to read instead of a base, None for the base; called from any thread."""


@contextmanager
def collecting_choices(spark: SparkSession) -> Iterator[list[str]]:
    """Yield a list to which the reasons of choices for this thread's queries are added.

    Spark plans a query when it first runs or is explained. Over Spark Connect nothing is chosen.
    """
    found: list[str] = []
    token = uuid.uuid4().hex
    _collecting[token] = found
    try:
        with engine_for(spark).with_property(_COLLECTED, token):
            yield found
    finally:
        del _collecting[token]


def chooser_for(engine: Engine, plan: ScanPlan, choose: Chooser) -> object | None:
    """Return the chooser of a relation over the plan's only group.

    The rule that calls it is added to the session. None if the group alone does not hold the rows,
    or if this Spark cannot run the rule.
    """
    (group,) = plan.groups
    if group.snapshot_column is not None:
        return None
    ids = {
        made.name: column.id
        for column, made in zip(plan.columns, group.outputs, strict=True)
        if isinstance(made, Column)
    }
    return _Asked(ids, choose) if engine.add_rule() else None


class _Asked:
    """A chooser as the Java function that `RollupRule` calls; it lives as long as a lister."""

    def __init__(self, ids: Mapping[str, FieldId], choose: Chooser) -> None:
        self._ids = ids
        self._choose = choose

    def apply(self, request: str) -> Any:
        """Return a rollup's plan and its columns, or nothing; no error may reach the query."""
        try:
            rows = field_rows(request)
            match rows[0][0]:
                case "taken":
                    _, reason, *tokens = rows[0]
                    for token in tokens:
                        _collecting.get(token, []).append(reason)
                case "failed":
                    warn(f"cannot answer a query from a rollup: {rows[0][1]}")
                case kind:
                    return self._answer(rows[1:], aggregates=kind == "groups")
        except Exception as error:  # noqa: BLE001 - the base has the rows too
            warn(f"cannot answer a query from a rollup: {_first_line(error)}")
        return None

    def _answer(self, rows: list[list[str]], *, aggregates: bool) -> Any:
        wanted = self._wanted(rows, aggregates=aggregates)
        found = None if wanted is None else self._choose(wanted)
        if found is None:
            return None
        names = {i: name for name, i in self._ids.items()}
        columns: list[tuple[str, ...]] = [("groups" if found.groups else "rows",)]
        columns += [("column", names[i], name) for i, name in found.columns.items()]
        for (measure, column), name in found.measures.items():
            of = () if column is None else (names[column],)
            columns.append((measure.value, *of, name))
        return chosen(found.frame, columns, found.reason)

    def _wanted(self, rows: list[list[str]], *, aggregates: bool) -> Wanted | None:
        """Return what the rule reports, None if it is more than plain columns of the table."""
        named: dict[str, set[FieldId]] = {"column": set(), "equal": set(), "range": set()}
        measures: set[MeasureKey] = set()
        for word, *rest in rows:
            if word == "measure":
                measure, *names = rest
                if any(name not in self._ids for name in names):
                    return None
                column = self._ids[names[0]] if names else None
                measures.add((Measure(measure), column))
                continue
            found = self._ids.get(rest[0])
            if found is not None:
                named[word].add(found)
            elif word == "column":
                return None
        return Wanted(
            frozenset(named["column"]),
            frozenset(measures),
            aggregates,
            frozenset(named["equal"]),
            frozenset(named["range"]),
        )

    class Java:
        """Declares to py4j which Java interfaces this object implements."""

        implements: ClassVar[list[str]] = ["java.util.function.Function"]


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"
