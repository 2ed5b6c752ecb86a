"""Modules and public classes have names of their own: a traceback and a search find one."""

from __future__ import annotations

import ast
from collections import Counter

from tests.unit.test_sizes import modules

# Every package has these, or may have them: the parts of an operation (docs/architecture.md).
_OF_PACKAGES = {"__init__", "__main__", "statement", "verb", "commit"}


def repeated(names):
    """The names that stand more than once."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def test_a_module_has_a_name_of_its_own():
    assert repeated(path.stem for path in modules() if path.stem not in _OF_PACKAGES) == []


def test_a_public_class_has_a_name_of_its_own():
    names = [
        node.name
        for path in modules()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]

    assert repeated(names) == []
    assert repeated([*names, "TableVersion"]) == ["TableVersion"]
