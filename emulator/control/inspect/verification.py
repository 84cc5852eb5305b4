"""What tests assert of a group, judged on the server's side: by its trace so far, and by how it is now.

Most operations give a verdict, `{"ok": bool, "message": str, …}`: what was expected, what was seen instead, and what
came nearest. A wait for one ends when it is ok. Names nobody knows (APIs, errors, causes, members) raise ValueError.
"""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from ...core.groups.classic.group import ClassicGroupState
from ...verify import members
from ...verify.conformance import CurrentAssignment, conformance, failures
from ...verify.group_trace import GroupTrace, Line
from ...verify.names import require_cause
from ...verify.ownership import assignment_differences, ownership_errors
from ...verify.rebalances import Rebalance, rebalances
from ...verify.requests import RequestPattern, check_requests
from ...verify.zombies import zombies
from .owners import assignment_by, owners_of, partition_counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...broker.cluster_runtime import ClusterRuntime
    from ...core.groups.classic.group import ClassicGroup
    from ...trace.trace import Trace

Verdict = dict[str, Any]


class Verify:
    """Judges groups."""

    def __init__(self, brokers: ClusterRuntime) -> None:
        self._brokers = brokers
        self._seen = _Seen(brokers.trace)

    def position(self, now: int) -> int:
        """The sequence number of the newest event: what happens from here on has a higher one."""
        del now
        return self._brokers.trace.last_seq

    # -- rebalances ------------------------------------------------------------------------------------------

    def rebalances(self, now: int, *, group: str, since: int = 0) -> list[dict[str, Any]]:
        """Every rebalance that began after an event: see `koordinator.emulator.verify.rebalances.Rebalance`."""
        del now
        return [asdict(each) for each in self._rebalances(group, since)]

    def rebalanced(self, now: int, *, group: str, since: int = 0, cause: str | None = None) -> Verdict:
        """Whether a rebalance (of that cause) that began after an event has completed; `rebalance` is the first such.

        If another has superseded it, it goes on as that one: `generation`, `members` and `outcome` are the later one's.
        """
        del now
        if cause is not None:
            require_cause(cause)
        began = self._rebalances(group, since)
        wanted = "a rebalance" if cause is None else f"a rebalance with the cause {cause}"
        matching = next((at for at, each in enumerate(began) if cause in (None, each.cause)), None)
        if matching is None:
            others = "".join(f"\n  {each}" for each in began)
            seen = f"only began:{others}" if others else "none has begun"
            return _verdict(ok=False, message=f"expected {wanted}, but {seen}", rebalance=None)
        first = began[matching]
        done = next((each for each in began[matching:] if each.outcome in ("completed", "emptied")), None)
        if done is None:
            said = f"expected {wanted} to complete, but it has not: {began[-1]}"
            return _verdict(ok=False, message=said, rebalance=asdict(first))
        whole = replace(
            first, generation=done.generation, members=done.members, outcome=done.outcome, end_seq=done.end_seq
        )
        return _verdict(ok=True, rebalance=asdict(whole))

    def not_rebalanced(self, now: int, *, group: str, since: int = 0) -> Verdict:
        """Whether no rebalance has begun after an event."""
        return self.rebalanced_times(now, group=group, exactly=0, since=since)

    def rebalanced_times(self, now: int, *, group: str, exactly: int, since: int = 0) -> Verdict:
        """Whether so many rebalances have begun after an event, completed or not."""
        del now
        began = self._rebalances(group, since)
        listed = "".join(f"\n  {each}" for each in began)
        wanted = "no rebalance" if exactly == 0 else f"{exactly} rebalance{'' if exactly == 1 else 's'}"
        said = f"expected {wanted}, seen {len(began)}{':' if began else ''}{listed}"
        return _verdict(ok=len(began) == exactly, message=said)

    # -- requests and members --------------------------------------------------------------------------------

    def requests(  # noqa: PLR0913 - what is wanted of a request
        self,
        now: int,
        *,
        group: str,
        api: str,
        error: str | None = None,
        times: int | None = None,
        at_least: int | None = None,
        client_id: str | None = None,
        member: str | None = None,
        instance_id: str | None = None,
        generation: int | None = None,
    ) -> Verdict:
        """Whether so many requests came that are as wanted; `seqs` are those that did.

        `times` is exactly, `at_least` what it says; without both it is at least one. `error` is what they were answered
        with ("NONE": all went well), `client_id` a glob, `member` a member id, an instance id or a client id,
        `generation` that of the request, or that a JoinGroup has led to.
        """
        del now
        pattern = RequestPattern(api, error, client_id, member, instance_id, generation)
        trace = self._trace_of(group)
        if times == 0 and member is not None:
            # a name that is written wrong would always be right
            members.member_ids_of(trace, member, self._present(group))
        ok, message, exchanges = check_requests(trace, pattern, times, at_least)
        return _verdict(ok=ok, message=message, seqs=[exchange.seq for exchange in exchanges])

    def left(self, now: int, *, group: str, member: str) -> Verdict:
        """Whether a member has left the group by LeaveGroup."""
        del now
        ok, message = members.check_left(self._trace_of(group), member)
        return _verdict(ok=ok, message=message)

    def did_not_leave(self, now: int, *, group: str, member: str) -> Verdict:
        """Whether a member has not sent a LeaveGroup, nor anybody for it."""
        del now
        ok, message = members.check_did_not_leave(self._trace_of(group), member)
        return _verdict(ok=ok, message=message)

    def fenced(self, now: int, *, group: str, instance_id: str) -> Verdict:
        """Whether a member of this instance has been told FENCED_INSTANCE_ID."""
        del now
        ok, message = members.check_fenced(self._trace_of(group), instance_id)
        return _verdict(ok=ok, message=message)

    def no_zombies(self, now: int, *, group: str) -> Verdict:
        """Whether nobody has committed who should not any more: see `koordinator.emulator.verify.zombies.Zombie`."""
        del now
        found = zombies(self._trace_of(group))
        listed = "".join(f"\n  {each}" for each in found)
        said = f"expected no commit of a member that is out, or of what another owns; seen {len(found)}:{listed}"
        return _verdict(ok=not found, message=said, seqs=[each.exchange.seq for each in found])

    # -- how the group is now --------------------------------------------------------------------------------

    def assigned(self, now: int, *, group: str, expected: Mapping[str, dict[str, list[int]]]) -> Verdict:
        """Whether the members are these and own that; whatever the state of the group.

        A member is named by its instance id, its member id, or a client id that no other has.
        """
        del now
        wrong = assignment_differences(expected, assignment_by(self._find(group), expected))
        return _verdict(ok=not wrong, message="\n  ".join(["the assignment is another:", *wrong]))

    def owned(self, now: int, *, group: str, topics: Sequence[str] | None = None) -> Verdict:
        """Whether the group is Stable and each partition of these topics owned by exactly one member.

        Without topics: of those that its members subscribe to.
        """
        del now
        found = self._find(group)
        if found is None or found.state is not ClassicGroupState.STABLE:
            state = ClassicGroupState.DEAD if found is None else found.state
            said = f"nobody owns anything for sure while the group is {state.value}"
            return _verdict(ok=False, message=said)
        wrong = ownership_errors(owners_of(found), partition_counts(self._brokers.cluster), topics)
        said = f"expected every partition to be owned exactly once, but {'; '.join(wrong)}"
        return _verdict(ok=not wrong, message=said)

    def committed(self, now: int, *, group: str, offsets: Iterable[tuple[str, int, int]]) -> Verdict:
        """Whether these offsets (topic, partition, offset) are committed; others may be, too."""
        del now
        found = self._find(group)
        have = {} if found is None else {at: each.offset for at, each in found.offsets.items()}
        wrong = [
            f"{topic} {partition}: expected {offset}, "
            f"{'nothing is committed' if (topic, partition) not in have else f'committed is {have[topic, partition]}'}"
            f"{self._last_commit(group, topic, partition)}"
            for topic, partition, offset in offsets
            if have.get((topic, partition)) != offset
        ]
        return _verdict(ok=not wrong, message="\n  ".join(["other offsets are committed:", *wrong]))

    def conforms(self, now: int, *, group: str, ignore: Sequence[str] = (), auto_commit: bool | None = None) -> Verdict:
        """Whether none of the client checks C01 to C10 fails over the trace so far; `checks` are their verdicts.

        See `koordinator.emulator.verify.conformance`. `auto_commit`: whether the members commit automatically.
        """
        del now
        found = self._find(group)
        is_stable = found is not None and found.state is ClassicGroupState.STABLE and not found.pending_sync_members
        current = CurrentAssignment(is_stable, _owners(found), partition_counts(self._brokers.cluster))
        verdicts = conformance(self._trace_of(group), current, ignore=ignore, auto_commit=auto_commit)
        failed = failures(verdicts)
        said = "\n  ".join([f"{len(failed)} of {len(verdicts)} client checks failed:", *map(str, failed)])
        return _verdict(ok=not failed, message=said, checks=[asdict(each) for each in verdicts])

    # -- what they share -------------------------------------------------------------------------------------

    def _trace_of(self, group: str) -> GroupTrace:
        return GroupTrace(self._seen.lines(), group)

    def _rebalances(self, group: str, since: int) -> list[Rebalance]:
        return [each for each in rebalances(self._trace_of(group)) if each.start_seq > since]

    def _find(self, group_id: str) -> ClassicGroup | None:
        broker = self._brokers.broker_of_group(group_id)
        return None if broker is None else broker.node.coordinator.groups.get(group_id)

    def _present(self, group_id: str) -> tuple[str, ...]:
        group = self._find(group_id)
        return () if group is None else tuple(group.members)

    def _last_commit(self, group: str, topic: str, partition: int) -> str:
        commits = [
            exchange
            for exchange in self._trace_of(group).exchanges
            if exchange.api == "OffsetCommit"
            and any(row[0] == topic and row[1] == partition for row in exchange.request_body.get("offsets", ()))
        ]
        return f"; last: {commits[-1]}" if commits else ""


class _Seen:
    """The lines of the trace, kept from one look to the next: a wait looks after everything that happens."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._seq = 0
        self._lost: list[Line] = []
        self._lines: deque[Line] = deque()

    def lines(self) -> Iterable[Line]:
        """All that the trace has, the oldest first."""
        trace = self._trace
        newer = trace.events(self._seq)
        self._seq = trace.last_seq
        oldest = trace.oldest_seq
        self._lines.extend(line for line in newer if line["kind"] != "dropped")
        while self._lines and self._lines[0]["seq"] < oldest:
            self._lines.popleft()
        if oldest > 1:
            self._lost = [{"seq": oldest - 1, "kind": "dropped", "count": oldest - 1}]
        return chain(self._lost, self._lines)


def _owners(group: ClassicGroup | None) -> tuple[Any, ...]:
    return () if group is None else owners_of(group)


def _verdict(*, ok: bool, message: str = "", **more: object) -> Verdict:
    return {"ok": ok, "message": "" if ok else message, **more}
