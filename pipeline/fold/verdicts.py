"""The rows of mart/verdict: S01 to S16 for the coordinator, C01 to C14 for its clients, T01 to T03 for transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.emulator.trace.vocabulary import CHECKS as CLIENT_CHECKS
from koordinator.emulator.verify.conformance import SERVER_CHECKS, client_checks
from koordinator.emulator.verify.observations import INCONCLUSIVE, PASS
from koordinator.emulator.verify.transaction_checks import TITLES as TRANSACTION_CHECKS
from koordinator.emulator.verify.transaction_checks import check_transactions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from koordinator.emulator.verify.observations import Observations
    from koordinator.trace.exchanges import Line

    from .group_facts import GroupFacts, Row

ERROR, WARNING = "error", "warning"
"""Severities: a violation of the protocol, or bad practice."""

WARNINGS = ("C04", "C05", "C09", "C10")

TITLES = {check: title for check, (title, _) in SERVER_CHECKS.items()} | CLIENT_CHECKS | TRANSACTION_CHECKS
"""The requirements by check, S01 … T03."""


def severity(check: str) -> str:
    """Return the severity of a failed check."""
    return WARNING if check in WARNINGS else ERROR


def observations(facts: GroupFacts) -> dict[str, Observations]:
    """Return the observations of each check of a group."""
    found = {check: judge(facts.trace) for check, (_, judge) in SERVER_CHECKS.items()}
    found |= {check: judge() for check, judge in client_checks(facts.trace).items()}
    for check, cases in facts.settled.cases.items():
        found[check].restore(cases)
    return found


def verdict(facts: GroupFacts, observed: Mapping[str, Observations]) -> Iterator[Row]:
    """Return the verdict of each check: fail if any finding fails, else inconclusive if any is."""
    softwares = {facts.software(member_id) for member_id in facts.trace.by_member} - {None}
    for check, found in observed.items():
        members = {case.member_id for case in found.cases}
        named = {facts.software(member_id) for member_id in members} - {None}
        named = named or softwares
        subject = "coordinator" if check.startswith("S") else next(iter(named)) if len(named) == 1 else "clients"
        yield facts.key | _row(check, subject, found, facts.trace.dropped)


def transaction_verdict(trace_id: str, lines: Sequence[Line]) -> Iterator[Row]:
    """Return the verdict of each check of transactions; they concern all groups of a trace."""
    for check, found in check_transactions(lines).items():
        yield {"trace_id": trace_id, **_row(check, "coordinator", found, 0)}


def _row(check: str, subject: str | None, found: Observations, dropped: int) -> Row:
    seqs, status, message = found.evidence, found.status, found.message
    if status == PASS and dropped:
        status, message = INCONCLUSIVE, f"the trace lacks its first {dropped} events"
    return {
        "subject": subject,
        "check_id": check,
        "title": TITLES[check],
        "status": status,
        "severity": severity(check),
        "n_evidence": sum(case.n for case in found.cases),
        "first_seq": min(seqs, default=None),
        "last_seq": max(seqs, default=None),
        "message": message,
    }
