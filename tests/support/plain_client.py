"""A client of Spark Connect that has PySpark and nothing of Shelduck: a program of its own.

`python -I -S plain_client.py PACKAGES ADDRESS` runs the program that it reads; `spark` is its session.
"""

from __future__ import annotations

import logging
import sys
import warnings


def main(packages: str, address: str) -> None:
    """Run the program on standard input."""
    sys.path.append(packages)
    try:
        import shelduck
    except ModuleNotFoundError:
        pass
    else:
        raise SystemExit(f"this client has Shelduck: {shelduck.__file__}")
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(address).create()
    try:
        exec(sys.stdin.read(), {"spark": spark})
    finally:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
