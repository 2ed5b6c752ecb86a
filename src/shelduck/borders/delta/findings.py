"""How Delta's readers see one file layout: they find a column by its name or id in the files.

In mode ``id``, Spark's reader uses field ids. The readers of DuckDB and delta-rs use physical names
in every mode. A file serves all of them if both match the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from shelduck.borders.delta.types import DeltaType
from shelduck.errors import CorruptLake, Unsupported
from shelduck.model.files.data_files import DataFile, NameMapping
from shelduck.model.files.layout import PhysicalField
from shelduck.model.tables.schema import Field, FieldId, Kind, path_text
from shelduck.planning.resolve import Node, resolve


@dataclass
class DeltaFindings:
    """The findings in a layout.

    ``called`` are the file's names for the columns and struct members that it has; ``narrow`` are
    the Delta types of leaves whose stored type is narrower than the exported one. ``has_ids`` is
    True if all of these have their field ids. ``others`` are, by the field id of a missing column
    or member, the names of its siblings in the file.
    """

    reasons: list[str] = field(default_factory=list)
    called: dict[FieldId, str] = field(default_factory=dict)
    narrow: dict[FieldId, str] = field(default_factory=dict)
    others: dict[FieldId, frozenset[str]] = field(default_factory=dict)
    has_ids: bool = True


def layout_findings(
    file: DataFile,
    fields: Sequence[Field],
    columns: Sequence[Field],
    mapping: NameMapping | None,
    types: Mapping[FieldId, DeltaType],
) -> DeltaFindings:
    """Return what is found in a file with a known layout.

    ``fields`` are the exported columns, ``columns`` all columns of the table.
    """
    layout = file.layout
    if layout is None:
        raise CorruptLake(f"the layout of data file {file.path} is unknown")
    found = DeltaFindings()
    try:
        resolved = resolve(layout, fields, mapping, columns)
    except (Unsupported, CorruptLake) as error:
        found.reasons.append(str(error))
        return found
    _DeltaWalk(found, types).siblings(resolved.nodes, layout.fields, resolved.names, ())
    return found


@dataclass
class _DeltaWalk:
    """A walk over columns and the nodes that a file has for them."""

    found: DeltaFindings
    types: Mapping[FieldId, DeltaType]

    def siblings(
        self,
        nodes: Sequence[Node],
        stored: Sequence[PhysicalField],
        names: frozenset[str],
        path: tuple[str, ...],
    ) -> None:
        """Check columns, or the members of a struct."""
        for node in nodes:
            below = (*path, node.field.name)
            here = f"column {path_text(below)!r}"
            if node.constant is not None:
                self.found.reasons.append(f"{here} is in the path or the catalog, not in the file")
            elif node.null:
                self.found.reasons.append(f"{here} has untyped NULLs in the file")
            elif node.name is None:
                self._missing(node.field, names, here)
            else:
                part = next(s for s in stored if s.name == node.name)
                self.found.called[node.field.id] = part.name
                self.found.has_ids &= part.id == node.field.id
                self._node(node, part, below)

    def _missing(self, wanted: Field, names: frozenset[str], here: str) -> None:
        self.found.others[wanted.id] = names
        if wanted.initial_default is not None:
            self.found.reasons.append(
                f"{here} is missing, and Delta cannot express that its rows have"
                f" {wanted.initial_default!r}"
            )

    def _node(self, node: Node, stored: PhysicalField, path: tuple[str, ...]) -> None:
        here = f"column {path_text(path)!r}"
        if node.field.is_leaf:
            self._leaf(node.field.id, stored, here)
        elif node.field.shape is Kind.STRUCT:
            if not any(c.is_read for c in node.children):
                self.found.reasons.append(f"no field of the struct {here} is in the file")
            self.siblings(node.children, stored.children, node.names, path)
        else:
            for child, part in zip(node.children, stored.children, strict=True):
                if child.is_read:
                    self._node(child, part, (*path, child.field.name))
                else:
                    self.found.reasons.append(
                        f"the {child.field.name} of {here} is another field in the file"
                    )

    def _leaf(self, number: FieldId, stored: PhysicalField, here: str) -> None:
        shown = self.types[number]
        if shown.holds(stored):
            return
        narrow = shown.narrower(stored)
        if narrow is None:
            self.found.reasons.append(f"{here} is {stored.stored_as} in the file, not {shown.type}")
        else:
            self.found.narrow[number] = narrow


def named(fields: Sequence[Field]) -> Iterator[Sequence[Field]]:
    """Yield sibling fields by their names: columns, members of structs."""
    yield fields
    for f in fields:
        for parent in f.walk():
            if parent.shape is Kind.STRUCT:
                yield parent.children
