"""What `history` calls a snapshot, by what it logged."""

from __future__ import annotations

import pytest

from shelduck.catalog.read.metadata_rows import operation_words
from shelduck.model.changes.change import parse_entries


@pytest.mark.parametrize(
    ("logged", "words"),
    [
        ("inserted_into_table:1", "WRITE"),
        ("inserted_into_table:1,deleted_from_table:1", "UPDATE"),
        ("altered_table:1", "ALTER TABLE"),
        ("inline_flush:1", "FLUSH"),
        ("merge_adjacent:1", "OPTIMIZE"),
        ("inline_flush:1,merge_adjacent:1", "OPTIMIZE"),
        ("inline_flush:1,rewrite_delete:1", "OPTIMIZE"),
        ("altered_table:1,inline_flush:1,rewrite_delete:1", "ALTER TABLE, OPTIMIZE"),
    ],
)
def test_a_compaction_is_called_one_whatever_else_it_logs(logged, words):
    verbs = {entry.verb for entry in parse_entries(logged)}
    assert operation_words(verbs, is_made=False, is_named=False) == words
