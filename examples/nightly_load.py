"""A nightly load: each day lands once, and new columns in the files become columns of the table.

    spark-submit nightly_load.py --day 2026-01-01 --files "incoming/2026-01-01/*.json"

The lake is that of SHELDUCK_CATALOG and SHELDUCK_DATA_PATH.
"""

from __future__ import annotations

import argparse
import os
from datetime import date

from pyspark.sql import SparkSession

import shelduck

COLUMNS = {"id": "bigint NOT NULL", "customer": "string", "amount": "double", "day": "date"}
S3A = {
    "endpoint": "AWS_ENDPOINT_URL_S3",
    "access.key": "AWS_ACCESS_KEY_ID",
    "secret.key": "AWS_SECRET_ACCESS_KEY",
    "endpoint.region": "AWS_REGION",
}


def main() -> None:
    """Load the day that the arguments name."""
    arguments = argparse.ArgumentParser(description="load one day")
    arguments.add_argument("--day", type=date.fromisoformat, required=True)
    arguments.add_argument("--files", required=True, help="JSON files of that day")
    given = arguments.parse_args()

    spark = session()
    url, data_path = os.environ["SHELDUCK_CATALOG"], os.environ.get("SHELDUCK_DATA_PATH")
    with shelduck.connect(url, data_path, spark, author="nightly load") as lake:
        lake.create_table("orders", COLUMNS, partitioned_by=["day"], if_not_exists=True)
        rows = spark.read.json(given.files).selectExpr("*", f"DATE'{given.day}' AS day")
        number = int(f"{given.day:%Y%m%d}")
        with lake.transaction(f"orders of {given.day}", once=("orders", number)) as load:
            if load.has_landed:
                print(f"{given.day} is in the lake already")
                return
            load.table("orders").append(rows, merge_schema=True)
        print(f"{given.day}: {load.result}")


def session() -> SparkSession:
    """The session of spark-submit; with an S3 server of your own, Spark gets its address."""
    builder = SparkSession.builder.appName("nightly load")
    for setting, variable in S3A.items():
        if variable in os.environ:
            builder = builder.config(f"spark.hadoop.fs.s3a.{setting}", os.environ[variable])
    return builder.config("spark.hadoop.fs.s3a.path.style.access", "true").getOrCreate()


if __name__ == "__main__":
    main()
