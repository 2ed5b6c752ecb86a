"""The branches of the lake, and what happened on one of them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from shelduck.branches.verb import BranchVerbs
from shelduck.web.site import Site


def show(site: Site, request: Request) -> Response:
    """Return the list of branches."""
    return site.render(request, "branches.html", branches=BranchVerbs(site.state, None).branches())


def show_diff(site: Site, request: Request) -> Response:
    """Return how a branch differs from its base, and what a merge would refuse."""
    name = request.query_params.get("branch", "")
    return site.render(request, "branch.html", diff=BranchVerbs(site.state, None).branch_diff(name))
