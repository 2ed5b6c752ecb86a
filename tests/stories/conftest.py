"""Where the code of documents runs."""

from __future__ import annotations

from contextlib import suppress

import pytest

import shelduck


@pytest.fixture
def here(tmp_path, monkeypatch, spark):
    """An empty folder to work in, for Python and for Spark; no lake stays attached."""
    monkeypatch.chdir(tmp_path)
    java = spark._jvm
    root = java.java.net.URI("file:///")
    files = java.org.apache.hadoop.fs.FileSystem.get(root, spark._jsc.hadoopConfiguration())
    before = files.getWorkingDirectory()
    files.setWorkingDirectory(java.org.apache.hadoop.fs.Path(str(tmp_path)))
    yield tmp_path
    files.setWorkingDirectory(before)
    with suppress(shelduck.NotFound):
        shelduck.detach(spark, "lake")
