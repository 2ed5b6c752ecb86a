"""The bridge's Java classes: compiled once per Spark version and available to every executor.

Janino, which Spark uses for its own generated code, compiles the sources in the driver. The JAR is
kept in the user's cache directory under a name that depends on the Spark version and the sources,
so that other processes find it; the driver serves it to the executors. A JAR that another user can
have written is not used.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import stat
import tempfile
import threading
import warnings
import zipfile
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from shelduck.engine.bridge.faults import tell_of_files
from shelduck.engine.bridge.jvm import current_thread, java_class, java_session
from shelduck.engine.named_errors import first_line
from shelduck.errors import Unsupported

PACKAGE = "shelduck.bridge"
# The packages below it, and their classes in the order of compilation: Janino compiles one file at
# a time, and each may use those before it. In none are those that users name in settings, and
# `LakePlans`, which uses all.
_PACKAGES = {
    "python": "TextRows FromPython Sidecar CatalogCall",
    "plans": "ScalaSeq HiddenField NodeChange LakeStrategies LakeRows LakeRule",
    "write": "BucketHash FieldIds HeldValues ChangeWriter ComposedFile CopyingWriter PlainView"
    " UnboundStream SealedFiles ReportedWriters",
    "scan": "DamagedLake MetadataValue LakeFileIndex KeptVector TextBatches OpenedFile ChosenRows"
    " ReadWhole DeletedPositions ReadKept SafeFilters LakeParquet ReadDictionaries",
    "source": "LakeProvider",
    "catalog": "ViewTable LatestView LakeTable LakeView",
    "statements": "LakeAnswer LakeCommand Changes LakeScript LakeParser WritesByPlan",
    "planner": "RollupChain RollupMeasures KnownFiles LakeFilesStrategy",
    "": "LakePlans LakeCatalog Shelduck MetadataRule LocalRule RollupRule StatisticsRule",
}
_FOLDERS = {name: folder for folder, names in _PACKAGES.items() for name in names.split()}
# Java finds data sources by the list of their classes in a JAR.
_SERVICES = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"
_MUTABLE = "org.apache.spark.util.MutableURLClassLoader"
_JAR = re.compile(r"shelduck-bridge-[^/\s]*\.jar")
_adding = threading.Lock()
_known: WeakKeyDictionary[SparkContext, LoadedClasses] = WeakKeyDictionary()
_GROUP, _OTHERS = 0o020, 0o002
_ROOT = 0
_SHARED = "LakeRule"
_told: set[str] = set()


class LoadedClasses(NamedTuple):
    """The bridge in one Spark application: its class loader, and a ``LakePlans``."""

    loader: Any
    plans: Any


def loaded(spark: SparkSession) -> LoadedClasses:
    """Return the bridge's classes, available to this session and to its executors.

    Sessions of one SparkContext share them, so only the first call compiles or adds anything.
    """
    context = spark.sparkContext
    with _adding:
        found = _known.get(context)
        if found is None:
            loader = _loader(spark)
            plans = loader.loadClass(class_name("LakePlans")).getConstructors()[0].newInstance(None)
            found = _known[context] = LoadedClasses(loader, plans)
            tell_of_files()
        return found


def loader_of(spark: SparkSession) -> Any:
    """Return the Java class loader that has the bridge's classes."""
    return loaded(spark).loader


def class_name(name: str) -> str:
    """Return the full name in Java of one of the bridge's classes."""
    return ".".join(part for part in (PACKAGE, _FOLDERS[name], name) if part)


def kept_jar() -> Path | None:
    """Return the JAR of the classes for the Spark of this Python, None before it was compiled."""
    name = _jar_name(pyspark.__version__)
    try:
        found = _cache_folder() / name
        require_private(found)
    except OSError:
        return None
    return found


def compiled_jar(spark: SparkSession) -> Path:
    """Return the JAR of the classes, for a driver that has no Python; it is compiled once."""
    return _jar(spark, _jar_name(spark.version))


def _jar_name(version: str) -> str:
    return f"shelduck-bridge-{version}-{_fingerprint()}.jar"


def _loader(spark: SparkSession) -> Any:
    session = java_session(spark)
    present = set(_JAR.findall(session.sparkContext().listJars().mkString("\n")))
    name = _jar_name(spark.version)
    if present - {name}:
        message = (
            f"this Spark application already runs {', '.join(present)} and cannot load {name},"
            " too; restart it to change the version of Shelduck"
        )
        raise Unsupported(message)
    loader = session.sharedState().jarClassLoader()
    if not present:
        # The same as ADD JAR, which would find no path with a blank or a percent sign.
        address = _jar(spark, name).as_uri()
        _open_loader(loader).addURL(java_class(spark, "java.net.URI")(address).toURL())
        session.sparkContext().addJar(address)
    return loader


def _open_loader(loader: Any) -> Any:
    """Return the loader in which every thread of the driver finds classes, or ``loader``.

    Threads that Spark starts have the parent of the session's loader as theirs.
    """
    parent = loader.getParent()
    is_open = parent is not None and parent.getClass().getName() == _MUTABLE
    return parent if is_open else loader


@functools.cache
def _sources() -> dict[str, str]:
    """Return the Java text of each class, in the order of compilation."""
    return {
        name: (_folder() / folder / f"{name}.java").read_text(encoding="utf-8")
        for name, folder in _FOLDERS.items()
    }


