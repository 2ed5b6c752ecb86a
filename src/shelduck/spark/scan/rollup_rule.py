"""Queries over a table that are answered from a rollup of it, while Spark plans them.

The optimizer rule `RollupRule` of the bridge tells what a query wants of the table's relation, by
the names of the columns that its files are read with. Here that becomes `Wanted`, somebody chooses,
and the rule gets back a plan to read instead.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from shelduck.model.tables.rollup import Measure
from shelduck.model.tables.schema import FieldId
from shelduck.planning.projection import Column
from shelduck.planning.rollup_choice import Choice, MeasureKey, Wanted
from shelduck.planning.scan import ScanPlan
from shelduck.spark.bridge import Bridge, field_rows, has_jvm

# RollupRule reads the property by this name.
_COLLECTED = "shelduck.rollup.choices"
_collecting: dict[str, list[str]] = {}


@dataclass(frozen=True)
class RollupFrame:
    """A rollup to read instead of its base.

    ``columns`` has the name in ``frame`` of each column of the base that is wanted. With ``groups``
    one row stands for many of the base, and ``measures`` has the names of all wanted measures; for
    a COUNT of a column, that column and COUNT(*) will do.
    """

    frame: DataFrame
    columns: Mapping[FieldId, str]
    reason: str
    measures: Mapping[MeasureKey, str] = field(default_factory=dict)
    groups: bool = False

    @classmethod
    def of(cls, choice: Choice, frame: DataFrame, names: Mapping[FieldId, str]) -> RollupFrame:
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
    """Yield a list to which the reasons of choices are added that this thread's queries make.

    Spark plans a query when it first runs or is explained. Over Spark Connect nothing is chosen.
    """
    found: list[str] = []
    if not has_jvm(spark):
        yield found
        return
    context = spark.sparkContext
    token, before = uuid.uuid4().hex, context.getLocalProperty(_COLLECTED)
    _collecting[token] = found
    # The rule is asked in a thread of its own, and tells this property of the one that plans.
    context.setLocalProperty(_COLLECTED, token)
    try:
        yield found
    finally:
        context.setLocalProperty(_COLLECTED, cast("str", before))
        del _collecting[token]


def chooser_for(bridge: Bridge, plan: ScanPlan, choose: Chooser) -> object | None:
    """Return what a relation over the plan's only group takes as its chooser.

    The rule that asks it is put into the session. None where the group alone does not tell what the
    rows are, or this Spark cannot run the rule, which a warning tells.
    """
    (group,) = plan.groups
    if group.snapshot_column is not None:
        return None
    ids = {
        made.name: column.id
        for column, made in zip(plan.columns, group.outputs, strict=True)
        if isinstance(made, Column)
    }
    try:
        bridge.add_rule()
    except Py4JError as error:
        _warn(f"this version of Spark cannot answer queries from rollups: {_first_line(error)}")
        return None
    return _Asked(bridge, ids, choose)


class _Asked:
    """A chooser as the Java function that `RollupRule` calls; it lives as a lister does."""

    def __init__(self, bridge: Bridge, ids: Mapping[str, FieldId], choose: Chooser) -> None:
        self._bridge = bridge
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
                    _warn(f"cannot answer a query from a rollup: {rows[0][1]}")
                case kind:
                    return self._answer(rows[1:], aggregates=kind == "groups")
        except Exception as error:  # noqa: BLE001 - the base has the rows too
            _warn(f"cannot answer a query from a rollup: {_first_line(error)}")
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
        return self._bridge.chosen(found.frame, columns, found.reason)

    def _wanted(self, rows: list[list[str]], *, aggregates: bool) -> Wanted | None:
        """Return what the rule tells, None when it is more than plain columns of the table."""
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
        """Says to py4j what this object is in Java."""

        implements: ClassVar[list[str]] = ["java.util.function.Function"]


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"


def _warn(message: str) -> None:
    try:
        warnings.warn(f"Shelduck: {message}", RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        # Whoever turns warnings into errors still gets the rows of the base.
        return
