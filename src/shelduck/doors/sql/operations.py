"""The operations of SQL, put together: by the values of statements, and by their first words."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain

import shelduck.alter.statement as alter
import shelduck.jobs.rollup_statement as rollups
import shelduck.jobs.statement as jobs
import shelduck.upkeep.statement as upkeep
from shelduck.doors.sql import explain, help_topics, transactions
from shelduck.doors.sql.calls import procedures
from shelduck.lake.operation import Operation, Reader, phrases
from shelduck.objects import restore
from shelduck.objects.statement import macros, schemas_and_tables, show, views
from shelduck.write.statement import delete_and_update, insert_into, merge_into, returning

_MODULES = (
    *(insert_into, delete_and_update, merge_into, returning, alter, rollups, jobs),
    *(schemas_and_tables, views, macros, show, restore, upkeep, explain, help_topics, procedures),
    transactions,
)
OPERATIONS: dict[type, Operation] = {
    one.value: one for one in chain.from_iterable(module.OPERATIONS for module in _MODULES)
}
"""Each operation by the value of its statements."""


def _readers() -> dict[str, list[tuple[tuple[str, ...], Reader]]]:
    found = defaultdict(list)
    for operation in OPERATIONS.values():
        for text, read in operation.readers.items():
            for words in phrases(text):
                found[words[0]].append((words, read))
    # Of two that begin a statement, the longer one means it.
    return {word: sorted(each, key=lambda one: -len(one[0])) for word, each in found.items()}


READERS = _readers()
"""By the first word of a statement: all words that begin it, and what reads the rest."""