def _folder() -> Traversable:
    return resources.files(__package__) / "java"


@functools.cache
def _fingerprint() -> str:
    return hashlib.sha256("\0".join(_sources().values()).encode()).hexdigest()[:12]


def _jar(spark: SparkSession, name: str) -> Path:
    """Return the path of the compiled JAR, from the cache if it is there."""
    try:
        folder = _cache_folder()
        if not (folder / name).exists():
            _pack(_compiled(spark), folder / name)
        require_private(folder / name)
    except OSError:
        # The home directory is not writable, or somebody else can write the cache; nobody else
        # can have put a file into a fresh directory.
        folder = Path(tempfile.mkdtemp(prefix="shelduck-"))
        _pack(_compiled(spark), folder / name)
    return folder / name


def _cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME", "")
    folder = (Path(home) if home.startswith("/") else Path.home() / ".cache") / "shelduck"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder.resolve()


def _pack(classes: dict[str, bytes], jar: Path) -> None:
    """Write the JAR under another name first: a reader sees all of it or none."""
    handle, unfinished = tempfile.mkstemp(dir=jar.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as packed:
            for name, code in classes.items():
                packed.writestr(f"{name.replace('.', '/')}.class", code)
            packed.writestr(_SERVICES, (_folder() / _SERVICES).read_text(encoding="utf-8"))
        Path(unfinished).replace(jar)
    except BaseException:
        Path(unfinished).unlink()
        raise


def _compiled(spark: SparkSession) -> dict[str, bytes]:
    loader = current_thread(spark).getContextClassLoader()
    classes: dict[str, bytes] = {}
    useless: set[str] = set()
    for own_name, source in _sources().items():
        if own_name in useless:
            continue
        compiler = java_class(spark, "org.codehaus.janino.SimpleCompiler")()
        compiler.setParentClassLoader(loader)
        compiler.setSourceVersion(8)
        compiler.setTargetVersion(8)
        try:
            compiler.cook(source)
        except Py4JJavaError:
            if own_name not in RULE_CLASSES:
                raise
            # The bridge tells of it when it installs the rule.
            useless |= needing(own_name)
            continue
        loader = compiler.getClassLoader()
        codes = compiler.getBytecodes()
        for name in codes:
            classes[str(name)] = bytes(codes[name])
    return {name: code for name, code in classes.items() if _own_name(name) not in useless}


def _own_name(java: str) -> str:
    """Return the name of the source of a class, which may be inside of another."""
    return java.rpartition(".")[2].split("$", maxsplit=1)[0]


def require_private(path: Path) -> None:
    """Raise PermissionError if another user, but for root, can write a file or put another there.

    ``path`` is absolute and without links. Of the directories above its own, groups may write those
    of the user's own group, which many systems give to one user alone.
    """
    if not hasattr(os, "geteuid"):
        return
    for place in (path, *path.parents):
        found = place.lstat()
        is_near = place in (path, path.parent)
        others = _OTHERS
        if is_near or found.st_gid != os.getegid():
            others |= _GROUP
        # In a sticky directory, only the owner of a file replaces it.
        is_sticky = bool(found.st_mode & stat.S_ISVTX) and not is_near
        is_ours = found.st_uid in (os.geteuid(), _ROOT)
        if stat.S_ISLNK(found.st_mode) or not is_ours or (found.st_mode & others and not is_sticky):
            raise PermissionError(f"another user can write {place}")


class PlannerRule(NamedTuple):
    """A rule or strategy: its classes, in the order of compilation, and what is lost without it."""

    classes: tuple[str, ...]
    lost: str


RULES = {
    "MetadataRule": PlannerRule(
        (_SHARED, "MetadataRule"), "COUNT, MIN and MAX of whole files read the files"
    ),
    "LocalRule": PlannerRule(
        (_SHARED, "LocalRule"), "jobs group and sort the few rows of a catalog"
    ),
    "RollupRule": PlannerRule(
        (_SHARED, "RollupChain", "RollupMeasures", "RollupRule"),
        "no query is answered from a rollup",
    ),
    "StatisticsRule": PlannerRule(
        (_SHARED, "KnownFiles", "StatisticsRule"),
        "the cost-based optimizer knows only how large tables are",
    ),
    "LakeFilesStrategy": PlannerRule(
        (_SHARED, "LakeFilesStrategy"),
        "Spark's interface does not show how many files a query leaves out",
    ),
}
RULE_CLASSES = tuple(dict.fromkeys(name for rule in RULES.values() for name in rule.classes))


def needing(name: str) -> set[str]:
    """Return the classes that are of no use without a class: those of rules that need it alone."""
    able = {c for rule in RULES.values() if name not in rule.classes for c in rule.classes}
    return set(RULE_CLASSES) - able


def tell_lost(rule: str, version: str, error: Exception) -> None:
    """Warn once that this version of Spark runs without a rule, and what is lost."""
    if rule in _told:
        return
    _told.add(rule)
    warn(f"Spark {version} cannot run {rule} ({first_line(error)}); {RULES[rule].lost}")


def warn(message: str) -> None:
    """Warn the user; if warnings are turned into errors, the query goes on all the same."""
    try:
        warnings.warn(f"Shelduck: {message}", RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        return
