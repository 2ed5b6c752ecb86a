"""No module over 500 lines, no function over 50: what is larger is split, not excused."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

MODULE_LINES = 500
FUNCTION_LINES = 50
SOURCE = Path(__file__).parents[2] / "src"

# "shelduck/module.py" or "shelduck/module.py:function" -> why it may be larger. May only shrink.
EXCEPTIONS: dict[str, str] = {}


def oversized(path: Path, root: Path) -> dict[str, int]:
    """Lines of each thing in the module that is over its limit."""
    text = path.read_text()
    name = path.relative_to(root).as_posix()
    lines = len(text.splitlines())
    found = {name: lines} if lines > MODULE_LINES else {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                found[f"{name}:{node.name}"] = length
    return found


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def test_modules_and_functions_stay_small_and_every_exception_is_still_needed():
    found = {k: v for path in modules() for k, v in oversized(path, SOURCE).items()}
    assert {k: v for k, v in found.items() if k not in EXCEPTIONS} == {}
    assert EXCEPTIONS.keys() <= found.keys()


@pytest.mark.parametrize(
    ("body_lines", "expected"),
    [(49, {}), (50, {"sample.py:f": 51}), (501, {"sample.py": 502, "sample.py:f": 502})],
)
def test_what_is_too_large_is_named_with_its_length(tmp_path, body_lines, expected):
    path = tmp_path / "sample.py"
    path.write_text("def f():\n" + "    pass\n" * body_lines)

    assert oversized(path, tmp_path) == expected


def test_the_package_is_looked_at():
    assert SOURCE / "shelduck" / "__init__.py" in modules()
