"""Members of share groups at the leader of a partition: ShareFetch and ShareAcknowledge.

Partition 0 of x is fetched, if nothing else is said. Acquired records are a text such as "0-9/1 10-14/2": the offsets
and the number of deliveries. Acknowledgements are a text such as "0-4=1 5-7=1,2,3": a type for all offsets, or one for
each.
Each member has a connection of its own, with its id for a name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages import share_acknowledge as acknowledge_wire
from koordinator.wire.messages import share_fetch as fetch_wire
from koordinator.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from scenarios.requests import LIMIT_S
from scenarios.share_states import ShareStates

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenarios.answers import Partition, PendingWithError
    from scenarios.player import Player

VERSION = 2

WAIT_MS = 2_000
"""How long a fetch may wait that gets records: those before may still be loaded or locked by another request."""

X = "x", 0

NEWER_CONFIGS = frozenset(
    {"share_delivery_count_limit", "share_partition_max_record_locks", "share_renew_acknowledge_enable"}
)
"""The configs of share groups that 4.2 does not have."""


class ShareFetches(ShareStates):
    """Requests of the play's group to the leader of partitions. Times are in ms, and not scaled."""

    def __init__(self, play: Player) -> None:
        play.needs(ApiKey.SHARE_FETCH, VERSION)
        super().__init__(play)

    def begin(self, *counts: int, partitions: int = 1, **configs: object) -> None:
        """Configure the group, create x, let A join, and write batches of so many records."""
        if NEWER_CONFIGS & configs.keys():
            self.needs_newer_configs()
        assert self.configure(**{"share_auto_offset_reset": "earliest", **configs}) == Error.NONE
        self.new_topic("x", partitions, configs={"retention.ms": "-1"})
        assert self.settle_in("A", ["x"]) == (3, {"x": [*range(partitions)]})
        self.produce("x", *counts)

    def delete_records(self, before: int) -> None:
        """Delete the records of x before an offset."""
        row = DeleteRecordsPartition(partition_index=0, offset=before)
        topic = DeleteRecordsTopic(name=self._real["x"], partitions=(row,))
        answer = self._play.slowly(DeleteRecordsRequest(topics=(topic,), timeout_ms=LIMIT_S * 1000), 1)
        assert answer.topics[0].partitions[0].error_code == Error.NONE, answer

    # -- ShareFetch --------------------------------------------------------------------------------------------

    def fetching(
        self,
        member_id: str | None,
        epoch: int,
        *added: Partition,
        wait: int = 0,
        acks: str = "",
        at: Partition = X,
        forgotten: Iterable[Partition] = (),
        on: str | None = None,
        version: int = VERSION,
        **fields: Any,
    ) -> PendingWithError[Any]:
        """Send ShareFetch; with `wait` it waits for a record. `acks` are acknowledgements for `at`."""
        batches = tuple(fetch_wire.AcknowledgementBatch(**each) for each in _acknowledgements(acks)) if acks else ()
        rows = [
            (each, fetch_wire.FetchPartition(partition_index=each[1], acknowledgement_batches=batches * (each == at)))
            for each in (*added, *([at] if acks and at not in added else []))
        ]
        limits = {"max_bytes": 1 << 20, "max_records": 500, "batch_size": 500, "group_id": self._play.g}
        request = fetch_wire.ShareFetchRequest(
            member_id=member_id,
            share_session_epoch=epoch,
            topics=tuple(fetch_wire.FetchTopic(topic_id=self._id_of(each), partitions=(row,)) for each, row in rows),
            forgotten_topics_data=tuple(
                fetch_wire.ForgottenTopic(topic_id=self._id_of(at), partitions=(at[1],)) for at in forgotten
            ),
            **{"max_wait_ms": wait, "min_bytes": int(wait > 0), **limits, **fields},
        )
        return self._play.ask(request, version, on=on or member_id)

    def fetched(self, asked: PendingWithError[Any]) -> Any:
        """Return what a ShareFetch has acquired; its error, if it has one."""
        answer = self._answer(asked)
        assert answer.error_message is None
        if answer.error_code:
            assert answer.responses == ()
            return answer.error_code
        return {
            (self._named_topic(topic.topic_id), row.partition_index): _shown(row)
            for topic in answer.responses
            for row in topic.partitions
        }

    def fetch(self, member_id: str | None, epoch: int, *added: Partition, **fields: Any) -> Any:
        """F: ShareFetch: the acquired records by partition, or the error."""
        return self.fetched(self.fetching(member_id, epoch, *added, **fields))

    def take(self, member_id: str, epoch: int, **fields: Any) -> str:
        """ShareFetch that gets records of x-0, which it adds to a new session: the acquired records."""
        given = self.fetch(member_id, epoch, *([X] if epoch == 0 else []), **{"wait": WAIT_MS, **fields})
        assert [*given] == [X], given
        acquired: str = given[X]
        return acquired

    # -- ShareAcknowledge --------------------------------------------------------------------------------------

    def acknowledge(
        self,
        member_id: str,
        epoch: int,
        acks: str = "",
        *others: tuple[Partition, str],
        renews: bool = False,
        version: int = VERSION,
        on: str | None = None,
    ) -> Any:
        """A: ShareAcknowledge for x-0: its error, with the message if there is one; None without its row.

        With other partitions: the errors by partition. The error of the request is in a tuple of its own.
        """
        topics = tuple(
            acknowledge_wire.AcknowledgeTopic(
                topic_id=self._id_of(at),
                partitions=(
                    acknowledge_wire.AcknowledgePartition(
                        partition_index=at[1],
                        acknowledgement_batches=tuple(
                            acknowledge_wire.AcknowledgementBatch(**each) for each in _acknowledgements(text)
                        ),
                    ),
                ),
            )
            for at, text in ((X, acks), *others)
        )
        request = acknowledge_wire.ShareAcknowledgeRequest(
            group_id=self._play.g, member_id=member_id, share_session_epoch=epoch, is_renew_ack=renews, topics=topics
        )
        answer = self._answer(self._play.ask(request, version, on=on or member_id))
        assert answer.error_message is None
        if answer.error_code:
            assert answer.responses == ()
            return (answer.error_code,)
        found = {
            (self._named_topic(topic.topic_id), row.partition_index): row.error_code
            if row.error_message is None
            else (row.error_code, row.error_message)
            for topic in answer.responses
            for row in topic.partitions
        }
        return found if others else found.get(X)

    def _answer(self, asked: PendingWithError[Any]) -> Any:
        self._play.target.pass_time(lambda: asked.is_over, self._play.limit)
        return asked.answer()

    def _named_topic(self, topic_id: Any) -> str:
        return self._names.get(topic_id, "?")


def _shown(row: Any) -> Any:
    """Return the acquired records of a row, or its error; and the error of its acknowledgements, if there is one."""
    assert row.error_message is None
    assert row.records is not None
    acquired = " ".join(
        f"{each.first_offset}-{each.last_offset}/{each.delivery_count}" for each in row.acquired_records
    )
    fetched = row.error_code or acquired
    refused = row.acknowledge_error_code, row.acknowledge_error_message
    return fetched if refused == (Error.NONE, None) else (fetched, *refused)


def _acknowledgements(text: str) -> Iterable[dict[str, Any]]:
    """Yield the fields of the batches of a text."""
    for batch in text.split():
        offsets, types = batch.split("=")
        first, last = offsets.split("-")
        yield {
            "first_offset": int(first),
            "last_offset": int(last),
            "acknowledge_types": tuple(int(each) for each in types.split(",") if each),
        }
