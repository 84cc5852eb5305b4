"""Member processes: start them, read their reports, stop them, and end them in any case."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from bouncing import java_client

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from bouncing.clients import Membership

EXAMPLES = Path(__file__).resolve().parent.parent

PATIENCE_S = 20.0
"""The limit of every wait; each takes a second or two on an idle machine."""

ATTENTION_S = 0.02

Seen = dict[str, Any]
"""An event of a member process, see `bouncing.member`."""


class LateError(Exception):
    """A wait exceeded its limit; the text names the condition."""


def wait_for(what: str, happened: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Wait for a condition; raise LateError, which names it, after the limit."""
    until = time.monotonic() + patience_s
    while not happened():
        if time.monotonic() > until:
            raise LateError(f"waited {patience_s:g} s in vain for: {what}")
        time.sleep(ATTENTION_S)


@dataclass(frozen=True)
class Callback:
    """An assign or revoke callback of a member; `at` in seconds since the epoch, `held` its partitions afterwards."""

    at: float
    kind: str
    held: frozenset[int]


def python_command(client: str, membership: Membership) -> list[str]:
    """Return the command of a member with one of the Python clients."""
    return [sys.executable, "-m", "bouncing.member", client, json.dumps(asdict(membership))]


class Member:
    """One consumer process. `name` is its place in the group, which its replacement takes over in a bounce."""

    def __init__(self, name: str, client: str, membership: Membership, errors: IO[bytes]) -> None:
        self.name = name
        self.client = client
        self.membership = membership
        self.errors = errors
        self.seen: list[Seen] = []
        self.started_at = time.time()
        self.ended_at: float | None = None
        self._process = subprocess.Popen(
            java_client.command(membership) if client == "java" else python_command(client, membership),
            cwd=EXAMPLES,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            # a Ctrl-C goes to the demo, which stops the members in its own order
            start_new_session=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.seen.append(json.loads(line))

    @property
    def pid(self) -> int:
        """The pid of the process."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    @property
    def callbacks(self) -> list[Callback]:
        """All assign and revoke callbacks so far. Each names the partitions that come or go."""
        found = []
        held: frozenset[int] = frozenset()
        for event in list(self.seen):
            if event["event"] in {"assigned", "revoked"}:
                held = (
                    held | set(event["partitions"]) if event["event"] == "assigned" else held - set(event["partitions"])
                )
                found.append(Callback(event["at"], event["event"], held))
        return found

    @property
    def partitions(self) -> tuple[int, ...]:
        """The partitions it owns, by its own callbacks."""
        last = next(reversed(self.callbacks), None)
        return tuple(sorted(last.held)) if last is not None else ()

    @property
    def consumed(self) -> list[tuple[int, int]]:
        """All records it has reported, as (partition, offset)."""
        return [
            (partition, offset)
            for event in list(self.seen)
            if event["event"] == "consumed"
            for partition, first, last in event["ranges"]
            for offset in range(first, last + 1)
        ]

    @property
    def gave_up(self) -> Seen | None:
        """The client's own error that ended it, if there is one."""
        return next((event for event in list(self.seen) if event["event"] == "gave_up"), None)

    def stop(self) -> None:
        """Close its consumer (SIGTERM); `wait` for its end."""
        self._process.terminate()

    def kill(self) -> None:
        """Crash it (SIGKILL), without a LeaveGroup; `wait` for its end."""
        self._process.kill()

    def wait(self) -> int:
        """Wait for the process and its remaining output to end; return its exit status."""
        try:
            status = self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise LateError(
                f"waited {PATIENCE_S:g} s in vain for the end of {self.name} (process {self.pid})"
            ) from None
        self._listener.join(PATIENCE_S)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self.ended_at = time.time()
        return status

    def complaints(self, lines: int = 10) -> str:
        """Return the last lines of its stderr."""
        self.errors.seek(0)
        return "\n".join(self.errors.read().decode(errors="replace").splitlines()[-lines:])


class Company:
    """All member processes of the demo; none survives the `with` block."""

    def __init__(self) -> None:
        self.members: list[Member] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self.members:
            if member.is_running:
                member.kill()
                member.wait()
            member.errors.close()

    def start(self, name: str, client: str, membership: Membership) -> Member:
        """Start a process; it joins its group by itself."""
        member = Member(name, client, membership, tempfile.TemporaryFile())  # noqa: SIM115 - closed with the company
        self.members.append(member)
        return member

    def complaints(self) -> dict[str, str]:
        """Return the stderr of the members, by name and process."""
        said = {f"{member.name} (process {member.pid})": member.complaints() for member in self.members}
        return {who: text for who, text in said.items() if text}
