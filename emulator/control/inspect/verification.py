"""Checks of a group for assertions, judged by its trace so far and its current state.

A check returns a `GroupCheck`. Unknown names (APIs, errors, causes, members) raise ValueError.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from koordinator.trace.rebalances import Rebalance  # noqa: TC001 - read at run time

from ...core.groups.classic.group import ClassicGroup, ClassicGroupState
from ...core.groups.share.group import SHARE
from ...trace.vocabulary import REBALANCE_CAUSES
from ...verify import members
from ...verify.conformance import conformance, failures, transaction_verdicts
from ...verify.group_trace import GroupTrace
from ...verify.names import require_known
from ...verify.rebalances import rebalances
from ...verify.requests import RequestPattern, check_requests
from ...verify.zombies import zombies
from ..resolve import error_name, group_if_any, known
from ..results import ConformanceCheck, GroupCheck, RebalanceCheck, RequestCheck
from .comparison import assignment_check, offsets_check, ownership_check
from .owners import assignment_by, owners_of, partition_counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from koordinator.trace.exchanges import Line

    from ...broker.cluster_runtime import ClusterRuntime
    from ...trace.trace import Trace
    from ...verify.ownership import MemberAssignment


class Verify:
    """Checks groups."""

    def __init__(self, runtime: ClusterRuntime) -> None:
        self._runtime = runtime
        self._lines = _LineCache(runtime.trace)

    def position(self, _now: int) -> int:
        """Return the sequence number of the newest event."""
        return self._runtime.trace.last_seq

    def rebalances(self, _now: int, *, group: str, since: int = 0) -> list[Rebalance]:
        """Return every rebalance that began after sequence number `since`, oldest first."""
        return self._rebalances(group, since)

    def rebalanced(self, _now: int, *, group: str, since: int = 0, cause: str | None = None) -> RebalanceCheck:
        """Check that a rebalance (with this cause) began after `since` and completed.

        A superseded rebalance continues as the next one: then `generation`, `members` and `outcome` are those of the
        later rebalance.
        """
        if cause is not None:
            require_known("the cause of a rebalance", cause, REBALANCE_CAUSES)
        began = self._rebalances(group, since)
        wanted = "a rebalance" if cause is None else f"a rebalance with the cause {cause}"
        position = next((at for at, each in enumerate(began) if cause in (None, each.cause)), None)
        if position is None:
            others = "".join(f"\n  {each}" for each in began)
            seen = f"only began:{others}" if others else "none has begun"
            return RebalanceCheck(ok=False, message=f"expected {wanted}, but {seen}")
        first = began[position]
        last = next((each for each in began[position:] if each.outcome in ("completed", "emptied")), None)
        if last is None:
            message = f"expected {wanted} to complete, but it has not: {began[-1]}"
            return RebalanceCheck(ok=False, message=message, rebalance=first)
        merged = replace(
            first, generation=last.generation, members=last.members, outcome=last.outcome, end_seq=last.end_seq
        )
        return RebalanceCheck(ok=True, rebalance=merged)

    def not_rebalanced(self, now: int, *, group: str, since: int = 0) -> GroupCheck:
        """Check that no rebalance began after `since`."""
        return self.rebalanced_times(now, group=group, exactly=0, since=since)

    def rebalanced_times(self, _now: int, *, group: str, exactly: int, since: int = 0) -> GroupCheck:
        """Check the number of rebalances that began after `since`, completed or not."""
        began = self._rebalances(group, since)
        listed = "".join(f"\n  {each}" for each in began)
        wanted = "no rebalance" if exactly == 0 else f"{exactly} rebalance{'' if exactly == 1 else 's'}"
        message = f"expected {wanted}, seen {len(began)}{':' if began else ''}{listed}"
        return GroupCheck(ok=len(began) == exactly, message=message)

    def requests(  # noqa: PLR0913 - one filter each
        self,
        _now: int,
        *,
        group: str,
        api: str,
        error: str | int | None = None,
        times: int | None = None,
        at_least: int | None = None,
        client_id: str | None = None,
        member: str | None = None,
        instance_id: str | None = None,
        generation: int | None = None,
    ) -> RequestCheck:
        """Check the number of requests that match: exactly `times`, or `at_least` (1 by default).

        `error` is the name or number of the response's error ("NONE" for success), `client_id` a glob, `member` a
        member id, an instance id or a client id. `generation` is that of the request, or of a JoinGroup's response.
        """
        name = None if error is None else error_name(self._runtime, error)
        pattern = RequestPattern(api, name, client_id, member, instance_id, generation)
        trace = self._trace_of(group)
        if times == 0 and member is not None:
            # with a misspelt name this check would always pass
            existing = group_if_any(self._runtime, group)
            members.member_ids_of(trace, member, () if existing is None else tuple(existing.members))
        ok, message, matches = check_requests(trace, pattern, times, at_least)
        return RequestCheck(ok=ok, message=message, seqs=[exchange.seq for exchange in matches])

    def left(self, _now: int, *, group: str, member: str) -> GroupCheck:
        """Check that a member left the group with LeaveGroup."""
        return GroupCheck(*members.check_left(self._trace_of(group), member))

    def did_not_leave(self, _now: int, *, group: str, member: str) -> GroupCheck:
        """Check that no LeaveGroup named a member."""
        return GroupCheck(*members.check_did_not_leave(self._trace_of(group), member))

    def fenced(self, _now: int, *, group: str, member: str) -> GroupCheck:
        """Check that a static member received FENCED_INSTANCE_ID."""
        return GroupCheck(*members.check_fenced(self._trace_of(group), member))

    def no_zombies(self, _now: int, *, group: str) -> RequestCheck:
        """Check that no commit was accepted from a former member or for a partition that another member owned.

        Refused commits do no harm. See `koordinator.emulator.verify.zombies.Zombie`.
        """
        if (unseen := self._unseen(group)) is not None:
            return RequestCheck(ok=False, message=unseen, seqs=[])
        commits = [each for each in zombies(self._trace_of(group)) if each.was_accepted]
        listed = "".join(f"\n  {each}" for each in commits)
        message = (
            "expected no accepted commit from a removed member or for another member's partition; "
            f"seen {len(commits)}:{listed}"
        )
        return RequestCheck(ok=not commits, message=message, seqs=[each.exchange.seq for each in commits])

    def assigned(self, _now: int, *, group: str, expected: Mapping[str, dict[str, list[int]]]) -> GroupCheck:
        """Check that exactly these members own exactly these partitions, in any state of the group.

        A member is named by its instance id, its member id, or a client id that no other member has.
        """
        return assignment_check(
            expected, assignment_by(self._runtime.cluster, group_if_any(self._runtime, group), expected)
        )

    def owned(self, _now: int, *, group: str, topics: Sequence[str] | None = None) -> GroupCheck:
        """Check that the group is Stable and exactly one member owns each partition of these topics.

        Without `topics`: of the topics that the members subscribe to. Raises ValueError for a share group.
        """
        existing = group_if_any(self._runtime, group)
        if existing is not None and existing.kind == SHARE:
            raise ValueError(f"group {group!r} is a share group: any number of its members may own a partition")
        state = ClassicGroupState.DEAD.value if existing is None else existing.state_name
        return ownership_check(state, *self._ownership(group), topics)

    def committed(self, _now: int, *, group: str, offsets: Sequence[tuple[str, int, int]]) -> GroupCheck:
        """Check that these offsets (topic, partition, offset) are committed; more may be.

        Raises ValueError for a share group, which commits none.
        """
        existing = group_if_any(self._runtime, group)
        if existing is not None and existing.kind == SHARE:
            raise ValueError(f"group {group!r} is a share group and commits no offsets: look at its share positions")
        committed = {} if existing is None else {at: each.offset for at, each in existing.offsets.items()}
        return offsets_check(offsets, committed, lambda topic, partition: self._last_commit(group, topic, partition))

    def conforms(
        self, _now: int, *, group: str, ignore: Sequence[str] = (), auto_commit: bool | None = None
    ) -> ConformanceCheck:
        """Check that no client check C01 to C14 fails over the trace so far.

        See `koordinator.emulator.verify.conformance`. `auto_commit`: whether the members commit automatically.
        """
        existing = group_if_any(self._runtime, group)
        # the client checks are those of the classic protocol
        is_stable = (
            isinstance(existing, ClassicGroup)
            and existing.state is ClassicGroupState.STABLE
            and not existing.pending_sync_members
        )
        stable = self._ownership(group) if is_stable else None
        verdicts = conformance(self._trace_of(group), stable, ignore=ignore, auto_commit=auto_commit)
        if (unseen := self._unseen(group)) is not None:
            return ConformanceCheck(ok=False, message=unseen, checks=list(verdicts))
        failed = failures(verdicts)
        message = "\n  ".join([f"{len(failed)} of {len(verdicts)} client checks failed:", *map(str, failed)])
        return ConformanceCheck(ok=not failed, message=message, checks=list(verdicts))

    def transactions(self, _now: int) -> ConformanceCheck:
        """Check that no check of transactions, T01 to T03, fails over the trace so far.

        See `koordinator.emulator.verify.transaction_checks`.
        """
        verdicts = transaction_verdicts(self._lines.read())
        failed = failures(verdicts)
        message = "\n  ".join([f"{len(failed)} of {len(verdicts)} checks of transactions failed:", *map(str, failed)])
        return ConformanceCheck(ok=not failed, message=message, checks=verdicts)

    def _unseen(self, group: str) -> str | None:
        """Return why there is nothing to judge if no event so far concerns a group, such as a misspelled one."""
        if group_if_any(self._runtime, group) is not None or any(
            line.get("group_id") == group for line in self._lines.read()
        ):
            return None
        return f"no event concerns a group {group!r}, so there is nothing to judge"

    def _trace_of(self, group: str) -> GroupTrace:
        return GroupTrace(self._lines.read(), group)

    def _rebalances(self, group: str, since: int) -> list[Rebalance]:
        return [each for each in rebalances(self._trace_of(group)) if each.start_seq > since]

    def _ownership(self, group_id: str) -> tuple[tuple[MemberAssignment, ...], Mapping[str, int]]:
        group = group_if_any(self._runtime, group_id)
        cluster = self._runtime.cluster
        return () if group is None else owners_of(cluster, group), partition_counts(cluster)

    def _last_commit(self, group: str, topic: str, partition: int) -> str:
        commits = [
            exchange
            for exchange in self._trace_of(group).exchanges
            if exchange.api == "OffsetCommit"
            and any(row[0] == topic and row[1] == partition for row in exchange.request_body.get("offsets", ()))
        ]
        if commits:
            return f"; last: {commits[-1]}"
        topics = self._runtime.cluster.topics
        return "" if topic in topics else f"; there is no topic {topic!r}{known(topic, sorted(topics))}"


class _LineCache:
    """The lines of the trace, kept between checks: a wait checks after every input."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._seq = 0
        self._dropped: list[Line] = []
        self._lines: deque[Line] = deque()

    def read(self) -> Iterable[Line]:
        trace = self._trace
        newer = trace.events(self._seq)
        self._seq = trace.last_seq
        oldest = trace.oldest_seq
        self._lines.extend(line for line in newer if line["kind"] != "dropped")
        while self._lines and self._lines[0]["seq"] < oldest:
            self._lines.popleft()
        if oldest > 1:
            self._dropped = [{"seq": oldest - 1, "kind": "dropped", "count": oldest - 1}]
        return chain(self._dropped, self._lines)
