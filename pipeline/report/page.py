"""The report as one HTML file that opens offline without scripts, and the summary for a pull request.

Both are Jinja templates over the same `Facts`. Table values come from untrusted input: the page escapes all of them and
loads nothing, and the summary shows names as code only.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, select_autoescape

import koordinator

from . import charts, texts
from .facts import FAILURES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..views import Rows
    from .facts import Facts

CONTENTS = (
    ("causes", "Rebalances by cause"),
    ("verdicts", "Verdicts"),
    ("stopped", "Stop-the-world time"),
    ("weeks", "This week against the last"),
    ("joins", "Join times"),
    ("stragglers", "Stragglers"),
    ("states", "Group states"),
    ("moves", "Partition movement"),
    ("membership", "Static, dynamic, cooperative"),
    ("commits", "Commits"),
    ("wasted", "Wasted work"),
    ("tests", "Tests and clients"),
    ("health", "Heartbeats and fencing"),
    ("transactions", "Transactions"),
    ("input", "Input"),
)
"""The sections: id and title."""

COMPARISON: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("groups", "groups", texts.count),
    ("completed rebalances", "rebalances", texts.count),
    ("observed for", "hours", texts.hours),
    ("rebalances per group and hour", "per_hour", texts.number),
    ("rebalances avoided (KIP-345)", "avoided", texts.count),
    ("rebalance duration (median)", "p50", texts.milliseconds),
    ("rebalance duration (95th percentile)", "p95", texts.milliseconds),
    ("stopped time of a member (mean)", "stopped_ms", texts.milliseconds),
    ("longest stopped time in a rebalance (95th percentile)", "worst_ms", texts.milliseconds),
    ("partitions moved", "moved", texts.count),
    ("minimum moves of a balanced assignment", "needed", texts.count),
    ("records redelivered", "redelivered", texts.count),
)
"""The rows of the cohort comparison: label, column of the query `cohorts`, and formatter."""

SUMMARY_ROWS = 10

GROUPS_MAX = 20
"""Maximum number of groups that a reader can choose."""

WEEK_S = 7 * 86_400

FAILURES_FIRST = 5
"""Number of failures outside of the details."""


def page(facts: Facts, *, title: str, timelines: Mapping[str, str]) -> str:
    """Render the page. `timelines` has the address of each trace's timeline relative to the page, by trace_id."""
    return _render(
        "page.html.jinja",
        facts,
        title=title,
        timelines=timelines,
        style=_environment().get_template("page.css").render(),
        charts=charts.draw_charts(facts),
        contents=CONTENTS,
        tiles=_tiles(facts),
        matrix=_matrix(facts.commits),
        groups=_groups(facts),
        starter=_starter(facts.storms),
        week_s=WEEK_S,
        failures_first=FAILURES_FIRST,
        failures_max=FAILURES_MAX,
        judged=_judged(facts),
        version=koordinator.__version__,
    )


def summary(facts: Facts, *, title: str) -> str:
    """Render the summary in GitHub's Markdown."""
    text = _render(
        "summary.md.jinja",
        facts,
        title=title,
        judged=_judged(facts),
        failed=_sum(facts.checks, "fail"),
        rows_max=SUMMARY_ROWS,
        read=_sum(facts.rows_read, "read"),
        quarantined=_sum(facts.quarantine, "n"),
    )
    return re.sub(r"\n{3,}", "\n\n", text)


def _render(template: str, facts: Facts, **more: object) -> str:
    text: str = (
        _environment().get_template(template).render(facts=facts, totals=facts.totals, comparison=COMPARISON, **more)
    )
    return text


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("koordinator.pipeline.report", "."),
        autoescape=select_autoescape(enabled_extensions=("html.jinja",)),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters = (texts.count, texts.milliseconds, texts.number, texts.ratio, texts.seconds, texts.short, texts.things)
    environment.filters |= {filter_.__name__: filter_ for filter_ in filters}
    environment.filters |= {"colour": _colour, "code": code, "cell": cell}
    return environment


def _colour(cause: str) -> str:
    return charts.CAUSES.get(cause, charts.OTHERS)


def code(name: str | None) -> str:
    """Format any name as code in a cell of a Markdown table."""
    if name is None:
        return ""
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", name)), default=0))
    space = " " if "`" in name else ""
    shown = " ".join(texts.short(name).split()).replace("|", "\\|")
    return f"{ticks}{space}{shown}{space}{ticks}"


