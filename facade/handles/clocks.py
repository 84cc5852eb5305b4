"""The part of `Group` with its clock: `group.advance("7d")` and others."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from koordinator.emulator.control.results import Fired, Timer
from koordinator.emulator.control.time.clocks import Clocks

from .checks import GroupTimeout
from .durations import Duration, ms_of, seconds_of
from .names import GroupHandle, MemberLike, member_name, member_names
from .port import WAIT_S
from .renames import renamed
from .words import ClockMode  # noqa: TC001 - arguments are checked with them

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ClockControls", "Duration", "Fired", "KeepAlive", "Timer"]

KeepAlive = Literal["connected", "none"]


class ClockControls(GroupHandle):
    """The clock of a group. An advance returns the timers that fired, in order; an impossible one raises ValueError.

    Clocks of other groups do not move. No time passes for clients: their own timers stay real.
    """

    @property
    def clock(self) -> str:
        """The mode of the group's clock: real, manual or auto."""
        return self._port.call(Clocks.read, group=self.id).mode

    @property
    def now_ms(self) -> int:
        """The group's time, in milliseconds since the epoch."""
        return self._port.call(Clocks.read, group=self.id).now_ms

    def set_clock(self, mode: ClockMode) -> None:
        """Set the mode of the group's clock; its time does not change.

        A real clock runs with the node's clock, and a manual clock stands still until it is advanced. An auto clock
        also skips the initial delay, and the waits for JoinGroup, SyncGroup and pending member ids, once every live
        member has arrived; it never skips sessions.
        """
        self._port.call(Clocks.set_mode, group=self.id, mode=mode)

    def timers(self) -> list[Timer]:
        """Return the running timers, next deadline first; those of kind `offsets` check for expired offsets."""
        return self._port.call(Clocks.timers, group=self.id)

    def awaited(self) -> list[str]:
        """Return the members whose JoinGroup the join phase awaits, or whose SyncGroup the generation awaits."""
        return self._port.call(Clocks.awaited, group=self.id)

    def advance(
        self, duration: Duration, keep_alive: KeepAlive = "connected", expire: MemberLike | Sequence[MemberLike] = ()
    ) -> list[Fired]:
        """Advance the group's clock by seconds, `"7d"`, or a timedelta; every timer due meanwhile fires, in order.

        Connected members that send heartbeats keep their sessions, except those named in `expire`; with
        `keep_alive="none"` no member does. A barrier that begins during the advance and awaits a live member does not
        expire, because no time has passed for its client. Offset checks that expired nothing are not returned.
        """
        by = f"{ms_of(duration)}ms" if isinstance(duration, timedelta) else duration
        names = member_names(expire)
        return self._port.call(Clocks.advance, group=self.id, by=by, keep_alive=keep_alive, expire=names)

    def expire_session(self, member: MemberLike) -> list[Fired]:
        """Advance to the end of a member's session, named by instance, member or client id; the others keep theirs."""
        return self._port.call(Clocks.expire_session, group=self.id, member=member_name(member))

    def expire_join_phase(
        self, without: MemberLike | Sequence[MemberLike] | None = None, timeout: Duration = WAIT_S
    ) -> list[Fired]:
        """Advance to the end of the join phase; all sessions are kept, and members that have not joined are removed.

        With `without` it first waits until all other members have joined, because clients learn of a rebalance from
        their next heartbeat; raises GroupTimeout after `timeout`.
        """
        self._wait_for_all_but(without, timeout)
        return self._port.call(Clocks.expire_join_phase, group=self.id)

    expire_join_barrier = renamed(expire_join_phase)

    def expire_sync(
        self, without: MemberLike | Sequence[MemberLike] | None = None, timeout: Duration = WAIT_S
    ) -> list[Fired]:
        """Advance to the removal of members that have not sent SyncGroup; all sessions are kept.

        With `without` it first waits until all other members have sent it; raises GroupTimeout after `timeout`.
        """
        self._wait_for_all_but(without, timeout)
        return self._port.call(Clocks.expire_sync, group=self.id)

    def expire_revocation(self, member: MemberLike, timeout: Duration = WAIT_S) -> list[Fired]:
        """Advance to the removal of a member that does not give its partitions up (KIP-848); all sessions are kept.

        It first waits until the member is told, by the response to its next heartbeat; raises GroupTimeout after
        `timeout`.
        """
        name, timeout_s = member_name(member), seconds_of(timeout)
        if not self._port.wait(Clocks.revokes, timeout_s, group=self.id, member=name):
            raise GroupTimeout(f"group {self.id!r} did not tell {name} to give partitions up within {timeout_s:g} s")
        return self._port.call(Clocks.expire_revocation, group=self.id, member=name)

    def expire_pending(self, member: MemberLike) -> list[Fired]:
        """Advance to the expiry of a pending member id (KIP-394), named by itself or by its client id."""
        return self._port.call(Clocks.expire_pending, group=self.id, member=member_name(member))

    def expire_offsets(self) -> list[Fired]:
        """Advance to the expiry of every offset that can expire; all sessions are kept (KIP-211)."""
        return self._port.call(Clocks.expire_offsets, group=self.id)

    def _wait_for_all_but(self, without: MemberLike | Sequence[MemberLike] | None, timeout: Duration) -> None:
        if without is None:
            return
        names, timeout_s = member_names(without), seconds_of(timeout)
        if not self._port.wait(Clocks.awaits_only, timeout_s, group=self.id, members=names):
            missing = self.awaited()
            raise GroupTimeout(
                f"group {self.id!r} did not wait for {', '.join(names)} alone within {timeout_s:g} s, "
                f"but for {', '.join(missing) or 'no member'}"
            )
