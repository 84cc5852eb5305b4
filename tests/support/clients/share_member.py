"""A member of a share group that sends one request after the other, on a connection of its own (KIP-932)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Self

from clients.asking_client import AskingClient

from koordinator.wire.messages import share_acknowledge as acknowledging
from koordinator.wire.messages import share_fetch as fetching
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

if TYPE_CHECKING:
    from koordinator import Cluster

Rows = list[tuple[int, int, int]]
"""First and last offset, and delivery count, of acquired records."""


class ShareMember(AbstractContextManager["ShareMember"]):
    """Member `name` of group g, which reads the first partition of a topic."""

    def __init__(self, cluster: Cluster, topic: str, name: str = "A", group: str = "g") -> None:
        host, port = cluster.bootstrap_servers.split(":")
        self._client = AskingClient((host, int(port)))
        self._cluster = cluster
        self.name, self.group, self._topic = name, group, topic
        self._topic_id: Any = None
        self._epoch = 0

    def __enter__(self) -> Self:
        """Connect."""
        self._client.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """Close the connection, and with it the share session."""
        self._client.__exit__(*error)

    def join(self) -> int:
        """Join, and send heartbeats until the partition is assigned; return the epoch."""
        epoch, assignment = self.beat(0, (self._topic,))
        while not assignment:
            epoch, assignment = self.beat(epoch)
        self._topic_id = assignment[0].topic_id
        return epoch

    def beat(self, epoch: int, topics: tuple[str, ...] | None = None) -> tuple[int, Any]:
        """Send a heartbeat; return the epoch and the rows of the assignment."""
        request = ShareGroupHeartbeatRequest(
            group_id=self.group, member_id=self.name, member_epoch=epoch, subscribed_topic_names=topics
        )
        response = self._client.ask(request, 1)
        assert response.error_code == 0, response
        return response.member_epoch, response.assignment and response.assignment.topic_partitions

    def fetch(self, wait_ms: int = 0) -> Rows:
        """Fetch; return what was acquired."""
        response = self._fetch(wait_ms)
        assert response.error_code == 0, response
        self._epoch += 1
        rows = [row for topic in response.responses for row in topic.partitions]
        return [
            (each.first_offset, each.last_offset, each.delivery_count) for row in rows for each in row.acquired_records
        ]

    def fetch_error(self) -> int:
        """Fetch, and return the error of the whole request."""
        code: int = self._fetch(0).error_code
        return code

    def skip_epochs(self, epochs: int) -> None:
        """Go on as if so many requests had been sent."""
        self._epoch += epochs

    def close_session(self) -> None:
        """End the share session; the connection stays."""
        request = acknowledging.ShareAcknowledgeRequest(
            group_id=self.group, member_id=self.name, share_session_epoch=-1
        )
        assert self._client.ask(request, 1).error_code == 0

    def _fetch(self, wait_ms: int) -> Any:
        partition = fetching.FetchPartition(partition_index=0)
        topics = (fetching.FetchTopic(topic_id=self._topic_id, partitions=(partition,)),)
        request = fetching.ShareFetchRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=self._epoch,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_records=500,
            batch_size=500,
            topics=topics if not self._epoch else (),
        )
        return self._client.ask(request, 1)

    def acknowledge(self, first: int, last: int, kind: int = 1) -> int:
        """Acknowledge records, by default as accepted; return the error."""
        batch = acknowledging.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=(kind,))
        partition = acknowledging.AcknowledgePartition(partition_index=0, acknowledgement_batches=(batch,))
        request = acknowledging.ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=self._epoch,
            topics=(acknowledging.AcknowledgeTopic(topic_id=self._topic_id, partitions=(partition,)),),
        )
        response = self._client.ask(request, 1)
        assert response.error_code == 0, response
        self._epoch += 1
        code: int = response.responses[0].partitions[0].error_code
        return code
