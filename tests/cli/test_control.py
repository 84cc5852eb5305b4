"""`koordinator serve --control-port`: the address of the control API and its tokens."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import httpx
import pytest
from brokers.http_server import WAIT_S
from click.testing import CliRunner

from koordinator.cli.control_options import ControlOptions
from koordinator.emulator.config.options import Options
from koordinator.handles.remote import Remote

serve_command = import_module("koordinator.cli.serve")

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Served


def test_the_first_line_has_the_url_of_the_control_api(serve: Callable[..., Served]) -> None:
    served = serve("--port", "0", "--control-port", "0", "--topic", "orders:2")
    ready = served.ready()
    with Remote(ready["control_url"]) as server:
        cluster = server.cluster()
        assert cluster.bootstrap_servers == ready["bootstrap_servers"]
        assert [described["id"] for described in server.request("GET", "/v1/clusters")] == [ready["id"]] == ["default"]
        server.create("two").create_topic("t")
        assert server.clusters() == ["default", "two"]
    assert served.stop() == 0


def test_without_the_option_there_is_no_control_api(serve: Callable[..., Served]) -> None:
    assert "control_url" not in serve("--port", "0").ready()


@pytest.mark.parametrize(
    "given",
    [
        ("--control-token", "x"),
        ("--control-tls",),
        ("--insecure-control",),
        ("--control-host", "localhost"),
        ("--port-range", "20000-20009"),
    ],
)
def test_an_option_of_the_control_api_without_its_port_is_refused(given: tuple[str, ...]) -> None:
    result = CliRunner().invoke(serve_command.serve, ["--port", "0", *given])
    assert (result.exit_code, result.output.splitlines()[-1]) == (
        2,
        f"Error: {given[0]}: no effect without --control-port",
    )


def test_a_variable_of_the_control_api_without_its_port_is_reported(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOORDINATOR_CONTROL_TOKEN", "x")
    served = serve("--port", "0")
    served.ready()
    warning = "koordinator: warning: KOORDINATOR_CONTROL_TOKEN: no effect without --control-port"
    assert served.line("err") == warning


def test_the_token_is_required(serve: Callable[..., Served]) -> None:
    ready = serve("--port", "0", "--control-port", "0", "--control-token", "open sesame").ready()
    with (
        Remote(ready["control_url"]) as server,
        pytest.raises(PermissionError, match="Authorization: Bearer TOKEN"),
    ):
        server.clusters()
    with Remote(ready["control_url"], token="open sesame") as server:
        assert server.clusters() == ["default"]
    assert "open sesame" not in str(ready)


def test_a_random_token_is_in_the_first_line_and_new_for_each_process(serve: Callable[..., Served]) -> None:
    ready = [serve("--port", "0", "--control-port", "0", "--control-token", "random").ready() for _ in range(2)]
    assert ready[0]["control_token"] != ready[1]["control_token"]
    with Remote(ready[0]["control_url"]) as server, pytest.raises(PermissionError):
        server.clusters()
    with Remote(ready[0]["control_url"], token=ready[0]["control_token"]) as server:
        assert server.clusters() == ["default"]


def test_insecure_control_generates_no_token(serve: Callable[..., Served]) -> None:
    ready = serve("--port", "0", "--control-port", "0", "--control-token", "random", "--insecure-control").ready()
    assert "control_token" not in ready
    with Remote(ready["control_url"]) as server:
        assert server.clusters() == ["default"]


def test_over_tls_the_first_line_names_the_file_to_trust(serve: Callable[..., Served], tmp_path: Path) -> None:
    arguments = ("--port", "0", "--control-port", "0", "--certificates", str(tmp_path), "--security", "ssl")
    ready = serve(*arguments, "--control-tls", "--control-host", "0.0.0.0", "--control-token", "t").ready()  # noqa: S104
    assert ready["control_url"].startswith("https://127.0.0.1:")
    assert ready["control_ca_file"] == str(tmp_path / "ca.pem")
    with Remote(ready["control_url"], token="t", ca_file=ready["control_ca_file"]) as server:
        assert server.clusters() == ["default"]
    # the authority of the brokers, too
    assert ready["certificates"] == str(tmp_path)


def test_a_certificate_is_made_where_the_cluster_has_none(serve: Callable[..., Served]) -> None:
    ready = serve("--port", "0", "--control-port", "0", "--control-tls").ready()
    with Remote(ready["control_url"], ca_file=ready["control_ca_file"]) as server:
        assert server.clusters() == ["default"]


def test_an_unusable_certificate_for_control_starts_nothing(serve: Callable[..., Served], tmp_path: Path) -> None:
    (tmp_path / "server.pem").write_text("no certificate")
    data = tmp_path / "data"
    arguments = ("--port", "0", "--control-port", "0", "--control-tls", "--certificates", str(tmp_path))
    refused = serve(*arguments, "--data-dir", str(data))
    assert refused.ended() == 2
    assert f"certificates of {tmp_path}: server.pem" in "\n".join(refused.rest("err"))


def test_beyond_loopback_a_token_is_required(serve: Callable[..., Served]) -> None:
    refused = serve("--port", "0", "--control-port", "0", "--control-host", "0.0.0.0")  # noqa: S104 - refused
    assert refused.ended() == 2
    (line,) = refused.rest("err")
    assert "--control-host 0.0.0.0: anyone on the network could control the clusters" in line
    assert "--insecure-control" in line


@pytest.mark.parametrize("given", [("--insecure-control",), ("--control-token", "x")])
def test_beyond_loopback_a_token_or_insecure_control_is_accepted(
    serve: Callable[..., Served], given: tuple[str, ...]
) -> None:
    ready = serve("--port", "0", "--control-port", "0", "--control-host", "::", *given).ready()
    url = ready["control_url"].replace("[::]", "[::1]")
    assert httpx.get(f"{url}/healthz", trust_env=False, timeout=WAIT_S).is_success


def test_a_control_port_in_use_is_an_error_of_one_line(serve: Callable[..., Served]) -> None:
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
def test_an_invalid_port_range_is_refused(serve: Callable[..., Served], value: str) -> None:
    refused = serve("--port-range", value)
    assert refused.ended() == 2
    assert "must be two ports with a hyphen between them, such as 20000-20099" in refused.rest("err")[0]


def test_clients_are_served_while_the_control_plane_loads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    answers, lines = [], []

    def load(name: str) -> SimpleNamespace:
        assert name == "koordinator.emulator.http.server"
        lines.append(capsys.readouterr().out)
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(struct.pack(">ihhih", 10, 18, 0, 7, -1))
            answers.append(client.recv(8)[4:])
        return SimpleNamespace(serve_control=end)

    async def end(_registry: object, _: object, listeners: Any, _token: object, *, is_local: bool, tls: None) -> None:
        assert is_local, tls
        for listener in listeners:
            listener.socket.close()
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(serve_command, "import_module", load)
    # those of this process remain
    monkeypatch.setattr(serve_command, "gc", MagicMock())
    monkeypatch.setattr(serve_command, "keep_large_blocks", lambda: None)
    control = ControlOptions("127.0.0.1", 0, None, is_insecure=False, ports=None)
    serve_command.run(Options(port=port), control)
    assert answers == [struct.pack(">i", 7)]
    assert "control_url" in json.loads(lines[0])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_on_a_terminal_the_server_names_its_live_page() -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "koordinator", "serve", "--port", "0", "--control-port", "0", "--stop-with-stdin"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs, text=True) as server:
        os.close(theirs)
        assert server.stdout is not None
        assert server.stdin is not None
        url = json.loads(server.stdout.readline())["control_url"]
        with os.fdopen(ours, "rb", buffering=0) as terminal:
            assert terminal.readline().decode().strip() == f"koordinator: the live page: {url}/"
            server.stdin.close()
            assert server.wait(60) == 0
