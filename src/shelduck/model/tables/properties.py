"""Table properties: their names, what they may hold, and what they allow.

They are tags of the table, so they have a history and time travel sees old values; DuckDB ignores
them. Delta's names mean the same as in Delta. Other names are the user's own,
except those of Delta that ask for what a lake does not do: an error says what to write instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from shelduck.errors import CorruptLake, InvalidRequest, NewerFormat, NotFound, Unsupported
from shelduck.model.tables.column_storage import (
    COLUMN_STORAGE,
    bound_storage,
    storage_of,
    storage_property,
    told_storage,
)
from shelduck.model.tables.computed import COMPUTED, computed_of
from shelduck.model.tables.constraints import CONSTRAINTS, constraints_of
from shelduck.model.tables.keys import KEYS, table_keys
from shelduck.model.tables.lengths import LENGTHS
from shelduck.model.tables.options import OPTION_NAMES
from shelduck.model.tables.rollup import ROLLUP, ROLLUPS, rollup_names, rollup_of
from shelduck.model.tables.schema import Field, FieldId, Schema
from shelduck.model.tables.table_version import Feature, TableVersion
from shelduck.model.tables.twin import TWIN
from shelduck.model.text.names import quote_text
from shelduck.model.text.stored import Stored, each, record
from shelduck.model.types.data_types import FLOATS, SIGNED, DataType, Decimal
from shelduck.model.types.promotions import Promotion, Verdict, promotion

ANALYZED = "shelduck.hint.analyzed"
"""The property that holds what ANALYZE TABLE computed of columns, by their ids.

