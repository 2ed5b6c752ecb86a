"""Each rule of the bridge stands alone: one that a Spark cannot run turns off only itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings

import pytest
from pyspark.errors import PySparkRuntimeError

from shelduck.engine.bridge import classes, classic

CLASSES = classes.RULE_CLASSES
# A session of its own, in which a class of one rule does not compile.
PROGRAM = """
import sys, warnings
from shelduck.engine.bridge import classes
sources = dict(classes._sources())
sources["LocalRule"] = sources["LocalRule"].replace("class LocalRule", "class LocalRule extends No")
classes._sources = lambda: sources
import shelduck
from tests.support.jobs import jobs_of
from tests.support.spark import QUICK, settings
from pathlib import Path
from pyspark.sql import SparkSession

folder = Path(sys.argv[1])
builder = SparkSession.builder.master("local[2]")
for key, value in (settings(folder) | QUICK).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
with shelduck.connect(f"sqlite:///{folder}/catalog.db", f"{folder}/data/", spark) as lake:
    lake.sql("CREATE TABLE few (id INT, g INT) DUPLICATE KEY (id)")
    lake.sql("INSERT INTO few VALUES (1, 7), (2, 7)")
    lake.sql("CREATE TABLE many (id INT, g INT) DUPLICATE KEY (id) ROLLUP (r (g, id))")
    lake.sql("INSERT INTO many SELECT id, id % 5 FROM range(5000)")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            for session in (spark, spark.newSession()):
                with shelduck.connect(lake._state.store.where, None, session) as again:
                    assert [tuple(r) for r in again.sql("SELECT g, sum(id) FROM few GROUP BY g")
                            .collect()] == [(7, 3)]
    for warning in caught:
        print("warned", warning.message)
    print("jobs", jobs_of(spark, lambda: lake.sql("SELECT count(*) FROM many").collect()))
    methods = spark._jsparkSession.experimental()
    for found in (methods.extraOptimizations(), methods.extraStrategies()):
        for n in range(found.size()):
            print("rule", found.apply(n).getClass().getSimpleName())
"""


def test_each_class_of_a_rule_compiles_and_loads(spark):
    compiled = set(classes._compiled(spark))
    assert {classes.class_name(name) for name in CLASSES} <= compiled
    bridge = classic.ClassicEngine(spark)
    for name in CLASSES:
        # Linked: every type that its members name is there.
        found = classes.loader_of(spark).loadClass(classes.class_name(name))
        found.getDeclaredMethods()
        assert list(found.getDeclaredConstructors())
    for rule in classes.RULES:
        assert bridge._new(rule).getClass().getSimpleName() == rule


def test_a_rule_lists_the_classes_that_it_needs():
    sources = classes._sources()
    assert {name for name in sources if name.endswith(("Rule", "Strategy"))} == {
        *classes.RULES,
        "LakeRule",
    }
    for rule, (listed, lost) in classes.RULES.items():
        found, new = set(), {rule}
        while new:
            found |= new
            words = {word for name in new for word in re.findall(r"\w+", code_of(sources[name]))}
            new = (words & set(CLASSES)) - found
        assert found == set(listed)
        assert list(listed) == [name for name in CLASSES if name in listed]
        assert lost


def code_of(source):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", source, flags=re.DOTALL)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("broken", CLASSES)
def test_a_class_that_does_not_compile_turns_off_only_its_rules(spark, monkeypatch, broken):
    # The others are there already.
    classes.loaded(spark)
    sources = {name: text for name, text in classes._sources().items() if name in CLASSES}
    sources[broken] = sources[broken].replace(f"class {broken} ", f"clas {broken} ")
    monkeypatch.setattr(classes, "_sources", lambda: sources)

    names = {name.split(".")[-1] for name in classes._compiled(spark)}

    able = {rule for rule, (listed, _) in classes.RULES.items() if broken not in listed}
    assert names & set(classes.RULES) == able
    assert {name for rule in able for name in classes.RULES[rule].classes} <= names
    assert broken not in names


def test_a_broken_rule_is_told_once_with_what_is_lost(spark, bridge, monkeypatch, recwarn):
    def broken(*_):
        raise PySparkRuntimeError("No such class\nat line 7")

    monkeypatch.setattr(classic.ClassicEngine, "_new", broken)
    monkeypatch.setattr(classes, "_told", set())
    warnings.simplefilter("always")
    for _ in range(2):
        monkeypatch.setattr(bridge, "_installed", set())
        bridge.compute_few_rows()

    assert bridge.add_rule() is False
    lost = "jobs group and sort the few rows of a catalog", classes.RULES["RollupRule"].lost
    assert [str(warning.message) for warning in recwarn] == [
        f"Shelduck: Spark {spark.version} cannot run {rule} (No such class); {what}"
        for rule, what in zip(("LocalRule", "RollupRule"), lost, strict=True)
    ]


@pytest.mark.slow
def test_a_session_runs_without_a_broken_rule_and_says_once_what_is_lost(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(sys.path), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-5000:]
    lines = run.stdout.splitlines()
    (warned,) = [line for line in lines if line.startswith("warned Shelduck: ")]
    assert "cannot run LocalRule" in warned
    assert warned.endswith("; jobs group and sort the few rows of a catalog")
    assert "jobs 0" in lines
    found = {line.removeprefix("rule ") for line in lines if line.startswith("rule ")}
    assert found == set(classes.RULES) - {"LocalRule"}
