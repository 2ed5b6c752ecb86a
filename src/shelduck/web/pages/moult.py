"""How much of a table still lies in older layouts, and what a REWRITE would do."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from shelduck.catalog.read import read
from shelduck.catalog.read.overview.lake_tables import KeptRows, kept_rows
from shelduck.catalog.read.overview.table_files import by_layout
from shelduck.errors import ShelduckError
from shelduck.evolution.alter_plan import AlterPlan
from shelduck.model.changes.table_change import RewriteOlderFiles
from shelduck.verbs.lake.catalog_verbs import CatalogVerbs
from shelduck.web.bars import parts
from shelduck.web.moulting import coats
from shelduck.web.site import Site
from shelduck.work.results import TableName


def show(site: Site, request: Request) -> Response:
    """Return the page of the layouts of a table."""
    number = int(request.path_params["table"])
    with site.reading() as (connection, head):
        table = site.table(connection, head, number)
        groups = by_layout(connection, number)
        named = {g.mapping_id for g in groups if g.mapping_id is not None}
        mappings = read.name_mappings(connection, named)
        kept = kept_rows(connection, [number]).get(number, KeptRows())
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
