"""The observations of one check, and the status that follows from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from koordinator.trace.exchanges import Exchange, Line

PASS, FAIL, INCONCLUSIVE, NOT_APPLICABLE = "pass", "fail", "inconclusive", "not_applicable"

SHOWN = 3
"""The number of observations that a message lists; it counts the others."""


class Observation(NamedTuple):
    """A case of a check: the lines that show it, its text unless it is a pass, and the member id.

    It stands for `n` equal cases.
    """

    evidence: tuple[int, ...]
    text: str
    member_id: str | None
    n: int


class Observations:
    """The passes, failures and unclear cases of a check, with the trace lines that show them.

    An observation concerns the member `of`, by default the sender of the first exchange of its evidence.
    """

    def __init__(self) -> None:
        self._cases: dict[str, list[Observation]] = {FAIL: [], INCONCLUSIVE: [], PASS: []}

    def add_pass(self, *evidence: Exchange | Line | int, of: str | None = None, n: int = 1) -> None:
        """Record correct behaviour, in `n` cases."""
        self._add(PASS, "", evidence, of, n)

    def add_failure(self, text: str, *evidence: Exchange | Line | int, of: str | None = None, n: int = 1) -> None:
        """Record a violation, in `n` cases."""
        self._add(FAIL, text, evidence, of, n)

    def add_unclear(self, text: str, *evidence: Exchange | Line | int, of: str | None = None) -> None:
        """Record behaviour that the trace does not settle, or not yet."""
        self._add(INCONCLUSIVE, text, evidence, of)

    def _add(
        self, status: str, text: str, evidence: tuple[Exchange | Line | int, ...], of: str | None, n: int = 1
    ) -> None:
        seqs: list[int] = []
        for item in evidence:
            if isinstance(item, int):
                seqs.append(item)
            elif isinstance(item, dict):
                seqs.append(int(item["seq"]))
            else:
                seqs.append(item.seq)
                of = of or item.member_id
        self._cases[status].append(Observation(tuple(seqs), text, of, n))

    def restore(self, cases: Iterable[tuple[str, Sequence[int], str, int]]) -> None:
        """Add cases that `before` has returned."""
        for status, evidence, text, n in cases:
            self._cases[status].append(Observation(tuple(evidence), text, None, n))

    def before(self, seq: int) -> list[tuple[str, list[int], str, int]]:
        """Return the cases before a line in the short form of `shortened`."""
        return self.shortened(each for each in self.all_cases if min(each[1].evidence, default=0) < seq)

    @property
    def all_cases(self) -> list[tuple[str, Observation]]:
        """All observations, each with its status."""
        return [(status, each) for status, cases in self._cases.items() for each in cases]

    @staticmethod
    def shortened(cases: Iterable[tuple[str, Observation]]) -> list[tuple[str, list[int], str, int]]:
        """Return cases as status, evidence, text and number.

        Of each status the first SHOWN, and the others as one: enough for the status, the message and the number.
        """
        found: list[tuple[str, list[int], str, int]] = []
        by_status: dict[str, list[Observation]] = {}
        for status, case in cases:
            by_status.setdefault(status, []).append(case)
        for status, each in by_status.items():
            earlier = sorted(
                ((case.evidence, case.text, case.n) for case in each),
                key=lambda case: (min(case[0], default=0), case[1]),
            )
            found += [(status, [*evidence], text, n) for evidence, text, n in earlier[:SHOWN]]
            if rest := earlier[SHOWN:]:
                seqs = [each for evidence, _, _ in rest for each in evidence]
                found.append((status, [min(seqs), max(seqs)], rest[0][1], sum(n for _, _, n in rest)))
        return found

    @property
    def status(self) -> str:
        """`fail` after any failure, else `inconclusive` after any unclear observation."""
        return next((status for status, cases in self._cases.items() if cases), NOT_APPLICABLE)

    @property
    def cases(self) -> list[Observation]:
        """The observations that decide the status."""
        return self._cases.get(self.status, [])

    @property
    def evidence(self) -> tuple[int, ...]:
        """The sequence numbers of the lines that decide the status."""
        seqs = [seq for case in self._cases.get(self.status, ()) for seq in case.evidence]
        return tuple(seqs) if self.status == PASS else tuple(sorted(set(seqs)))

    @property
    def message(self) -> str:
        """The failures, else the unclear observations, in the order of the trace; "" without either."""
        cases = [case for case in self.cases if case.text]
        cases.sort(key=lambda case: (min(case.evidence, default=0), case.text))
        texts = [case.text for case in cases[:SHOWN]]
        rest = sum(case.n for case in cases) - len(texts)
        return "; ".join(texts) + (f"; and {rest} more of the kind" if rest else "")
