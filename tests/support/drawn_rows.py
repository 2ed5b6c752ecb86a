"""Rows of drawn tables: as SQL, and as the values that they must keep."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from shelduck.model.text.names import quote_name, quote_text


def leaf(kind: str, n: int) -> tuple[str, Any]:
    """Return the n-th value of a type without structs, as SQL and as Spark returns it."""
    match kind:
        case "INT":
            return f"{n}", n
        case "BIGINT":
            return f"{n}L", n
        case "DOUBLE":
            return f"{n}.5D", n + 0.5
        case "DECIMAL(9,2)":
            return f"{n}.25BD", Decimal(f"{n}.25")
        case "DATE":
            return f"DATE'2020-01-0{n}'", date(2020, 1, n)
        case "TIMESTAMP":
            at = datetime(2020, 1, n, tzinfo=UTC).astimezone().replace(tzinfo=None)
            return f"TIMESTAMP'2020-01-0{n} 00:00:00Z'", at
        case "BOOLEAN":
            return ("true", True) if n % 2 else ("false", False)
        case "BINARY":
            return f"X'0{n}'", bytearray([n])
        case "ARRAY<INT>":
            return f"array({n})", [n]
        case "ARRAY<STRING>":
            return f"array('x{n}')", [f"x{n}"]
        case "MAP<STRING, ARRAY<INT>>":
            return f"map('k', array({n}))", {"k": [n]}
        case _:
            return f"'x{n}'", f"x{n}"


class Row:
    """One row: ``values`` by column, those of structs by field."""

    def __init__(self, table: Any, n: int) -> None:
        self.values: dict[int, Any] = {}
        # What is dropped must live on: a new object could get its id().
        self.drawn = [(c, [] if c.fields is None else list(c.fields.all)) for c in table.columns]
        self.kinds = {id(c): c.type for c in table.columns}
        parts = []
        for column in table.columns:
            if column.fields is None:
                text, self.values[id(column)] = leaf(column.type, n)
            else:
                text = self._struct(column, n)
            parts.append(f"{text} AS {quote_name(column.name)}")
        self.sql = f"SELECT {', '.join(parts)}"

    def _struct(self, column: Any, n: int) -> str:
        members = []
        for field in column.fields.all:
            text, self.values[id(field)] = leaf(field[1], n)
            members.append(f"{quote_text(field[0])}, {text}")
        made = f"named_struct({', '.join(members)})"
        outer = column.type.split("<")[0]
        return {"STRUCT": made, "ARRAY": f"array({made})", "MAP": f"map('k', {made})"}[outer]

    def is_kept(self, table: Any, found: Any) -> bool:
        """Return whether a row that Spark returned after a change has all that must stay."""
        return all(
            self._is_kept(column, value) for column, value in zip(table.columns, found, strict=True)
        )

    def _is_kept(self, column: Any, value: Any) -> bool:
        if column.fields is None:
            if id(column) not in self.values:
                return True
            kept = self.values[id(column)]
            converted = column.type == "STRING" != self.kinds[id(column)]
            return bool(value == (str(kept) if converted else kept))
        known = [f for f in column.fields.all if id(f) in self.values]
        at = {"STRUCT": None, "ARRAY": 0, "MAP": "k"}[column.type.split("<")[0]]
        struct = value if at is None or not known else value[at]
        return all(struct[field[0]] == self.values[id(field)] for field in known)
