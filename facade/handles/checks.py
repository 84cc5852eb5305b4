"""The part of `Group` with waits and assertions. A failure message ends with the group's last events.

`wait_…` waits for a state; `assert_…` checks once, or until `timeout` seconds have passed. Both return the group and
raise an AssertionError. A wait raises BlockingCallInLoop in a thread that runs an asyncio or Trio loop. An unknown name
of an API, error, cause, state or member raises ValueError at once, with a suggestion.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from koordinator.emulator.control.faults.holds import Holds
from koordinator.emulator.control.inspect.events import Events
from koordinator.emulator.control.inspect.groups import Groups
from koordinator.emulator.control.inspect.topics import Topics
from koordinator.emulator.control.inspect.verification import Verify
from koordinator.emulator.control.nodes import Nodes
from koordinator.emulator.control.resolve import known
from koordinator.emulator.control.results import GroupCheck
from koordinator.emulator.core.data.topic import INTERNAL_TOPICS
from koordinator.emulator.core.groups.classic.group import ClassicGroupState
from koordinator.emulator.pages.timeline import refused_topics, report, unjoined_clients

from .durations import Duration, seconds_of
from .errors import KoordinatorTimeout
from .names import GroupHandle, MemberLike, TopicKey, TopicLike, member_name, topic_name_of
from .port import WAIT_S, EmulatorOnly
from .renames import renamed_arguments
from .words import GroupState, RebalanceCause  # noqa: TC001 - arguments are checked with them

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from koordinator.emulator.control.results import GroupInfo
    from koordinator.emulator.verify.conformance import Verdict

    from ..trace import Event, Rebalance

RECENT_EVENTS = 1_000
"""The events in which a failure message looks for what happened outside its group."""

P = ParamSpec("P")
R = TypeVar("R", bound=GroupCheck)


class GroupTimeout(KoordinatorTimeout):
    """A wait on a group timed out. The text has the expectation, the group's state and its last events."""


class ExpectedRebalance:
    """The result of `Group.expect_rebalance`; `rebalance` is known after its block."""

    def __init__(self) -> None:
        self._rebalance: Rebalance | None = None

    @property
    def rebalance(self) -> Rebalance:
        """The expected rebalance. Raises RuntimeError inside the block, before it has completed."""
        if self._rebalance is None:
            raise RuntimeError("the rebalance is known after the block of expect_rebalance(), not inside it")
        return self._rebalance


