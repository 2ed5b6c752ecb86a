"""How the parts of a commit say what its opening asks the catalog for them.

Each names SELECTs about :of_tables, the existing tables of the commit, :of_converted, those of them
that get converted columns, or :of_files, the data files whose rows it deletes or moves.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BindParameter, bindparam

from shelduck.ducklake.column_types import BIGINT
from shelduck.ducklake.format import Asked

Questions = tuple[tuple[str, Asked], ...]
"""Questions by name."""

OF_TABLES: BindParameter[Any] = bindparam("of_tables", type_=BIGINT, expanding=True)
OF_CONVERTED: BindParameter[Any] = bindparam("of_converted", type_=BIGINT, expanding=True)
OF_FILES: BindParameter[Any] = bindparam("of_files", type_=BIGINT, expanding=True)
