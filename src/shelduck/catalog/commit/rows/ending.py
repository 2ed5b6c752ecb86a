"""The statement that ends rows of the catalog at a snapshot."""

from __future__ import annotations

from sqlalchemy import Table, Update, bindparam, update

from shelduck.catalog.read.queries import live


def ending(source: Table, *keys: str) -> Update:
    """Return the statement that ends live rows whose ``keys`` are in the lists ``in_…``.

    The snapshot is ``ended``.
    """
    chosen = [source.c[key].in_(bindparam(f"in_{key}", expanding=True)) for key in keys]
    return update(source).where(*chosen, live(source)).values(end_snapshot=bindparam("ended"))
