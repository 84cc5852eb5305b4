"""The trace in other forms than JSON lines: for Perfetto, and as a page."""

from __future__ import annotations

import json
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import trio
from starlette.responses import Response

from ..pages.html import html_of
from ..pages.perfetto import perfetto_of
from .problems import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..server.cluster_registry import RegisteredCluster

    Lines = Sequence[dict[str, Any]]

JSON = "json"
"""The form it has if nothing is said."""


def _perfetto(lines: Lines, name: str) -> Response:
    del name
    return Response(json.dumps(perfetto_of(lines), separators=(",", ":")), media_type="application/json")


def _html(lines: Lines, name: str) -> Response:
    return Response(html_of(lines, title=f"cluster {name}"), media_type="text/html; charset=utf-8")


FORMS = {"perfetto": _perfetto, "html": _html}
"""The others, and who makes them."""


def checked_form(wanted: str) -> str:
    """The form that was asked for; a Problem if there is none such."""
    known = (JSON, *FORMS)
    if wanted in known:
        return wanted
    said = f"format: must be {', '.join(known[:-1])} or {known[-1]}"
    wrong = {"field": "format", "detail": said, "value": repr(wanted)}
    raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, said, [wrong])


async def export_of(hosted: RegisteredCluster, form: str, arguments: dict[str, Any]) -> Response:
    """The trace in one of `FORMS`, made on a thread of its own: clients are served meanwhile."""
    header = await hosted.call("events.header", {})
    events = await hosted.call("events.read", arguments)
    return await trio.to_thread.run_sync(partial(FORMS[form], [header, *events], hosted.id))
