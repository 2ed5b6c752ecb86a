"""How many examples the long laws draw."""

from __future__ import annotations

import os

_SOAKS = os.environ.get("SHELDUCK_TEST_LAWS") == "soak"


def long(examples: int) -> int:
    """So many in `make soak`, a quarter of them in `make test-all`."""
    return examples if _SOAKS else max(1, examples // 4)
