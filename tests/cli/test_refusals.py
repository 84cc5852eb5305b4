"""Refusals of `koordinator serve`: one line on stderr, exit status 2, nothing started."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from koordinator import __version__
from koordinator.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Served

GOOD = '{"topic": "orders", "value": "1"}\n'


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command that must be refused before anything listens, and return its line on stderr."""

    async def listen(host: str, port: int) -> None:
        pytest.fail(f"it listens on {host}:{port}")

    monkeypatch.setattr("koordinator.emulator.server.node_listeners.listen", listen)

    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        output = capsys.readouterr()
        assert end.value.code == 2
        assert output.out == ""
        assert output.err.endswith("\n")
        assert output.err.count("\n") == 1, output.err
        return output.err.rstrip("\n")

    return run


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--topic", "a:0"], "'a:0': PARTITIONS must be an integer from 1 to 10000"),
        (["--topic", "a:10001"], "'a:10001': PARTITIONS must be an integer from 1 to 10000"),
        (["--topic", "a:-1"], "'a:-1': PARTITIONS must be"),
        (["--topic", "a:"], "'a:': PARTITIONS must be"),
        (["--topic", "a:x"], "'a:x': PARTITIONS must be"),
        (["--topic", "a:1.5"], "'a:1.5': PARTITIONS must be"),
        (["--topic", "a:\u0663"], "'a:\u0663': PARTITIONS must be"),
        (["--topic", "a:" + "9" * 5000], "PARTITIONS must be"),
        (["--topic", "orders"], "'orders': must be NAME:PARTITIONS, such as orders:6"),
        (["--topic", ":3"], "':3': Topic name is invalid: the empty string is not allowed"),
        (["--topic", "..:3"], "'..:3': Topic name is invalid: '..' is not allowed"),
        (["--topic", "or ders:3"], "'or ders:3': Topic name is invalid: 'or ders' contains"),
        (["--topic", "a\nb:3"], "contains one or more characters other than"),
        (["--topic", "a" * 250 + ":3"], "is longer than the max allowed length 249"),
        (["--topic", "__consumer_offsets:50"], "__consumer_offsets is internal to Kafka"),
        (["--topic", "a:1", "--topic", "b:1", "--topic", "a:2"], "'a:2': topic a is given twice"),
        (["--topic", "a.b:1", "--topic", "a_b:1"], "topic 'a_b': Topic 'a_b' collides with existing topic: a.b"),
        (["--brokers", "0"], "0: must be an integer from 1 to 100"),
        (["--listener", "OUTSIDE"], "'OUTSIDE': must be NAME=HOST:PORT, such as OUTSIDE=0.0.0.0:19092"),
        (["--listener", "A=h:1", "--listener", "A=h:2"], "'A=h:2': A is given twice"),
        (["--listener", "2:A=h:1"], "listener 2:A: there is no node 2; there are 1"),
        (["--advertised", "A=h:1"], "advertised A: there is no listener of this name"),
        (["--config", "group.max.size"], "'group.max.size': must be NAME=VALUE, such as group.max.size=10"),
        (
            ["--config", "group.max.size=0"],
            "group.max.size=0: must be an integer from 1 to 2147483647",
        ),
        (
            ["--config", "group.max.siz=3"],
            "group.max.siz=3: not a setting of a Kafka broker; did you mean 'group.max.size'?",
        ),
        (
            ["--config", "group.max.size=3", "--config", "group.max.size=3"],
            "'group.max.size=3': group.max.size is given twice",
        ),
        (["--config", "profile=slow"], "profile=slow: must be fast or kafka-defaults"),
        (["--config", "error.codes=KIP"], "error.codes=KIP: must be kafka or kip"),
        (
            ["--config", "error.codes=kip", "--error-codes", "kip"],
            "error.codes is given twice, by --error-codes and by --config",
        ),
        (["--config", "profile=fast", "--profile", "fast"], "profile is given twice, by --profile and by --config"),
        (["--config", "kafka.version=4.1"], "kafka.version=4.1: must be 2.4 or 2.8 or 3.9 or 4.0 or 4.2 or 4.3 or 4.4"),
        (
            ["--config", "kafka.version=2.8", "--kafka-version", "2.8"],
            "kafka.version is given twice, by --kafka-version and by --config",
        ),
        (
            ["--profile", "kafka-defaults", "--config", "group.max.session.timeout.ms=5000"],
            "must be at least group.min.session.timeout.ms=6000",
        ),
        (["--profile", "slow"], "'slow' is not one of 'fast', 'kafka-defaults'"),
        (["--error-codes", "79"], "'79' is not one of 'kafka', 'kip'"),
        (["--kafka-version", "3.0"], "'3.0' is not one of '2.4', '2.8', '3.9', '4.0', '4.2', '4.3', '4.4'"),
        (["--port", "65536"], "65536: must be an integer from 0 to 65535"),
        (["--port", "-1"], "-1: must be an integer from 0 to 65535"),
        (["--port", "http"], "http: must be an integer from 0 to 65535"),
        (["--seed", "-1"], "-1: must be an integer of at least 0"),
        (["--prot", "1"], "--prot"),
        (["orders"], "Got unexpected extra argument (orders)"),
        (["--topic"], "Option '--topic' requires an argument"),
        (["--trace", "/nowhere/at/all"], "trace file /nowhere/at/all: No such file or directory"),
        (["--records", "/nowhere/at/all"], "/nowhere/at/all: No such file or directory"),
    ],
)
def test_an_invalid_option_is_refused_in_one_line(
    refused: Callable[..., str], arguments: list[str], expected: str
) -> None:
    line = refused("serve", *arguments)
    assert line.startswith("koordinator")
    assert expected in line


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (b'{"topic": "orders", "value": }\n', "not JSON"),
        (b'{"value": "1"}\n', "topic is missing"),
        (b'{"topic": "or ders"}\n', "topic: Topic name is invalid"),
        (b'{"topic": "orders", "valeu": "1"}\n', "unknown field 'valeu'"),
        (b'{"topic": "orders", "value": "\xff"}\n', "not UTF-8"),
        (b"[]\n", "expected a JSON object, not an array"),
    ],
)
def test_an_invalid_line_of_a_records_file_is_named(
    refused: Callable[..., str], tmp_path: Path, bad: bytes, problem: str
) -> None:
    path = tmp_path / "seed.jsonl"
    path.write_bytes(GOOD.encode() * 2 + b"\n" + bad + GOOD.encode())
    assert f"{path}:4: {problem}" in refused("serve", "--records", str(path))


