"""What has moved from whom to whom while a group is being balanced."""

from .members import TopicPartition


class Moves:
    """Keeps two members from handing each other partitions of one topic (Kafka's PartitionMovements).

    Members are numbers. A partition that moves on and on counts as moved once, from where it was at first.
    """

    def __init__(self) -> None:
        self._moved: dict[TopicPartition, tuple[int, int]] = {}
        self._between: dict[tuple[str, int, int], set[TopicPartition]] = {}

    def moved(self, partition: TopicPartition, giver: int, taker: int) -> None:
        """A partition goes from one member to another; if that is where it came from, it has not moved at all."""
        first = giver
        if partition in self._moved:
            first, _ = pair = self._moved.pop(partition)
            self._between[partition[0], *pair].discard(partition)
        if first != taker:
            self._moved[partition] = first, taker
            self._between.setdefault((partition[0], first, taker), set()).add(partition)

    def instead_of(self, partition: TopicPartition, giver: int, taker: int) -> TopicPartition:
        """What to move in its place: a partition of the topic that came the other way goes back rather than two cross.

        Of several the first is taken. (Kafka and kafka-python take whichever their sets have first.)
        """
        first, _ = self._moved.get(partition, (giver, giver))
        back = self._between.get((partition[0], taker, first))
        return min(back) if back else partition
