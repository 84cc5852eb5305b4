"""Waits and assertions on a group, judged on the server's side. What fails tells the group's last events.

`wait_…` wait until something is so; `assert_…` look once, or, given a `timeout` in seconds, until it is so. Both return
the group, and raise an AssertionError. What waits raises BlockingCallInLoop inside a running asyncio or Trio loop,
which it would block. A name nobody knows (an API, an error, a cause, a state, a member) is a ValueError at once, with
the nearest one.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from koordinator.emulator.core.groups.classic.group import ClassicGroupState
from koordinator.emulator.verify.conformance import Verdict
from koordinator.emulator.verify.rebalances import Rebalance

from .port import EmulatorOnly
from .timeline import timeline

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from .group import Snapshot
    from .port import Port

WAIT_S = 30.0
"""How long a wait lasts if nothing else is said: long enough for a busy machine; a test that passes never waits."""


class GroupTimeout(AssertionError):
    """What was waited for did not happen in time. The text says what, how things are, and the group's last events."""


class ExpectedRebalance:
    """What `Group.expect_rebalance` gives; `rebalance` is there when its block has ended."""

    def __init__(self) -> None:
        self._rebalance: Rebalance | None = None

    @property
    def rebalance(self) -> Rebalance:
        """The rebalance that was expected. Raises RuntimeError inside the block: it has to complete first."""
        if self._rebalance is None:
            raise RuntimeError("the rebalance is known after the block of expect_rebalance(), not inside it")
        return self._rebalance


