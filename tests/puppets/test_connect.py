"""Workers of Kafka Connect as puppets: the same life, another protocol inside (KIP-415)."""

from __future__ import annotations

import pytest
from scenes.puppet_scene import BEAT_MS, SESSION_MS, Show

CONNECTORS = {"mirror": 4}


def worker(show: Show, name: str, **given: object) -> None:
    show.puppet(name, protocol_type="connect", topics=CONNECTORS, **given)


def tasks(show: Show, *names: str) -> list[tuple[str, int]]:
    """What workers run, all of it."""
    held = [show.look(name)["assignment"] for name in names]
    return sorted((connector, task) for holds in held for connector, ran in holds.items() for task in ran)


EVERYTHING = [("mirror", -1), ("mirror", 0), ("mirror", 1), ("mirror", 2), ("mirror", 3)]


def test_workers_share_connectors_and_tasks() -> None:
    show = Show()
    worker(show, "w1")
    assert tasks(show, "w1") == EVERYTHING
    worker(show, "w2")
    show.wait(3 * BEAT_MS)
    assert show.is_settled()
    assert show.group().protocol_type == "connect"
    assert show.group().protocol_name == "sessioned"
    assert tasks(show, "w1", "w2") == EVERYTHING
    assert tasks(show, "w2")


def test_the_tasks_of_a_worker_that_has_gone_wait_for_its_return_and_then_for_others() -> None:
    show = Show()
    worker(show, "w1", scheduled_rebalance_max_delay_ms=60_000)
    worker(show, "w2", scheduled_rebalance_max_delay_ms=60_000)
    show.wait(3 * BEAT_MS)
    lost = tasks(show, "w2")
    show.tell("w2", "stop")
    show.wait(SESSION_MS + BEAT_MS)
    assert show.members() == {"w1"}
    assert sorted(tasks(show, "w1") + lost) == EVERYTHING
    show.wait(60_000)
    assert tasks(show, "w1") == EVERYTHING


def test_a_worker_that_comes_back_in_time_gets_its_tasks_again() -> None:
    show = Show()
    worker(show, "w1", scheduled_rebalance_max_delay_ms=60_000)
    worker(show, "w2", scheduled_rebalance_max_delay_ms=60_000)
    show.wait(3 * BEAT_MS)
    lost, kept = tasks(show, "w2"), tasks(show, "w1")
    show.tell("w2", "stop")
    show.wait(SESSION_MS + BEAT_MS)
    show.tell("w2", "join")
    show.wait(60_000 + BEAT_MS)
    assert show.is_settled()
    assert (tasks(show, "w1"), tasks(show, "w2")) == (kept, lost)


def test_eager_workers_stop_everything_while_they_join_again() -> None:
    show = Show()
    worker(show, "w1", behaviour="eager_only")
    worker(show, "w2", behaviour="eager_only")
    show.wait(3 * BEAT_MS)
    assert show.group().protocol_name == "default"
    assert tasks(show, "w1", "w2") == EVERYTHING
    revoked = show.events("puppet", puppet="w1", change="revoked")
    assert revoked[0]["body"]["holds"] == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"protocol_type": "connect", "topics": ["mirror"]}, "a connect puppet has connectors with numbers of tasks"),
        (
            {"protocol_type": "connect", "topics": CONNECTORS, "protocols": ("range",)},
            "protocol 'range' is not known; k",
        ),
        ({"topics": CONNECTORS}, "topics with numbers and scheduled_rebalance_max_delay_ms are for 'connect' only"),
        ({"scheduled_rebalance_max_delay_ms": 5}, "are for 'connect' only"),
    ],
)
def test_what_only_workers_have_is_refused_for_consumers_and_the_other_way_round(
    given: dict[str, object], message: str
) -> None:
    show = Show()
    with pytest.raises(ValueError, match=message):
        show.puppet("one", **given)
