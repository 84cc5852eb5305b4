"""The trace in formats other than JSON: for Perfetto, as an HTML page, and as a test of a group's members."""

from __future__ import annotations

import json
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import trio
from starlette.responses import Response

from ..pages.feed import source_for
from ..pages.html import html_of
from ..pages.perfetto import perfetto_of
from .problems import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..server.cluster_registry import RegisteredCluster

    Lines = Sequence[dict[str, Any]]

JSON = "json"
"""The default format."""


def _perfetto(lines: Lines, _: str, _group: str | None) -> Response:
    return Response(json.dumps(perfetto_of(lines), separators=(",", ":")), media_type="application/json")


def _html(lines: Lines, name: str, _: str | None) -> Response:
    return Response(html_of(lines, title=f"cluster {name}"), media_type="text/html; charset=utf-8")


def _test(lines: Lines, _: str, group: str | None) -> Response:
    return Response(source_for(lines, group or ""), media_type="text/x-python; charset=utf-8")


FORMS = {"perfetto": _perfetto, "html": _html, "test": _test}
"""The other formats, with the functions that write them."""


def checked_format(name: str) -> str:
    """Return a format's name. Raises Problem if it is unknown."""
    known = (JSON, *FORMS)
    if name in known:
        return name
    detail = f"format: must be {', '.join(known[:-1])} or {known[-1]}"
    error = {"field": "format", "detail": detail, "value": repr(name)}
    raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, [error])


async def export_of(registered: RegisteredCluster, name: str, arguments: dict[str, Any]) -> Response:
    """Return the trace in one of `FORMS`, written on a worker thread so that clients are served meanwhile."""
    header = await registered.cluster.call("events.header", {})
    group = arguments.get("group")
    # a test needs the ends of connections, too, which no group has
    events = await registered.cluster.call("events.read", {} if name == "test" else arguments)
    try:
        return await trio.to_thread.run_sync(partial(FORMS[name], [header, *events], registered.id, group))
    except ValueError as error:
        raise Problem(HTTPStatus.CONFLICT, str(error)) from error