Rows, bounds and sizes are known without it. An older Shelduck ignores the property.
"""


@dataclass(frozen=True, slots=True)
class AnalyzedColumn:
    """A column of ``type`` as it was at a snapshot, with so many rows.

    ``distinct`` is an estimate. Texts and blobs have an average and a greatest length.
    """

    column: FieldId
    type: str
    snapshot: int
    rows: int
    distinct: int
    nulls: int
    average: int | None = None
    longest: int | None = None

    def distinct_of(self, rows: int) -> int:
        """Return how many values so many rows of the table have.

        A column that nearly identified rows goes on to do so; others have the same values.
        """
        found = self.distinct
        if found and 10 * found >= 9 * (self.rows - self.nulls):
            found = found * rows // self.rows
        return min(found, rows)

    def nulls_of(self, rows: int) -> int:
        """Return how many NULLs so many rows of the table have."""
        return self.nulls * rows // self.rows if self.rows else 0


@dataclass(frozen=True, slots=True)
class _Analyzed:
    columns: tuple[AnalyzedColumn, ...] = ()


_STORED: Stored[_Analyzed] = Stored(
    "statistics", record(_Analyzed, columns=each(record(AnalyzedColumn), by="column"))
)


def analyzed_columns(
    properties: Mapping[str, str], columns: Schema
) -> dict[FieldId, AnalyzedColumn]:
    """Return what is known of columns, by id; nothing of those that have another type since."""
    if ANALYZED not in properties:
        return {}
    try:
        known = _STORED.known(properties[ANALYZED], "").columns
    except (CorruptLake, NewerFormat):
        # Nobody needs it to read or to write a row.
        return {}
    types = {one.column: _type_of(columns.by_id(one.column)) for one in known}
    return {one.column: one for one in known if types[one.column] == one.type}


def with_analyzed(
    properties: Mapping[str, str], columns: Schema, found: Iterable[AnalyzedColumn]
) -> dict[str, str]:
    """Return the properties of a table of which these columns were analyzed.

    They are the same if all that differs is the snapshot.
    """
    known = analyzed_columns(properties, columns)
    new = {one.column: one for one in found if _type_of(columns.by_id(one.column)) == one.type}
    if all(_same(known.get(column), one) for column, one in new.items()):
        return dict(properties)
    made = _Analyzed(tuple(one for _, one in sorted((known | new).items())))
    return {**properties, ANALYZED: _STORED.write(made)}


def _same(known: AnalyzedColumn | None, new: AnalyzedColumn) -> bool:
    return known is not None and replace(known, snapshot=new.snapshot) == new


def _type_of(field: Field | None) -> str | None:
    return None if field is None else str(field.type)


FOLLOWS = "shelduck.hint.follows"
"""The property of a table into which streams carry rows and columns of others."""
TYPE_WIDENING = "delta.enableTypeWidening"
TYPE_WIDENING_FEATURE = "delta.feature.typeWidening"
AUTOMATIC_WIDENING = "shelduck.allowAutomaticWidening"
METADATA_NARROWING = "shelduck.metadataNarrowing"
# The snapshot up to which type changes are forgotten: the one before the feature was dropped.
FORGOTTEN_TYPES = "shelduck.typeChangesForgottenAt"

_COMMENT = "comment"
_HIDDEN = frozenset({ANALYZED, COMPUTED, CONSTRAINTS, FORGOTTEN_TYPES, KEYS, LENGTHS})
_HIDDEN |= {COLUMN_STORAGE, FOLLOWS, ROLLUP, ROLLUPS, TWIN, Feature.MATERIALIZED.value}
_OURS = "shelduck."
# Properties of later versions that older code may ignore.
_HINTS = "shelduck.hint."
_OF_CLUSTERS = frozenset(
    {
        "replication_num",
        "replication_allocation",
        "storage_medium",
        "in_memory",
        # All columns have ids, and rows of one key are merged on write.
        "light_schema_change",
        "enable_unique_key_merge_on_write",
    }
)
_FLAGS = ("true", "false")
# How similar two names are, of 1, before one counts as a misspelling of the other.
_NEAR = 0.9

Properties = Mapping[str, str]


class AutomaticWidening(Enum):
    """Which types a write that may change the schema widens automatically."""

    ALWAYS = "always"
    SAME_FAMILY = "same_family"
    NEVER = "never"


_VALUES = {
    TYPE_WIDENING: _FLAGS,
    TYPE_WIDENING_FEATURE: ("supported",),
    AUTOMATIC_WIDENING: tuple(mode.value for mode in AutomaticWidening),
    METADATA_NARROWING: _FLAGS,
}
_SPELLINGS = {"same_family_type": AutomaticWidening.SAME_FAMILY.value, "enabled": "supported"}


@dataclass(frozen=True, slots=True)
class SetProperties:
    """Set properties of a table; the others stay."""

    values: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        inside = ", ".join(f"{quote_text(k)} = {quote_text(v)}" for k, v in self.values)
        return f"SET TBLPROPERTIES ({inside})"


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    """Remove properties of a table."""

    keys: tuple[str, ...]
    if_exists: bool = False

    def __str__(self) -> str:
        exists = "IF EXISTS " if self.if_exists else ""
        return f"UNSET TBLPROPERTIES {exists}({', '.join(map(quote_text, self.keys))})"


PropertyChange = SetProperties | UnsetProperties


def apply_properties(
    known: Properties, change: PropertyChange, columns: Schema, table: str
) -> dict[str, str]:
    """Return the properties after a change; ``columns`` are those of the table.

    Raises NotFound for an unknown name that begins like Shelduck's names or is nearly a known one,
    and for unsetting a property that is not set; Unsupported for a name of Delta that a lake does
    not have; InvalidRequest for a value that a property does not accept.
    """
    found = told_storage(known, columns, table)
    if isinstance(change, SetProperties):
        found.update(checked_properties(dict(change.values), table))
    else:
        _unset(found, change, table)
    return bound_storage(found, columns, table, storage_of(known, table))


def _unset(found: dict[str, str], change: UnsetProperties, table: str) -> None:
    shown = [k for k in found if k not in _HIDDEN]
    for given in change.keys:
        key = next((k for k in shown if k in found and k.lower() == given.lower()), None)
        if key is None:
            if change.if_exists:
                continue
            _refuse_foreign(given, table)
            raise NotFound.named("property", given, sorted(shown), where=table)
        if key == TYPE_WIDENING_FEATURE:
            raise InvalidRequest(
                f"{key} of {table} belongs to a table feature; to remove it and rewrite the files"
                f" with older types, use ALTER TABLE {table} DROP FEATURE typeWidening"
            )
        del found[key]


def copied_properties(known: Properties) -> dict[str, str]:
    """Return the properties that a copy of a table has: all that are true of each table like it."""
    gone = {ANALYZED, FOLLOWS, FORGOTTEN_TYPES, ROLLUP, ROLLUPS, TWIN, Feature.MATERIALIZED.value}
    return {key: value for key, value in known.items() if key not in gone}


def checked_properties(values: Properties, table: str) -> dict[str, str]:
    """Return properties as they are stored: known names and values in their own spelling.

    If type widening is enabled, its feature is recorded, as in Delta.
    """
    found = dict(_checked(key, value, table) for key, value in values.items())
    if found.get(TYPE_WIDENING) == "true":
        found[TYPE_WIDENING_FEATURE] = "supported"
    return found


def refuse_doris(values: Properties, table: str) -> None:
    """Raise InvalidRequest for a property of Doris' CREATE TABLE that means something for a lake.

    Properties that place copies of a table on the machines of a cluster have no effect here.
    Changes of metadata are always light, so Unsupported is raised if they are not to be.
    """
    for key, value in values.items():
        if key.lower() == "light_schema_change" and value.strip().lower() != "true":
            raise Unsupported(
                f"{table} cannot have light_schema_change = {value}: a change that needs no new"
                " files never writes any; leave it out"
            )
        if key.lower() not in _OF_CLUSTERS and storage_property(key, value) is None:
            raise InvalidRequest(
                f"{table} cannot have the property {key!r} of Doris; leave it out, or use"
                " TBLPROPERTIES (…) to store any text with the table"
            )


def shown_properties(properties: Properties, columns: Schema) -> dict[str, str]:
    """Return the properties of a table with these columns that are shown to people, by name."""
    told = told_storage(properties, columns)
    return {k: told[k] for k in sorted(told) if k not in _HIDDEN}


def require_known(table: TableVersion) -> None:
    """Raise NewerFormat if only a newer Shelduck knows what the rows of a table must be."""
    table_keys(table)
    rollup_of(table)
    rollup_names(table)
    constraints_of(table.properties, table.full_name)
    computed_of(table.properties, table.full_name)
    ours = {key for key in table.properties if key.startswith("shelduck.")}
    newer = {key for key in ours - _HIDDEN - set(_VALUES) if not key.startswith(_HINTS)}
    if newer:
        name = f"property {min(newer)} of table {table.full_name}"
        raise NewerFormat(f"{name} was made by a newer Shelduck; upgrade")


def allows_promotion(properties: Properties, found: Promotion) -> bool:
    """Return whether a light change of a type is allowed on a table with these properties.

    The promotions of the DuckLake specification are allowed unless type widening was switched off;
    all others only if it was switched on.
    """
    enabled = properties.get(TYPE_WIDENING)
    if found.verdict is Verdict.SAME:
        return True
    return enabled == "true" or (enabled is None and found.is_default)


def narrows_by_metadata(properties: Properties) -> bool:
    """Return whether files may stay when a column becomes narrower and all values fit."""
    return properties.get(METADATA_NARROWING) != "false"


def widens_by_itself(properties: Properties, source: DataType, target: DataType) -> bool:
    """Return whether a write that may change the schema widens ``source`` to ``target``."""
    found = promotion(source, target)
    if not found.is_light or not allows_promotion(properties, found):
        return False
    # A mode that only a newer Shelduck knows widens nothing.
    mode = properties.get(AUTOMATIC_WIDENING, AutomaticWidening.ALWAYS.value)
    if mode == AutomaticWidening.SAME_FAMILY.value:
        return _family(source) == _family(target) is not None
    return mode == AutomaticWidening.ALWAYS.value


def without_type_widening(properties: Properties, snapshot: int) -> dict[str, str]:
    """Return the properties of a table that drops the feature after ``snapshot``."""
    gone = (TYPE_WIDENING, TYPE_WIDENING_FEATURE)
    kept = {k: v for k, v in properties.items() if k not in gone}
    return kept | {FORGOTTEN_TYPES: str(snapshot)}


def forgotten_at(properties: Properties) -> int:
    """Return the snapshot up to which type changes no longer count, 0 for none."""
    return int(properties.get(FORGOTTEN_TYPES, "0"))


def _checked(key: str, value: str, table: str) -> tuple[str, str]:
    if not key or key.lower() == _COMMENT:
        raise InvalidRequest(
            f"{table} cannot have the property {key!r}; set a comment with COMMENT ON TABLE"
            f" {table} IS '…'"
        )
    if key.lower() in OPTION_NAMES:
        raise InvalidRequest(
            f"{key} is an option, not a table property; set it with CALL"
            f" set_option({quote_text(key)}, {quote_text(value)}, table_name =>"
            f" {quote_text(table)})"
        )
    stored = storage_property(key, value)
    if stored is not None:
        return stored
    known = next((k for k in _VALUES if k.lower() == key.lower()), None)
    if known is None:
        if not _is_all_but_known(key):
            _refuse_foreign(key, table)
            if not key.lower().startswith(_OURS):
                return key, value
        raise NotFound.named("property", key, _VALUES, where=table)
    text = value.lower()
    text = _SPELLINGS.get(text, text)
    if text not in _VALUES[known]:
        raise InvalidRequest(
            f"property {known} of {table} cannot be {value!r}; use {' or '.join(_VALUES[known])}"
        )
    return known, text


def _refuse_foreign(key: str, table: str) -> None:
    foreign = foreign_property(key, table)
    if foreign is not None:
        raise Unsupported(foreign)


def _is_all_but_known(key: str) -> bool:
    """Return whether a known name is misspelled or lacks its prefix, so it would have no effect."""
    names = [n.lower() for known in _VALUES for n in (known, known.partition(".")[2])]
    return bool(difflib.get_close_matches(key.lower(), names, n=1, cutoff=_NEAR))


def _family(data_type: DataType) -> str | None:
    """Return the family in which Delta 4.0 widens automatically."""
    name = str(data_type)
    if isinstance(data_type, Decimal):
        return "decimal"
    if name in SIGNED:
        return "integer"
    if name in FLOATS:
        return "float"
    return "temporal" if name in ("date", "timestamp_s", "timestamp_ms", "timestamp") else None


_PREFIX = "delta."
_ICEBERG = "use CALL export_iceberg('t', 'folder')"
_EXPIRE = "use CALL set_option('expire_older_than', '30 days')"
_CLEAN = "use CALL set_option('delete_older_than', '7 days')"
_SIZE = "use CALL set_option('target_file_size', '256MB', table_name => 't')"

# What these ask for does not happen. Others ask for what a lake does in any case, or for nothing
# that a reader of rows can see: they are kept, and shown.
_FOREIGN = {
    "appendOnly": "a lake cannot forbid changes of rows; leave it out",
    "constraints": "use ALTER TABLE t ADD CONSTRAINT name CHECK (condition)",
    "deletedFileRetentionDuration": _CLEAN,
    "enableIcebergCompat": _ICEBERG,
    "identity": "use BIGINT GENERATED ALWAYS AS IDENTITY in CREATE TABLE",
    "logRetentionDuration": _EXPIRE,
    "parquet.compression": (
        "use CALL set_option('parquet_compression', 'zstd', table_name => 't')"
    ),
    "parquet.format": "use CALL set_option('parquet_version', '2', table_name => 't')",
    "targetFileSize": _SIZE,
    "universalFormat": _ICEBERG,
}


def foreign_property(key: str, table: str) -> str | None:
    """Return why ``table`` cannot have a property of Delta, None for one that it can have."""
    if not key.lower().startswith(_PREFIX):
        return None
    name = key[len(_PREFIX) :].lower()
    known = next((p for p in _FOREIGN if name.startswith(p.lower())), None)
    if known is None:
        return None
    return f"{table} cannot have the property {key!r} of Delta; {_FOREIGN[known]}"
