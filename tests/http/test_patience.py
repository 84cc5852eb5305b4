"""Long polls: they end with their client's connection, and many can wait at once."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import trio
from brokers.http_server import WAIT_S

from koordinator.emulator.server.build import ServedCluster

if TYPE_CHECKING:
    import httpx
    from brokers.http_server import Served

    from koordinator.handles.remote import Remote

POLL = "GET /v1/clusters/default/groups/g/wait?state=Stable&timeout=600 HTTP/1.1\r\nHost: {}\r\n\r\n"


@pytest.mark.slow
def test_a_long_poll_ends_when_its_client_hangs_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    began, ended, wait = threading.Event(), threading.Event(), ServedCluster.wait

    async def watched(served: ServedCluster, *arguments: Any) -> Any:
        began.set()
        try:
            return await wait(served, *arguments)
        except trio.Cancelled:
            ended.set()
            raise

    monkeypatch.setattr(ServedCluster, "wait", watched)
    place = served.url.removeprefix("http://")
    host, _, port = place.rpartition(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(POLL.format(place).encode())
        assert began.wait(WAIT_S)
        assert not ended.is_set()
    assert ended.wait(WAIT_S), "the long poll went on without its client"


@pytest.mark.slow
def test_a_crowd_that_waits_hears_of_it_too(http: httpx.Client, server: Remote) -> None:
    path = "/v1/clusters/default/groups/g/wait?state=Stable&members=1&timeout=60"
    with ThreadPoolExecutor(40) as pool:
        polls = [pool.submit(http.get, path) for _ in range(40)]
        server.cluster().load_groups([{"group_id": "g", "generation": 1, "members": [{"instance_id": "i"}]}])
        assert [poll.result(WAIT_S).json() for poll in polls] == [True] * 40
