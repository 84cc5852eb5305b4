"""The output of `compare.py` agrees with the article: each step of the protocol stops the members for less time."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from rebalancing.compare import LONG_S, RESTART_S, STYLES, Cost, cost, play, table
from rebalancing.stage import HEARTBEAT_S, SESSION_S

JOINS, RESTARTED, LEAVES = "C3 joins", "C2 is restarted", "C2 leaves for good"
DELAY_S = 300


@pytest.fixture(scope="module")
def costs() -> Mapping[str, Mapping[str, Cost]]:
    return {style: play(style) for style in STYLES}


def test_only_the_eager_protocol_stops_members_that_keep_their_partitions(
    costs: Mapping[str, Mapping[str, Cost]],
) -> None:
    for act in (JOINS, RESTARTED, LEAVES):
        assert costs["eager"][act].stopped_s > costs["cooperative"][act].stopped_s == 0
        assert costs["connect"][act].stopped_s == 0


def test_a_static_member_is_restarted_without_a_rebalance(costs: Mapping[str, Mapping[str, Cost]]) -> None:
    static = costs["static"][RESTARTED]
    assert (static.stopped_s, static.moved, static.rounds) == (0, 0, 0)
    assert costs["eager"][RESTARTED].rounds == 2


def test_partitions_of_a_static_member_are_idle_while_it_is_away(costs: Mapping[str, Mapping[str, Cost]]) -> None:
    """Two partitions: for the restart; for its session, if it does not return."""
    assert costs["static"][RESTARTED].idle_s == 2 * RESTART_S
    assert costs["static"][LEAVES].idle_s >= 2 * (SESSION_S - HEARTBEAT_S)


def test_tasks_of_a_worker_are_idle_for_the_delay(costs: Mapping[str, Mapping[str, Cost]]) -> None:
    for act in (RESTARTED, LEAVES):
        assert 2 * DELAY_S <= costs["connect"][act].idle_s < 2 * (DELAY_S + 4 * HEARTBEAT_S)
    assert costs["connect"][RESTARTED].moved == 0


def test_the_cooperative_protocol_takes_two_rounds_to_move_partitions(
    costs: Mapping[str, Mapping[str, Cost]],
) -> None:
    assert costs["cooperative"][JOINS].rounds == 2
    assert costs["cooperative"][JOINS].moved == 2
    assert costs["eager"][JOINS].rounds == 1


@pytest.mark.slow
def test_the_figures_are_the_same_every_time(costs: Mapping[str, Mapping[str, Cost]]) -> None:
    assert {style: play(style) for style in STYLES} == costs


def test_the_table_has_every_style_for_every_act(costs: Mapping[str, Mapping[str, Cost]]) -> None:
    lines = table(costs).splitlines()
    for act in (JOINS, RESTARTED, LEAVES):
        at = next(i for i, line in enumerate(lines) if line.startswith(act))
        assert [line.split()[0] for line in lines[at + 1 : at + 5]] == list(STYLES)


def test_the_table_in_the_readme_is_this_one(costs: Mapping[str, Mapping[str, Cost]]) -> None:
    readme = Path(__file__).parents[1] / "README.md"
    assert f"```text\n{table(costs)}\n```" in readme.read_text(encoding="utf-8")


def test_costs_follow_from_owned_partitions() -> None:
    def puppet(seconds: float, name: str, change: str, *held: int) -> dict[str, object]:
        line = {"kind": "puppet", "puppet": name, "change": change, "body": {"holds": {"t": list(held)}}}
        return {"wall_ts": int(seconds * 1e6), **line}

    events = [
        puppet(0, "C1", "assigned", 0, 1, 2),
        puppet(0, "C2", "assigned", 3, 4, 5),
        puppet(12, "C1", "revoked"),
        puppet(14, "C1", "assigned", 0, 1, 2, 3),
        puppet(14, "C2", "assigned", 4, 5),
        puppet(20, "C2", "stopped"),
        puppet(20 + LONG_S, "C1", "assigned", 0, 1, 2, 3, 4, 5),
    ]
    assert cost(events, 10, 20) == Cost(stopped_s=2, idle_s=6, moved=1, rounds=0)
    assert cost(events, 15, 20 + LONG_S) == Cost(stopped_s=0, idle_s=2 * LONG_S, moved=2, rounds=0)
