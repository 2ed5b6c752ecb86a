"""Spark SQL over DataFrames, and small answers as DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession


def run_query(spark: SparkSession, text: str, relations: Mapping[str, DataFrame]) -> DataFrame:
    """Return the DataFrame of a query in which each word of ``relations`` stands for a DataFrame.

    The words must occur nowhere else in the text, not even as a part of another word.
    """
    if not relations:
        return spark.sql(text)
    # pyspark puts DataFrames in the places of {names}; braces of the text itself are doubled.
    template = text.replace("{", "{{").replace("}", "}}")
    for word in relations:
        template = template.replace(word, f"{{{word}}}")
    return spark.sql(template, args=None, **relations)


def answer(spark: SparkSession, columns: str, rows: Sequence[tuple[object, ...]]) -> DataFrame:
    """Return a small DataFrame: ``columns`` as in DDL (``"name string, id bigint"``)."""
    return spark.createDataFrame([*rows], columns)
