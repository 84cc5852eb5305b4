"""The laboratory's ZooKeeper scheme agrees with Kafka 0.8.2.2's own high-level consumer.

The model runs without lag, as with one server. Retries are left out: they depend on who is quicker.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest
from brokers.old_kafka import OldKafka, wait_until

from koordinator.lab.load import Load
from koordinator.lab.schemes.zookeeper import IDS, ZookeeperScheme

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

PARTITIONS = 7
SETTLE_S = 30
"""Of virtual time: a session expires, and all retries end."""

EIGHT = ["+a", "+b", "+c", "+d", "+e", "+f", "+g", "+h", "-c", "!f", "grow", "-a", "!h", "+c"]


class Seen(NamedTuple):
    """The state of the group after a step, and counts since the beginning."""

    owners: dict[str, list[int]]
    rebalances: Counter[str]
    notifications: int
    watchers: int


class Model:
    """The scheme of the laboratory."""

    def __init__(self) -> None:
        self._scheme = ZookeeperScheme(Load(partitions=PARTITIONS), lag_ms=(0, 0))

    def play(self, step: str) -> Seen:
        """Play a step, and let the group settle."""
        act(self._scheme, step)
        self._scheme.pass_time(SETTLE_S)
        return self.seen()

    def seen(self) -> Seen:
        """Return the present state."""
        scheme = self._scheme
        watchers = len(
            {
                id(session)
                for server in scheme.zookeeper.servers
                for session, _ in server.watches.get(IDS, ())
                if session.is_connected
            }
        )
        owners = {name: consumer.owned for name, consumer in scheme._consumers.items()}
        return Seen(owners, scheme.record.rebalances.copy(), scheme.record.notifications, watchers)


def act(group: ZookeeperScheme | OldKafka, step: str) -> None:
    """Start (+), close (-) or kill (!) a consumer, or add a partition."""
    if step == "grow":
        group.grow(1)
    else:
        {"+": group.start, "-": group.close, "!": group.kill}[step[0]](step[1:])


def seen(kafka: OldKafka) -> Seen:
    return Seen(kafka.owners(), kafka.rebalances(), kafka.notifications(), kafka.watchers("/consumers/G/ids"))


def random_steps(seed: int, count: int = 10) -> list[str]:
    """Return steps that keep two to eight consumers once two have started."""
    random = Random(seed)
    steps, here, away = ["+a", "+b"], ["a", "b"], list("cdefgh")
    while len(steps) < count:
        kind = random.choice("+++-!g")
        if kind == "+" and away:
            here.append(away.pop(random.randrange(len(away))))
            steps.append(f"+{here[-1]}")
        elif kind in "-!" and len(here) > 2:
            away.append(here.pop(random.randrange(len(here))))
            steps.append(f"{kind}{away[-1]}")
        elif kind == "g":
            steps.append("grow")
    return steps


@pytest.mark.parametrize("steps", [EIGHT, *map(random_steps, range(2))], ids=["eight", "random-0", "random-1"])
def test_owners_rebalances_and_notifications_equal_those_of_kafka_after_each_step(
    tmp_path: Path, steps: list[str]
) -> None:
    model = Model()
    with OldKafka(tmp_path, PARTITIONS) as kafka:
        for step in steps:
            expected = model.play(step)
            act(kafka, step)
            try:
                wait_until(f"{step}: {expected}", lambda expected=expected: seen(kafka) == expected)
            except AssertionError:
                raise AssertionError(f"{step}: {expected} expected, but {seen(kafka)}\n{kafka.tail()}") from None


def test_consumers_that_start_at_once_share_the_partitions_as_the_model_says(tmp_path: Path) -> None:
    """Their rebalances and retries differ from run to run."""
    names = list("abcdefgh")
    scheme = ZookeeperScheme(Load(partitions=PARTITIONS))
    with OldKafka(tmp_path, PARTITIONS) as kafka:
        for group in (scheme, kafka):
            for name in names:
                group.start(name)
        scheme.pass_time(SETTLE_S)
        expected = {name: consumer.owned for name, consumer in scheme._consumers.items()}
        wait_until(f"the owners are {expected}", lambda: kafka.owners() == expected)


def test_released_consumers_watch_no_brokers(tmp_path: Path) -> None:
    """The article has them watch the brokers, and so does the model."""
    with OldKafka(tmp_path, PARTITIONS) as kafka:
        before = kafka.watchers("/brokers/ids")
        for name in "ab":
            kafka.start(name)
        wait_until("both own partitions", lambda: all(kafka.owners().get(name) for name in "ab"))
        assert kafka.watchers("/brokers/ids") == before
