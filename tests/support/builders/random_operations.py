"""Random control operations: clocks, freezes, nodes, rules, holds, puppets, snapshots, producers, lost records.

The arguments are valid, but the cluster may be in no state for the operation: it is then refused with ValueError.
"""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

GROUPS = ("g", "g", "g", "h")
NODES = (1, 2, 3)
NAMES = ("a", "b", "c", "d")
INSTANCES = ("x", "y")
GROUP_APIS = ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "ConsumerGroupHeartbeat", "FindCoordinator", "*")
STATES = (None, "Stable", "PreparingRebalance", "CompletingRebalance", "Empty", "Reconciling")
BEHAVIOURS = ("healthy", "healthy", "manual", "straggler", "flapping", "silent", "never_syncs", "omits_members",
              "eager_only", "duplicate_instance_id", "never_revokes")  # fmt: skip
ACTIONS = (
    {"kind": "error", "name": "NOT_COORDINATOR"},
    {"kind": "error", "name": "UNKNOWN_MEMBER_ID"},
    {"kind": "delay", "ms": 500},
    {"kind": "delay", "ms": 500, "clock": "group"},
    {"kind": "drop"},
    {"kind": "lose_reply"},
)
PRODUCERS = ("p", "q")
TOPICS = ("t", "u", "__consumer_offsets", "__transaction_state")
EVERYTHING = ("rules", "holds", "puppets")
"""The scopes of a reset that is possible in every state of a cluster."""

Operation = tuple[str, dict[str, Any]]


