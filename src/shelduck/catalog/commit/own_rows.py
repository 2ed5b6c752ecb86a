"""What a commit records in our own tables: batches, so that each lands once, and layouts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict

import sqlalchemy as sa

from shelduck.catalog.read import queries
from shelduck.catalog.read.together import Answers, Selects, Together
from shelduck.catalog.schema import own_tables
from shelduck.ducklake.checked import BIGINT, or_null
from shelduck.errors import Conflict, InvalidRequest
from shelduck.model.changes.change import AppendFiles, Change, FlushInlined, RewriteFiles
from shelduck.model.changes.records import ANY_TABLE, BEFORE_FIRST, Batch
from shelduck.model.files.data_file import Layout, NewDataFile
from shelduck.model.tables.schema import SnapshotId, TableId

_TABLE = own_tables.stream_batches
_c = _TABLE.c


def landed_in(
    connection: sa.Connection, batch: Batch, present: Collection[str] | None = None
) -> SnapshotId | None:
    """Return the snapshot that committed a batch, None if there is none; two statements at most.

    ``present`` are the tables that the database has, if the caller already knows.

    Raises InvalidRequest if a later batch of its series is committed, because nobody knows then
    whether this one is, and Conflict if it comes after another one than it says.
    """
    if present is None:
        present = queries.present_tables(connection, [_TABLE.name])
    if _TABLE.name not in present:
        return None
    row = connection.execute(
        sa.select(_c.batch_id, _c.snapshot_id).where(
            _c.table_id == batch.table_id, _c.query_id == batch.query_id
        )
    ).first()
    last = BEFORE_FIRST if row is None else row.batch_id
    if batch.after not in (None, last):
        raise Conflict(f"cannot commit {batch}: another process has committed batch {last}")
    if row is None or last < batch.batch_id:
        return None
    if row.batch_id > batch.batch_id:
        raise InvalidRequest(
            f"cannot commit {batch}: batch {row.batch_id} has already landed (snapshot"
            f" {row.snapshot_id}), and batch numbers must increase; {_way_out(batch)}"
        )
    return SnapshotId(row.snapshot_id)


def _way_out(batch: Batch) -> str:
    """Return what to do about a late batch: of a stream, or of ``once=`` of a transaction."""
    if batch.table_id != ANY_TABLE:
        return "if the query begins with a new checkpoint, give it a new query id"
    return "if it has not landed, pass a larger number, or another series, to once=(series, number)"


def newest_landed(connection: sa.Connection, series: str, table: TableId = ANY_TABLE) -> int | None:
    """Return the number of the newest committed batch of a series; two statements."""
    if not queries.present_tables(connection, [_TABLE.name]):
        return None
    query = sa.select(_c.batch_id).where(_c.table_id == table, _c.query_id == series)
    return connection.execute(query).scalar_one_or_none()


def record_batch(connection: sa.Connection, batch: Batch, snapshot: SnapshotId) -> None:
    """Record a batch as committed, in place of those before it; two statements.

    All tables of Shelduck exist.
    """
    connection.execute(
        sa.delete(_TABLE).where(_c.table_id == batch.table_id, _c.query_id == batch.query_id)
    )
    row = {name: value for name, value in asdict(batch).items() if name != "after"}
    connection.execute(sa.insert(_TABLE), row | {"snapshot_id": snapshot})


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
