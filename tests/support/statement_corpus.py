"""Every statement that a unit test gives as an example."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

_UNIT = Path(__file__).parents[1] / "unit"
_STATEMENT = re.compile(
    r"\s*(?:ALTER|BEGIN|CALL|CANCEL|CHECKPOINT|COMMENT|CREATE|DELETE|DESC|DESCRIBE|DROP|EXPLAIN"
    r"|HELP|INSERT|MERGE|OPTIMIZE|RESET|RESTORE|SELECT|SET|SHOW|TRUNCATE|UPDATE|USE|VACUUM|WITH)\s"
)


@cache
def example_statements() -> tuple[str, ...]:
    """Return the texts in ``tests/unit/test_sql_*.py`` that begin like a statement, sorted."""
    found = {
        node.value
        for path in _UNIT.glob("test_sql_*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and _STATEMENT.match(node.value)
    }
    return tuple(sorted(found))
