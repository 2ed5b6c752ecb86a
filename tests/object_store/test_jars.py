"""The JARs of jars.lock with which Spark reads S3: all other tests here run on these alone."""

from __future__ import annotations

import re
from pathlib import Path

import pyspark
import pytest

from tests.support.jars import locked

pytestmark = pytest.mark.s3


def test_the_connector_takes_few_megabytes(spark):
    assert sum(jar.path.stat().st_size for jar in locked("s3")) < 60_000_000


def test_no_jar_hides_one_that_spark_brings():
    own = {
        re.sub(r"-\d[\w.]*\.jar$", "", jar.name) for jar in Path(pyspark.__path__[0]).glob("jars/*")
    }

    assert own & {jar.package.split(":")[1] for jar in locked("s3")} == set()
