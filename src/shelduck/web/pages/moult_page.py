"""How much of a table lies in older layouts, how these differ, and what a REWRITE would do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from shelduck.catalog.read import read
from shelduck.catalog.read.overview.lake_tables import RowsInCatalog, kept_rows
from shelduck.catalog.read.overview.table_files import LayoutCount, SizeSums, by_layout
from shelduck.errors import ShelduckError
from shelduck.lake.evolution.alter_plan import AlterPlan
from shelduck.lake.results import TableName
from shelduck.model.changes.modify import RewriteOlderFiles
from shelduck.model.files.data_file import NameMapping
from shelduck.model.files.layout import ROW_ID_FIELD, SNAPSHOT_FIELD, PhysicalField
from shelduck.model.files.resolve import Node, resolve
from shelduck.model.shadows.type_changes import older_types
from shelduck.model.tables.schema import Path, path_text
from shelduck.model.tables.table_version import TableVersion
from shelduck.objects.catalog_verbs import CatalogVerbs
from shelduck.web.site import Site, parts

_OF_ROWS = (ROW_ID_FIELD, SNAPSHOT_FIELD)


def show(site: Site, request: Request) -> Response:
    """Return the page of the layouts of a table."""
    number = int(request.path_params["table"])
    with site.reading() as (connection, head):
        table = site.table(connection, head, number)
        groups = by_layout(connection, number)
        mappings = read.name_mappings(connection, (g.mapping_id for g in groups))
        kept = kept_rows(connection, [number]).get(number, RowsInCatalog())
    found = coats(groups, table, mappings)
    older = [c for c in found if not c.is_current]
    plan, why = None, ""
    try:
        plan = _plan(site, TableName.of(table))
    except ShelduckError as error:
        why = str(error)
    return site.render(
        request,
        "moult.html",
        table=table,
        tab="moult",
        coats=found,
        shares=parts([(str(c.number), c.sums.bytes) for c in found]),
        older=older,
        kept=kept,
        plan=plan,
        why=why,
    )


def _plan(site: Site, name: TableName) -> AlterPlan:
    return CatalogVerbs(site.state, None).table(str(name)).plan_alter(RewriteOlderFiles())


@dataclass(frozen=True, slots=True)
class Coat:
    """Files with one layout: what they hold in older types, what they lack and what is left over.

    ``is_known`` is False if the catalog does not know the layout, so that only footers tell.
    ``failure`` says why Shelduck cannot read such a file.
    """

    number: int
    sums: SizeSums
    first: int
    last: int
    is_known: bool = True
    older: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    left_over: tuple[str, ...] = ()
    failure: str = ""

    @property
    def is_current(self) -> bool:
        """True if a rewrite would change nothing about the columns."""
        return self.is_known and not (self.older or self.missing or self.left_over or self.failure)


def coats(
    groups: Iterable[LayoutCount], table: TableVersion, mappings: dict[int, NameMapping]
) -> list[Coat]:
    """Return what each group of files is like, the newest first."""
    return [_coat(at, group, table, mappings) for at, group in enumerate(groups, 1)]


def _coat(
    number: int, group: LayoutCount, table: TableVersion, mappings: dict[int, NameMapping]
) -> Coat:
    same = (number, group.sums, group.first, group.last)
    if group.layout is None:
        return Coat(*same, is_known=False)
    fields = table.columns.fields
    mapping = None if group.mapping_id is None else mappings[group.mapping_id]
    try:
        nodes = resolve(group.layout, fields, mapping, fields).nodes
    except ShelduckError as error:
        return Coat(*same, failure=str(error))
    older = tuple(
        f"{path_text(o.path)}: {o.stored} instead of {o.column}"
        for o in older_types(nodes, group.layout.fields)
    )
    left_over = () if mapping is not None else tuple(_left_over(group.layout.fields, table))
    return Coat(*same, True, older, tuple(_missing(nodes, ())), left_over)


def _missing(nodes: Sequence[Node], above: Path) -> Iterable[str]:
    for node in nodes:
        path = (*above, node.field.name)
        if node.is_read:
            yield from _missing(node.children, path)
        elif node.constant is None:
            yield path_text(path)


def _left_over(fields: Iterable[PhysicalField], table: TableVersion) -> Iterable[str]:
    for field in fields:
        if field.id in _OF_ROWS or field.id is None:
            continue
        if table.columns.by_id(field.id) is None:
            yield f"{field.name} (column {field.id})"
        else:
            yield from _left_over(field.children, table)
