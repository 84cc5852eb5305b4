"""The server on pairs of sockets and a jumping clock."""

from __future__ import annotations

import pytest
import trio
from brokers.word_broker import EPOCH, MUCH, Scene, play, say
from trio.testing import MockClock, wait_all_tasks_blocked

from koordinator.emulator.broker.connections import Close, Send
from koordinator.emulator.config.options import Options
from koordinator.emulator.server.build import build
from koordinator.emulator.server.server import LAG_INTERVAL_S

pytestmark = pytest.mark.usefixtures("waiting")


def test_a_clients_request_is_answered() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        assert await say(client, b"a") == b"a"
        assert await say(client, b"b") == b"b"
        await client.aclose()
        await wait_all_tasks_blocked()

    assert play(scene).log == ["1 connected /127.0.0.1", "1 disconnected"]


def test_a_deadline_is_met_to_the_millisecond() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        await trio.sleep(0.25)
        start = stage.server.now()
        assert await say(client, b"later") == b"at last"
        assert stage.server.now() - start == 5000

    assert play(scene).ticks == [EPOCH + 5250]


@pytest.mark.slow
def test_the_timekeeper_does_not_wake_itself_and_ticks_only_when_something_is_due() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        for _ in range(100):
            await say(client, b"a")
        await trio.sleep(1000)

    assert play(scene).ticks == []


def test_a_request_of_another_connection_can_release_a_response() -> None:
    async def scene(stage: Scene) -> None:
        waiting, other = stage.connect(), stage.connect()
        await waiting.send_all(b"later")
        await wait_all_tasks_blocked()
        assert await say(other, b"other") == b"done"
        assert bytes(await waiting.receive_some()) == b"released"
        assert await say(waiting, b"and on") == b"and on"

    play(scene)


def test_a_muted_connection_is_not_read_until_its_answer_has_left() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        await client.send_all(b"later")
        await wait_all_tasks_blocked()
        await client.send_all(b"behind")
        await trio.sleep(4.9)
        assert stage.broker.received_bytes == len(b"later")
        answers = b""
        while len(answers) < len(b"at lastbehind"):
            answers += await client.receive_some()
        assert answers == b"at lastbehind"

    play(scene)


@pytest.mark.parametrize(("late_s", "traced"), [(0.4, []), (3, [{"lag_ms": 3000}])])
def test_the_trace_has_the_lag_of_the_loop(late_s: float, traced: list[object]) -> None:
    clock = MockClock()

    async def main() -> list[object]:
        served = build(Options())
        async with trio.open_nursery() as nursery:
            await nursery.start(served.server.serve, [])
            await wait_all_tasks_blocked()
            clock.jump(LAG_INTERVAL_S + late_s)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        return [line["body"] for line in served.trace.events() if line["kind"] == "lag"]

    assert trio.run(main, clock=clock) == traced


def test_responses_leave_in_order_however_slow_the_network_is() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        await wait_all_tasks_blocked()
        expected = b"x" * MUCH + b"first and second"
        for output in (Send(1, b"x" * MUCH), Send(1, b"first", more=True), Send(1, b" and second")):
            stage.soon(output)
            await wait_all_tasks_blocked()
        got = bytearray()
        while len(got) < len(expected):
            got += await client.receive_some()
        assert got == expected

    play(scene)


FLOODS = 60
"""Connections of a flood."""


def waits_beside_a_flood(*words: bytes) -> list[int]:
    """Return the turns of a flood that each word of another client waits for; `rebalance` takes 10 s."""
    waits = []

    async def scene(stage: Scene) -> None:
        clock = trio.lowlevel.current_clock()
        turns = 0

        def turn_of_flood(_now: int, connection: int) -> list[Send]:
            nonlocal turns
            turns += 1
            # no two connections cost the same
            clock.jump(0.001 + connection / 1_000_000)
            return [Send(connection, b"response", more=True)]

        def received(now: int, connection: int, data: bytes) -> list[Send]:
            clock.jump(10 if data == b"rebalance" else 0.00001)
            return turn_of_flood(now, connection) if data == b"flood" else [Send(connection, data)]

        stage.broker.received, stage.broker.flushed = received, turn_of_flood
        for client in [stage.connect() for _ in range(FLOODS)]:
            await client.send_all(b"flood")
        client = stage.connect()
        for word in words:
            before = turns
            await say(client, word)
            waits.append(turns - before)

    play(scene)
    return waits


