"""DuckLake's literal texts as Spark columns."""

from __future__ import annotations

import re

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.errors import Unsupported
from shelduck.model.literals import blob_bytes, canonical_text
from shelduck.model.temporal import MICROSECONDS
from shelduck.model.types import Leaf
from shelduck.spark.types import spark_type

_TEMPORAL = frozenset({"date", *MICROSECONDS})
_SPARK_READS = re.compile(r"\d{4}-\d{2}-\d{2}( [^(]*)?")


def literal_column(leaf: Leaf, text: str, column: str = "") -> Column:
    """Return the value that a DuckLake literal means, in the Spark type of ``leaf``.

    Raises InvalidRequest when the type cannot hold the value, Unsupported when Spark cannot.
    """
    canonical = canonical_text(leaf, text)
    target = spark_type(leaf, column)
    if str(leaf) == "blob":
        return F.lit(blob_bytes(canonical))
    if str(leaf) == "timestamp_ns" or (
        str(leaf) in _TEMPORAL and not _SPARK_READS.fullmatch(canonical)
    ):
        subject = f"the default of column {column!r}" if column else "a literal"
        raise Unsupported(f"{subject} is {canonical!r} ({leaf}), which Spark cannot write")
    return F.lit(canonical).cast(target)
