"""An Arroyo processor that prints each value of a topic."""

import signal
import sys
from collections.abc import Mapping

from arroyo import Topic
from arroyo.backends.kafka import KafkaConsumer, KafkaPayload
from arroyo.backends.kafka.configuration import build_kafka_consumer_configuration
from arroyo.commit import ONCE_PER_SECOND
from arroyo.processing.processor import StreamProcessor
from arroyo.processing.strategies import CommitOffsets, ProcessingStrategy, ProcessingStrategyFactory, RunTask
from arroyo.types import Commit, Message, Partition

servers, topic, group = sys.argv[1:]


def handle(message: Message[KafkaPayload]) -> None:
    """Print a value."""
    print(message.payload.value.decode(), flush=True)


class Factory(ProcessingStrategyFactory[KafkaPayload]):
    """The steps of each assignment."""

    def create_with_partitions(
        self, commit: Commit, partitions: Mapping[Partition, int]
    ) -> ProcessingStrategy[KafkaPayload]:
        """Print, then commit."""
        return RunTask(handle, CommitOffsets(commit))


config = build_kafka_consumer_configuration(
    {}, bootstrap_servers=[servers], group_id=group, auto_offset_reset="earliest"
)
processor = StreamProcessor(KafkaConsumer(config), Topic(topic), Factory(), ONCE_PER_SECOND)
signal.signal(signal.SIGTERM, lambda *_: processor.signal_shutdown())
processor.run()
