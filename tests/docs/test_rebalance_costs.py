"""The figures of docs/consumer-groups.md: a rebalance of a consumer group stops moving partitions alone."""

from __future__ import annotations

from scenes.rebalance_costs import PARTITIONS, PROTOCOLS, SLOW_S, cost

EAGER, COOPERATIVE, CONSUMER = PROTOCOLS


def test_only_partitions_that_move_stop_in_a_consumer_group() -> None:
    costs = {protocol: cost(protocol, "a member joins").stopped for protocol in PROTOCOLS}
    assert costs == {EAGER: PARTITIONS, COOPERATIVE: PARTITIONS // 4, CONSUMER: PARTITIONS // 4}


def test_a_slow_member_idles_the_partitions_of_eager_members_alone() -> None:
    costs = {protocol: cost(protocol, "a member joins, another is slow").idle_s for protocol in PROTOCOLS}
    # the other two members have eight partitions
    assert costs[EAGER] == 8 * SLOW_S
    assert costs[CONSUMER] < costs[COOPERATIVE] < SLOW_S
