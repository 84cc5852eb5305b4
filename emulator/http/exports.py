"""The trace in formats other than JSON: for Perfetto, as an HTML page, as text, and as a test of a group's members."""

from __future__ import annotations

import json
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import trio
from starlette.responses import Response

from ..control.resolve import known
from ..pages.feed import source_for
from ..pages.html import html_of
from ..pages.perfetto import perfetto_of
from ..pages.timeline import by_group, report, timeline
from .problems import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..server.build import ServedCluster
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
"""Formats for viewers and editors, with the functions that write them."""

TEXT = "text"
"""The format of failure messages: the state and the last events of a group, or the last events of several."""

GROUPS_MAX = 5
"""The most groups in a text: those with errors, then those with the latest events."""


def checked_format(name: str) -> str:
    """Return a format's name. Raises Problem if it is unknown."""
    names = (JSON, TEXT, *FORMS)
    if name in names:
        return name
    detail = f"format: must be {', '.join(names[:-1])} or {names[-1]}"
    error = {"field": "format", "detail": detail, "value": repr(name)}
    raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, [error])


async def export_of(registered: RegisteredCluster, name: str, arguments: dict[str, Any]) -> Response:
    """Return the trace in a format; those of `FORMS` are written on a worker thread, while clients are served."""
    if name == TEXT:
        return Response(
            "\n".join([*await _text(registered.cluster, arguments), ""]), media_type="text/plain; charset=utf-8"
        )
    header = await registered.cluster.call("events.header", {})
    group = arguments.get("group")
    # a test needs the ends of connections, too, which no group has
    events = await registered.cluster.call("events.read", {} if name == "test" else arguments)
    try:
        return await trio.to_thread.run_sync(partial(FORMS[name], [header, *events], registered.id, group))
    except ValueError as error:
        raise Problem(HTTPStatus.CONFLICT, str(error)) from error


async def _text(cluster: ServedCluster, arguments: dict[str, Any]) -> list[str]:
    events = await cluster.call("events.read", arguments)
    group = arguments.get("group")
    if group is None:
        groups = list(by_group(events).items())[-GROUPS_MAX:]
        return [line for each, found in groups for line in (f"group {each!r}:", *timeline(found), "")]
    names = [] if events else await cluster.call("groups.ids", {})
    elsewhere = [f"there is no group {group!r}{known(group, names)}"] if names and group not in names else []
    parked = await cluster.call("holds.parked", {"group": group})
    return report(events, await cluster.call("groups.describe", {"group": group}), parked, elsewhere)
