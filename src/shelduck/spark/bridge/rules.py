"""The rules and strategies of the bridge, and what is lost where a Spark cannot run one of them.

Queries are correct without them. Each has Java classes of its own and some that others share, so a
Spark that cannot compile or load a class runs without the rules that need it, and with the others.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

from shelduck.spark.named_errors import first_line


class PlannerRule(NamedTuple):
    """A rule or strategy: its classes, in the order of compilation, and what is lost without it."""

    classes: tuple[str, ...]
    lost: str


_SHARED = "LakeRule"
RULES = {
    "MetadataRule": PlannerRule(
        (_SHARED, "MetadataBranch", "MetadataRule"),
        "COUNT, MIN and MAX of whole files read the files",
    ),
    "LocalRule": PlannerRule(
        (_SHARED, "LocalRule"), "jobs group and sort the few rows of a catalog"
    ),
    "RollupRule": PlannerRule(
        (
            _SHARED,
            "FreshIds",
            "RollupMisfit",
            "RollupChain",
            "RollupFilters",
            "RollupMeasures",
            "RollupAnswer",
            "RollupRule",
        ),
        "no query is answered from a rollup",
    ),
    "LakeFilesStrategy": PlannerRule(
        (_SHARED, "LakeFiles", "LakeFilesStrategy"),
        "Spark's interface does not show how many files a query leaves out",
    ),
}
RULE_CLASSES = tuple(dict.fromkeys(name for rule in RULES.values() for name in rule.classes))
_told: set[str] = set()


def needing(name: str) -> set[str]:
    """Return the classes that are of no use without a class: those of rules that need it alone."""
    able = {c for rule in RULES.values() if name not in rule.classes for c in rule.classes}
    return set(RULE_CLASSES) - able


def tell_lost(rule: str, version: str, error: Exception) -> None:
    """Warn once that this version of Spark runs without a rule, and what is lost."""
    if rule in _told:
        return
    _told.add(rule)
    warn(f"Spark {version} cannot run {rule} ({first_line(error)}); {RULES[rule].lost}")


def warn(message: str) -> None:
    """Warn the user; if warnings are turned into errors, the query goes on all the same."""
    try:
        warnings.warn(f"Shelduck: {message}", RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        return
