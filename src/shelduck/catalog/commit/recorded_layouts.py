"""Recording what files physically hold, each layout once."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, cast, exists, func, insert, select

from shelduck.catalog.databases.store import Store
from shelduck.catalog.dialects.checked import or_null
from shelduck.catalog.read import queries
from shelduck.catalog.schema import own_tables
from shelduck.catalog.schema.column_types import BIGINT
from shelduck.model.files.layout import Layout

_KNOWN = select(own_tables.layout.c.layout_id, own_tables.layout.c.digest).where(
    own_tables.layout.c.digest.in_(bindparam("digests", expanding=True))
)
_NEWEST = select(or_null(func.max(own_tables.layout.c.layout_id)))
_INSERT_LAYOUTS = insert(own_tables.layout)
# Two processes may have read the layout of the same file; the first one to record it wins.
_FILE = bindparam("file", type_=BIGINT)
_INSERT_FILES = insert(own_tables.file_layout).from_select(
    ["data_file_id", "layout_id"],
    select(cast(_FILE, BIGINT), cast(bindparam("layout"), BIGINT)).where(
        ~exists().where(own_tables.file_layout.c.data_file_id == _FILE)
    ),
)


def record_layouts(store: Store, connection: Connection, layouts: Mapping[int, Layout]) -> None:
    """Record layouts by data file id; three statements, five if a layout is new.

    ``connection`` comes from `Store.write`. Missing tables of Shelduck are created.
    """
    names = {table.name for table in own_tables.OWN.sorted_tables}
    if queries.present_tables(connection, names) != names:
        own_tables.ensure_own_tables(store, connection)
    distinct = {id(layout): layout for layout in layouts.values()}
    digests = {number: layout.digest() for number, layout in distinct.items()}
    by_digest = {digests[number]: layout for number, layout in distinct.items()}
    ids = {
        digest: number
        for number, digest in connection.execute(_KNOWN, {"digests": list(by_digest)})
    }
    unknown = sorted(set(by_digest) - set(ids))
    if unknown:
        first = (connection.execute(_NEWEST).scalar() or 0) + 1
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
