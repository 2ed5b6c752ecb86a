from __future__ import annotations

import os
import re
import stat
import subprocess
import threading
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pytest

from shelduck.engine.bridge import Engine, classes, engine_for
from shelduck.errors import Unsupported
from tests.support.cover import ROOT
from tests.support.processes import SPARK_HOME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_no_bridge_without_a_jvm_at_hand() -> None:
    class ConnectSession:
        @property
        def _jsparkSession(self) -> None:  # noqa: N802
            raise AttributeError

    assert type(engine_for(ConnectSession())) is Engine  # type: ignore[arg-type]


def test_the_jar_is_compiled_once_and_kept_in_the_cache(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new"))
    jar = classes._jar(spark, "shelduck-bridge-test.jar")
    written = jar.stat().st_mtime_ns
    assert jar.parent == tmp_path / "new" / "shelduck"
    assert stat.S_IMODE(jar.parent.stat().st_mode) == 0o700
    with zipfile.ZipFile(jar) as packed:
        assert "shelduck/bridge/scan/LakeFileIndex.class" in packed.namelist()
    assert classes._jar(spark, jar.name).stat().st_mtime_ns == written
    assert [path.name for path in jar.parent.iterdir()] == [jar.name]


@pytest.mark.slow
@pytest.mark.every_spark
def test_maven_compiles_the_same_classes(spark: SparkSession, tmp_path: Path) -> None:
    [sources] = re.findall(r"<sources>(.*)</sources>", (ROOT / "java" / "pom.xml").read_text())
    folder = sources.replace("${project.basedir}", str(ROOT / "java"))
    java = f"{home}/bin/java" if (home := os.environ.get("JAVA_HOME")) else "java"
    jars = os.pathsep.join(map(str, (SPARK_HOME / "jars").glob("*.jar")))
    command = [java, "-cp", jars, str(ROOT / "java" / "Compile.java"), folder, str(tmp_path)]
    subprocess.run(command, check=True)

    made = (path.relative_to(tmp_path).with_suffix("") for path in tmp_path.rglob("*.class"))
    assert {".".join(path.parts) for path in made} == set(classes._compiled(spark))


def test_a_cache_that_cannot_be_written_is_gone_around(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    jar = classes._jar(spark, "shelduck-bridge-test.jar")
    assert zipfile.is_zipfile(jar)
    assert not jar.is_relative_to(tmp_path)


@pytest.mark.parametrize("path", ["shelduck", "shelduck/shelduck-bridge-test.jar", "."])
def test_a_cache_that_others_can_write_is_gone_around(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(classes, "_compiled", lambda spark: {"x": b"ours"})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    planted = tmp_path / "shelduck" / "shelduck-bridge-test.jar"
    planted.parent.mkdir(mode=0o700)
    planted.write_bytes(b"of somebody else")
    planted.chmod(0o600)
    assert classes._jar(spark, planted.name) == planted
    (tmp_path / path).chmod(0o777)
    jar = classes._jar(spark, planted.name)
    assert not jar.is_relative_to(tmp_path)
    assert zipfile.is_zipfile(jar)


def test_a_cache_of_another_user_is_gone_around(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classes, "_compiled", lambda spark: {"x": b"ours"})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert classes._jar(spark, "test.jar").is_relative_to(tmp_path)
    # As if root had made it and we were somebody else, and the other way round.
    monkeypatch.setattr(classes.os, "geteuid", lambda: (tmp_path.stat().st_uid or 65533) + 1)
    monkeypatch.setattr(classes, "_ROOT", -1)
    assert not classes._jar(spark, "test.jar").is_relative_to(tmp_path)


def test_one_application_gets_one_jar(spark: SparkSession) -> None:
    def jars() -> list[str]:
        listed = spark.sparkContext._jsc.sc().listJars().mkString("\n").split("\n")
        return [name for name in listed if "shelduck-bridge" in name]

    threads = [threading.Thread(target=classes.loaded, args=(spark,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    classes.loaded(spark.newSession())
    assert len(jars()) == 1


def test_two_versions_in_one_application_are_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    classes.loaded(spark)
    # As in a process of another version that shares this application's JVM.
    monkeypatch.setattr(classes, "_known", WeakKeyDictionary())
    monkeypatch.setattr(classes, "_fingerprint", lambda: "another")
    with pytest.raises(Unsupported, match="restart it to change the version"):
        classes.loaded(spark)
