"""What the broker ring wants of the place where logs are kept on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from uuid import UUID


class Store(Protocol):
    """Where logs are kept (`data_dir.DataDir`). A partition is named with its topic's id: names come again."""

    def append(self, name: str, topic_id: UUID, partition: int, batches: bytes) -> None:
        """Have batches written behind those the partition has; nothing is done before `sync`."""

    def sync(self) -> None:
        """Write all that was appended, and wait until it is on disk. OSError: then nothing of it is there."""

    def rewrite(self, name: str, topic_id: UUID, partition: int, batches: bytes) -> None:
        """Put these batches in the place of all that the partition has. What fails leaves that as it is."""
