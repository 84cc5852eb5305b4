"""The report as one HTML file that opens offline, without a script, and the summary for a pull request.

Both are templates (Jinja) over the same `Facts`. What stands in the tables came from anybody: the page escapes all of
it and may load nothing, and the summary has names in code only.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, select_autoescape

import koordinator

from . import charts, questions, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .facts import Facts, Rows

CONTENTS = (
    ("causes", "Rebalances by cause"),
    ("stopped", "Stop-the-world time"),
    ("joins", "Join times"),
    ("stragglers", "Stragglers"),
    ("states", "Group states"),
    ("moves", "Partition movement"),
    ("membership", "Static, dynamic, cooperative"),
    ("commits", "Commits"),
    ("wasted", "Wasted work"),
    ("verdicts", "Verdicts"),
    ("tests", "Tests and clients"),
    ("health", "Heartbeats and fencing"),
    ("input", "What was read"),
)
"""The sections with their ids."""

COMPARISON: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("groups", "groups", texts.count),
    ("completed rebalances", "rebalances", texts.count),
    ("watched for", "hours", texts.hours),
    ("rebalances per group and hour", "per_hour", texts.number),
    ("rebalances avoided (KIP-345)", "avoided", texts.count),
    ("a rebalance took (median)", "p50", texts.milliseconds),
    ("a rebalance took (95 %)", "p95", texts.milliseconds),
    ("a member was stopped (mean)", "stopped_ms", texts.milliseconds),
    ("the member that was stopped longest (95 %)", "worst_ms", texts.milliseconds),
    ("partitions moved", "moved", texts.count),
    ("moves that a balanced assignment needs", "needed", texts.count),
    ("records delivered again", "redelivered", texts.count),
)
"""What cohorts are compared by: its name, the column of `questions.cohorts`, and how a value is written."""

SUMMARY_ROWS = 10


def page(facts: Facts, *, title: str, timelines: Mapping[str, str]) -> str:
    """The page. `timelines` has the address of each trace's timeline, relative to the page, by trace_id."""
    return _rendered(
        "page.html.jinja",
        facts,
        title=title,
        timelines=timelines,
        style=_environment().get_template("page.css").render(),
        charts=charts.drawn(facts),
        contents=CONTENTS,
        tiles=_tiles(facts),
        matrix=_matrix(facts.commits),
        failures_max=questions.FAILURES_MAX,
        version=koordinator.__version__,
    )


def summary(facts: Facts, *, title: str) -> str:
    """The summary, in GitHub's Markdown."""
    text = _rendered(
        "summary.md.jinja",
        facts,
        title=title,
        failed=_sum(facts.checks, "fail"),
        rows_max=SUMMARY_ROWS,
        read=_sum(facts.read, "read"),
        quarantined=_sum(facts.refused, "n"),
    )
    return re.sub(r"\n{3,}", "\n\n", text)


def _rendered(template: str, facts: Facts, **more: object) -> str:
    made = _environment().get_template(template)
    text: str = made.render(facts=facts, totals=facts.totals, comparison=COMPARISON, **more)
    return text


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("koordinator.pipeline.report", "."),
        autoescape=select_autoescape(enabled_extensions=("html.jinja",)),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    written = (texts.count, texts.milliseconds, texts.number, texts.ratio, texts.seconds, texts.short, texts.things)
    environment.filters |= {write.__name__: write for write in written}
    environment.filters |= {"colour": _colour, "code": code, "cell": cell}
    return environment


def _colour(cause: str) -> str:
    return charts.CAUSES.get(cause, charts.OTHERS)


def code(name: str | None) -> str:
    """A name as code in a cell of a Markdown table, whatever it has in it."""
    if name is None:
        return ""
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", name)), default=0))
    space = " " if "`" in name else ""
    shown = " ".join(texts.short(name).split()).replace("|", "\\|")
    return f"{ticks}{space}{shown}{space}{ticks}"


def cell(text: str | None) -> str:
    """Words in a cell of a Markdown table: nothing in them is a mark-up, or calls for somebody."""
    return re.sub(r"([\\`*_\[\]#@~|])", r"\\\1", html.escape(" ".join((text or "").split()), quote=False))


def _sum(rows: Rows, column: str) -> int:
    return sum(row[column] or 0 for row in rows)


def _tiles(facts: Facts) -> list[dict[str, Any]]:
    """The headlines: each a value with its name and what belongs to it."""
    totals = facts.totals
    failed, passed = _sum(facts.checks, "fail"), _sum(facts.checks, "pass")
    read, quarantined = _sum(facts.read, "read"), _sum(facts.refused, "n")
    commits = _sum(facts.commits, "n")
    refused = sum(row["n"] for row in facts.commits if row["error"] not in {"NONE", None})
    again = _sum(facts.wasted, "redelivered")
    rest = f"{texts.count(totals['emptied'])} emptied, {texts.count(totals['superseded'])} superseded"
    per_hour = totals["begun"] / totals["hours"] if totals["hours"] else None
    return [
        _tile("rebalances", texts.count(totals["completed"]), f"completed; {rest}"),
        _tile("per group and hour", texts.number(per_hour), f"watched for {texts.hours(totals['hours'])}"),
        _tile("avoided", texts.count(totals["avoided"]), "static members back in time"),
        _tile("a rebalance took", texts.milliseconds(totals["p50"]), f"95 %: {texts.milliseconds(totals['p95'])}"),
        _tile("members stopped", texts.seconds(totals["stopped_s"]), "all together"),
        _tile("checks failed", texts.count(failed), f"{texts.count(passed)} passed", bad=failed > 0),
        _tile("commits refused", texts.count(refused), f"of {texts.count(commits)}"),
        _tile("delivered again", texts.count(again), "records, by lost commits"),
        _tile(
            "flaky tests", texts.count(len(facts.flaky)), f"of {texts.count(totals['tests'])}", bad=bool(facts.flaky)
        ),
        _tile("rows in quarantine", texts.count(quarantined), f"of {texts.count(read)}", bad=quarantined > 0),
    ]


def _tile(name: str, value: str, more: str, *, bad: bool = False) -> dict[str, Any]:
    return {"name": name, "value": value, "more": more, "bad": bad}


def _matrix(rows: Rows) -> dict[str, Any]:
    """Errors down, states across; what was refused most often is the hottest."""
    states = sorted({row["state_at"] or "unknown" for row in rows})
    most = max((row["n"] for row in rows if row["error"] != "NONE"), default=1)
    found = []
    for error in sorted({row["error"] for row in rows}, key=lambda error: (error != "NONE", error or "~")):
        own = {row["state_at"] or "unknown": row for row in rows if row["error"] == error}
        cells = [
            {"n": own[state]["n"], "heat": round(15 + 45 * own[state]["n"] / most)} if state in own else None
            for state in states
        ]
        found.append(
            {
                "error": {"NONE": "accepted", None: "never answered"}.get(error, error),
                "bad": error != "NONE",
                "cells": cells,
                "zombies": _sum(list(own.values()), "zombies"),
                "lag": max((row["lag"] for row in own.values() if row["lag"] is not None), default=None),
            }
        )
    return {"states": states, "rows": found}