class Checks(GroupHandle):
    """The part of `Group` that waits and asserts."""

    if TYPE_CHECKING:

        def describe(self) -> GroupInfo: ...  # noqa: D102 - a method of Group
        def events(self) -> list[Event]: ...  # noqa: D102 - a method of Group

    @renamed_arguments(owned=("all_owned", True))
    def wait_stable(
        self,
        members: int | None = None,
        timeout: Duration = WAIT_S,
        *,
        all_owned: bool = False,
        after_generation: int | None = None,
    ) -> Self:
        """Wait until the group is Stable and every member has its assignment.

        `members` also awaits that number of members. `all_owned` also awaits that exactly one member owns each
        partition of the subscribed topics, in a share group at least one; a cooperative group is stable between its
        two rounds, too.
        `after_generation` also awaits a later generation. Raises GroupTimeout (an AssertionError) after `timeout`.
        """
        timeout_s = seconds_of(timeout)
        expectation = "stable" if members is None else f"stable with {members} member{'' if members == 1 else 's'}"
        expectation += ", every partition owned" if all_owned else ""
        expectation += "" if after_generation is None else f", after generation {after_generation}"
        return self._wait(
            expectation,
            timeout_s,
            self._port.wait(
                Groups.meets,
                timeout_s,
                group=self.id,
                state=ClassicGroupState.STABLE.value,
                members=members,
                all_owned=all_owned,
                after_generation=after_generation,
            ),
        )

    def wait_state(self, state: GroupState, timeout: Duration = WAIT_S) -> Self:
        """Wait until the group is Empty, PreparingRebalance, CompletingRebalance, Stable or Dead.

        Raises GroupTimeout (an AssertionError) after `timeout` seconds.
        """
        timeout_s = seconds_of(timeout)
        return self._wait(state, timeout_s, self._port.wait(Groups.meets, timeout_s, group=self.id, state=state))

    def _wait(self, expectation: str, timeout_s: float, is_met: bool) -> Self:  # noqa: FBT001 - the result of a wait
        if not is_met:
            raise GroupTimeout(self._report(f"group {self.id!r} was not {expectation} within {timeout_s:g} s"))
        return self

    def rebalances(self) -> list[Rebalance]:
        """Return every rebalance of the group in the trace, oldest first: causes, generations, times, stragglers."""
        return self._port.call(Verify.rebalances, group=self.id)

    @contextmanager
    def expect_rebalance(
        self, cause: RebalanceCause | None = None, timeout: Duration = WAIT_S
    ) -> Iterator[ExpectedRebalance]:
        """Expect a rebalance (with this cause) to begin in the block; wait at its end until it has completed.

        `.rebalance` of the result describes it after the block. A superseded rebalance continues as the next one.
        Causes are those of `koordinator.emulator.trace.vocabulary.REBALANCE_CAUSES`. Raises AssertionError.
        """
        since = self._port.call(Verify.position)
        # refuse an unknown cause before the block
        self._port.call(Verify.rebalanced, group=self.id, since=since, cause=cause)
        expected = ExpectedRebalance()
        yield expected
        check = self._check(Verify.rebalanced, timeout, group=self.id, since=since, cause=cause)
        expected._rebalance = check.rebalance  # noqa: SLF001 - set here only

    @contextmanager
    def assert_no_rebalance(self) -> Iterator[None]:
        """Assert that no rebalance begins in the block. A rebalance that began earlier may continue."""
        since = self._port.call(Verify.position)
        yield
        self._check(Verify.not_rebalanced, 0, group=self.id, since=since)

    def assert_rebalances(self, exactly: int) -> Self:
        """Assert the number of rebalances that began since the start of the cluster, including superseded ones."""
        self._check(Verify.rebalanced_times, 0, group=self.id, exactly=exactly)
        return self

    def assert_assignment(
        self, expected: Mapping[str, Mapping[TopicKey, Collection[int]]], timeout: Duration = 0
    ) -> Self:
        """Assert that the group has exactly these members, with exactly these partitions by topic.

        A member is named by its instance id, its member id, or a client id that no other member has.
        """
        assignments = {
            label: {topic_name_of(topic): sorted(partitions) for topic, partitions in owned.items()}
            for label, owned in expected.items()
        }
        self._check(Verify.assigned, timeout, group=self.id, expected=assignments)
        return self

    def assert_owned_exactly_once(self, topics: Collection[TopicLike] | None = None, timeout: Duration = 0) -> Self:
        """Assert that the group is Stable, and that exactly one member owns each partition of these topics.

        Without `topics`: of the topics that its members subscribe to. The first generation of a consumer that has not
        read the metadata yet owns nothing: call `wait_stable(all_owned=True)` before, or give a `timeout`.
        """
        names = None if topics is None else list(map(topic_name_of, topics))
        self._check(Verify.owned, timeout, group=self.id, topics=names)
        return self

    def assert_committed(self, offsets: Mapping[tuple[TopicKey, int], int], timeout: Duration = 0) -> Self:
        """Assert that these offsets, by topic and partition, are committed; more may be."""
        rows = [(topic_name_of(topic), partition, offset) for (topic, partition), offset in offsets.items()]
        self._check(Verify.committed, timeout, group=self.id, offsets=rows)
        return self

    def assert_request(  # noqa: PLR0913 - one filter each
        self,
        api: str,
        *,
        error: str | int | None = None,
        times: int | None = None,
        at_least: int | None = None,
        client_id: str | None = None,
        member: MemberLike | None = None,
        instance_id: str | None = None,
        generation: int | None = None,
        timeout: Duration = 0,
    ) -> Self:
        """Assert the number of matching requests: exactly `times`, or `at_least` (1 by default).

        `api` is any API; a request that names no group, such as a Fetch, is that of a group with a member of the same
        client id. `error` is the name or number of the
        response's error, "NONE" for success; without it any request counts, with or without a response. `client_id` is
        a glob, `member` an instance id, a member id or a client id. `generation` is that of the request, or of a
        JoinGroup's response.
        """
        self._check(
            Verify.requests,
            timeout,
            group=self.id,
            api=api,
            error=error,
            times=times,
            at_least=at_least,
            client_id=client_id,
            member=None if member is None else member_name(member),
            instance_id=instance_id,
            generation=generation,
        )
        return self

    def assert_left(self, member: MemberLike, timeout: Duration = 0) -> Self:
        """Assert that a member, named by instance id, member id or client id, left with LeaveGroup."""
        self._check(Verify.left, timeout, group=self.id, member=member_name(member))
        return self

    def assert_did_not_leave(self, member: MemberLike) -> Self:
        """Assert that no LeaveGroup named a member, given by instance id, member id or client id."""
        self._check(Verify.did_not_leave, 0, group=self.id, member=member_name(member))
        return self

    @renamed_arguments(instance_id="member")
    def assert_fenced(self, member: MemberLike, timeout: Duration = 0) -> Self:
        """Assert that a static member received FENCED_INSTANCE_ID: another one replaced it (KIP-345)."""
        self._check(Verify.fenced, timeout, group=self.id, member=member_name(member))
        return self

    def assert_no_zombie_commits(self) -> Self:
        """Assert that no commit had an old generation, came from a removed member, or was for another's partition."""
        self._check(Verify.no_zombies, 0, group=self.id)
        return self

    def assert_conformant(self, ignore: Collection[str] = (), *, auto_commit: bool | None = None) -> Self:
        """Assert that no client check C01 to C14 fails over the trace so far; see docs/assertions.md.

        `ignore` lists the ids of checks to skip. `auto_commit`: whether the members commit automatically, which the
        trace does not show; without it C10 does not fail. `conformance` returns the verdicts.
        """
        self._check(Verify.conforms, 0, group=self.id, ignore=list(ignore), auto_commit=auto_commit)
        return self

    def conformance(self, *, auto_commit: bool | None = None) -> dict[str, Verdict]:
        """Return the verdicts of the client checks, by id; "inconclusive" if the coordinator cannot observe it."""
        checked = self._port.call(Verify.conforms, group=self.id, auto_commit=auto_commit)
        return {verdict.id: verdict for verdict in checked.checks}

    def _check(
        self,
        operation: Callable[Concatenate[Any, int, P], R],
        timeout: Duration,
        /,
        *args: P.args,
        **arguments: P.kwargs,
    ) -> R:
        """Perform a check, once or until the timeout; raise AssertionError unless its result is ok."""
        timeout_s = seconds_of(timeout)
        if timeout_s:
            result = self._port.wait(operation, timeout_s, *args, **arguments)
        else:
            result = self._port.call(operation, *args, **arguments)
        if not result.ok:
            waited = f", within {timeout_s:g} s" if timeout_s else ""
            raise AssertionError(self._report(f"group {self.id!r}{waited}: {result.message}"))
        return result

    def _report(self, message: str) -> str:
        """Return a failure message with the group's state, parked requests and last events."""
        try:
            events = self.events()
        except EmulatorOnly:
            return f"{message}\nnow: {self.describe()}"
        parked = self._port.call(Holds.parked, group=self.id)
        silent = [f"{each}" for each in self._port.call(Groups.silent, group=self.id)]
        others = [] if events else self._other_groups()
        elsewhere = [*silent, *others, *unjoined_clients(events), *self._missing_topics()]
        if self._port.call(Nodes.coordinator, group=self.id) is None:
            elsewhere.append(f"the node that coordinates group {self.id!r} is down")
        return "\n".join([message, *report(events, self.describe(), parked, elsewhere)])

    def _missing_topics(self) -> list[str]:
        """Return a line for each topic that a client has lately asked for, and that does not exist."""
        since = max(0, self._port.call(Verify.position) - RECENT_EVENTS)
        topics = [each.topic for each in self._port.call(Topics.describe) if each.topic not in INTERNAL_TOPICS]
        return [
            f"client {client!r} asked for topic {topic!r}, which does not exist{known(topic, topics)}"
            for client, topic, _ in refused_topics(self._port.call(Events.read, since=since))
            if topic not in (*topics, *INTERNAL_TOPICS)
        ]

    def _other_groups(self) -> list[str]:
        """Return a line with the existing groups and the most similar id, or that no client has connected."""
        names = self._port.call(Groups.ids)
        if names:
            return [] if self.id in names else [f"there is no group {self.id!r}{known(self.id, names)}"]
        # connections that the trace has dropped may have been clients' as well
        is_alone = not any(event["kind"] in {"conn", "dropped"} for event in self._port.call(Events.read))
        return [f"no client has connected to {self._port.bootstrap_servers}"] if is_alone else []
