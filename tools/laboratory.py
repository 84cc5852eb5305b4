"""The run of the rebalance laboratory that docs/lab.md shows: `docs/lab.json`, and the tables made from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tables import table

from koordinator.lab.claims import CLAIMS
from koordinator.lab.load import Load
from koordinator.lab.matrix import COLUMNS, heading, plain, play_matrix
from koordinator.lab.schemes import SCHEMES
from koordinator.lab.situations import SITUATIONS

LAB = Path(__file__).parents[1] / "docs" / "lab.json"

FIGURES = ("rebalances", "balance_s", "stopped_s", "idle_s", "moved", "reprocessed")
"""The figures with a table in the document."""


def played() -> str:
    """Return the run as text: the whole matrix, and the figures of each claim."""
    results = list(play_matrix(SCHEMES, tuple(SITUATIONS), Load()))
    claims = {}
    for name, claim in CLAIMS.items():
        finding = claim.check()
        claims[name] = {"verdict": finding.verdict, "figures": finding.figures}
    return json.dumps({**plain(results), "claims": claims}, indent=1) + "\n"


def read() -> dict[str, Any]:
    """Return the run."""
    run: dict[str, Any] = json.loads(LAB.read_text(encoding="utf-8"))
    return run


def claims_table() -> str:
    """Return the claims with verdicts."""
    run = read()["claims"]
    rows = []
    for name, claim in CLAIMS.items():
        verdict = f"{run[name]['verdict']}: {claim.condition}" if claim.condition else run[name]["verdict"]
        rows.append([f"{claim.text} ({claim.place})", run[name]["figures"], verdict, f"`{name}`"])
    return table(["Claim", "Figures", "Verdict", "Check"], rows)


def answers_table() -> str:
    """Return the advice, with the figures that it rests on."""
    cells = _cells()

    def of(situation: str, scheme: str, name: str) -> str:
        return COLUMNS[name].text(cells[situation, scheme][name])

    def pair(situation: str, name: str, first: str, second: str) -> str:
        return f"{of(situation, first, name)} with `{first}`, {of(situation, second, name)} with `{second}`"

    rows = [
        [
            "members restart often, and are back within a minute",
            "static members (`group.instance.id`), with a session timeout above the restart",
            (
                f"rebalances of a rolling restart: {pair('rolling', 'rebalances', 'eager', 'static')}; "
                f"partitions moved: {pair('rolling', 'moved', 'eager', 'static')}"
            ),
        ],
        [
            "partitions must not wait for a restart of ten seconds",
            "dynamic members: others take over",
            f"idle partition-seconds of a restart: {pair('bounce', 'idle_s', 'static', 'eager')}",
        ],
        [
            "some members are busy for a minute",
            "cooperative members",
            f"idle partition-seconds when one joins: {pair('slow-processing', 'idle_s', 'eager', 'cooperative')}",
        ],
        [
            "all members are quick",
            "eager or cooperative",
            (
                f"stopped member-seconds when one joins: {pair('newcomer', 'stopped_s', 'eager', 'cooperative')}; "
                f"idle partition-seconds: {pair('newcomer', 'idle_s', 'eager', 'cooperative')}"
            ),
        ],
        [
            "brokers and clients have KIP-848",
            "`group.protocol=consumer`",
            (
                f"idle partition-seconds when one joins: {pair('newcomer', 'idle_s', 'cooperative', 'consumer')}; "
                f"beside a busy member: {pair('slow-processing', 'idle_s', 'cooperative', 'consumer')}"
            ),
        ],
        [
            "crashes must be noticed soon",
            "a short session timeout, whatever `max.poll.interval.ms` is",
            (
                "until others own the partitions, with session and processing limit: "
                f"{read()['claims']['a-crash-is-noticed-after-the-session']['figures']}"
            ),
        ],
        [
            "a static member leaves for good",
            "remove it with LeaveGroup (`koordinator groups`, Kafka's admin tools)",
            f"idle partition-seconds without that: {pair('leave', 'idle_s', 'static', 'eager')}",
        ],
        [
            "Connect workers restart",
            "a `scheduled.rebalance.max.delay.ms` near the restart",
            f"{of('bounce', 'connect', 'balance_s')} s until a worker that is back after 10 s has tasks, with 300 s",
        ],
    ]
    return table(["If …", "then", "because"], rows)


def _cells() -> dict[tuple[str, str], dict[str, float]]:
    return {(each["situation"], each["scheme"]): each["figures"][0] for each in read()["cells"]}


def matrix_tables() -> str:
    """Return a table for each of the figures."""
    cells = _cells()
    parts = []
    for name in FIGURES:
        rows = [
            [situation, *(COLUMNS[name].text(cells[situation, scheme][name]) for scheme in SCHEMES)]
            for situation in SITUATIONS
        ]
        parts.append(f"### {heading(name).capitalize()}\n\n" + table(["", *SCHEMES], rows))
    return "\n".join(parts)
