"""Importing Shelduck is cheap: each public name loads its module when it is first used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import shelduck
from tests.support.loaded import loaded_by_commands, loaded_modules

SOURCE = Path(shelduck.__file__)


def test_help_loads_nothing_heavy():
    assert (
        loaded_by_commands(["--help"], ["--version"], ["sql", "--help"], ["jobs", "--help"]) == []
    )


@pytest.mark.parametrize(
    "program", ["import shelduck", "import shelduck as s; dir(s); s.NotFound; s.JobState"]
)
def test_nothing_heavy_is_loaded_before_it_is_needed(program):
    assert loaded_modules(program) == []


def test_type_checkers_see_the_names_that_are_loaded():
    tree = ast.parse(SOURCE.read_text())
    [block] = [
        n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"
    ]
    seen = {}
    for line in block.body:
        assert isinstance(line, ast.ImportFrom)
        for name in line.names:
            # `as` with the same name is what makes a name public for type checkers.
            assert name.asname == name.name
            seen[name.name] = line.module
    table = {name: module for module, names in shelduck._NAMES.items() for name in names.split()}

    assert seen == table
    assert len(table) == sum(len(names.split()) for names in shelduck._NAMES.values())


def test_every_public_name_can_be_imported():
    assert "connect" in shelduck.__all__
    for name in shelduck.__all__:
        assert getattr(shelduck, name).__name__ == name
        assert name in dir(shelduck)


def test_an_unknown_name_is_told_as_python_tells_it():
    with pytest.raises(AttributeError, match="module 'shelduck' has no attribute 'conect'"):
        _ = shelduck.conect


def test_whoever_opens_a_lake_lets_the_subjects_take_part():
    texts = {path: path.read_text() for path in SOURCE.parent.rglob("*.py")}
    names = {
        path: ".".join(path.relative_to(SOURCE.parents[1]).with_suffix("").parts) for path in texts
    }
    those = [
        names[path] for path, text in texts.items() if "\nimport shelduck.doors.subjects" in text
    ]
    doors = {names[path]: text for path, text in texts.items() if " = LakeState(" in text}

    assert sorted(doors) == ["shelduck.doors.connect", "shelduck.web.application"]
    for door, text in doors.items():
        assert door in those or any(f"\nfrom {name} import" in text for name in those)


WITHOUT = """
import sys
for name in {names!r}:
    sys.modules[name] = None
import shelduck
for name in shelduck.__all__:
    getattr(shelduck, name)
import shelduck.cli.app, shelduck.delta, shelduck.doors.sidecar
with shelduck.connect("sqlite:///lake.db", "data/") as lake:
    lake.execute("CREATE TABLE t (id INT)")
    lake.execute("INSERT INTO t VALUES (1), (2)")
    print(lake.table("t").columns.names, len(lake.snapshots()))
"""


def test_a_plain_installation_needs_no_package_of_an_extra(tmp_path):
    lists = tomllib.loads((SOURCE.parents[2] / "pyproject.toml").read_text())["project"]
    extras = lists["optional-dependencies"]
    packages = {_package(each) for name in extras if name != "dev" for each in extras[name]}
    owners = packages_distributions()
    names = {name for name in owners if packages & {_package(o) for o in owners[name]}}
    # Other packages have modules below it too.
    run = [sys.executable, "-c", WITHOUT.format(names=sorted(names - {"google"}))]
    told = subprocess.run(run, check=False, capture_output=True, text=True, cwd=tmp_path)

    assert {"boto3", "duckdb", "pyiceberg", "psycopg", "starlette"} <= names
    assert told.stderr == ""
    assert told.stdout == "['id'] 3\n"


def _package(requirement):
    """The name of a package in a requirement, such as psycopg[binary]>=3.2."""
    return re.split(r"[\[>=]", requirement.lower())[0]


# Modules that hand Spark's parser text that they or the caller of a verb have made. Text of a lake
# goes through `stored` in engine/rows/table_rules.py, which lets it only compute with one row.
PARSING = {
    "carry/flow.py",
    "cli/demo.py",
    "cli/query_command.py",
    "engine/bridge/relation.py",
    "write/merge/key_ranges.py",
    "write/merge/load_rows.py",
    "write/merge/merge_clauses.py",
    "write/merge/merge_scopes.py",
    "engine/session.py",
    "engine/rows/assignments.py",
    "engine/rows/conversions.py",
    "engine/rows/unheld.py",
    "engine/rows/store_rules.py",
    "read/scan/change_feed.py",
    "read/scan/expect.py",
    "read/scan/matching.py",
    "alter/statement.py",
    "objects/statement/show.py",
    "write/statement/insert_into.py",
}


def test_text_of_a_lake_reaches_sparks_parser_through_one_module():
    found = set()
    for path in SOURCE.parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in {"expr", "selectExpr"}:
                found.add(path.relative_to(SOURCE.parent).as_posix())
    assert found == PARSING


def test_one_place_chooses_the_way_into_spark():
    choosing = [
        path.relative_to(SOURCE.parent).as_posix()
        for path in sorted(SOURCE.parent.rglob("*.py"))
        if re.search(r"_jsparkSession|import .*ClassicEngine|ClassicEngine\)", path.read_text())
    ]
    assert choosing == ["engine/bridge/classic.py", "engine/bridge/jvm.py"]
