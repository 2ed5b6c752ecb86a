"""No cell of the matrix is without a case."""

from __future__ import annotations

import pytest

from shelduck.model.changes.change import FlushInlined, Verb
from shelduck.model.changes.conflict import MATRIX, ConflictRule
from shelduck.model.changes.definition import CommentViewColumns
from shelduck.model.tables.twin import FollowSource, MarkBranch, ShareFiles, TakeFiles
from tests.catalog.conflicts.expected import BY_WRITER

# Only files without deletes are merged.
_ONLY_ANOTHER = {(FlushInlined, Verb.MERGE_ADJACENT), (FlushInlined, Verb.COMPACTED_TABLE)}
# Lakes of DuckLake 1.0 have no comments on columns of views: see test_view_comments. For the others
# see test_branches.
_ELSEWHERE = (CommentViewColumns, FollowSource, MarkBranch, ShareFiles, TakeFiles)


def tried(mine):
    """Each kind of mine with each verb of others, and whether mine was refused."""
    return {
        ((type(change), Verb(verb)), name in refused.split("|"))
        for facts in BY_WRITER.values()
        for verbs, refused in facts.values()
        for name, changes in mine.items()
        for change in changes
        for verb in verbs.split()
    }


def test_every_cell_has_a_case(begun):
    cells = {cell for cell in MATRIX if cell[0] not in _ELSEWHERE}
    assert {cell for cell, _ in tried(begun.mine)} == cells


@pytest.mark.parametrize(
    "cell", [c for c, rule in MATRIX.items() if rule is ConflictRule.SAME_FILE]
)
def test_what_depends_on_the_file_is_tried_with_the_same_and_with_another(cell, begun):
    alone = {name: changes for name, changes in begun.mine.items() if len(changes) == 1}
    outcomes = {refused for at, refused in tried(alone) if at == cell}

    assert outcomes == ({False} if cell in _ONLY_ANOTHER else {True, False})
