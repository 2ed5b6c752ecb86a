"""A client of Spark Connect that has PySpark and nothing of Shelduck: a program of its own.

`python -I -S plain_client.py PACKAGES ADDRESS` runs the program that it reads, whose session is
`spark`.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import warnings


def main(packages: str, address: str) -> None:
    """Run the program on standard input."""
    sys.path.append(packages)
    found = importlib.util.find_spec("shelduck")
    if found is not None:
        raise SystemExit(f"this client has Shelduck: {found.origin}")
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    # Where PySpark is, is known only now.
    SparkSession = importlib.import_module("pyspark.sql").SparkSession  # noqa: N806

    spark = SparkSession.builder.remote(address).create()
    try:
        exec(sys.stdin.read(), {"spark": spark})
    finally:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
