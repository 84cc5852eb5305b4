"""A member of the soak's share group: it acknowledges records, and remembers which acknowledgements were accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from brokers.soak_client import PAUSE_S, SoakClient
from koordinator.wire.errors import Error
from koordinator.wire.messages import share_acknowledge as acknowledging
from koordinator.wire.messages import share_fetch as fetching
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

if TYPE_CHECKING:
    import random

    from brokers.soak import Figures, Lives
    from koordinator.client.connection import BrokerConnection

GROUP = "workers"
ACCEPT, RELEASE = 1, 2

AGAIN = {
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.NOT_COORDINATOR,
    Error.NOT_LEADER_OR_FOLLOWER,
}

Place = tuple[Any, int, int]
"""Topic id, partition, offset."""


class ShareWorker(SoakClient):
    """A member that accepts most records and releases some. `accepted` has the records of all workers.

    A record whose acknowledgement has no response may be delivered again, or not.
    """

    def __init__(
        self, number: int, topic: str, chance: random.Random, accepted: set[Place], figures: Figures, lives: Lives
    ) -> None:
        super().__init__(f"worker-{number}", figures, lives)
        self._topic, self._chance, self._accepted = topic, chance, accepted

    def _live(self, link: BrokerConnection) -> None:
        rows = self._join(link)
        if not rows:
            return
        topic_id, numbers = rows[0].topic_id, rows[0].partitions
        epoch = 0
        while not self.lives.over.is_set():
            acquired = self._fetch(link, epoch, topic_id, numbers)
            epoch += 1
            for number, first, last in acquired:
                self._acknowledge(link, epoch, (topic_id, number), first, last)
                epoch += 1
            if not acquired:
                self.lives.over.wait(PAUSE_S)

    def _join(self, link: BrokerConnection) -> Any:
        """Join as the same member, and send heartbeats until partitions are assigned; return them."""
        epoch, topics = 0, (self._topic,)
        while not self.lives.over.is_set():
            request = ShareGroupHeartbeatRequest(
                group_id=GROUP, member_id=self.name, member_epoch=epoch, subscribed_topic_names=topics or None
            )
            answer = self._ask(link, request, 1)
            if Error(answer.error_code) in AGAIN:
                self.lives.over.wait(PAUSE_S)
                continue
            assert not answer.error_code, answer
            if answer.assignment is not None and answer.assignment.topic_partitions:
                return answer.assignment.topic_partitions
            epoch, topics = answer.member_epoch, ()
            self.lives.over.wait(PAUSE_S)
        return ()

    def _fetch(self, link: BrokerConnection, epoch: int, topic_id: Any, numbers: Any) -> list[tuple[int, int, int]]:
        partitions = tuple(fetching.FetchPartition(partition_index=number) for number in numbers)
        request = fetching.ShareFetchRequest(
            group_id=GROUP,
            member_id=self.name,
            share_session_epoch=epoch,
            max_wait_ms=0,
            min_bytes=0,
            max_records=20,
            batch_size=20,
            topics=() if epoch else (fetching.FetchTopic(topic_id=topic_id, partitions=partitions),),
        )
        answer = self._ask(link, request, 1)
        assert not answer.error_code, answer
        acquired = []
        for row in (row for topic in answer.responses for row in topic.partitions):
            assert not row.error_code or Error(row.error_code) in AGAIN, row
            for each in row.acquired_records:
                acquired.append((row.partition_index, each.first_offset, each.last_offset))
                self._judge((topic_id, row.partition_index), each.first_offset, each.last_offset)
        return acquired

    def _judge(self, place: tuple[Any, int], first: int, last: int) -> None:
        for offset in range(first, last + 1):
            if (*place, offset) in self._accepted:
                text = (
                    f"{self.name} in life {self.lives.number}: {place[1]}: {offset} is delivered after its acceptance"
                )
                self.figures.lost.append(text)

    def _acknowledge(self, link: BrokerConnection, epoch: int, place: tuple[Any, int], first: int, last: int) -> None:
        kind = ACCEPT if self._chance.random() < 0.8 else RELEASE
        batch = acknowledging.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=(kind,))
        row = acknowledging.AcknowledgePartition(partition_index=place[1], acknowledgement_batches=(batch,))
        request = acknowledging.ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=self.name,
            share_session_epoch=epoch,
            topics=(acknowledging.AcknowledgeTopic(topic_id=place[0], partitions=(row,)),),
        )
        answer = self._ask(link, request, 1)
        assert not answer.error_code, answer
        code = answer.responses[0].partitions[0].error_code
        assert not code or Error(code) in AGAIN, Error(code)
        if not code and kind == ACCEPT:
            self._accepted.update((*place, offset) for offset in range(first, last + 1))
            self.figures.accepted += last - first + 1
