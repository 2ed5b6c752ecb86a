"""How new files hold the values of columns: with Bloom filters, or without dictionaries.

It is a hint in a property of the table, by column ids: rows mean the same without it, and code that
does not know it writes files without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from shelduck.errors import InvalidRequest, NotFound, Unsupported
from shelduck.model.tables.schema import Field, FieldId, Path, Schema, path_text, with_paths
from shelduck.model.text.names import quote_name, split_name, split_paths
from shelduck.model.text.stored import LEFT_OUT, Stored, each, record
from shelduck.model.types.data_types import FLOATS

Properties = Mapping[str, str]

COLUMN_STORAGE = "shelduck.hint.storage"
"""The property that holds it."""
BLOOM_COLUMNS = "shelduck.bloomFilterColumns"
"""The property by which people name the columns with Bloom filters."""
_ENCODING = "shelduck.encoding."
_ALIASES = {"bloom_filter_columns": BLOOM_COLUMNS, BLOOM_COLUMNS.lower(): BLOOM_COLUMNS}
# Equal numbers have other bits (-0.0 and 0.0), or a reader hashes values in another form.
_UNFILTERED = frozenset({"boolean", "variant", "interval", *FLOATS})


class Encoding(Enum):
    """How values are encoded: in a dictionary if that is smaller, or one after another."""

    DICTIONARY = "DICTIONARY"
    PLAIN = "PLAIN"


@dataclass(frozen=True, slots=True)
class ColumnStorage:
    """The encoding of a column's values, and its Bloom filter.

    ``index`` is the name of the filter, empty for one that has no name, None without a filter.
    """

    column: FieldId
    index: str | None = None
    encoding: Encoding = field(default=Encoding.DICTIONARY, metadata=LEFT_OUT)

    def __str__(self) -> str:
        return f"encoding {self.encoding.value}" + ", Bloom filter" * (self.index is not None)


@dataclass(frozen=True, slots=True)
class Storage:
    """The columns whose values are not stored as usual."""

    columns: tuple[ColumnStorage, ...] = ()

    def __iter__(self) -> Iterator[ColumnStorage]:
        return iter(self.columns)

    def of(self, column: FieldId) -> ColumnStorage:
        """Return how a column is stored."""
        return next((c for c in self.columns if c.column == column), ColumnStorage(column))

    def put(self, one: ColumnStorage) -> Storage:
        """Return it with a column that is stored so."""
        rest = tuple(c for c in self.columns if c.column != one.column)
        return Storage(rest if one == ColumnStorage(one.column) else (*rest, one))

    def named(self, columns: Schema) -> list[tuple[str, Path, ColumnStorage]]:
        """Return each column with the name of its filter, or its own, and its path, in order."""
        found = ((path, self.of(field.id)) for path, field in with_paths(columns))
        return [(c.index or path_text(path), path, c) for path, c in found if c in self.columns]


_STORED: Stored[Storage] = Stored(
    "storage of columns", record(Storage, columns=each(record(ColumnStorage), by="column"))
)


def storage_of(properties: Properties, table: str) -> Storage:
    """Return how the columns of a table are stored."""
    text = properties.get(COLUMN_STORAGE)
    return Storage() if text is None else _STORED.known(text, table)


def with_storage(properties: Properties, found: Storage) -> dict[str, str]:
    """Return the properties of a table whose columns are stored so."""
    return _STORED.put(properties, COLUMN_STORAGE, found if found.columns else None)


def storage_property(key: str, value: str) -> tuple[str, str] | None:
    """Return a property by which people say how columns are stored, None for another one.

    Raises InvalidRequest for an unknown encoding.
    """
    if key.lower() in _ALIASES:
        return _ALIASES[key.lower()], ", ".join(sorted(map(path_text, set(split_paths(value)))))
    is_encoding = key.lower().startswith(_ENCODING)
    return (_ENCODING + key[len(_ENCODING) :], encoding_named(value).value) if is_encoding else None


def stored_properties(values: Properties) -> tuple[tuple[str, str], ...]:
    """Return those of some properties that say how columns are stored."""
    return tuple(found for key, value in values.items() if (found := storage_property(key, value)))


def encoding_named(word: str) -> Encoding:
    """Return the encoding of a name; InvalidRequest for one that no writer of ours has."""
    if word.upper() in Encoding.__members__:
        return Encoding[word.upper()]
    hint = "use DICTIONARY or PLAIN"
    if word.upper().startswith("DELTA"):
        hint = "use PLAIN and CALL set_option('parquet_version', '2', table_name => 't')"
    if word.upper() == "BYTE_STREAM_SPLIT":
        hint = "Spark's reader does not know it; use PLAIN with the codec zstd"
    raise InvalidRequest(f"a column cannot have the encoding {word}; {hint}")


def told_storage(
    properties: Properties, columns: Schema, table: str = "the table"
) -> dict[str, str]:
    """Return the properties of a table with its storage in those that people read and write."""
    if COLUMN_STORAGE not in properties:
        return dict(properties)
    named = storage_of(properties, table).named(columns)
    filters = ", ".join(sorted(path_text(path) for _, path, c in named if c.index is not None))
    told = {k: v for k, v in properties.items() if k != COLUMN_STORAGE}
    told |= {BLOOM_COLUMNS: filters} if filters else {}
    plain_ones = (c for c in named if c[2].encoding is not Encoding.DICTIONARY)
    return told | {_ENCODING + path_text(path): c.encoding.value for _, path, c in plain_ones}


def bound_storage(
    properties: Properties, columns: Schema, table: str, before: Storage = Storage()
) -> dict[str, str]:
    """Return properties with the storage that they tell by names; ``before`` has those of filters.

    Raises what `filtered` and `encoded` raise.
    """
    found = Storage()
    for path in split_paths(properties.get(BLOOM_COLUMNS, "")):
        name = before.of(columns.get(path, table).id).index
        found = filtered(found, columns, path, name or "", table)
    kept = dict(properties)
    kept.pop(BLOOM_COLUMNS, None)
    for key in [k for k in kept if k.startswith(_ENCODING)]:
        path = split_name(key[len(_ENCODING) :])
        found = encoded(found, columns, path, Encoding(kept.pop(key)), table)
    return with_storage(kept, found)


def filtered(found: Storage, columns: Schema, path: Path, name: str, table: str) -> Storage:
    """Return it with a filter of a column; InvalidRequest if readers cannot use one."""
    field = columns.get(path, table)
    if not _takes_filter(field):
        raise InvalidRequest(
            f"{path_text(path)} of {table} cannot have a Bloom filter: readers do not find values"
            f" of {field.type} by one; use SET SORTED BY, or a column of another type"
        )
    return found.put(replace(found.of(field.id), index=name))


def refuse_filters(properties: Properties, before: Properties, table: str) -> None:
    """Raise Unsupported for new filters of a table whose files are encrypted."""
    known = storage_of(before, table)
    for one in storage_of(properties, table):
        if one.index is not None and known.of(one.column).index is None:
            raise Unsupported(
                f"{table} cannot have Bloom filters: files of an encrypted lake have none, because"
                " DuckDB cannot read them; use SET SORTED BY, so that readers skip files by bounds"
            )


def encoded(found: Storage, columns: Schema, path: Path, encoding: Encoding, table: str) -> Storage:
    """Return it with the encoding of a column; InvalidRequest for one with parts."""
    field = columns.get(path, table)
    if not field.is_leaf:
        raise InvalidRequest(
            f"{path_text(path)} of {table} is {field.type} and has no encoding itself; name one of"
            " its parts"
        )
    return found.put(replace(found.of(field.id), encoding=encoding))


def _takes_filter(field: Field) -> bool:
    return field.is_leaf and str(field.shape) not in _UNFILTERED


def moved_storage(
    properties: Properties, ids: Mapping[FieldId | None, FieldId], table: str, *, both: bool = False
) -> dict[str, str]:
    """Return properties after columns got other ids; with ``both``, the older ones stay too."""
    known = storage_of(properties, table)
    found = Storage(tuple(replace(c, column=ids.get(c.column, c.column)) for c in known))
    older = [c for c in known if both and c not in found.columns]
    return with_storage(properties, Storage((*found.columns, *older)))


def kept_storage(properties: Properties, columns: Schema, table: str) -> dict[str, str]:
    """Return properties without columns that are gone.

    Raises InvalidRequest if a column with a filter has got a type that has none.
    """
    known = storage_of(properties, table)
    for name, path, one in known.named(columns):
        field = columns.get(path, table)
        if one.index is not None and not _takes_filter(field):
            raise InvalidRequest(
                f"{path_text(path)} of {table} cannot become {field.type}: the index"
                f" {quote_name(name)} cannot find its values; use ALTER TABLE {table} DROP INDEX"
                f" {quote_name(name)} first"
            )
    return with_storage(
        properties, Storage(tuple(c for c in known if columns.by_id(c.column) is not None))
    )


def index_named(found: Storage, columns: Schema, name: str, table: str) -> list[ColumnStorage]:
    """Return the columns of an index; NotFound names all indexes."""
    every = [(told, c) for told, _, c in found.named(columns) if c.index is not None]
    chosen = [c for told, c in every if told.lower() == name.lower()]
    if not chosen:
        raise NotFound.named("index", name, sorted({told for told, _ in every}), where=table)
    return chosen
