"""The read_committed reader of the soak: it reads along with the transactions, over all lives of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokers.soak_client import PAUSE_S, SoakClient
from koordinator.client.connection import BrokerConnection, Deadline
from koordinator.wire.control_records import read_marker
from koordinator.wire.errors import Error
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.records import read_records, whole_batches

if TYPE_CHECKING:
    from collections.abc import Iterable

    from brokers.soak import Figures, Lives
    from brokers.transactional_soak import TransactionalProducer
    from koordinator.wire.messages.fetch import PartitionData

READ_COMMITTED = 1
PARTITION_BYTES_MAX = 1 << 20
END_S = 60


class CommittedReader(SoakClient):
    """A reader of a topic that skips aborted records as consumers do (KIP-98): by the list in each Fetch response."""

    def __init__(self, topic: str, partitions: int, figures: Figures, lives: Lives) -> None:
        super().__init__("reader", figures, lives)
        self._topic = topic
        self._offsets = dict.fromkeys(range(partitions), 0)
        self.seen: list[bytes] = []

    def _live(self, link: BrokerConnection) -> None:
        while not self.lives.over.is_set():
            self._read(link)
            self.lives.over.wait(PAUSE_S)

    def read_rest(self) -> None:
        """Read to the end, once all producers have ended: their last markers may be under way."""
        link, deadline = BrokerConnection(self.lives.address, Deadline(END_S), "0"), Deadline(END_S)
        while not self._read(link):
            assert deadline.left(), f"a transaction is still open after {END_S} s"
        link.close()

    def _read(self, link: BrokerConnection) -> bool:
        """Read on in every partition; return whether all have been read to the end."""
        places = tuple(
            FetchPartition(partition=at, fetch_offset=offset, partition_max_bytes=PARTITION_BYTES_MAX)
            for at, offset in self._offsets.items()
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=PARTITION_BYTES_MAX,
            isolation_level=READ_COMMITTED,
            topics=(FetchTopic(topic=self._topic, partitions=places),),
        )
        rows = self._ask(link, request, 11).responses[0].partitions
        for row in rows:
            self._take(row)
        return all(self._offsets[row.partition_index] == row.high_watermark for row in rows)

    def _take(self, row: PartitionData) -> None:
        if row.error_code:
            self.figures.lost.append(f"reader in life {self.lives.number}: {Error(row.error_code).name}")
        aborted = sorted((each.first_offset, each.producer_id) for each in row.aborted_transactions or ())
        aborting: set[int] = set()
        for header, batch in whole_batches(row.records or b""):
            while aborted and aborted[0][0] <= header.base_offset:
                aborting.add(aborted.pop(0)[1])
            self._offsets[row.partition_index] = header.last_offset + 1
            if header.is_control:
                if not read_marker(batch).is_commit:
                    aborting.discard(header.producer_id)
            elif header.producer_id not in aborting:
                self.seen += (record.value or b"" for record in read_records(batch))

    def judge(self, producers: Iterable[TransactionalProducer]) -> list[str]:
        """Return what is wrong in what was read: each committed record is to be there once, and no aborted one."""
        seen = set(self.seen)
        wrong = [f"reader: {len(self.seen) - len(seen)} records twice"] * (len(seen) < len(self.seen))
        for each in producers:
            wrong += [f"reader: committed record {value!r} is lost" for value in sorted(each.committed - seen)]
            wrong += [f"reader: aborted record {value!r} is visible" for value in sorted(each.aborted & seen)]
        return wrong
