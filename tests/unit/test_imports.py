"""Importing Shelduck is cheap: each public name loads its module when it is first used."""

from __future__ import annotations

import ast
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
    those = [names[path] for path, text in texts.items() if "\nimport shelduck.subjects" in text]
    doors = {names[path]: text for path, text in texts.items() if " = LakeState(" in text}

    assert sorted(doors) == ["shelduck.api.connect", "shelduck.web.application"]
    for door, text in doors.items():
        assert door in those or any(f"\nfrom {name} import" in text for name in those)