class Checks:
    """The part of `Group` that waits and asserts."""

    _port: Port
    id: str

    if TYPE_CHECKING:

        def snapshot(self) -> Snapshot: ...  # noqa: D102 - Group has them
        def events(self) -> list[dict[str, object]]: ...  # noqa: D102

    # -- waits -----------------------------------------------------------------------------------------------

    def wait_stable(
        self,
        members: int | None = None,
        timeout: float = WAIT_S,
        *,
        owned: str | None = None,
        after_generation: int | None = None,
    ) -> Self:
        """Wait until the group is Stable and every member has its assignment; returns the group.

        `members`: and has that many members. `owned="all"`: and every partition of the topics they subscribe to is
        owned by exactly one of them; a cooperative group is stable between its two rounds, too. `after_generation`: and
        is in a newer generation than that. `timeout` is in seconds. Raises GroupTimeout (an AssertionError).
        """
        what = "stable" if members is None else f"stable with {members} member{'' if members == 1 else 's'}"
        what += "" if owned is None else ", every partition owned"
        what += "" if after_generation is None else f", after generation {after_generation}"
        wanted = {"members": members, "owned": owned, "after_generation": after_generation}
        return self._wait(what, timeout, state=ClassicGroupState.STABLE.value, **wanted)

    def wait_state(self, state: str, timeout: float = WAIT_S) -> Self:
        """Wait until the group is in a state: Empty, PreparingRebalance, CompletingRebalance, Stable or Dead.

        Returns the group. Raises GroupTimeout (an AssertionError).
        """
        return self._wait(state, timeout, state=state)

    def _wait(self, what: str, timeout_s: float, **wanted: object) -> Self:
        if not self._port.wait("groups.meets", timeout_s, group=self.id, **wanted):
            raise GroupTimeout(self._story(f"group {self.id!r} was not {what} within {timeout_s:g} s"))
        return self

    # -- rebalances ------------------------------------------------------------------------------------------

    def rebalances(self) -> list[Rebalance]:
        """Every rebalance the trace has of this group, the oldest first: causes, generations, times, the straggler."""
        return [_rebalance(each) for each in self._port.call("verify.rebalances", group=self.id)]

    @contextmanager
    def expect_rebalance(self, cause: str | None = None, timeout: float = WAIT_S) -> Iterator[ExpectedRebalance]:
        """A block in which a rebalance (with this cause) begins; waits at its end until it has completed.

        Afterwards `.rebalance` of what this gives says what it was. One that another supersedes goes on as that one.
        Causes are those of `koordinator.emulator.trace.vocabulary.REBALANCE_CAUSES`. Raises AssertionError.
        """
        since = self._port.call("verify.position")
        wanted = {"group": self.id, "since": since, "cause": cause}
        # a cause nobody knows is refused before the block, not after it
        self._port.call("verify.rebalanced", **wanted)
        expected = ExpectedRebalance()
        yield expected
        verdict = self._judge("verify.rebalanced", timeout, since=since, cause=cause)
        expected._rebalance = _rebalance(verdict["rebalance"])  # noqa: SLF001 - it is ours

    @contextmanager
    def assert_no_rebalance(self) -> Iterator[None]:
        """A block in which no rebalance begins. One that was going on before may go on. Raises AssertionError."""
        since = self._port.call("verify.position")
        yield
        self._judge("verify.not_rebalanced", 0, since=since)

    def assert_rebalances(self, exactly: int) -> Self:
        """So many rebalances have begun since the cluster was started; one that was superseded counts, too."""
        return self._hold("verify.rebalanced_times", 0, exactly=exactly)

    # -- who owns what ---------------------------------------------------------------------------------------

    def assert_assignment(self, expected: Mapping[str, Mapping[str, Collection[int]]], timeout: float = 0) -> Self:
        """The members, and what they own (topic -> partitions), are exactly these.

        A member is named by its instance id, its member id, or a client id that no other has.
        """
        plain = {
            label: {topic: sorted(partitions) for topic, partitions in held.items()} for label, held in expected.items()
        }
        return self._hold("verify.assigned", timeout, expected=plain)

    def assert_owned_exactly_once(self, topics: Collection[str] | None = None, timeout: float = 0) -> Self:
        """The group is Stable, and each partition of these topics is owned by exactly one member.

        Without topics: of those its members subscribe to.
        """
        return self._hold("verify.owned", timeout, topics=None if topics is None else list(topics))

    def assert_committed(self, offsets: Mapping[tuple[str, int], int], timeout: float = 0) -> Self:
        """These offsets, by topic and partition, are committed. Others may be, too."""
        rows = [(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        return self._hold("verify.committed", timeout, offsets=rows)

    # -- requests and members --------------------------------------------------------------------------------

    def assert_request(  # noqa: PLR0913 - each names something else of a request
        self,
        api: str,
        *,
        error: str | None = None,
        times: int | None = None,
        at_least: int | None = None,
        client_id: str | None = None,
        member: str | None = None,
        instance_id: str | None = None,
        generation: int | None = None,
        timeout: float = 0,
    ) -> Self:
        """Such requests came: exactly so many `times`, or `at_least` so many; nothing said is at least one.

        `api` is one whose requests name one group, such as "OffsetCommit"; `error` what it was answered with ("NONE":
        all went well; nothing said: answered or not). `client_id` is a glob, `member` an instance id, a member id or a
        client id. `generation` is that of the request, or that a JoinGroup has led to.
        """
        wanted = {"client_id": client_id, "member": member, "instance_id": instance_id, "generation": generation}
        return self._hold("verify.requests", timeout, api=api, error=error, times=times, at_least=at_least, **wanted)

    def assert_left(self, member: str, timeout: float = 0) -> Self:
        """A member, by instance id, member id or client id, has left by LeaveGroup: it was not thrown out."""
        return self._hold("verify.left", timeout, member=member)

    def assert_did_not_leave(self, member: str) -> Self:
        """A member, likewise, has sent no LeaveGroup, nor anybody for it."""
        return self._hold("verify.did_not_leave", 0, member=member)

    def assert_fenced(self, instance_id: str, timeout: float = 0) -> Self:
        """Somebody was told FENCED_INSTANCE_ID as this instance: another has taken its place (KIP-345)."""
        return self._hold("verify.fenced", timeout, instance_id=instance_id)

    def assert_no_zombie_commits(self) -> Self:
        """Nobody has committed in an old generation, after it was out of the group, or what another member owned."""
        return self._hold("verify.no_zombies", 0)

    def assert_conformant(self, ignore: Collection[str] = (), *, auto_commit: bool | None = None) -> Self:
        """None of the client checks C01 to C10 fails over the trace so far; docs/assertions.md explains them.

        `ignore` names checks that are not asked. `auto_commit`: whether the members commit automatically; the trace
        cannot say so, and C10 does not fail without it. `conformance` has the verdicts.
        """
        return self._hold("verify.conforms", 0, ignore=list(ignore), auto_commit=auto_commit)

    def conformance(self, *, auto_commit: bool | None = None) -> dict[str, Verdict]:
        """The verdicts of the client checks, by id; "inconclusive" is what the coordinator cannot see."""
        judged = self._port.call("verify.conforms", group=self.id, auto_commit=auto_commit)
        return {each["id"]: Verdict(**{**each, "evidence": tuple(each["evidence"])}) for each in judged["checks"]}

    # -- what they share -------------------------------------------------------------------------------------

    def _hold(self, operation: str, timeout_s: float, **arguments: object) -> Self:
        self._judge(operation, timeout_s, **arguments)
        return self

    def _judge(self, operation: str, timeout_s: float, **arguments: object) -> dict[str, Any]:
        verdict: dict[str, Any]
        if timeout_s:
            verdict = self._port.wait(operation, timeout_s, group=self.id, **arguments)
        else:
            verdict = self._port.call(operation, group=self.id, **arguments)
        if not verdict["ok"]:
            waited = f", within {timeout_s:g} s" if timeout_s else ""
            raise AssertionError(self._story(f"group {self.id!r}{waited}: {verdict['message']}"))
        return verdict

    def _story(self, said: str) -> str:
        try:
            lines = timeline(self.events())
        except EmulatorOnly:
            # a running Kafka does not tell what has happened
            return f"{said}\nnow: {self.snapshot()}"
        held = [f"held just now: {each}" for each in self._port.call("holds.blocked", group=self.id)]
        happened = ["its last events:", *lines] if lines else ["nothing has ever happened in it"]
        return "\n".join([said, f"now: {self.snapshot()}", *held, *happened])


def _rebalance(given: dict[str, Any]) -> Rebalance:
    return Rebalance(**{**given, "members": tuple(given["members"]), "timed_out": tuple(given["timed_out"])})
