"""Random tables as files of SQL, which can be changed step by step."""

from __future__ import annotations

import random

from shelduck.model.text.names import quote_name, quote_text

TYPES = {
    "INT": ("7", "-1"),
    "BIGINT": ("7", "5000000000"),
    "DOUBLE": ("0.5", "-1e300"),
    "DECIMAL(9,2)": ("1.50", "0"),
    "STRING": ("'x'", "'it''s -- id: 9'"),
    "VARCHAR(20)": ("'x'",),
    "DATE": ("'2020-01-01'",),
    "TIMESTAMP": ("'2020-01-01 12:00:00+00:00'",),
    "BOOLEAN": ("true",),
    "BINARY": (),
    "ARRAY<STRING>": (),
    "STRUCT": (),
    "ARRAY<STRUCT>": (),
    "MAP<STRING, STRUCT>": (),
    "MAP<STRING, ARRAY<INT>>": (),
}
WIDER = {"INT": "BIGINT"}
NAMES = ["id", "Name", "a b", "select", "größe", "x.y", "c`d", "--", "day", "v", "w", "long_name"]
COMMENTS = [None, "plain", "it's; -- id: 4", "two\nlines"]


class Fields:
    """The fields of a struct: name and type of each, and its id once it has one."""

    def __init__(self, chance: random.Random) -> None:
        names = chance.sample(NAMES, chance.randint(1, 4))
        self.all = [[name, chance.choice(["INT", "STRING", "ARRAY<INT>"]), None] for name in names]

    def change(self, chance: random.Random) -> None:
        free = [n for n in NAMES if n not in {name for name, _, _ in self.all}]
        if len(self.all) > 1 and chance.random() < 0.4:
            self.all.remove(chance.choice(self.all))
        if len(self.all) > 1 and chance.random() < 0.4:
            one, other = chance.sample(self.all, 2)
            one[0], other[0] = other[0], one[0]
        for field in self.all:
            if chance.random() < 0.3:
                field[0] = free.pop(0)
            if chance.random() < 0.3:
                field[1] = WIDER.get(field[1], field[1])
        if chance.random() < 0.4:
            self.all.append([free.pop(0), "DATE", None])

    def text(self) -> str:
        last = self.all[-1]
        lines = [
            f"    {quote_name(f[0])}: {f[1]}{'' if f is last else ','}"
            f"{'' if f[2] is None else f' -- id: {f[2]}'}\n"
            for f in self.all
        ]
        return "STRUCT<\n" + "".join(lines) + ">"


class Drawn:
    """One column of a table: its id once it has one."""

    def __init__(self, chance: random.Random, name: str) -> None:
        self.name = name
        self.type = chance.choice([*TYPES])
        self.default = chance.choice([None, *TYPES[self.type]])
        self.is_needed = self.default is not None and chance.random() < 0.3
        self.comment = chance.choice(COMMENTS)
        self.fields = Fields(chance) if "STRUCT" in self.type else None
        self.id: int | None = None

    def line(self) -> str:
        kind = self.type
        if self.fields is not None:
            kind = kind.replace("STRUCT", self.fields.text())
        text = f"{quote_name(self.name)} {kind}"
        text += " NOT NULL" if self.is_needed else ""
        text += f" DEFAULT {self.default}" if self.default is not None else ""
        return text + (f" COMMENT {quote_text(self.comment)}" if self.comment else "")


class Table:
    """A drawn table, which can be changed and written as a file."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        names = chance.sample(NAMES, chance.randint(1, 7))
        self.columns = [Drawn(chance, name) for name in names]
        self.comment = chance.choice(COMMENTS)
        self.arrange()

    def arrange(self) -> None:
        plain = [c.name for c in self.columns if c.type in ("INT", "BIGINT", "STRING", "DATE")]
        self.partition = self.chance.choice([None, *plain])
        self.sorting = self.chance.choice([None, *plain])

    def change(self) -> None:
        """Drop, rename, retype, move and add columns."""
        chance = self.chance
        self.partitioned = [c for c in self.columns if c.name == self.partition]
        # A name that the table has means the column that has it.
        free = [n for n in NAMES if n not in {c.name for c in self.columns}]
        if len(self.columns) > 1 and chance.random() < 0.5:
            self.columns.remove(chance.choice(self.columns))
        if len(self.columns) > 1 and chance.random() < 0.3:
            one, other = chance.sample(self.columns, 2)
            one.name, other.name = other.name, one.name
        for column in self.columns:
            if free and chance.random() < 0.3:
                column.name = free.pop(0)
            if column.fields is not None:
                column.fields.change(chance)
            if chance.random() < 0.3:
                column.type = WIDER.get(column.type, column.type)
            if chance.random() < 0.3:
                column.default = chance.choice([None, *TYPES.get(column.type, ())])
            if chance.random() < 0.3:
                column.comment = chance.choice(COMMENTS)
            if chance.random() < 0.3:
                column.is_needed = not column.is_needed
        for name in free[: chance.randint(0, 2)]:
            self.columns.insert(chance.randint(0, len(self.columns)), Drawn(chance, name))
        if chance.random() < 0.3:
            chance.shuffle(self.columns)
        self.comment = chance.choice(COMMENTS)
        self.arrange()

    def convert(self) -> None:
        """Change types whose values a job has to convert; no job converts a partition key."""
        for column in self.columns:
            is_key = column in self.partitioned or column.id is None
            if column.type in ("INT", "BIGINT", "DECIMAL(9,2)") and not is_key:
                column.type, column.default = "STRING", None
        self.partition = self.sorting = None

    def text(self) -> str:
        last = self.columns[-1]
        lines = [
            f"  {c.line()}{'' if c is last else ','}{'' if c.id is None else f' -- id: {c.id}'}"
            for c in self.columns
        ]
        text = "CREATE TABLE t (\n" + "\n".join(lines) + "\n)"
        if self.partition is not None:
            text += f"\nPARTITIONED BY ({quote_name(self.partition)})"
        if self.sorting is not None:
            text += f"\nSORTED BY ({quote_name(self.sorting)})"
        if self.comment is not None:
            text += f"\nCOMMENT {quote_text(self.comment)}"
        return text


def pairs(field, column):
    """Yield each field of a column's struct in the table, with the drawn one."""
    if column.fields is None:
        return
    inside = {"STRUCT": [field], "ARRAY": field.children, "MAP": field.children}
    struct = inside[column.type.split("<")[0]][-1]
    drawn = {one[0]: one for one in column.fields.all}
    assert {c.name for c in struct.children} == drawn.keys()
    for child in struct.children:
        yield child, drawn[child.name]
