"""What Spark's own writers and statements tell of a table that they create, besides its columns."""

from __future__ import annotations

from collections.abc import Mapping

from shelduck.errors import Unsupported
from shelduck.spark.calls.lake_options import refuse_format, refuse_made
from shelduck.work.results import TableName

_OPTION = "option."
_REFUSED = {
    "location": "a location: its files are below the lake's data path; leave out LOCATION or path",
    "external": "files elsewhere: its files are below the lake's data path; leave out EXTERNAL",
    "collation": "a collation: DuckLake has no collations; leave out DEFAULT COLLATION",
    "hive.": "another file format: its files are Parquet; leave out STORED AS and ROW FORMAT",
}
_SPARKS = ("comment", "owner", "provider", "is_managed_location", "table_type")


def kept_properties(given: Mapping[str, str], table: TableName) -> dict[str, str]:
    """Return the table properties among those in which Spark tells its catalogs everything.

    Options of a writer, which Spark passes twice, the second time with ``option.`` in front, are
    not among them.

    Raises Unsupported for a format or place of its own, which tables of a lake do not have, and
    InvalidRequest for an option.
    """
    refuse_format(given.get("provider"), table)
    for key, reason in _REFUSED.items():
        if any(k == key or (key.endswith(".") and k.startswith(key)) for k in given):
            raise Unsupported(f"table {table} cannot have {reason}")
    options = {k.removeprefix(_OPTION): v for k, v in given.items() if k.startswith(_OPTION)}
    refuse_made(options, f"the new table {table}")
    return {
        key: value
        for key, value in given.items()
        if key not in _SPARKS and key not in options and not key.startswith(_OPTION)
    }
