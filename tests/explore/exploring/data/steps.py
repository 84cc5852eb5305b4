"""Sequences of requests for a few topics: t and u exist from the beginning, v and w do not."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from exploring.data.batches import DAMAGES, MESSAGE_DAMAGES, OLD_DAMAGES, STAMPS, Batch
from exploring.releases import versions_of
from exploring.transactions.steps import Sequence, Step

if TYPE_CHECKING:
    from exploring.releases import Release

DRAWS = (10, 24)

WEIGHTS = {
    "Produce": 30,
    "Fetch": 16,
    "ListOffsets": 8,
    "DeleteRecords": 5,
    "OffsetForLeaderEpoch": 3,
    "Metadata": 6,
    "CreateTopics": 6,
    "DeleteTopics": 3,
    "CreatePartitions": 4,
    "DescribeConfigs": 3,
    "IncrementalAlterConfigs": 7,
    "DescribeTopicPartitions": 2,
}

TOPICS = ("t",) * 12 + ("u",) * 5 + ("v",) * 3 + ("w",)
ODD_TOPICS = ("nosuch", "bad name", "", "..", "x" * 250, "collides")
PARTITIONS = (0,) * 8 + (1,) * 4 + (2, 2, 3, 9, -1)
OFFSETS = (0, 0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 8, 12, 100, -1, -2, 1 << 40)
EPOCHS = (-1,) * 12 + (0, 0, 0, 1, -2, 7)
CODECS = ("none",) * 6 + ("gzip", "snappy", "lz4", "zstd")
MAX_BYTES = (1 << 20,) * 8 + (0, 1, 60, 100, 200, 400, -1)
MAGIC_2_SINCE = 3
SESSIONS_SINCE = 7

CONFIGS: dict[str, tuple[str | None, ...]] = {
    "cleanup.policy": ("compact", "compact", "delete", "compact,delete", "delete,compact", "bogus", "", None),
    "message.timestamp.type": ("LogAppendTime", "LogAppendTime", "CreateTime", "logappendtime"),
    "max.message.bytes": ("100", "200", "1000", "0", "-1", "abc", " 300 "),
    "message.timestamp.before.max.ms": ("43200000", "43200000", "-1", "0"),
    "message.timestamp.after.max.ms": ("43200000", "9223372036854775807", "-5"),
    "message.timestamp.difference.max.ms": ("43200000", "-1"),
    "min.insync.replicas": ("1", "2", "0", "x"),
    "retention.ms": ("-1", "-2", "86400000000", "9223372036854775808"),
    "retention.bytes": ("-1", "1000000"),
    "segment.bytes": ("13", "1048576", "2097152"),
    "segment.ms": ("0", "604800000000"),
    "index.interval.bytes": ("0", "4096"),
    "min.cleanable.dirty.ratio": ("0.3", "1.5", "-0.1"),
    "unclean.leader.election.enable": ("true", "TRUE", "yes"),
    "flush.messages": ("1", "0"),
    "preallocate": ("false", "no"),
    "leader.replication.throttled.replicas": ("*", "0:1,1:1", "none"),
    "max.compaction.lag.ms": ("100000000", "0"),
    "min.compaction.lag.ms": ("0", "-1", "200000000"),
    "nosuch.config": ("1",),
    "": ("1",),
}
"""The configs of topics, with values that have no effect in time, or that are refused."""

SET, DELETE, APPEND, SUBTRACT = range(4)


class _Generator:
    def __init__(self, chance: random.Random, release: Release) -> None:
        self.chance = chance
        self.release = release
        served = {api: weight for api, weight in WEIGHTS.items() if versions_of(release, api)[1] >= 0}
        self.apis, self.weights = list(served), list(served.values())

    def step(self) -> Step:
        """Draw a request."""
        (api,) = self.chance.choices(self.apis, self.weights)
        first, last = versions_of(self.release, api)
        version = last if self.chance.random() < 0.4 else self.chance.randint(first, last)
        drawn: dict[str, Any] = getattr(self, f"_{_snake(api)}")(version)
        return Step(_snake(api), tuple({"version": version, **drawn}.items()))

    def _chosen(self, one_in: int) -> bool:
        return self.chance.randrange(one_in) == 0

    def _topic(self) -> str:
        return self.chance.choice(ODD_TOPICS if self._chosen(18) else TOPICS)

    def _places(self, most: int = 3) -> list[tuple[str, int]]:
        """Draw partitions; now and then one twice."""
        count = self.chance.choice((1, 1, 1, 2, most))
        places = [(self._topic(), self.chance.choice(PARTITIONS)) for _ in range(count)]
        return [*places, places[0]] if self._chosen(15) else places

    def _produce(self, version: int) -> dict[str, Any]:
        rows = tuple((*place, self._batch(version)) for place in self._places())
        return {"acks": self.chance.choice((-1,) * 8 + (1,) * 6 + (0, 0, 2)), "rows": rows}

    def _batch(self, version: int) -> Batch:
        is_old = (version < MAGIC_2_SINCE) != self._chosen(20)
        magic = (2 if self._chosen(2) else version // 2) if version < MAGIC_2_SINCE else int(is_old)
        magic = min(magic, 1) if is_old else 2
        codec = self.chance.choice(CODECS)
        old_damages = OLD_DAMAGES if codec == "none" else MESSAGE_DAMAGES
        return Batch(
            damage=self.chance.choice(list(DAMAGES if magic == 2 else old_damages)) if self._chosen(4) else "",
            codec=codec,
            count=self.chance.choice((1, 1, 2, 2, 3, 5)),
            stamp=self.chance.choice(("now",) * 8 + (*STAMPS, "none")) if magic else "none",
            step_ms=self.chance.choice((0, 1, 1, -1, 1000)),
            keys=self.chance.choice(("k", "k", "k", "ab", "k ", " ")),
            size=self.chance.choice((3, 3, 3, 0, -1, 50, 200)),
            producer=self._producer() if magic == 2 and self._chosen(6) else None,
            magic=magic,
        )

    def _producer(self) -> tuple[int, int]:
        return self.chance.choice((0, 0, 0, 1)), self.chance.choice((0, 0, 0, 1, 2, 3, 5))

    def _fetch(self, version: int) -> dict[str, Any]:
        rows = tuple(
            (*place, self.chance.choice(OFFSETS), self.chance.choice(MAX_BYTES), self._epoch(), self._fetched_epoch())
            for place in self._places()
        )
        session = "none"
        forgotten: tuple[tuple[str, int], ...] = ()
        if version >= SESSIONS_SINCE and self._chosen(2):
            session = self.chance.choice(
                ("new",) * 5 + ("next",) * 6 + ("same", "skip", "unknown", "close", "epoch -2")
            )
            if session == "next":
                rows = rows if self._chosen(2) else ()
                forgotten = tuple(self._places(2)) if self._chosen(4) else ()
        return {
            "rows": rows,
            "session": session,
            "forgotten": forgotten,
            "max_bytes": self.chance.choice(MAX_BYTES),
            "min_bytes": self.chance.choice((0, 0, 1, 1, -1)),
            "isolation": self.chance.choice((0, 0, 0, 1, 1, 2)) if self._chosen(2) else 0,
        }

    def _epoch(self) -> int:
        return self.chance.choice(EPOCHS)

    def _fetched_epoch(self) -> int:
        return self.chance.choice((-1,) * 12 + (0, 0, 1, -2))

    def _list_offsets(self, version: int) -> dict[str, Any]:
        special = [-1] * 4 + [-2] * 4 + [-3, -3, -4, -5, -6, -7, 0, 1 << 60]
        times = [*special, *((stamp, at) for stamp in STAMPS for at in (-1, 0, 1, 2))]
        if version == 0:
            # a lookup by time looks at the times of files
            times = [-1, -2]
        rows = tuple((*place, self.chance.choice(times), self._epoch()) for place in self._places())
        return {"rows": rows, "isolation": self.chance.choice((0, 0, 0, 1, 2)) if version >= 2 else 0}

    def _delete_records(self, _: int) -> dict[str, Any]:
        return {"rows": tuple((*place, self.chance.choice(OFFSETS)) for place in self._places())}

    def _offset_for_leader_epoch(self, _: int) -> dict[str, Any]:
        return {
            "rows": tuple((*place, self.chance.choice((0, 0, 1, -1, -2)), self._epoch()) for place in self._places())
        }

    def _metadata(self, version: int) -> dict[str, Any]:
        count = self.chance.choice((0, 1, 1, 2, 3, 4))
        topics: tuple[Any, ...] = tuple(self._named(version, 10, 12) for _ in range(count))
        return {
            "topics": None if self._chosen(12) else topics,
            "creates": self._chosen(3),
            "operations": self._chosen(4),
        }

    def _named(self, version: int, ids_since: int, well_since: int) -> tuple[str | None, str | None]:
        """Draw a topic by name or by id, now and then by both or neither."""
        name = self._topic()
        if version < ids_since or not self._chosen(2 if version >= well_since else 12):
            return name, None
        topic_id = self.chance.choice(("t", "t", "u", "v", "unknown"))
        return (name if self._chosen(8) else None), (None if self._chosen(12) else topic_id)

    def _create_topics(self, version: int) -> dict[str, Any]:
        count = self.chance.choice((1, 1, 1, 2, 3))
        rows = [self._creatable(version) for _ in range(count)]
        return {
            "rows": tuple(rows + rows[:1] if self._chosen(15) else rows),
            "validate_only": version >= 1 and self._chosen(5),
        }

    def _creatable(self, version: int) -> tuple[Any, ...]:
        name = self._topic() if self._chosen(3) else self.chance.choice(("v", "v", "w"))
        assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
        default = -1 if version >= 4 or self._chosen(5) else 1
        partitions, replicas = self.chance.choice((1, 2, 3, default, default)), self.chance.choice((1, 1, default))
        if self._chosen(5):
            assignments = self.chance.choice(
                (
                    ((0, (1,)),),
                    ((0, (1,)), (1, (1,))),
                    ((1, (1,)), (0, (1,))),
                    ((0, (1,)), (2, (1,))),
                    ((0, (1,)), (0, (1,))),
                    ((0, (2,)),),
                    ((0, (1, 1)),),
                    ((0, ()),),
                    ((0, (1, 2)),),
                )
            )
            partitions, replicas = (-1, -1) if not self._chosen(4) else (1, 1)
        elif self._chosen(8):
            partitions, replicas = self.chance.choice(((0, 1), (-2, 1), (1, 0), (1, 2), (1, -2)))
        configs = tuple((key, value) for key, value, _ in self._changes()) if self._chosen(3) else ()
        return name, partitions, replicas, assignments, configs

    def _delete_topics(self, version: int) -> dict[str, Any]:
        count = self.chance.choice((1, 1, 1, 2))
        rows = [self._named(version, 6, 6) for _ in range(count)]
        return {"rows": tuple(rows + rows[:1] if self._chosen(12) else rows)}

    def _create_partitions(self, _: int) -> dict[str, Any]:
        rows = [self._grown() for _ in range(self.chance.choice((1, 1, 2)))]
        return {"rows": tuple(rows + rows[:1] if self._chosen(12) else rows), "validate_only": self._chosen(4)}

    def _grown(self) -> tuple[Any, ...]:
        count = self.chance.choice((3, 3, 3, 4, 2, 1, 0, -1))
        assignments = (None,) * 8 + (((1,),), ((1,), (1,)), ((2,),), ((1, 1),), ((),), ())
        return self._topic(), count, self.chance.choice(assignments)

    def _describe_configs(self, version: int) -> dict[str, Any]:
        keys = self.chance.choice((None, (), ("cleanup.policy",), ("cleanup.policy", "nosuch"), tuple(CONFIGS)[:6]))
        rows = [(self._resource_type(), self._topic(), keys) for _ in range(self.chance.choice((1, 1, 2)))]
        return {
            "rows": tuple(rows + rows[:1] if self._chosen(12) else rows),
            "synonyms": version >= 1 and self._chosen(2),
            "documentation": version >= 3 and self._chosen(5),
        }

    def _resource_type(self) -> int:
        return self.chance.choice((0, 1, 3, 7, 99)) if self._chosen(25) else 2

    def _incremental_alter_configs(self, _: int) -> dict[str, Any]:
        rows = [
            (self._resource_type(), self._topic(), tuple(self._changes()))
            for _ in range(self.chance.choice((1, 1, 1, 2)))
        ]
        return {"rows": tuple(rows + rows[:1] if self._chosen(12) else rows), "validate_only": self._chosen(6)}

    def _changes(self) -> list[tuple[str, str | None, int]]:
        """Draw configs; often one of the few with an effect on records."""
        effective = list(CONFIGS)[:6]
        names = [
            self.chance.choice(effective if self._chosen(2) else list(CONFIGS))
            for _ in range(self.chance.choice((1, 1, 1, 2, 3)))
        ]
        names = [*names, names[0]] if self._chosen(15) else names
        operations = (SET,) * 14 + (DELETE, DELETE, APPEND, SUBTRACT, 9)
        return [(name, self.chance.choice(CONFIGS[name]), self.chance.choice(operations)) for name in names]

    def _describe_topic_partitions(self, _: int) -> dict[str, Any]:
        cursor = (self._topic(), self.chance.choice((0, 1, 2, -1, 9))) if self._chosen(3) else None
        return {
            "topics": tuple(self._topic() for _ in range(self.chance.choice((1, 2, 3)))),
            "limit": self.chance.choice((2000, 2000, 1, 2, 0)),
            "cursor": cursor,
        }


def _snake(api: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in api).removeprefix("_")


def generate(seed: str, release: Release) -> Sequence:
    """Return the sequence of a seed."""
    chance = random.Random(f"data {seed}")
    draw = _Generator(chance, release)
    steps = tuple(draw.step() for _ in range(chance.randint(*DRAWS)))
    return Sequence(name=seed, steps=steps, restart_after=len(steps))
