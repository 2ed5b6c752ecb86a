"""What must hold after every commit, read from the catalog's rows and the stand-in files.

Nothing here calls the product: these are queries of the specification, over another connection.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.simulation.ledger import row_of
from tests.simulation.world import Violation

if TYPE_CHECKING:
    from tests.simulation.files import Kept, StandIn
    from tests.simulation.run import Simulation

_FILES = """
SELECT d.data_file_id, d.path, d.row_id_start, d.record_count
FROM ducklake_data_file d
WHERE d.table_id = ? AND d.begin_snapshot <= ? AND (d.end_snapshot IS NULL OR d.end_snapshot > ?)"""
_DELETES = """
SELECT data_file_id, path FROM ducklake_delete_file
WHERE table_id = ? AND begin_snapshot <= ? AND (end_snapshot IS NULL OR end_snapshot > ?)"""
_COLUMNS = """
SELECT column_name, column_id FROM ducklake_column
WHERE table_id = ? AND begin_snapshot <= ? AND (end_snapshot IS NULL OR end_snapshot > ?)"""
_TABLES = """
SELECT t.table_name, t.table_id, s.path || t.path FROM ducklake_table t
JOIN ducklake_schema s ON s.schema_id = t.schema_id
WHERE s.schema_name = 'main'
AND t.begin_snapshot <= ? AND (t.end_snapshot IS NULL OR t.end_snapshot > ?)"""
_NAMED = """
SELECT s.path || t.path || f.path, f.file_size_bytes FROM (
  SELECT table_id, path, file_size_bytes FROM ducklake_data_file
  UNION ALL SELECT table_id, path, file_size_bytes FROM ducklake_delete_file) f