def test_a_record_for_a_missing_partition_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "seed.jsonl"
    path.write_text('{"topic": "orders", "partition": 3}\n')
    assert "orders" in refused("serve", "--topic", "orders:3", "--records", str(path))


@pytest.mark.parametrize("arguments", [["sevre"], ["--bogus"]])
def test_an_unknown_command_or_option_is_refused(refused: Callable[..., str], arguments: list[str]) -> None:
    assert arguments[0] in refused(*arguments)


def test_a_port_in_use_is_refused(serve: Callable[..., Served]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        served = serve("--port", str(port))
        assert served.ended() == 2
    assert served.rest("out") == []
    (line,) = served.rest("err")
    assert line.startswith(f"koordinator serve: cannot listen on 127.0.0.1:{port}: ")
    assert "in use" in line


@pytest.mark.parametrize("host", ["no-such-host.invalid", "300.1.1.1", "a" * 70, ".", "\u2603.invalid"])
def test_a_host_that_cannot_be_resolved_is_refused(serve: Callable[..., Served], host: str) -> None:
    served = serve("--port", "0", "--host", host)
    assert served.ended() == 2
    assert served.rest("out") == []
    (line,) = served.rest("err")
    assert line.startswith(f"koordinator serve: cannot listen on {host}:0: ")


def test_version_and_help_end_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, expected in (
        (["--version"], f"koordinator {__version__}\n"),
        (["--help"], "A Kafka group coordinator"),
        (["serve", "-h"], "--error-codes"),
    ):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert end.value.code == 0
        assert expected in capsys.readouterr().out
