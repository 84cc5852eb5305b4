"""Random traces of a long-lived cluster: groups that come and go, members of all kinds, faults, and transactions."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koordinator import Simulation, faults
from koordinator.pipeline.generate import generate_trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator import Cluster
    from koordinator.trace.exchanges import Line

TRACES = Path(__file__).parents[2] / "pages" / "traces"

CLIENTS = ("rdkafka", "app", None)
"""Client ids that members of several groups share; None is the member's own name."""

PROTOCOLS = (["range"], ["cooperative-sticky"], ["roundrobin", "range"])
"""The assignors of the members of a group."""


class Suite:
    """A cluster that serves one group after the other, some of them at the same time."""

    def __init__(self, seed: int, *, transactions: bool, consumer_groups: bool, faults: bool = True) -> None:
        self.chance = random.Random(seed)
        self._with_transactions, self._with_consumers, self._with_faults = transactions, consumer_groups, faults
        config = {"group.consumer.assignment.interval.ms": 0}
        self._simulation = Simulation(topics={"t": 4, "u": 2}, config=config, seed=seed, brokers=2)
        self._cluster: Cluster
        self._groups: list[tuple[str, bool]] = []
        self._puppets: list[Any] = []
        self._producers: list[Any] = []
        self._stopped: Any = None
        self._number = 0

    def lines(self, n_lines: int) -> list[Line]:
        """Return about this many lines, with fetches of the members among them."""
        with self._simulation as cluster:
            self._cluster = cluster
            while len(cluster.events()) < n_lines:
                action = self.chance.choice(self._actions())
                # Kafka refuses some of these, and that is in the trace as well
                with suppress(Exception):
                    action()
                self._cluster.pass_time(self.chance.choice((0, 0.01, 0.2, 1, 4)))
            return with_fetches(self.chance, cluster.events())

    def _actions(self) -> list[Callable[[], None]]:
        usual = [self._starts, self._starts, self._acts, self._acts, self._acts, self._waits, self._waits]
        if self._with_faults:
            usual += [self._fault] + [self._node] * (self.chance.random() < 0.3)
        return usual + [self._transaction] * (2 * self._with_transactions)

    def _starts(self) -> None:
        if not self._groups or self.chance.random() < 0.3:
            self._retire()
            is_consumer = self._with_consumers and self.chance.random() < 0.5
            self._groups.append((f"g{len(self._groups)}", is_consumer))
        name, is_consumer = self.chance.choice(self._groups[-2:])
        self._number += 1
        settings: dict[str, Any] = {"group_protocol": "consumer"} if is_consumer else {}
        if not is_consumer:
            settings["protocols"] = PROTOCOLS[int(name[1:]) % len(PROTOCOLS)]
            settings["behaviour"] = self.chance.choice(("healthy", "healthy", "healthy", "silent", "never_syncs"))
            settings |= {"session_timeout": 10, "rebalance_timeout": 20}
        instance_id = self.chance.choice((None, None, f"s{self.chance.randrange(2)}"))
        group = self._cluster.group(name)
        puppet = group.create_puppet(f"p{self._number}", topics=["t"], instance_id=instance_id, **settings)
        self._puppets.append(puppet)
        puppet.join()

    def _retire(self) -> None:
        """End most members of earlier groups, in one way or another."""
        for puppet in self._puppets:
            with suppress(ValueError):
                match self.chance.randrange(8):
                    case 0 | 1 | 2:
                        puppet.leave()
                    case 3 | 4 | 5 | 6:
                        puppet.stop()

    def _acts(self) -> None:
        if not self._puppets:
            return
        puppet = self.chance.choice(self._puppets[-6:])
        match self.chance.randrange(8):
            case 0:
                puppet.leave()
            case 1:
                puppet.stop()
            case 2:
                puppet.join()
            case 3:
                puppet.heartbeat()
            case _:
                puppet.commit({("t", self.chance.randrange(4)): self.chance.randrange(100)})

    def _waits(self) -> None:
        self._cluster.pass_time(self.chance.choice((3, 7, 25)))

    def _fault(self) -> None:
        api = self.chance.choice(("Heartbeat", "JoinGroup", "SyncGroup", "OffsetCommit", "ConsumerGroupHeartbeat"))
        action = self.chance.choice(
            (faults.error("NOT_COORDINATOR"), faults.delay(1500), faults.lose_reply(), faults.never_answer())
        )
        self._cluster.add_rule(api, action, times=self.chance.randrange(1, 3))

    def _node(self) -> None:
        if self._stopped is not None:
            self._stopped.start()
            self._stopped = None
        elif self.chance.random() < 0.5:
            self._cluster.move_coordinator(self._groups[-1][0], self.chance.choice((1, 2)))
        else:
            self._stopped = self._cluster.nodes[self.chance.choice((1, 2))]
            self._stopped.stop()

    def _transaction(self) -> None:
        if not self._producers or self.chance.random() < 0.2:
            self._producers.append(self._cluster.create_producer(f"tx{len(self._producers)}").init())
            return
        producer = self.chance.choice(self._producers)
        match self.chance.randrange(4):
            case 0:
                producer.commit()
            case 1:
                producer.abort()
            case 2:
                producer.send_offsets(self._groups[-1][0], {("t", 0): self.chance.randrange(100)})
            case _:
                producer.produce("u", "x")


