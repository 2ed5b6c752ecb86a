"""What a table is besides its columns, and what a view is, with the statements that make them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from shelduck.errors import NotFound
from shelduck.lake.unit import UnitOfWork
from shelduck.model.tables.rollup import rollup_of
from shelduck.objects.statement.describe import create_statement, sections
from shelduck.objects.statement.show import view_text
from shelduck.rollups.rollup_shape import base_of
from shelduck.rollups.rollup_tables import rollups_of
from shelduck.web.site import Site


def show(site: Site, request: Request) -> Response:
    """Return the page of the definition of a table."""
    with site.reading() as (connection, head):
        table = site.table(connection, head, int(request.path_params["table"]))
    # It asks nothing of a table that neither has rollups nor is one.
    unit = UnitOfWork(site.state)
    rollups = list(rollups_of(unit, table))
    return site.render(
        request,
        "definition.html",
        table=table,
        tab="definition",
        sections=sections(table),
        rollups=[(rollup.name, one) for one in rollups if (rollup := rollup_of(one))],
        rollup=rollup_of(table),
        base=base_of(unit, table),
        statement=create_statement(table, rollups),
    )


def show_view(site: Site, request: Request) -> Response:
    """Return the page of a view."""
    with site.reading() as (connection, head):
        view = site.view(connection, head, int(request.path_params["view"]))
    statement, why = None, ""
    try:
        statement = view_text(UnitOfWork(site.state), view)
    except NotFound as error:
        why = str(error)
    return site.render(request, "view.html", view=view, statement=statement, why=why)
