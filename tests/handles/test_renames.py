"""Old names work for one release, and warn in the line that has them."""

from __future__ import annotations

import asyncio
import inspect
import re
import warnings
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from koordinator import Cluster, Emulator, Group, Hold, InvalidDuration, Node, Puppet, Simulation, aio, faults
from koordinator.aio.handles import TWINS, members_of
from koordinator.handles.docker import KoordinatorContainer
from koordinator.handles.renames import Renamed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UPGRADE = (Path(__file__).parents[2] / "docs" / "upgrade.md").read_text(encoding="utf-8")

OLD = [
    (kind.__name__, name, member.new)
    for kind in (*TWINS, KoordinatorContainer)
    for name, member in members_of(kind).items()
    if isinstance(member, Renamed)
]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Simulation(topics={"t": 2}, seed=7) as cluster:
        yield cluster


@pytest.fixture
def group(cluster: Cluster) -> Group:
    group = cluster.group("g")
    group.create_puppet("a", topics=["t"], instance_id="a").join()
    return group.wait_stable(members=1)


@pytest.mark.parametrize(("kind", "old", "new"), OLD)
def test_an_old_name_is_on_the_page_of_the_release_beside_the_new_one(kind: str, old: str, new: str) -> None:
    rows = [row for row in UPGRADE.splitlines() if f"`{kind}.{old}`" in row]
    assert len(rows) == 1, f"{kind}.{old}"
    assert f"`{new}`" in rows[0]


def test_an_old_argument_is_on_the_page_beside_the_new_one() -> None:
    members = {id(each): each for kind in (*TWINS, Emulator, Simulation) for each in vars(kind).values()}
    members |= {id(each): each for kind in TWINS for each in members_of(kind).values()}
    renamed = [getattr(inspect.unwrap(each), "new_names", {}) for each in members.values() if callable(each)]
    found = {(old, new if isinstance(new, str) else new[0]) for names in renamed for old, new in names.items()}
    assert len(found) == 11
    for old, new in found:
        assert re.search(rf"\b{old}=.*\b{new}=", UPGRADE), old


@pytest.mark.parametrize(
    ("use", "warning"),
    [
        (lambda g: g.snapshot().state, "Group.snapshot has a new name: Group.describe"),
        (lambda g: g.puppet("b").join(), "Group.puppet has a new name: Group.create_puppet"),
        (lambda g: g.rule("Fetch", faults.drop()), "Group.rule has a new name: Group.add_rule"),
        (lambda g: g.hold("Fetch").entered, "Hold.entered has a new name: Hold.parked"),
        (lambda g: g.puppets["a"].wait("stable"), "Puppet.wait has a new name: Puppet.wait_state"),
        (lambda g: g.wait_stable(owned="all"), "owned= has a new name: all_owned="),
        (lambda g: g.fence(instance="a"), "instance= has a new name: member="),
        (lambda g: g.create_puppet("c", session_timeout_s=9), "session_timeout_s= has a new name: session_timeout="),
    ],
)
def test_an_old_name_works_and_warns_in_the_line_that_has_it(
    group: Group, use: Callable[[Group], Any], warning: str
) -> None:
    with pytest.warns(DeprecationWarning, match=f"^{re.escape(warning)}$") as warned:
        use(group)
    (only,) = warned
    assert Path(only.filename) == Path(__file__)


def test_old_names_of_a_cluster_work(cluster: Cluster) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        cluster.rule("Fetch", faults.drop(), optional=True)
        cluster.producer("p", transaction_timeout_s=5)
        cluster.disturb(3)
        cluster.set_max_size(2)
        cluster.check()
        cluster.nodes[1].believe("g", 1)
        cluster.move_coordinator("g", to=1, load_s=0.5)
        assert cluster.trace() == cluster.events() != []
    assert {each.category for each in warned} == {DeprecationWarning}
    assert len(warned) == 9
    assert {Path(each.filename) for each in warned} == {Path(__file__)}


