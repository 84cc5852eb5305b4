"""`koordinator.aio`: the handles for asyncio and Trio."""

from __future__ import annotations

import asyncio
import inspect
import re
import time
from typing import TYPE_CHECKING, Any

import aio_handles
import pytest
import trio

from koordinator import Emulator, aio, faults
from koordinator.aio import handles
from koordinator.handles.checks import GroupTimeout
from koordinator.handles.port import BlockingCallInLoop, ClusterStopped
from koordinator.handles.renames import Renamed
from koordinator.trace import Event

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

HANDLES = {each.__name__: each for each in aio_handles.HANDLES}


async def pause(seconds: float) -> None:
    """Of whichever loop it is."""
    if trio.lowlevel.in_trio_run():
        await trio.sleep(seconds)
    else:
        await asyncio.sleep(seconds)


def run_asyncio(function: Callable[[], Awaitable[Any]]) -> Any:
    async def limited() -> Any:
        return await asyncio.wait_for(function(), 120)

    return asyncio.run(limited())


def run_trio(function: Callable[[], Awaitable[Any]]) -> Any:
    async def limited() -> Any:
        with trio.fail_after(120):
            return await function()

    return trio.run(limited)


loops = pytest.mark.parametrize("run", [run_asyncio, run_trio], ids=["asyncio", "trio"])


# -- the same surface ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_twins_are_made_from_the_handles_as_they_are_now() -> None:
    made = aio_handles.source()
    assert aio_handles.TARGET.read_text(encoding="utf-8") == made, "renew it: python tools/aio_handles.py"


@pytest.mark.parametrize("name", HANDLES)
def test_an_async_handle_has_exactly_the_members_of_its_blocking_handle(name: str) -> None:
    members, proxy = handles.members_of(HANDLES[name]), vars(getattr(aio, name))
    assert {member for member in proxy if not member.startswith("_")} == set(members)
    for member, blocking in members.items():
        if isinstance(blocking, str | property):
            assert isinstance(proxy[member], property), member
            continue
        if isinstance(blocking, Renamed):
            assert proxy[member].new == blocking.new, member
            continue
        expected, actual = (inspect.signature(inspect.unwrap(each)) for each in (blocking, proxy[member]))
        assert list(actual.parameters.values()) == list(expected.parameters.values()), member
        assert inspect.getdoc(proxy[member]) == inspect.getdoc(blocking), member


def test_every_handle_that_a_handle_gives_has_a_twin() -> None:
    assert set(aio.__all__) == {*HANDLES, *(each.__name__ for each in aio_handles.ROOTS)}


# -- waiting -------------------------------------------------------------------------------------------------


@loops
def test_blocking_calls_are_awaited_without_blocking_the_loop(run: Any) -> None:
    async def story() -> list[Any]:
        async with aio.Emulator(topics={"orders": 4}, seed=7) as cluster:
            group = cluster.group("svc")
            assert (group.id, cluster.seed, await group.state) == ("svc", 7, "Dead")
            peer = await group.create_puppet("peer", topics=["orders"])
            async with group.expect_rebalance(cause="member_join") as expected:
                await peer.join()
            assert expected.rebalance.generation == 1
            assert await group.wait_stable(members=1) is group
            await group.assert_owned_exactly_once(["orders"])
            assert await peer.assignment == {"orders": [0, 1, 2, 3]}
            assert [each.id for each in await cluster.groups()] == ["svc"]
            assert [each.id for each in (await cluster.nodes).values()] == [1]
            assert (await cluster.coordinator("svc")).id == 1
            await cluster.produce("orders", "a", "b")
            return [record.value for record in await cluster.records("orders")]

    assert sorted(run(story)) == [b"a", b"b"]


@loops
def test_a_hold_is_entered_and_released(run: Any) -> None:
    async def story() -> None:
        async with aio.Emulator(topics={"orders": 4}) as cluster:
            group = cluster.group("svc")
            peer = await group.create_puppet("peer", topics=["orders"])
            async with group.hold("JoinGroup") as held:
                await peer.join()
                entered = await held.wait_entered()
                assert (entered.api, await group.members) == ("JoinGroup", [])
                await held.release()
                await group.wait_stable(members=1)
            rule = await group.add_rule("Heartbeat", faults.error("REBALANCE_IN_PROGRESS"), once=True)
            assert await rule.hits == 0
            assert [each.id for each in await cluster.unused_rules()] == [rule.id]

    run(story)


@loops
def test_a_rule_ends_with_its_block(run: Any) -> None:
    async def story() -> None:
        async with aio.Emulator() as cluster:
            async with cluster.add_rule("JoinGroup", faults.drop(), optional=True) as rule:
                assert [each.id for each in await cluster.rules] == [rule.id]
            assert await cluster.rules == []
            with pytest.raises(AssertionError, match="never used"):
                async with cluster.add_rule("JoinGroup", faults.drop()):
                    pass

    run(story)


