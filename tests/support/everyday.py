"""A day of ordinary statements and calls: what people type, and the answers that are right.

The entries are in ``tests/data/everyday.txt``, whose head explains its lines.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as people import it
from pyspark.sql.functions import partitioning

import shelduck
from shelduck.delta import DeltaTable
from tests.support.door import Answer, sentence, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

FILE = Path(__file__).parents[1] / "data" / "everyday.txt"
PAGE = Path(__file__).parents[2] / "docs" / "guides" / "your-statement-ours.md"
BASE = [
    line.removeprefix("#   ")
    for line in FILE.read_text().splitlines()
    if re.match(r"#   (CREATE|INSERT)", line)
]
"""The statements that make the lake with which every entry begins."""
WORKS, REFUSED, RAW, WRONG = "works", "refused clearly", "raw error", "silently wrong"
# Characters of a statement that the page shows though it works as written.
_SHORT = 60
HERE, DIFFERS, NOT_HERE = "works", "differs", "not here"
# What only a person who knows Spark's insides can read.
_RAW = re.compile(r"SQLSTATE|Py4J|py4j|\bat org\.|JVM|'Project|\[[A-Z_.]{8,}\]")
_SYSTEMS = {
    "spark": "Spark",
    "delta": "Delta",
    "iceberg": "Iceberg",
    "databricks": "Databricks",
    "hive": "Hive",
}


@dataclass
class Entry:
    """One statement, or one call of Python, with the answer that is right."""

    kind: str
    whose: tuple[str, ...]
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    typed: str = ""
    is_call: bool = False
    asked: str = ""
    rows: list[tuple[str, ...]] = field(default_factory=list)
    refused: str = ""
    note: str = ""
    number: int = 0

    def take(self, mark: str, rest: str, number: int) -> None:
        """Take a line of the file, by its mark."""
        match mark:
            case "+":
                (self.after if self.typed else self.before).append(rest)
            case ">" | ">>>":
                self.typed += ("\n" if self.typed else "") + rest
                self.is_call = mark == ">>>"
            case "?":
                self.asked = rest
            case "=":
                self.rows.append(tuple(cell.strip() for cell in rest.split("|")))
            case "!":
                self.refused = rest
            case "~":
                self.note = rest
            case _:
                raise ValueError(f"line {number} of {FILE.name} has no known mark: {mark}")

    @property
    def id(self) -> str:
        """Its number and its first words."""
        return f"{self.number:03} {' '.join(self.typed.split())[:60]}"

    @property
    def verdict(self) -> str:
        """What it does here, for somebody who knows the other system; '' for what fails there."""
        if self.refused:
            return NOT_HERE if self.note and not self.note.startswith("as ") else ""
        return DIFFERS if self.note else HERE

    @property
    def systems(self) -> str:
        """The systems whose words it has."""
        return ", ".join(_SYSTEMS[name] for name in self.whose)


def entries() -> list[Entry]:
    """All entries, in the order of the file."""
    found: list[Entry] = []
    kind = ""
    for number, line in enumerate(FILE.read_text().splitlines(), 1):
        mark, _, rest = line.partition(" ")
        if mark == "##":
            kind = rest
        elif line.startswith("["):
            whose = tuple(name.strip() for name in line.strip("[]").split(","))
            found.append(Entry(kind, whose, number=len(found) + 1))
        elif mark not in ("", "#"):
            found[-1].take(mark, rest, number)
    for entry in found:
        is_told = bool(entry.asked or entry.rows) != bool(entry.refused)
        assert entry.typed, entry
        assert is_told, entry
        if entry.is_call:
            # Of a call, all statements run before.
            entry.before, entry.after = entry.before + entry.after, []
    return found


@dataclass(frozen=True)
class Outcome:
    """What became of an entry."""

    name: str
    told: str


def judged(entry: Entry, typed: Answer, ask: Callable[[str], Answer]) -> Outcome:
    """What became of an entry whose text has been typed; ``ask`` runs a query."""
    if typed.error:
        told = re.sub(r"^\[[A-Z_.]+\] ", "", typed.error)
        is_clear = _RAW.search(told) is None
        is_right = bool(entry.refused) and entry.refused.lower() in typed.error.lower()
        return Outcome(REFUSED if is_clear and is_right else RAW, typed.error)
    if entry.refused:
        return Outcome(WRONG, f"it was taken, and answers {typed.rows}")
    answer = ask(entry.asked) if entry.asked else typed
    if answer.error:
        return Outcome(RAW, f"the query afterwards: {answer.error}")
    asked = (entry.asked or entry.typed).upper()
    is_right = _are_those(answer.rows, entry.rows, in_order="ORDER BY" in asked)
    return Outcome(WORKS if is_right else WRONG, f"{list(answer.rows)}")


def _are_those(
    found: Iterable[tuple[str, ...]], expected: list[tuple[str, ...]], *, in_order: bool
) -> bool:
    if expected == [("*",)]:
        return bool(list(found))
    rows = list(found) if in_order else sorted(found)
    wanted = expected if in_order else sorted(expected)
    return len(rows) == len(wanted) and all(
        len(row) == len(cells)
        and all(cell in ("*", _plain(value)) for value, cell in zip(row, cells, strict=True))
        for row, cells in zip(rows, wanted, strict=True)
    )


def _plain(value: str) -> str:
    """A value as text; JDBC writes lists as JSON."""
    text = value.strip()
    return text.replace('","', "', '").replace('"', "'") if text.startswith("[") else text


def run(spark: SparkSession, entry: Entry, folder: Path, text: Callable[[str], str]) -> Outcome:
    """Run an entry in a session with its lake; ``text`` says how a statement is written there."""

    def ask(statement: str) -> Answer:
        return _answer(lambda: spark.sql(text(statement)))

    for statement in entry.before:
        spark.sql(text(statement))
    typed = (
        _answer(lambda: called(spark, text(entry.typed), folder))
        if entry.is_call
        else ask(entry.typed)
    )
    for statement in entry.after:
        spark.sql(text(statement))
    return judged(entry, typed, ask)


def called(spark: SparkSession, text: str, folder: Path) -> Any:
    """What the last line of a program gives, if it gives anything."""
    names = {
        "spark": spark,
        "shelduck": shelduck,
        "DeltaTable": DeltaTable,
        "F": F,
        "partitioning": partitioning,
        "folder": str(folder / "checkpoint"),
        "df": spark.createDataFrame([(7, "g"), (8, "h")], "id int, name string"),
    }
    program = ast.parse(text)
    *lines, last = program.body
    exec(compile(ast.Module(lines, []), "typed", "exec"), names)
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), "typed", "eval"), names)


def _answer(act: Callable[[], Any]) -> Answer:
    """The answer of a session: rows as text, or the sentence of an error."""
    try:
        found = act()
        if isinstance(found, DataFrame):
            found = found.collect()
        if not isinstance(found, list):
            found = [] if found is None else [found]
        rows = [row if isinstance(row, tuple) else (row,) for row in found]
        return Answer(tuple(tuple(map(text_of, row)) for row in rows))
    except shelduck.ShelduckError as error:
        return Answer(error=str(error))
    except Exception as error:  # noqa: BLE001 - judged by its words
        # Errors of queries stay Spark's own.
        return Answer(error=sentence(str(error)) if _is_of_query(error) else f"JVM: {error!r:.400}")


def _is_of_query(error: Exception) -> bool:
    found = getattr(error, "getCondition", str)() or ""
    return found.startswith(("UNRESOLVED_COLUMN", "TABLE_OR_VIEW_"))


def page() -> str:
    """What people type and what it does here, as a page of the documentation."""
    shown = [entry for entry in entries() if entry.verdict]
    verdicts = Counter(entry.verdict for entry in shown)
    lines = [
        "# You know Delta or Iceberg: your statement, ours",
        "",
        f"Tests type {verdicts.total()} statements and calls that people know by heart, and",
        (
            f"compare: {verdicts[HERE]} work, {verdicts[DIFFERS]} differ,"
            f" {verdicts[NOT_HERE]} are refused."
        ),
        "",
        "The tables have those that differ or are refused; the blocks short ones that work, in",
        "words of Delta, Iceberg, Databricks or Hive. `tests/data/everyday.txt` has the others,",
        "too; `make coverage` writes this page.",
    ]
    for kind in dict.fromkeys(entry.kind for entry in shown):
        of_kind = [entry for entry in shown if entry.kind == kind]
        others = [entry for entry in of_kind if entry.verdict != HERE]
        work = [entry for entry in of_kind if entry.verdict == HERE]
        named = [_line(entry) for entry in work if "spark" not in entry.whose]
        named = [line for line in named if len(line) <= _SHORT]
        lines += ["", f"## {kind}"]
        if others:
            lines += ["", "| you type | here |", "|---|---|", *map(_row, others)]
        if named:
            lines += ["", f"As written, like {len(work) - len(named)} others:"]
            lines += ["", "```", *named, "```"]
    return "\n".join(lines) + "\n"


def _row(entry: Entry) -> str:
    refused = "" if entry.verdict == DIFFERS else "refused: "
    note = _cell(entry.note.removeprefix("not here: "))
    return f"| {_code(_line(entry))} | {refused}{note} |"


def _line(entry: Entry) -> str:
    return entry.typed.replace("lake.main.", "").replace("\n", "; ")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _code(text: str) -> str:
    # A text with a backtick needs two around it.
    around = "``" if "`" in text else "`"
    return f"{around}{_cell(text)}{around}" if around == "`" else f"{around} {_cell(text)} {around}"


def counts(outcomes: Iterable[tuple[Entry, Outcome]]) -> dict[str, Counter[str]]:
    """How many entries of each kind have which outcome."""
    found: dict[str, Counter[str]] = {}
    for entry, outcome in outcomes:
        found.setdefault(entry.kind, Counter())[outcome.name] += 1
    return found