JOIN (SELECT DISTINCT table_id, schema_id, path FROM ducklake_table) t ON t.table_id = f.table_id
JOIN ducklake_schema s ON s.schema_id = t.schema_id"""
_ROLLUPS = """
SELECT value FROM ducklake_tag WHERE object_id = ? AND key = 'shelduck.rollups'
AND begin_snapshot <= ? AND (end_snapshot IS NULL OR end_snapshot > ?)"""
_OF_MAIN = "t.schema_id = (SELECT schema_id FROM ducklake_schema WHERE schema_name = 'main')"
_WAITING = ("PENDING", "WAITING_TXN")
_OPEN = (*_WAITING, "RUNNING")
_BASE, _ROLLUP = "t", "t$r"
_SHOWN = f"""
SELECT column_id FROM ducklake_column c JOIN ducklake_table t ON t.table_id = c.table_id
WHERE t.table_name = 't' AND c.column_name = 'v' AND {_OF_MAIN}
AND c.begin_snapshot <= ? AND (c.end_snapshot IS NULL OR c.end_snapshot > ?)"""


@dataclass(frozen=True)
class Row:
    """A live row: its values by the names of the columns, and its id."""

    values: dict[str, Any]
    id: int


class Invariants:
    """Looks at one catalog file and its files."""

    def __init__(self, simulation: Simulation, path: str) -> None:
        self._simulation = simulation
        self._db = sqlite3.connect(path, isolation_level=None)
        self._seen: dict[int, dict[str, Any]] = {}
        known = self._db.execute("SELECT job_id, state, published_snapshot FROM shelduck_job")
        self._jobs: dict[int, tuple[Any, ...]] = {n: tuple(rest) for n, *rest in known}
        works = self._db.execute("SELECT work FROM shelduck_job WHERE state = 'FINISHED'")
        self._publications = sum(_converts(work) for (work,) in works)
        self._values: dict[tuple[int, int], str] = {}
        """The text of v for each row and each id that the column has had."""
        self._is_fresh = False
        self._named: dict[str, int] = {}
        for at in self._snapshots():
            for name, number, place in self._tables(at):
                if name == _BASE:
                    self._values_are_those_of_before(at, self._rows(number, place, at))

    def close(self) -> None:
        self._db.close()

    def after_commit(self) -> None:
        """Check everything that a commit may break; called right after each COMMIT."""
        self._db.execute("BEGIN")
        try:
            head = self._one("SELECT max(snapshot_id) FROM ducklake_snapshot")
            self._files_exist()
            self._names_are_of_the_version()
            self._jobs_move_on(head)
            if head not in self._seen:
                self._writes_are_there(head)
            self._history_stays(head)
        finally:
            self._db.execute("COMMIT")

    def before_removal(self, path: str, kept: Kept) -> None:
        """Check that a file may go: nobody names it, and nobody who is well is writing it."""
        if path.removeprefix("lake/") in self._named:
            raise Violation(f"{path} is deleted, and a snapshot names it")
        world = self._simulation.world
        mine = world.task.process if world.task is not None else None
        writer = kept.writer
        if writer is None or writer is mine or writer.is_dead:
            return
        if writer.is_late:
            return
        if writer.is_registered and path in writer.writes:
            raise Violation(f"{path} is deleted, and {writer.name} is at work on it")

    def at_the_end(self) -> None:
        """Check what must hold when everybody has gone and all is cleaned up."""
        self.after_commit()
        for snapshot in self._snapshots():
            self._same_as_before(snapshot)
        there = self._simulation.files.files
        homes = {f"lake/{place}" for _, _, place in self._places()}
        left = [p for p in there if p.removeprefix("lake/") not in self._named]
        left = [p for p in left if any(p.startswith(home) for home in homes)]
        if left:
            raise Violation(f"{len(left)} orphans are left, such as {left[0]}")

    def _one(self, query: str, *given: Any) -> Any:
        row = self._db.execute(query, given).fetchone()
        return None if row is None else row[0]

    def _snapshots(self) -> list[int]:
        return [n for (n,) in self._db.execute("SELECT snapshot_id FROM ducklake_snapshot")]

    def _names_are_of_the_version(self) -> None:
        """Check that nobody makes tables for inlined rows in the form of another DuckLake."""
        version = self._one("SELECT value FROM ducklake_metadata WHERE key = 'version'")
        query = "SELECT t.table_name, c.name FROM ducklake_inlined_data_tables t"
        query += " JOIN pragma_table_info(t.table_name) c WHERE c.cid < 3"
        for table, name in self._db.execute(query):
            if name.startswith("_ducklake_") != (version != "1.0"):
                raise Violation(f"{table} has a column {name} in a lake of DuckLake {version}")

    def _files_exist(self) -> None:
        there = self._simulation.files.files
        self._named = dict(self._db.execute(_NAMED))
        for path, size in self._named.items():
            kept = there.get(f"lake/{path}")
            if kept is None or kept.size != size:
                raise Violation(f"the catalog names {path}, which is not there as it says")

    def _writes_are_there(self, head: int) -> None:
        tables = self._tables(head)
        rows = {name: self._rows(number, place, head) for name, number, place in tables}
        self._seen[head] = {name: _content(found) for name, found in rows.items()}
        for name, number, _ in tables:
            self._ids_are_unique(name, number, rows[name])
        counts = {
            name: Counter(r.values["op"] for r in rows[name]) for name in ("t", "left", "right")
        }
        for write in self._simulation.ledger.writes.values():
            for name in write.tables:
                if counts[name][write.number] not in write.counts:
                    raise Violation(
                        f"write {write.number} is {write.added.value}, deleted {write.deleted}, and"
                        f" {name} has {counts[name][write.number]} of its {write.rows} rows"
                    )
        self._rows_are_right(rows)
        self._values_are_those_of_before(head, rows[_BASE])
        self._rollup_is_right(head, {n: i for n, i, _ in tables}, rows)

    def _rows_are_right(self, rows: dict[str, list[Row]]) -> None:
        total = sum(r.values["amount"] for name in ("left", "right") for r in rows[name])
        if total != 0:
            raise Violation(f"the sum over both tables is {total}")
        places: Counter[int] = Counter()
        for row in rows["t"]:
            found = {
                k: None if (v := row.values[k]) is None else int(v) for k in "op k v w".split()
            }
            number = found["op"]
            wanted = [row_of(number, n) for n in range(4)]
            if found not in wanted:
                raise Violation(f"t has the row {row.values}, which nobody wrote")
            places[number, wanted.index(found)] += 1
        twice = [place for place, count in places.items() if count > 1]
        if twice:
            raise Violation(f"t has a row twice: write and place {twice[0]}")

    def _values_are_those_of_before(self, head: int, rows: list[Row]) -> None:
        """Check that a column shows what it showed when it was last there: an undo loses nothing.

        Nobody changes the values of rows that exist.
        """
        if self._may_lose(head):
            self._values.clear()
        number = self._one(_SHOWN, head, head)
        for row in rows:
            value = str(row.values["v"])
            known = self._values.setdefault((row.id, number), value)
            if known != value:
                raise Violation(f"row {row.id} of t has v {value}, and had {known} before the job")

    def _may_lose(self, head: int) -> bool:
        """Whether an undo was published here, and the snapshots around its job have expired."""
        query = "SELECT work FROM shelduck_job WHERE published_snapshot = ?"
        for (work,) in self._db.execute(query, (head,)):
            undoes = json.loads(work).get("undoes")
            there = set(self._snapshots())
            if undoes and not {undoes["published"] - 1, undoes["published"]} <= there:
                return True
        return False

    def _ids_are_unique(self, name: str, number: int, rows: list[Row]) -> None:
        ids = Counter(r.id for r in rows)
        twice = [i for i, count in ids.items() if count > 1]
        if twice:
            raise Violation(f"two rows of {name} have the id {twice[0]}")
        following = self._one(
            "SELECT next_row_id FROM ducklake_table_stats WHERE table_id = ?", number
        )
        if ids and following is not None and max(ids) >= following:
            raise Violation(f"{name} has row id {max(ids)}, and gives {following} next")

    def _rollup_is_right(self, head: int, ids: dict[str, int], rows: dict[str, list[Row]]) -> None:
        base = ids[_BASE]
        listed = self._one(_ROLLUPS, base, head, head)
        if _ROLLUP not in rows or listed is None or '"r"' not in listed:
            self._is_fresh = False
            return
        settled = self._one(
            "SELECT snapshot_id FROM shelduck_settled WHERE table_id = ?", ids[_ROLLUP]
        )
        is_fresh = settled is not None and not self._touched(settled, head, {base, ids[_ROLLUP]})
        # A DELETE that chose its rows before the rollup was listed leaves it to the next write.
        # A merge of a branch leaves it as well.
        is_left = self._deletes(head, base) or self._merges(head)
        if self._is_fresh and not is_fresh and not is_left:
            raise Violation(f"the rollup is stale since snapshot {head}")
        self._is_fresh = is_fresh
        if not is_fresh:
            return
        self._simulation.told["rollup looked at"] += 1
        wanted: dict[int, list[int]] = {}
        for row in rows[_BASE]:
            group = wanted.setdefault(row.values["k"], [0, 0])
            group[0] += row.values["w"]
            group[1] += 1
        found = {r.values["k"]: [r.values["w"], r.values["n"]] for r in rows[_ROLLUP]}
        if found != wanted:
            raise Violation(f"the rollup has {found}, and its base {wanted}")

    def _deletes(self, head: int, table: int) -> bool:
        query = "SELECT changes_made FROM ducklake_snapshot_changes WHERE snapshot_id = ?"
        made = self._one(query, head).split(",")
        return bool({f"deleted_from_table:{table}", f"inlined_delete:{table}"} & {*made})

    def _merges(self, head: int) -> bool:
        query = "SELECT 1 FROM ducklake_tag WHERE key = 'shelduck.branch' AND begin_snapshot = ?"
        return self._one(query, head) is not None

    def _touched(self, since: int, head: int, tables: set[int]) -> bool:
        query = (
            "SELECT changes_made FROM ducklake_snapshot_changes"
            " WHERE snapshot_id > ? AND snapshot_id <= ?"
        )
        made = [row[0] for row in self._db.execute(query, (since, head))]
        if len(made) < head - since:
            # What expired snapshots did is not known any more.
            return True
        logged = " ".join(made)
        verbs = r"(?:inserted_into_table|deleted_from_table|inlined_insert|inlined_delete):(\d+)"
        return not tables.isdisjoint(map(int, re.findall(verbs, logged)))

    def _jobs_move_on(self, head: int) -> None:
        """Check that a job publishes once, and that nothing happens to it afterwards."""
        query = "SELECT job_id, state, published_snapshot, work FROM shelduck_job"
        for number, state, published, work in self._db.execute(query):
            before = self._jobs.get(number)
            if before is not None and before[0] not in _OPEN and before != (state, published):
                raise Violation(f"job {number} was {before}, and is {state} at {published}")
            if before is None or before[0] != state:
                self._simulation.world.told(f"job {number} is {state}")
            if state == "FINISHED" and (before is None or before[0] in _OPEN):
                if published != head:
                    raise Violation(f"job {number} is published in {published}, not {head}")
                if _converts(work):
                    # An undo shows a column again that was there before.
                    self._publications += not json.loads(work).get("undoes")
                    self._begin_with_their_columns(head)
            goes_on = before is None or before[0] in _WAITING
            if goes_on and state in ("RUNNING", "FINISHED"):
                self._nobody_is_overlooked(number, work)
            self._jobs[number] = (state, published)
        query = (
            "SELECT count(DISTINCT column_id) FROM ducklake_column c JOIN ducklake_table t"
            " ON t.table_id = c.table_id WHERE t.table_name = 't' AND c.column_name = 'v'"
            f" AND {_OF_MAIN}"
            " AND (c.end_snapshot IS NULL OR c.begin_snapshot < c.end_snapshot)"
        )
        shown = self._one(query)
        if shown != 1 + self._publications:
            raise Violation(f"{self._publications} jobs published, and v was {shown} columns")

    def _begin_with_their_columns(self, head: int) -> None:
        """Check that no live file begins before the snapshot that shows its columns."""
        query = (
            "SELECT d.path FROM ducklake_data_file d JOIN ducklake_table t ON"
            " t.table_id = d.table_id WHERE t.table_name = 't' AND t.end_snapshot IS NULL"
            f" AND {_OF_MAIN}"
            " AND d.end_snapshot IS NULL AND d.begin_snapshot < ?"
        )
        early = self._one(query, head)
        if early is not None:
            raise Violation(f"{early} begins before the snapshot that shows its columns")

    def _nobody_is_overlooked(self, number: int, work: str) -> None:
        """Check that nobody who is well still writes rows without the columns of a job."""
        ids = [c["shadow_id"] for c in json.loads(work).get("conversions", ())]
        there = self._simulation.files.files
        for process in self._simulation.world.processes:
            if process.is_dead or process.is_late or not process.is_registered:
                continue
            if process.is_on_branch:
                continue
            for path in process.writes & there.keys() - {f"lake/{p}" for p in self._named}:
                rows = there[path].content.rows
                if path.startswith("lake/main/t/") and any(i not in r for r in rows for i in ids):
                    raise Violation(f"job {number} runs, and {process.name} writes without it")

    def _history_stays(self, head: int) -> None:
        kept = [n for n in self._seen if n < head]
        if kept:
            self._same_as_before(self._simulation.world.random.choice(kept))

    def _same_as_before(self, snapshot: int) -> None:
        """Check that a snapshot shows what it showed when it was made, unless it has expired."""
        known = self._seen.get(snapshot)
        if known is None:
            return
        is_there = "SELECT 1 FROM ducklake_snapshot WHERE snapshot_id = ?"
        if self._one(is_there, snapshot) is None:
            del self._seen[snapshot]
            return
        for name, number, place in self._tables(snapshot):
            if _content(self._rows(number, place, snapshot)) != known[name]:
                raise Violation(f"snapshot {snapshot} shows other rows of {name} than before")

    def _tables(self, snapshot: int) -> list[tuple[str, int, str]]:
        return self._db.execute(_TABLES, (snapshot, snapshot)).fetchall()

    def _places(self) -> list[tuple[str, int, str]]:
        return self._db.execute(_TABLES.split("WHERE", maxsplit=1)[0]).fetchall()

    def _rows(self, table: int, place: str, snapshot: int) -> list[Row]:
        at = (table, snapshot, snapshot)
        columns = self._db.execute(_COLUMNS, at).fetchall()
        dead = self._dead(table, place, snapshot)
        found: list[Row] = []
        for number, path, start, count in self._db.execute(_FILES, at):
            content = self._content(place + path)
            if len(content.rows) != count:
                raise Violation(f"{path} has {len(content.rows)} rows, the catalog says {count}")
            gone = dead.get(number, ())
            for position, values in enumerate(content.rows):
                if position in gone:
                    continue
                if content.snapshots and content.snapshots[position] > snapshot:
                    continue
                row_id = content.row_ids[position] if content.row_ids else start + position
                found.append(Row({n: values.get(i) for n, i in columns}, row_id))
        return found

    def _dead(self, table: int, place: str, snapshot: int) -> dict[int, set[int]]:
        """The dead positions of each data file: in delete files, and in the catalog itself."""
        found: dict[int, set[int]] = {}
        for number, path in self._db.execute(_DELETES, (table, snapshot, snapshot)):
            if number in found:
                raise Violation(f"data file {number} has two delete files in snapshot {snapshot}")
            dead = self._content(place + path).dead
            found[number] = {p for p, at in dead.items() if (at or 0) <= snapshot}
        kept = f"ducklake_inlined_delete_{table}"
        if self._one("SELECT 1 FROM sqlite_master WHERE name = ?", kept):
            query = f"SELECT file_id, row_id FROM {kept} WHERE begin_snapshot <= ?"
            for number, position in self._db.execute(query, (snapshot,)):
                found.setdefault(number, set()).add(position)
        return found

    def _content(self, path: str) -> StandIn:
        return self._simulation.files.files[f"lake/{path}"].content


def _converts(work: str) -> bool:
    return bool(json.loads(work).get("conversions"))


def _content(rows: list[Row]) -> list[tuple[Any, ...]]:
    return sorted((r.id, *map(str, r.values.values())) for r in rows)