@loops
@pytest.mark.parametrize(
    ("use", "call"),
    [
        (lambda group: bool(group.members), "group.members"),
        (lambda group: group.state == "Stable", "group.state"),
        (lambda group: group.state != "Stable", "group.state"),
        (lambda group: len(group.events()), "group.events(…)"),
        (lambda group: list(group.members), "group.members"),
        (lambda group: "a" in group.awaited(), "group.awaited(…)"),
        (lambda group: group.offsets["t", 0], "group.offsets"),
        (lambda group: group.generation > 1, "group.generation"),
        (lambda group: f"{group.state}", "group.state"),
        (lambda group: group.hold("JoinGroup").__enter__(), "group.hold(…)"),
    ],
)
def test_a_forgotten_await_says_so(run: Any, use: Callable[[aio.Group], object], call: str) -> None:
    async def story() -> None:
        async with aio.Emulator() as cluster:
            with pytest.raises(
                TypeError, match=rf"^{re.escape(call)} was not awaited: write \(await {re.escape(call)}\)$"
            ):
                use(cluster.group("svc"))

    run(story)


def test_an_attribute_of_a_call_that_was_not_awaited_says_so() -> None:
    async def story() -> None:
        async with aio.Emulator() as cluster:
            pending = cluster.create_topic("orders")
            with pytest.raises(AttributeError, match=r"create_topic\(…\) has no 'produce' before it is awaited"):
                pending.produce("a")  # type: ignore[attr-defined]
            assert (await pending).name == "orders"

    run_asyncio(story)


def test_a_call_is_a_task_as_any_coroutine() -> None:
    async def in_asyncio() -> None:
        async with aio.Emulator() as cluster:
            state, groups = await asyncio.gather(asyncio.create_task(cluster.group("svc").describe()), cluster.groups())
            assert (state.state, groups) == ("Dead", [])

    async def in_trio() -> None:
        async with aio.Emulator() as cluster, trio.open_nursery() as nursery:
            nursery.start_soon(cluster.create_topic, "orders")

    run_asyncio(in_asyncio)
    run_trio(in_trio)


@loops
def test_a_failure_is_the_one_of_the_handle_and_ends_its_block(run: Any) -> None:
    async def story() -> None:
        async with aio.Emulator() as cluster:
            with pytest.raises(GroupTimeout, match="group 'svc' was not stable within 0 s"):
                await cluster.group("svc").wait_stable(timeout=0)
            with pytest.raises(ZeroDivisionError):
                async with cluster.group("svc").expect_rebalance(timeout=60):
                    raise ZeroDivisionError
            with pytest.raises(AssertionError, match="expected a rebalance, but none has begun"):
                async with cluster.group("svc").expect_rebalance(timeout=0.01):
                    pass
        with pytest.raises(ClusterStopped):
            await cluster.groups()

    run(story)


@loops
def test_a_wait_that_is_cancelled_ends_at_once_and_so_does_the_loop(run: Any) -> None:
    async def wait(group: aio.Group) -> None:
        if run is run_trio:
            with trio.fail_after(0.05):
                await group.wait_stable(timeout=600)
        else:
            async with asyncio.timeout(0.05):
                await group.wait_stable(timeout=600)

    async def story() -> float:
        async with aio.Emulator() as cluster:
            begun = time.monotonic()
            with pytest.raises((TimeoutError, trio.TooSlowError)):
                await wait(cluster.group("svc"))
            return time.monotonic() - begun

    begun = time.monotonic()
    # the wait would take 600 s
    assert run(story) < 500
    assert time.monotonic() - begun < 550


@loops
def test_other_tasks_have_their_turn_while_one_waits(run: Any) -> None:
    async def story() -> int:
        with Emulator() as blocking:
            cluster = aio.Cluster(blocking)
            assert cluster.blocking is blocking
            turns = 0

            async def make() -> None:
                nonlocal turns
                while turns < 5:
                    turns += 1
                    await pause(0)
                await (await cluster.group("svc").create_puppet("peer")).join()

            if run is run_trio:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(make)
                    await cluster.group("svc").wait_stable(members=1)
            else:
                task = asyncio.create_task(make())
                await cluster.group("svc").wait_stable(members=1)
                await task
            return turns

    assert run(story) == 5


@loops
def test_a_wait_that_would_block_a_loop_names_the_twin(run: Any) -> None:
    async def story() -> None:
        with Emulator() as cluster:
            cluster.group("svc").wait_stable(timeout=60)

    with pytest.raises(BlockingCallInLoop, match=r"await it with a handle of koordinator\.aio, such as aio\.Cluster\("):
        run(story)


@loops
def test_events_stay_events(run: Any) -> None:
    async def kinds() -> set[type]:
        async with aio.Emulator(topics={"orders": 1}) as cluster:
            puppet = await cluster.group("svc").create_puppet("a")
            await puppet.join()
            return {type(event) for event in await cluster.events()}

    assert run(kinds) == {Event}
