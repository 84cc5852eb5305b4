"""A clock that jumps, with connections over sockets: one that closes may be what a group has waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from clients.raw_member import Rival

from koordinator.wire.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from koordinator import Cluster


def settled(rival: Rival) -> None:
    answer = rival.join()
    request = SyncGroupRequest(group_id="g", generation_id=answer.generation_id, member_id=rival.member_id)
    assert rival.ask(request, 3).error_code == 0


@pytest.mark.koordinator(profile="kafka-defaults", clock="auto", topics={"t": 2})
def test_a_five_minute_join_phase_ends_when_the_missing_member_disconnects(koordinator: Cluster) -> None:
    group = koordinator.group("g")
    with Rival(koordinator.bootstrap_servers, "one") as first:
        # a real broker would wait 3 s for others to come
        settled(first)
        with Rival(koordinator.bootstrap_servers, "two") as second:
            second.send_join()
            group.wait_state("PreparingRebalance")
            assert group.awaited() == ["one"]
            first.__exit__()
            assert second.joined().generation_id == 2
    causes = [line["cause"] for line in group.events() if line["kind"] == "clock"]
    assert causes == ["auto", "auto"]


@pytest.mark.koordinator(clock="manual")
def test_the_marker_says_how_clocks_run(koordinator: Cluster) -> None:
    assert koordinator.group("g").clock == "manual"


@pytest.mark.koordinator(config={"group.clock": "manual"})
def test_the_setting_says_how_clocks_run(koordinator: Cluster) -> None:
    assert koordinator.group("g").clock == "manual"


@pytest.mark.koordinator(brokers=3, topics={"t": 2})
def test_a_clock_moves_whichever_node_coordinates_and_goes_with_the_group(koordinator: Cluster) -> None:
    group = koordinator.group("g")
    group.set_clock("manual")
    group.set_offsets({("t", 0): 5})
    before = group.now_ms
    group.advance("6d")
    coordinator = koordinator.coordinator("g")
    assert coordinator is not None
    koordinator.move_coordinator("g", to=coordinator.id % 3 + 1)
    assert group.now_ms - before == 6 * 86_400_000
    assert [fired.kind for fired in group.expire_offsets()] == ["offsets"]
    assert group.state == "Dead"
    coordinator.pause()
    group.advance("1d")
    koordinator.move_coordinator("g", to=coordinator.id)
    with pytest.raises(ValueError, match=f"node {coordinator.id}, which coordinates group 'g', is paused"):
        group.advance("1d")
    coordinator.resume()
    group.advance("1d")


def test_days_pass_where_everything_is_kept_on_disk(
    koordinator_factory: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = koordinator_factory(data_dir=tmp_path, topics={"t": 1})
    group = cluster.group("g")
    group.set_offsets({("t", 0): 5})
    assert [fired.kind for fired in group.advance("8d")] == ["offsets"]
    assert group.state == "Dead"
