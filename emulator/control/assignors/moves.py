"""Record of partition moves between members during balancing."""

from .members import TopicPartition


class Moves:
    """Moves of partitions, used to prevent two members from swapping partitions of a topic (PartitionMovements).

    Members are indexes. Several moves of a partition count as one, from its first owner.
    """

    def __init__(self) -> None:
        self._moved: dict[TopicPartition, tuple[int, int]] = {}
        self._between: dict[tuple[str, int, int], set[TopicPartition]] = {}

    def record(self, partition: TopicPartition, giver: int, taker: int) -> None:
        """Record a move; a return to the first owner cancels the earlier moves."""
        first = giver
        if partition in self._moved:
            first, _ = pair = self._moved.pop(partition)
            self._between[partition[0], *pair].discard(partition)
        if first != taker:
            self._moved[partition] = first, taker
            self._between.setdefault((partition[0], first, taker), set()).add(partition)

    def substitute(self, partition: TopicPartition, giver: int, taker: int) -> TopicPartition:
        """Return the partition to move instead: one of the topic that moved in the opposite direction, if any.

        Several candidates yield the lowest. (Kafka and kafka-python take the first one of a set.)
        """
        first, _ = self._moved.get(partition, (giver, giver))
        opposite = self._between.get((partition[0], taker, first))
        return min(opposite) if opposite else partition
