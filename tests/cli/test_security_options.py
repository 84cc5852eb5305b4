"""`koordinator serve` with TLS and SASL: its options, its first line, and no password in an error."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from koordinator import Emulator
from koordinator.cli.serve import serve as command
from koordinator.emulator.config.options import Options
from koordinator.handles.remote import Remote

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Served


@pytest.mark.parametrize(
    "given",
    [("--user", "alice-secret"), ("--user", "=alice-secret"), ("--user", "a=alice-secret", "--user", "a=alice-secret")],
)
def test_a_refused_user_shows_no_password(given: tuple[str, ...]) -> None:
    result = CliRunner().invoke(command, given)
    assert result.exit_code == 2
    assert "alice-secret" not in result.output.replace("such as alice=alice-secret", "")
    assert "--user" in result.output


def test_an_unknown_protocol_is_refused_with_the_known_ones() -> None:
    result = CliRunner().invoke(command, ["--security", "tls"])
    assert result.exit_code == 2
    assert "sasl_ssl" in result.output
    with pytest.raises(ValueError, match=r"security 'sassl': must be one of plaintext, ssl, .*sasl_ssl"):
        Emulator(security="sassl").start()


def test_an_unknown_mechanism_or_protocol_of_a_listener_is_refused_with_the_known_ones() -> None:
    for name, value, known in (
        ("sasl.enabled.mechanisms", "SCRAM-SHA-1", "SCRAM-SHA-256"),
        ("listener.security.protocol.map", "OUTSIDE:SSH", "SSL"),
    ):
        with pytest.raises(ValueError, match=f"{name}.*{known}"):
            Emulator(config={name: value}, listeners={"OUTSIDE": "127.0.0.1:0"}).start()


@pytest.mark.slow
def test_the_first_line_has_the_secure_address_and_the_directory_of_the_certificates(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    served = serve("--security", "ssl", "--port", "0", "--certificates", str(tmp_path))
    ready = served.ready()
    assert ready["certificates"] == str(tmp_path)
    assert ready["bootstrap_servers"] == ready["listeners"]["SSL"] == f"127.0.0.1:{ready['port']}"
    context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    with (
        socket.create_connection(("127.0.0.1", ready["port"]), 10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        assert secure.version() == "TLSv1.3"


UNUSED = {
    "users": "users: no effect, because no listener has SASL: set security to sasl_plaintext or sasl_ssl",
    "certificates": "certificates: no effect, because no listener has TLS: set security to ssl or sasl_ssl",
}


def test_users_and_certificates_that_no_listener_uses_are_reported(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    served = serve("--port", "0", "--user", "alice=x", "--certificates", str(tmp_path / "c"))
    served.ready()
    assert [served.line("err") for _ in UNUSED] == [f"koordinator: warning: {each}" for each in UNUSED.values()]


@pytest.mark.parametrize(("name", "value"), [("users", {"a": "b"}), ("certificates", "c")])
def test_an_emulator_warns_of_users_and_certificates_that_no_listener_uses(name: str, value: Any) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.warns(UserWarning, match=UNUSED[name]), Emulator(**options):
        pass


def test_users_and_certificates_of_any_listener_are_used(recwarn: pytest.WarningsRecorder, tmp_path: Path) -> None:
    options: dict[str, Any] = {"users": {"a": "b"}, "certificates": tmp_path}
    with Emulator(listeners={"SASL_SSL": "127.0.0.1:0"}, **options):
        pass
    assert not recwarn.list


def test_no_password_is_in_the_text_of_the_options() -> None:
    assert "secret" not in repr(Options(users={"alice": "secret"}))


@pytest.mark.slow
def test_a_cluster_that_is_created_over_http_has_the_certificates_of_the_server(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    served = serve("--port", "0", "--control-port", "0", "--certificates", str(tmp_path))
    ready = served.ready()
    with Remote(ready["control_url"], ready.get("control_token")) as server:
        cluster = server.create(security="ssl")
        host, port = cluster.bootstrap_servers.split(":")
        context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
        with (
            socket.create_connection((host, int(port)), 10) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as secure,
        ):
            assert secure.version() == "TLSv1.3"