def test_the_old_time_of_a_simulation_is_that_of_its_last_cluster() -> None:
    simulation = Simulation()
    with simulation as cluster:
        before = cluster.group("g").now_ms
        with pytest.warns(DeprecationWarning, match=r"Simulation\.pass_time has a new name: Cluster\.pass_time"):
            simulation.pass_time(2)
        assert cluster.group("g").now_ms - before == 2000


def test_the_old_name_of_the_header_of_the_trace() -> None:
    with pytest.warns(DeprecationWarning, match="about= has a new name: trace_header=") as warned:
        simulation = Simulation(about={"run_id": "r7"})
    assert Path(warned[0].filename) == Path(__file__)
    with simulation as cluster:
        assert cluster._port.trace_lines()[0]["run_id"] == "r7"


def test_an_old_name_of_an_asynchronous_handle_warns_in_the_line_that_has_it() -> None:
    async def story() -> None:
        async with aio.Emulator() as cluster:
            group = cluster.group("g")
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                assert (await group.snapshot()).state == "Dead"
                await group.puppet("a", session_timeout_s=9)
            assert [str(each.message) for each in warned] == [
                "Group.snapshot has a new name: Group.describe",
                "Group.puppet has a new name: Group.create_puppet",
                "session_timeout_s= has a new name: session_timeout=",
            ]
            assert {Path(each.filename) for each in warned} == {Path(__file__)}

    asyncio.run(story())


class TestDurations:
    @pytest.mark.parametrize("timeout", [0, 0.25, "250ms", "1s", timedelta(milliseconds=300)])
    def test_a_timeout_is_seconds_text_or_timedelta(self, cluster: Cluster, timeout: float | str | timedelta) -> None:
        with pytest.raises(TimeoutError, match=r"was not stable within (0|0\.25|0\.3|1) s"):
            cluster.group("g").wait_stable(timeout=timeout)

    def test_a_text_that_is_no_duration_is_refused_before_anything_happens(self, group: Group) -> None:
        puppet, node = group.puppets["a"], group.coordinator
        assert isinstance(node, Node)
        for call in (
            lambda: group.wait_state("Stable", timeout="soon"),
            lambda: puppet.wait_state("stable", timeout="1 week"),
            lambda: group.assert_left("a", timeout="-1s"),
            lambda: group.create_puppet("b", session_timeout="6 s"),
            lambda: group.throttle("fast"),
            lambda: faults.delay("2"),
        ):
            with pytest.raises(InvalidDuration):
                call()
        assert set(group.puppets) == {"a"}

    def test_the_session_timeout_of_a_puppet_is_text(self, group: Group) -> None:
        group.create_puppet("b", topics=["t"], session_timeout="45s", rebalance_timeout="1m").join()
        group.wait_stable(members=2)
        assert group.members[1].session_timeout_ms == 45_000
        assert group.members[1].rebalance_timeout_ms == 60_000

    def test_actions_take_text_and_milliseconds(self) -> None:
        assert faults.delay("2s") == faults.delay(2000) == faults.delay(timedelta(seconds=2))
        assert faults.throttle("2s", mute=True) == faults.throttle(2000, mute=True)
        assert faults.drip(4, "10ms") == faults.drip(4, 10)

    def test_a_token_may_have_expired(self, cluster: Cluster) -> None:
        assert cluster.token("alice", lifetime="-5s").count(".") == 2

    def test_virtual_time_takes_text(self, cluster: Cluster) -> None:
        before = cluster.group("g").now_ms
        cluster.pass_time("1h")
        assert cluster.group("g").now_ms - before == 3_600_000


def test_every_handle_of_the_page_exists() -> None:
    assert {kind for kind, _, _ in OLD} == {
        each.__name__ for each in (Cluster, Group, Hold, KoordinatorContainer, Node, Puppet)
    } | {"Transaction"}
