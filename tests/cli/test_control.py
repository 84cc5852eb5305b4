"""`koordinator serve --control-port`: where control is to be had, and by whom."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import httpx
import pytest

from koordinator.handles.remote import Remote

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Served


def test_the_first_line_says_where_clusters_are_controlled(serve: Callable[..., Served]) -> None:
    served = serve("--port", "0", "--control-port", "0", "--topic", "orders:2")
    said = served.ready()
    with Remote(said["control_url"]) as server:
        cluster = server.cluster()
        assert cluster.bootstrap_servers == said["bootstrap_servers"]
        assert [described["id"] for described in server.request("GET", "/v1/clusters")] == [said["id"]] == ["default"]
        server.create("two").create_topic("t")
        assert server.clusters() == ["default", "two"]
    assert served.stop() == 0


def test_without_the_option_nothing_is_controlled(serve: Callable[..., Served]) -> None:
    assert "control_url" not in serve("--port", "0").ready()


def test_a_token_is_asked_for(serve: Callable[..., Served]) -> None:
    said = serve("--port", "0", "--control-port", "0", "--control-token", "open sesame").ready()
    with Remote(said["control_url"]) as server, pytest.raises(PermissionError, match="Authorization: Bearer TOKEN"):
        server.clusters()
    with Remote(said["control_url"], token="open sesame") as server:
        assert server.clusters() == ["default"]
    assert "open sesame" not in str(said)


def test_the_first_line_has_a_new_random_token_each_time(serve: Callable[..., Served]) -> None:
    said = [serve("--port", "0", "--control-port", "0", "--control-token", "random").ready() for _ in range(2)]
    assert said[0]["control_token"] != said[1]["control_token"]
    with Remote(said[0]["control_url"]) as server, pytest.raises(PermissionError):
        server.clusters()
    with Remote(said[0]["control_url"], token=said[0]["control_token"]) as server:
        assert server.clusters() == ["default"]


def test_no_token_is_generated_for_open_access(serve: Callable[..., Served]) -> None:
    said = serve("--port", "0", "--control-port", "0", "--control-token", "random", "--insecure-control").ready()
    assert "control_token" not in said
    with Remote(said["control_url"]) as server:
        assert server.clusters() == ["default"]


def test_control_beyond_loopback_needs_a_token(serve: Callable[..., Served]) -> None:
    refused = serve("--port", "0", "--control-port", "0", "--control-host", "0.0.0.0")  # noqa: S104 - it is refused
    assert refused.ended() == 2
    (line,) = refused.rest("err")
    assert "--control-host 0.0.0.0: everybody who reaches it could control the clusters" in line
    assert "--insecure-control" in line


@pytest.mark.parametrize("given", [("--insecure-control",), ("--control-token", "x")])
def test_listening_beyond_loopback_must_be_explicit(serve: Callable[..., Served], given: tuple[str, ...]) -> None:
    said = serve("--port", "0", "--control-port", "0", "--control-host", "::", *given).ready()
    url = said["control_url"].replace("[::]", "[::1]")
    assert httpx.get(f"{url}/healthz", trust_env=False).is_success


def test_a_control_port_that_is_taken_is_one_clear_line(serve: Callable[..., Served]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused = serve("--port", "0", "--control-port", port)
        assert refused.ended() == 2
        (line,) = refused.rest("err")
        assert f"cannot listen on 127.0.0.1:{port}: " in line
    assert refused.rest("out") == []


@pytest.mark.parametrize("value", ["20000", "b-c", "5-4", "0-7", "1-70000"])
def test_a_port_range_is_two_ports(serve: Callable[..., Served], value: str) -> None:
    refused = serve("--port-range", value)
    assert refused.ended() == 2
    assert "two ports with a dash between are wanted, such as 20000-20099" in refused.rest("err")[0]