def test_a_heartbeat_does_not_wait_for_a_turn_of_each_connection_of_a_flood() -> None:
    first, *later = waits_beside_a_flood(*[b"heartbeat"] * 10)
    # its first turn comes after those of the connections that came before it, which have every second turn
    assert first <= 2 * FLOODS, first
    assert max(later) < FLOODS / 2, later


def test_a_client_with_an_expensive_turn_is_served_again_soon() -> None:
    waits = waits_beside_a_flood(b"rebalance", b"heartbeat")
    assert max(waits) < 4 * FLOODS, waits


def test_close_sends_pending_bytes_before_closing() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        assert await say(client, b"close") == b"bye"
        assert bytes(await client.receive_some()) == b""

    assert play(scene).log[-1] == "1 disconnected said so"


def test_held_back_frames_are_served_after_the_send() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        await client.send_all(b"turns")
        answers = b""
        while len(answers) < len(b"first more more more "):
            answers += await client.receive_some()
        assert answers == b"first more more more "
        assert await say(client, b"and on") == b"and on"

    play(scene)


def test_a_disconnect_during_a_request_in_flight_is_noticed() -> None:
    """The broker reads on, because the response may never come."""

    async def scene(stage: Scene) -> None:
        stage.broker.is_muted = lambda _: False  # type: ignore[method-assign]
        client = stage.connect()
        await client.send_all(b"later")
        await wait_all_tasks_blocked()
        await client.aclose()
        await wait_all_tasks_blocked()
        assert stage.broker.log[-1] == "1 disconnected"

    play(scene)


def test_a_parked_connection_can_be_closed() -> None:
    async def scene(stage: Scene) -> None:
        waiting, other = stage.connect(), stage.connect()
        await waiting.send_all(b"later")
        await wait_all_tasks_blocked()
        await other.send_all(b"close others")
        assert bytes(await waiting.receive_some()) == b""
        assert await say(other, b"still here") == b"still here"

    play(scene)


def test_an_idle_connection_can_be_sent_to_and_closed() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        await wait_all_tasks_blocked()
        stage.soon(Send(1, b"unasked"))
        assert bytes(await client.receive_some()) == b"unasked"
        assert await say(client, b"a") == b"a"
        stage.soon(Close(1, "enough"), Send(7, b"nobody"))
        assert bytes(await client.receive_some()) == b""

    assert play(scene).log[-1] == "1 disconnected enough"


def test_an_action_may_bring_the_deadline_forward() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        await client.send_all(b"later")
        await wait_all_tasks_blocked()
        start = stage.server.now()

        def sooner(now: int) -> str:
            stage.broker.parked[1] = now + 100
            return "result"

        assert stage.server.act(sooner) == "result"
        assert bytes(await client.receive_some()) == b"at last"
        assert stage.server.now() - start == 100

    play(scene)


def test_wait_for_checks_its_predicate_after_every_input() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        await client.send_all(b"later")
        await wait_all_tasks_blocked()
        start = trio.current_time()
        assert await stage.server.wait_for(lambda: bool(stage.broker.ticks), 60)
        assert trio.current_time() - start == pytest.approx(5)
        assert not await stage.server.wait_for(lambda: False, 60)
        assert trio.current_time() - start == pytest.approx(65)

    play(scene)


def test_an_internal_error_ends_its_connection(no_bug_of_koordinator: list[BaseException]) -> None:
    async def scene(stage: Scene) -> None:
        client, other = stage.connect(), stage.connect()
        await client.send_all(b"bug")
        assert await client.receive_some() == b""
        assert await say(other, b"a") == b"a"

    log = play(scene).log
    assert "1 disconnected a bug in koordinator" in log
    assert any("a bug in koordinator ended connection 1: AssertionError: a bug of ours" in line for line in log)
    assert len(no_bug_of_koordinator) == 1
    no_bug_of_koordinator.clear()