def cell(text: str | None) -> str:
    """Escape text for a cell of a Markdown table: no markup, and no mention of a user."""
    return re.sub(r"([\\`*_\[\]#@~|])", r"\\\1", html.escape(" ".join((text or "").split()), quote=False))


def _sum(rows: Rows, column: str) -> int:
    return sum(row[column] or 0 for row in rows)


def _judged(facts: Facts) -> bool:
    """Return whether any check had something to judge."""
    return any(row[status] for row in facts.checks for status in ("pass", "fail", "inconclusive"))


def _tiles(facts: Facts) -> list[dict[str, Any]]:
    """Return the headline tiles: value, name, and details."""
    totals = facts.totals
    failed, passed = _sum(facts.checks, "fail"), _sum(facts.checks, "pass")
    read, quarantined = _sum(facts.rows_read, "read"), _sum(facts.quarantine, "n")
    commits = _sum(facts.commits, "n")
    refused = sum(row["n"] for row in facts.commits if row["error"] not in {"NONE", None})
    redelivered = _sum(facts.wasted, "redelivered")
    rest = f"{texts.count(totals['emptied'])} emptied, {texts.count(totals['superseded'])} superseded"
    per_hour = totals["begun"] / totals["hours"] if totals["hours"] else None
    return [
        _tile("rebalances", texts.count(totals["completed"]), f"completed; {rest}"),
        _tile("per group and hour", texts.number(per_hour), f"observed for {texts.hours(totals['hours'])}"),
        _tile("avoided", texts.count(totals["avoided"]), "static members rejoined in time"),
        _tile(
            "rebalance duration",
            texts.milliseconds(totals["p50"]),
            f"95th percentile: {texts.milliseconds(totals['p95'])}",
        ),
        _tile("members stopped", texts.seconds(totals["stopped_s"]), "sum over all members"),
        _tile("checks failed", texts.count(failed), f"{texts.count(passed)} passed", bad=failed > 0)
        if _judged(facts)
        else _tile("checks failed", texts.NONE, "nothing was judged"),
        _tile("commits refused", texts.count(refused), f"of {texts.count(commits)}"),
        _tile("records redelivered", texts.count(redelivered), "after missing commits"),
        _tile(
            "flaky tests", texts.count(len(facts.flaky)), f"of {texts.count(totals['tests'])}", bad=bool(facts.flaky)
        ),
        _tile("rows in quarantine", texts.count(quarantined), f"of {texts.count(read)}", bad=quarantined > 0),
    ]


def _tile(name: str, value: str, more: str, *, bad: bool = False) -> dict[str, Any]:
    return {"name": name, "value": value, "more": more, "bad": bad}


def _groups(facts: Facts) -> dict[tuple[str, str], int]:
    """Return a number for each group of the tables, by scope and group id; those with the most rows come first."""
    tables = (rows for rows in facts.values() if isinstance(rows, list))
    keys = Counter((row["scope"], row["group_id"]) for rows in tables for row in rows if "group_id" in row)
    return {key: number for number, (key, _) in enumerate(keys.most_common(GROUPS_MAX))}


def _starter(storms: Rows) -> dict[str, Any] | None:
    """Return the member that began most storms; None if no storm has one."""
    members = Counter(row["first_member"] for row in storms if row["first_member"]).most_common(1)
    return next(({"member": member, "n": n} for member, n in members), None)


def _matrix(rows: Rows) -> dict[str, Any]:
    """Return the commit matrix, with errors as rows and states as columns; the most frequent error is the hottest."""
    states = sorted({row["state_at"] or "unknown" for row in rows})
    highest = max((row["n"] for row in rows if row["error"] != "NONE"), default=1)
    matrix = []
    for error in sorted({row["error"] for row in rows}, key=lambda error: (error != "NONE", error or "~")):
        own = {row["state_at"] or "unknown": row for row in rows if row["error"] == error}
        cells = [
            {"n": own[state]["n"], "heat": round(15 + 45 * own[state]["n"] / highest)} if state in own else None
            for state in states
        ]
        matrix.append(
            {
                "error": {"NONE": "accepted", None: "no response"}.get(error, error),
                "bad": error != "NONE",
                "cells": cells,
                "zombies": _sum(list(own.values()), "zombies"),
                "lag": max((row["lag"] for row in own.values() if row["lag"] is not None), default=None),
            }
        )
    return {"states": states, "rows": matrix}
