"""What a test may do with the time of a group: `group.advance("7d")` and its like."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from .checks import WAIT_S, GroupTimeout

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .port import Port

Duration = float | str | timedelta
"""Seconds, or a text such as "7d", "5m", "45s" and "250ms", or a timedelta."""

KeepAlive = Literal["connected", "none"]


@dataclass(frozen=True, slots=True)
class Fired:
    """A timer that fired: `kind` is session, pending, initial_delay, join, sync or offsets.

    `deadline_ms` is the group's time at which it was due, in milliseconds since the epoch. `member_id` and
    `instance_id` are those of the member it was for, if it was for one. `generation` is the group's, before it fired.
    """

    kind: str
    member_id: str | None
    instance_id: str | None
    deadline_ms: int
    generation: int

    def __str__(self) -> str:
        who = self.instance_id or self.member_id
        return self.kind if who is None else f"{self.kind} of {who}"


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer that is running, `remaining_ms` to go in the group's time; for the rest see `Fired`."""

    kind: str
    member_id: str | None
    instance_id: str | None
    deadline_ms: int
    remaining_ms: int
    generation: int


class ClockControls:
    """A group's clock. What moves it returns the timers that fired, in order, and raises ValueError if it cannot be.

    Other groups do not notice. To clients no time passes: what they time themselves stays real.
    """

    _port: Port
    id: str

    @property
    def clock(self) -> str:
        """How the group's clock runs: real, manual or auto."""
        return str(self._read_clock()["mode"])

    @property
    def now_ms(self) -> int:
        """What the group's clock shows, in milliseconds since the epoch."""
        return int(self._read_clock()["now_ms"])

    def set_clock(self, mode: Literal["real", "manual", "auto"]) -> None:
        """Let the group's clock run as the node's (real); stand still until it is moved (manual); or jump (auto).

        Auto jumps over the initial delay, and over waits for JoinGroup, SyncGroup and handed-out member ids, once
        everybody has come who is alive; never over sessions. It goes on from the time that it shows.
        """
        self._port.call("clocks.set_mode", group=self.id, mode=mode)

    def timers(self) -> list[Timer]:
        """The timers that are running, the next one first; those of kind `offsets` look for old offsets."""
        return [Timer(**timer) for timer in self._port.call("clocks.timers", group=self.id)]

    def awaited(self) -> list[str]:
        """Whom the group waits for: who has not joined in its join phase, or not sent SyncGroup in its generation."""
        return list(self._port.call("clocks.awaited", group=self.id))

    def advance(
        self, duration: Duration, keep_alive: KeepAlive = "connected", expire: Sequence[str] = ()
    ) -> list[Fired]:
        """Move the group's clock ahead by seconds, `"7d"`, or a timedelta; what was due meanwhile happens, in order.

        Members that are connected and heart-beating live on, except those named in `expire`, whose sessions end; with
        `keep_alive="none"` nobody does. A wait for a member that begins on the way is not over at the end, because to
        its client no time has passed. A check that finds no old offsets is not in the list.
        """
        by = f"{duration // timedelta(milliseconds=1)}ms" if isinstance(duration, timedelta) else duration
        expire = [expire] if isinstance(expire, str) else list(expire)
        return self._fired("clocks.advance", by=by, keep_alive=keep_alive, expire=expire)

    def expire_session(self, member: str) -> list[Fired]:
        """Move on to where the session of a member ends, named by instance, member or client id; the others live on."""
        return self._fired("clocks.expire_session", member=member)

    def expire_join_barrier(self, without: str | Sequence[str] | None = None, timeout: float = WAIT_S) -> list[Fired]:
        """Move on to where the group waits no longer for members to join; all sessions live on.

        Whoever has not joined by then is out. With `without` it first waits until everybody else has joined, because
        clients learn of a rebalance with their next heartbeat only; GroupTimeout after `timeout` seconds.
        """
        self._wait_for_all_but(without, timeout)
        return self._fired("clocks.expire_join_barrier")

    def expire_sync(self, without: str | Sequence[str] | None = None, timeout: float = WAIT_S) -> list[Fired]:
        """Move on to where members that have not sent their SyncGroup are removed; all sessions live on.

        With `without` it first waits until everybody else has sent it, likewise.
        """
        self._wait_for_all_but(without, timeout)
        return self._fired("clocks.expire_sync")

    def expire_pending(self, member: str) -> list[Fired]:
        """Move on to where a handed-out member id is forgotten (KIP-394), named by itself or by its client id."""
        return self._fired("clocks.expire_pending", member=member)

    def expire_offsets(self) -> list[Fired]:
        """Move on to where every offset expires that the group does without; all sessions live on (KIP-211)."""
        return self._fired("clocks.expire_offsets")

    def _fired(self, operation: str, **arguments: Any) -> list[Fired]:  # noqa: ANN401 - plain data
        told: Iterable[dict[str, Any]] = self._port.call(operation, group=self.id, **arguments)
        return [Fired(**each) for each in told]

    def _wait_for_all_but(self, without: str | Sequence[str] | None, timeout_s: float) -> None:
        if without is None:
            return
        names = [without] if isinstance(without, str) else list(without)
        if not self._port.wait("clocks.awaits_only", timeout_s, group=self.id, members=names):
            missing = self.awaited()
            raise GroupTimeout(
                f"group {self.id!r} was not waiting for {', '.join(names)} alone within {timeout_s:g} s, "
                f"but for {', '.join(missing) or 'nobody'}"
            )

    def _read_clock(self) -> dict[str, Any]:
        clock: dict[str, Any] = self._port.call("clocks.read", group=self.id)
        return clock
