"""A lake is attached by an address with a secret: the session and its answers do not have it."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException

import shelduck

SECRET = "Gehe1m-Wort"


def test_neither_the_session_nor_its_answers_have_the_secret(spark, postgres_url, tmp_path, capfd):
    url = postgres_url.replace("postgres@", f"postgres:{SECRET}@") + f"&sslpassword={SECRET}"
    lake = shelduck.attach(spark, "kept", url, f"{tmp_path}/data")
    try:
        spark.sql("CREATE TABLE kept.main.t (id INT)")
        told = [repr(lake), str(spark.catalog.listCatalogs()), str(spark.conf.getAll)]
        for query in (
            *("SHOW CATALOGS", "SET", "SHOW TABLES IN kept.main", "DESCRIBE EXTENDED kept.main.t"),
            *("EXPLAIN EXTENDED SELECT * FROM kept.main.t", "CALL kept.options()"),
        ):
            told += [str(row) for row in spark.sql(query).collect()]
        with pytest.raises(AnalysisException) as missing:
            spark.sql("SELECT * FROM kept.main.nowhere").collect()
        told.append(repr(missing.value) + str(missing.value))
    finally:
        shelduck.detach(spark, "kept")
    with pytest.raises(shelduck.CatalogUnavailable) as gone:
        shelduck.attach(spark, "kept", f"postgresql://u:{SECRET}@127.0.0.1:1/db")
    told += [str(gone.value), *capfd.readouterr()]
    assert SECRET not in "\n".join(told)


def test_a_stream_has_no_password_in_its_options(spark):
    shelduck.register(spark)
    address = f"postgresql://u:{SECRET}@127.0.0.1:1/db"
    reader = spark.readStream.format("shelduck").option("catalog", address)
    with pytest.raises(IllegalArgumentException, match="must have no password; attach") as told:
        reader.load("t")
    assert SECRET not in str(told.value)
