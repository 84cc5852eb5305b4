"""The dashboard at `/` and its static files. They need no token, because they contain no data."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.responses import Response

from ..pages.dashboard import FILES, dashboard_html
from ..pages.html import static
from .problems import Problem

if TYPE_CHECKING:
    from starlette.requests import Request

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
"""The content security policy: the page loads its own files only, and no page may embed it."""

HEADERS = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}


async def dashboard(_: Request) -> Response:
    """Return the page."""
    return Response(dashboard_html(), media_type="text/html; charset=utf-8", headers=HEADERS)


async def static_file(request: Request) -> Response:
    """Return one of the page's files."""
    name = request.path_params["name"]
    if name not in FILES:
        raise Problem(HTTPStatus.NOT_FOUND, f"there is no file {name!r}; known: {', '.join(FILES)}")
    kind = "text/css" if name.endswith(".css") else "text/javascript"
    return Response(static(name), media_type=f"{kind}; charset=utf-8", headers=HEADERS)