class RandomOperations:
    """Operations from a random source; `learn` takes the results that later operations refer to."""

    def __init__(self, chance: random.Random, weights: Sequence[tuple[str, int]] | None = None) -> None:
        self._chance = chance
        self._holds: list[str] = []
        self._rules: list[str] = []
        self._snapshot: Any = None
        self._parts, self._weights = zip(*(weights or WEIGHTS), strict=True)

    def next(self) -> Operation:
        """Return the name and the arguments of an operation."""
        (part,) = self._chance.choices(self._parts, self._weights)
        operation: Operation = getattr(self, f"_{part}")()
        return operation

    def learn(self, name: str, result: Any) -> None:
        """Remember the id of a rule or a hold, or a snapshot."""
        if name in {"holds.add", "holds.lockstep"}:
            self._holds.append(result.id)
        elif name == "faults.add_rule":
            self._rules.append(result.id)
        elif name == "snapshots.take":
            self._snapshot = asdict(result) if is_dataclass(result) else result

    def _group(self) -> str:
        return self._chance.choice(GROUPS)

    def _mode(self) -> Operation:
        return "clocks.set_mode", {"group": self._group(), "mode": self._chance.choice(("real", "manual", "auto"))}

    def _advance(self) -> Operation:
        by = self._chance.choice((0, 0.001, 1, 5, 30, 45, 60, 300))
        return "clocks.advance", {
            "group": self._group(), "by": by, "keep_alive": self._chance.choice(("connected", "none"))
        }  # fmt: skip

    def _expire(self) -> Operation:
        name = self._chance.choice(("join_phase", "sync", "session", "revocation", "pending", "offsets"))
        member = {"member": self._chance.choice((*NAMES, *INSTANCES))}
        return f"clocks.expire_{name}", {
            "group": self._group(), **({} if name in {"join_phase", "sync", "offsets"} else member)
        }  # fmt: skip

    def _freeze(self) -> Operation:
        return "verbs.freeze", {"group": self._group(), "state": self._chance.choice(STATES)}

    def _thaw(self) -> Operation:
        return "verbs.thaw", {"group": self._group()}

    def _verb(self) -> Operation:
        group, chance = self._group(), self._chance
        return chance.choice(
            (
                ("verbs.rebalance", {"group": group}),
                ("verbs.evict", {"group": group, "member": chance.choice((*NAMES, *INSTANCES))}),
                ("verbs.fence", {"group": group, "member": chance.choice(INSTANCES)}),
                ("verbs.set_offsets", {"group": group, "offsets": [{"topic": "t", "partition": 0, "offset": 5}]}),
                ("verbs.add_partitions", {"topic": "t", "count": chance.randint(4, 9)}),
                ("verbs.set_group_max_size", {"size": chance.choice((2, 5, 1_000))}),
                ("groups.dump", {}),
                ("topics.produce", {"topic": "t", "records": ["v"]}),
                ("topics.create", {"topic": chance.choice(("u", "v"))}),
            )
        )

    def _node(self) -> Operation:
        how = self._chance.choice(("stop", "kill", "start", "start", "start", "pause", "resume", "resume"))
        return f"nodes.{how}", {"node": self._chance.choice(NODES)}

    def _move(self) -> Operation:
        to = self._chance.choice(NODES)
        if self._chance.random() < 0.2:
            return "nodes.move_leader", {"topic": "t", "partition": self._chance.randrange(4), "to": to}
        return "nodes.move_coordinator", {
            "group": self._group(), "to": to, "load_ms": self._chance.choice((0, 0, 500, 5_000))
        }  # fmt: skip

    def _hold(self) -> Operation:
        if self._holds and self._chance.random() < 0.7:
            how = self._chance.choice(("release", "remove", "remove"))
            return f"holds.{how}", {"hold": self._chance.choice(self._holds)}
        return "holds.add", {"match": {"api": self._chance.choice(GROUP_APIS)}}

    def _rule(self) -> Operation:
        chance = self._chance
        if self._rules and chance.random() < 0.6:
            return "faults.remove_rule", {"rule": chance.choice(self._rules)}
        rule = {
            "match": {"api": chance.choice(GROUP_APIS)},
            "action": chance.choice(ACTIONS),
            "trigger": chance.choice(({"once": True}, {"times": 3}, {"probability": 0.2})),
        }
        return "faults.add_rule", {"rule": rule}

    def _puppet(self) -> Operation:
        chance = self._chance
        at: dict[str, Any] = {"group": self._group(), "name": chance.choice(NAMES)}
        if chance.random() < 0.6:
            name = chance.choice(("join", "join", "join", "leave", "stop", "sync", "heartbeat"))
            return f"puppets.{name}", at
        arguments = {**at, "behaviour": chance.choice(BEHAVIOURS), "topics": chance.choice((["t"], ["u"], ["t", "u"]))}
        if chance.random() < 0.4:
            arguments["instance_id"] = chance.choice(INSTANCES)
        if chance.random() < 0.4:
            arguments["group_protocol"] = "consumer"
        if chance.random() < 0.3:
            arguments["rebalance_timeout_ms"] = chance.choice((500, 5_000))
        return "puppets.create", arguments

    def _world(self) -> Operation:
        scope = self._chance.choice((["groups"], ["topics"], ["groups", "topics"], [*EVERYTHING, "groups", "trace"]))
        if self._chance.random() < 0.5:
            return "snapshots.reset", {"scope": scope}
        if self._snapshot is None or self._chance.random() < 0.5:
            return "snapshots.take", {}
        return "snapshots.restore", {"document": self._snapshot}

    def _producer(self) -> Operation:
        chance = self._chance
        at = {"name": chance.choice(PRODUCERS)}
        partition = chance.randrange(2)
        return chance.choice(
            (
                ("producers.create", {**at, "transactional_id": chance.choice(("x", "y"))}),
                ("producers.init", {**at, "resume": chance.random() < 0.3}),
                ("producers.produce", {**at, "topic": "t", "records": ["v"], "partition": partition}),
                ("producers.send_offsets", {**at, "group": self._group(), "offsets": [("t", partition, 5)]}),
                ("producers.commit", at),
                ("producers.abort", at),
                ("producers.stop", at),
                ("transactions.abort", {"transaction": "x"}),
                ("transactions.expire", {"transaction": "y"}),
            )
        )

    def _lose(self) -> Operation:
        chance = self._chance
        topic = {"topic": chance.choice(TOPICS)}
        return chance.choice(
            (
                ("verbs.truncate", {**topic, "partition": chance.randrange(4), "to": chance.randrange(6)}),
                ("verbs.expire_records", {**topic, "before": chance.choice((None, 1, 3))}),
                ("verbs.compact", topic),
            )
        )

    def _membership(self) -> Operation:
        return self._chance.choice((("nodes.add", {}), ("nodes.remove", {"node": self._chance.choice(NODES)})))

    def _end(self) -> Operation:
        return "snapshots.reset", {"scope": EVERYTHING}


WEIGHTS = (
    ("mode", 4), ("advance", 5), ("expire", 4), ("freeze", 1), ("thaw", 2), ("verb", 4), ("node", 4), ("move", 2),
    ("hold", 3), ("rule", 3), ("puppet", 10), ("world", 3), ("end", 1),
)  # fmt: skip
"""The kinds of operations, and how often each is drawn."""

DATA_WEIGHTS = (("producer", 30), ("lose", 8), ("move", 6), ("node", 4), ("membership", 1), ("hold", 4), ("world", 1))
"""Transactions, lost records, and nodes that come and go."""
