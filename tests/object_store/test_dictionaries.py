"""A look at dictionaries on S3: few requests for each file, and the store's own errors."""

from __future__ import annotations

import pytest

from shelduck import InvalidRequest, change_type
from shelduck.jobs import dictionary_proof
from tests.support.s3 import counted

pytestmark = pytest.mark.s3
FILES = 6


def test_a_look_makes_few_requests_for_each_file(lake, s3, spark, monkeypatch):
    monkeypatch.setattr(dictionary_proof, "_SMALL", 0)
    monkeypatch.setattr(dictionary_proof, "_WORTH", 0)
    lake.sql("CREATE TABLE t (id BIGINT, v STRING)")
    text = "IF(id = 5999, 'no number', CAST(id % 7 AS STRING)) AS v"
    lake.table("t").append(spark.range(0, 6000, 1, FILES).selectExpr("id", text))
    to_null = change_type("v", "int", on_error="null")
    counted(s3.endpoint)
    proof = lake.table("t").plan_alter(to_null).steps[0].proof
    asked = counted(s3.endpoint)

    assert proof.startswith(
        "proven for 5 of 6 file(s); these values would become NULL: 'no number'"
    )
    assert sum(asked.values()) <= 4 * FILES, asked
    with pytest.raises(InvalidRequest, match=r"such as 'no number', in s3://.*; correct them"):
        lake.sql("ALTER TABLE t ALTER COLUMN v TYPE INT")
