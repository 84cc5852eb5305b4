"""The interface of schemes: a group of members under one protocol, whose virtual time the caller advances."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from ..record import FactKind, RunRecord

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import TracebackType
    from typing import Self

    from ..load import Load


class Scheme(ABC):
    """A group under a protocol, as a context manager. Times are ms of virtual time; all chance is seeded by the load.

    Members are processes with names; a name that starts again is the same host with the same configuration. `record`
    collects the facts. An action raises ValueError if the state of the process does not allow it.
    """

    def __init__(self, load: Load) -> None:
        self.load = load
        self.random = Random(load.seed)  # noqa: S311 - seeded, so that a run can be repeated
        self.record = RunRecord()
        self.partitions = load.partitions
        self._batch_ms: dict[str, int] = {}
        self._starts: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    @property
    @abstractmethod
    def now_ms(self) -> int:
        """The virtual time."""

    @abstractmethod
    def pass_time(self, seconds: float) -> None:
        """Advance time, with everything that is due."""

    def announce(self, names: Collection[str]) -> None:  # noqa: B027 - most schemes ignore it
        """Announce the members of a deployment before they start or close."""

    @abstractmethod
    def start(self, name: str, batch_s: float | None = None) -> None:
        """Start a process, which joins. It is busy with each batch of records for `batch_s` (drawn by default)."""

    @abstractmethod
    def close(self, name: str) -> None:
        """Close a process in order: it commits, and leaves if its protocol says so."""

    @abstractmethod
    def kill(self, name: str) -> None:
        """Kill a process."""

    @abstractmethod
    def cut_off(self, name: str) -> None:
        """Keep the messages of a member from its coordinator until `reconnect`; the member goes on processing."""

    @abstractmethod
    def reconnect(self, name: str) -> None:
        """End a `cut_off`; delayed messages arrive."""

    def pause(self, name: str) -> None:
        """Pause a process until `resume`, like a collection of garbage: it neither sends nor processes anything."""
        self.record.add(self.now_ms, FactKind.PAUSED, name)
        self.cut_off(name)

    def resume(self, name: str) -> None:
        """Resume a paused process."""
        self.record.add(self.now_ms, FactKind.RESUMED, name)
        self.reconnect(name)

    @abstractmethod
    def grow(self, count: int) -> None:
        """Add partitions to the topic."""

    @abstractmethod
    def stop_broker(self) -> None:
        """Stop the broker with the group's coordinator (and one broker of the topic)."""

    @abstractmethod
    def start_broker(self) -> None:
        """Start the stopped broker again."""

    def end(self) -> None:  # noqa: B027 - most schemes have none
        """Release resources."""

    def process_id(self, name: str) -> str:
        """Return the id of a process: like Kafka's member ids it differs for each start, and sorts by name."""
        return f"{name}-{self._starts[name]}"

    def _up(self, name: str, batch_s: float | None) -> int:
        """Record a started process, and return its time per batch in ms."""
        self.record.add(self.now_ms, FactKind.UP, name)
        self._starts[name] += 1
        if batch_s is not None or name not in self._batch_ms:
            mean_ms = 1000 * (self.load.batch_s if batch_s is None else batch_s)
            self._batch_ms[name] = max(
                1, round(mean_ms * (1 if batch_s is not None else self.random.uniform(0.2, 1.8)))
            )
        return self._batch_ms[name]
