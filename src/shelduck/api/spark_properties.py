"""What Spark's own writers and statements tell of a table that they create, besides its columns."""

from __future__ import annotations

from collections.abc import Mapping

from shelduck.api.results import TableName
from shelduck.errors import Unsupported
from shelduck.spark.lake_options import refuse_made
from shelduck.sql.create import PROVIDERS

_OPTION = "option."
_REFUSED = {
    "location": "its files live below the lake's data path: leave LOCATION, or the path, out",
    "external": "its files live below the lake's data path: leave EXTERNAL out",
    "collation": "DuckLake has no collations: leave DEFAULT COLLATION out",
    "hive.": "its files are Parquet: leave STORED AS and ROW FORMAT out",
}
_SPARKS = ("comment", "owner", "provider", "is_managed_location", "table_type")


def kept_properties(given: Mapping[str, str], table: TableName) -> dict[str, str]:
    """Return the table properties among those by which Spark's catalogs are told everything.

    Options of a writer, which Spark gives twice, the second time behind ``option.``, are none.

    Raises Unsupported for a format or place of its own, which tables of a lake do not have, and
    InvalidRequest for an option.
    """
    provider = given.get("provider")
    if provider is not None and provider.lower() not in PROVIDERS:
        raise Unsupported(
            f"table {table} cannot have the format {provider}: its files are Parquet; leave USING,"
            " or the writer's format, out"
        )
    for key, reason in _REFUSED.items():
        if any(k == key or (key.endswith(".") and k.startswith(key)) for k in given):
            raise Unsupported(f"table {table}: {reason}")
    options = {k.removeprefix(_OPTION): v for k, v in given.items() if k.startswith(_OPTION)}
    refuse_made(options, f"the new table {table}")
    return {
        key: value
        for key, value in given.items()
        if key not in _SPARKS and key not in options and not key.startswith(_OPTION)
    }
