"""The one Spark session of a test process."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.java_gateway import JavaObject, java_import
from py4j.protocol import DEFAULT_JVM_ID, REFERENCE_TYPE
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# What Spark would do in another way where `spark.testing` is set; these are a user's defaults.
_AS_FOR_USERS = {
    "spark.sql.analyzer.singlePassResolver.dualRunSampleRate": "0.1",
    "spark.sql.analyzer.singlePassResolver.dualRunWithLegacy": "false",
    "spark.sql.analyzer.singlePassResolver.exposeResolverGuardFailure": "false",
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "false",
    "spark.sql.dataSource.skipAssertOnPredicatePushdown": "true",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
    "spark.sql.planChangeValidation": "false",
    "spark.sql.pyspark.jvmStacktrace.enabled": "false",
    "spark.sql.shuffleDependency.fileCleanup.enabled": "false",
    "spark.sql.shuffleDependency.skipMigration.enabled": "false",
    "spark.sql.streaming.stateStore.autoSnapshotRepair.enabled": "true",
    "spark.sql.streaming.stateStore.rowChecksum.readVerificationRatio": "0",
    "spark.sql.thriftserver.shuffleDependency.fileCleanup.enabled": "false",
    "spark.sql.timeType.enabled": "false",
    "spark.sql.timestampNanosTypes.enabled": "false",
}
CLASS_ARCHIVE = Path(__file__).parents[2] / "build" / "spark.jsa"
"""What tests/support/class_archive.py writes."""
_WITH_ARCHIVE = f" -XX:SharedArchiveFile={CLASS_ARCHIVE} -Xshare:auto -Xlog:disable"
# Tests run many small queries once: compiling them, and printing their plans, costs more than to
# run them. Spark interprets expressions only where `spark.testing` is set.
QUICK = {
    **_AS_FOR_USERS,
    "spark.driver.extraJavaOptions": (
        # One compiler alone gets 48 MB for its code, and throws out what thousands of queries need.
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m -XX:+UseSerialGC"
        # A method runs a few hundred times: compiled sooner, it costs less. A small heap, and few
        # classes at first, would be collected whole again and again while they grow.
        " -XX:CompileThresholdScaling=0.25 -Xms1g -Xmn400m -XX:MetaspaceSize=400m"
        f" -Dspark.testing=true{_WITH_ARCHIVE if CLASS_ARCHIVE.exists() else ''}"
    ),
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ui.explainMode": "simple",
    # PySpark asks the JVM several things at each Column call, to name the line in errors.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
# PySpark names these classes without their package: the JVM then looks for each in every JAR.
_OFTEN_NAMED = ("org.apache.spark.api.python.PythonUtils", "org.apache.spark.sql.functions")
# These it names in full, and py4j looks for each below every package that is imported whole.
_NAMED_IN_FULL = (
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.expressions.Window",
    "org.apache.spark.sql.functions",
)

_started: list[object] = []


def has_quick_jvm() -> bool:
    """Whether the JVM of this process was started here, with the settings above."""
    return bool(_started)


@contextmanager
def local_session(folder: Path, more: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A small session whose files all lie below `folder`; it is stopped afterwards.

    `more` are further settings. With SHELDUCK_TEST_SPARK=compiled it compiles queries as a user's
    session does.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("shelduck-tests")
    own = {"spark.driver.memory": "2g", "spark.ui.showConsoleProgress": "false"}
    if os.environ.get("SHELDUCK_TEST_SPARK") != "compiled":
        own |= QUICK
    for key, value in (settings(folder) | own | dict(more or {})).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    _started.append(session.sparkContext._gateway)
    session.sparkContext.setLogLevel("ERROR")
    _let_names_be_found(session)
    if os.environ.get("SHELDUCK_TEST_SPARK") != "compiled":
        _let_files_be_quick(session, is_local="spark.driver.extraClassPath" not in (more or {}))
    try:
        yield session
    finally:
        session.stop()


def _let_names_be_found(session: SparkSession) -> None:
    """The JVM looks through all JARs for a class, and through the stack for the line of a job."""
    for name in _OFTEN_NAMED:
        java_import(session._jvm, name)
    gateway = session.sparkContext._gateway
    imports = JavaObject(DEFAULT_JVM_ID.removeprefix(REFERENCE_TYPE), gateway._gateway_client)
    # Were it collected, py4j would drop the imports themselves.
    _started.append(imports)
    for name in _NAMED_IN_FULL:
        imports.getSingleImportsMap().put(name, name)
    for part in ("short", "long"):
        session.sparkContext.setLocalProperty(f"callSite.{part}", "a test")


def _let_files_be_quick(session: SparkSession, *, is_local: bool) -> None:
    """Hadoop starts a process for each chmod of a local file, ten of them for a small write.

    And it sends 1,100 settings with each scan and each write, most of which no local file needs.
    """
    compiler = session._jvm.org.codehaus.janino.SimpleCompiler()
    thread = session._jvm.java.lang.Thread.currentThread()
    compiler.setParentClassLoader(thread.getContextClassLoader())
    compiler.cook(Path(__file__).with_name("LocalFiles.java").read_text())
    settings = session._jvm.org.apache.hadoop.conf.Configuration(session._jsc.hadoopConfiguration())
    if is_local:
        small = compiler.getClassLoader().loadClass("shelduck.tests.LocalFiles$Small").newInstance()
        small.accept(session._jsc.hadoopConfiguration())
    settings.setClassLoader(compiler.getClassLoader())
    settings.set("fs.file.impl", "shelduck.tests.LocalFiles")
    files = session._jvm.org.apache.hadoop.fs.FileSystem
    # Hadoop keeps one object for each kind of file system and user: from now on this one.
    files.closeAll()
    files.get(session._jvm.java.net.URI("file:///"), settings)


def views(session: SparkSession, database: str = "default") -> list[str]:
    """The names of views of a database and of the session, in order."""
    # `spark.catalog` makes Java objects of rows, which interpreted expressions cannot.
    return sorted(row.viewName for row in session.sql(f"SHOW VIEWS IN {database}").collect())


def settings(folder: Path) -> dict[str, str]:
    """What a small local Spark is told, whose files all lie below `folder`."""
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        # Spark 4.0 knows scripts only if it is asked for.
        "spark.sql.scripting.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
    }