def suite(seed: int) -> list[Line]:
    """Return a trace of groups of all kinds, with faults."""
    chance = random.Random(seed)
    cluster = Suite(seed, transactions=chance.random() < 0.3, consumer_groups=chance.random() < 0.6)
    return cluster.lines(chance.choice((200, 400, 900)))


def calm(seed: int) -> list[Line]:
    """Return a trace of classic groups without faults, which go on from a cut."""
    return Suite(seed, transactions=False, consumer_groups=False, faults=False).lines(700)


def generated(seed: int) -> list[Line]:
    """Return a trace of puppets with all behaviours."""
    lines: list[Line] = [json.loads(line) for line in generate_trace(seed, seed + 1, 400).lines]
    return with_fetches(random.Random(seed), [line for line in lines if line["kind"] not in ("header", "test")])


def recorded(seed: int) -> list[Line]:
    """Return a trace of real consumers."""
    text = sorted(TRACES.glob("*.jsonl"))[seed].read_text()
    lines: list[Line] = [json.loads(line) for line in text.splitlines()]
    return [line for line in lines if line["kind"] != "header"]


def with_fetches(chance: random.Random, lines: list[Line]) -> list[Line]:
    """Return the lines with fetches on connections of their own, and with client ids that several members share."""
    names: dict[str, str | None] = {}
    made: list[Line] = []
    correlation = 0
    for old in lines:
        line = dict(old)
        if line.get("client_id") is not None and line.get("group_id"):
            name = names.setdefault(line["client_id"], chance.choice(CLIENTS))
            line["client_id"] = name or line["client_id"]
        made.append(line)
        if names and chance.random() < 0.1:
            known = chance.choice(list(names))
            client_id = names[known] or known
            correlation += 1
            fetch = {"api": "Fetch", "api_key": 1, "client_id": client_id, "node": 1, "conn_id": 9_000 + len(client_id)}
            fetch |= {"correlation_id": correlation, "wall_ts": line["wall_ts"]}
            made.append(fetch | {"kind": "request", "body": {"isolation_level": "read_committed"}})
            rows = [["t", chance.randrange(4), 0, chance.randrange(100)]]
            made.append(fetch | {"kind": "response", "body": {"fetched": rows}})
        if chance.random() < 0.01:
            made.append({"kind": "lag", "node": 1, "wall_ts": line["wall_ts"], "body": {"lag_ms": 700}})
    return json.loads(json.dumps([line | {"seq": at} for at, line in enumerate(made, 1)]))  # type: ignore[no-any-return]
