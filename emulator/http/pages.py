"""The dashboard at `/`, and what it is made of; static, so that it needs no token. Its data does."""

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
"""What the page may load, and who may show it in a frame: itself only, and nobody."""

HEADERS = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}


async def dashboard(request: Request) -> Response:
    """The page."""
    del request
    return Response(dashboard_html(), media_type="text/html; charset=utf-8", headers=HEADERS)


async def static_file(request: Request) -> Response:
    """One of its files."""
    name = request.path_params["name"]
    if name not in FILES:
        raise Problem(HTTPStatus.NOT_FOUND, f"there is no file {name!r}; known: {', '.join(FILES)}")
    kind = "text/css" if name.endswith(".css") else "text/javascript"
    return Response(static(name), media_type=f"{kind}; charset=utf-8", headers=HEADERS)
