"""Recording what files physically hold, each layout once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa

from shelduck.catalog.read.together import Answers, Selects, Together
from shelduck.catalog.schema import own_tables
from shelduck.ducklake.checked import or_null
from shelduck.ducklake.column_types import BIGINT
from shelduck.model.changes.change import AppendFiles, Change, FlushInlined, RewriteFiles
from shelduck.model.files.data_file import NewDataFile
from shelduck.model.files.layout import Layout

_KNOWN = sa.select(own_tables.layout.c.layout_id, own_tables.layout.c.digest).where(
    own_tables.layout.c.digest.in_(sa.bindparam("digests", expanding=True))
)
_NEWEST = sa.select(or_null(sa.func.max(own_tables.layout.c.layout_id)).label("layout_id"))
ASK_LAYOUTS: Selects = (("known_layouts", _KNOWN), ("newest_layout", _NEWEST))
_LAYOUTS = Together(dict(ASK_LAYOUTS))
_INSERT_LAYOUTS = sa.insert(own_tables.layout)
# Two processes may have read the layout of the same file; the first one to record it wins.
_FILE = sa.bindparam("file", type_=BIGINT)
_INSERT_FILES = sa.insert(own_tables.file_layout).from_select(
    ["data_file_id", "layout_id"],
    sa.select(sa.cast(_FILE, BIGINT), sa.cast(sa.bindparam("layout"), BIGINT)).where(
        ~sa.exists().where(own_tables.file_layout.c.data_file_id == _FILE)
    ),
)


def layouts_of(changes: Iterable[Change]) -> list[str]:
    """Return the digests of the layouts that new files of the changes have."""
    files = [f for change in changes for f in _new_files(change)]
    distinct = {id(f.layout): f.layout for f in files}
    return sorted({layout.digest() for layout in distinct.values()})


def _new_files(change: Change) -> Sequence[NewDataFile]:
    match change:
        case AppendFiles():
            return change.files
        case RewriteFiles() | FlushInlined():
            return change.results
    return ()


def record_layouts(
    connection: sa.Connection, layouts: Mapping[int, Layout], known: Answers | None = None
) -> None:
    """Record layouts by data file id; two statements, three if a layout is new.

    ``known`` are the answers to `ASK_LAYOUTS`, which save one. ``connection`` comes from
    `Store.write`, and all tables of Shelduck exist.
    """
    distinct = {id(layout): layout for layout in layouts.values()}
    digests = {number: layout.digest() for number, layout in distinct.items()}
    by_digest = {digests[number]: layout for number, layout in distinct.items()}
    answers = known or _LAYOUTS.ask(connection, {"digests": list(by_digest)})
    ids = {row.digest: row.layout_id for row in answers["known_layouts"]}
    unknown = sorted(set(by_digest) - set(ids))
    if unknown:
        first = (answers["newest_layout"][0].layout_id or 0) + 1
        ids.update({digest: first + n for n, digest in enumerate(unknown)})
        connection.execute(
            _INSERT_LAYOUTS,
            [{"layout_id": ids[d], "digest": d, "layout": by_digest[d].to_json()} for d in unknown],
        )
    connection.execute(
        _INSERT_FILES,
        [
            {"file": number, "layout": ids[digests[id(layout)]]}
            for number, layout in layouts.items()
        ],
    )
