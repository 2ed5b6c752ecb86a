"""Type an ALTER, see its plan; nothing runs."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from shelduck.alter.statement import AlterTableStatement
from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest, ShelduckError
from shelduck.lake.evolution.alter_plan import AlterPlan
from shelduck.lake.results import TableName, table_name
from shelduck.objects.catalog_verbs import CatalogVerbs
from shelduck.web.site import Site
from shelduck.web.wording import asked_number


def show(site: Site, request: Request) -> Response:
    """Return the form, and the plan of what was typed."""
    text = request.query_params.get("sql", "").strip()
    plan, why = None, ""
    if text:
        try:
            plan = plan_of(site, text)
        except ShelduckError as error:
            why = str(error)
    else:
        text = _beginning(site, asked_number(request, "table"))
    return site.render(request, "plan.html", text=text, plan=plan, why=why)


def _beginning(site: Site, number: int | None) -> str:
    if number is None:
        return ""
    with site.reading() as (connection, head):
        return f"ALTER TABLE {TableName.of(site.table(connection, head, number))} "


def plan_of(site: Site, text: str) -> AlterPlan:
    """Return the plan of one ALTER TABLE; InvalidRequest for any other text."""
    found = parse(text, ntz=site.state.ntz)
    if len(found) != 1 or not isinstance(found[0], AlterTableStatement):
        raise InvalidRequest(
            "only one ALTER TABLE that changes columns, properties or the layout of files can be"
            " planned; write ALTER TABLE t ADD COLUMN c INT, or the like"
        )
    name = table_name(found[0].name.parts, site.state.current.schema)
    return CatalogVerbs(site.state, None).table(str(name)).plan_alter(*found[0].changes)
