"""Named listeners and advertised addresses, for every node or for one."""

from __future__ import annotations

import pytest

from koordinator.emulator.broker.listeners import Listener, Listeners


def listeners(
    given: dict[str, str] | None = None,
    advertised: dict[str, str] | None = None,
    brokers: int = 2,
    port: int = 9092,
    host: str = "127.0.0.1",
) -> Listeners:
    return Listeners(host, port, given or {}, advertised or {}, range(1, brokers + 1))


def test_every_node_has_a_port_of_its_own() -> None:
    assert [listeners().of(node) for node in (1, 2)] == [
        [Listener("PLAINTEXT", "127.0.0.1", 9092, "127.0.0.1", 0)],
        [Listener("PLAINTEXT", "127.0.0.1", 9093, "127.0.0.1", 0)],
    ]


def test_any_port_is_any_port_for_each() -> None:
    assert [listeners(port=0).of(node)[0].port for node in (1, 2)] == [0, 0]


def test_additional_listeners_have_names_and_advertised_addresses() -> None:
    table = listeners({"outside": "0.0.0.0:19092"}, {"OUTSIDE": "kafka.example:29092"})
    assert table.of(2) == [
        Listener("PLAINTEXT", "127.0.0.1", 9093, "127.0.0.1", 0),
        Listener("OUTSIDE", "0.0.0.0", 19093, "kafka.example", 29093),  # noqa: S104
    ]


def test_a_listener_of_one_node_is_its_alone_and_its_port_is_the_one_given() -> None:
    table = listeners({"2:INNER": "127.0.0.1:7000"})
    assert [[each.name for each in table.of(node)] for node in (1, 2)] == [["PLAINTEXT"], ["PLAINTEXT", "INNER"]]
    assert table.of(2)[1].port == 7000


def test_a_node_specific_listener_overrides_the_general_one() -> None:
    table = listeners({"O": "127.0.0.1:7000", "2:O": "127.0.0.1:8000"}, {"2:PLAINTEXT": "two:1"})
    assert [table.of(node)[1].port for node in (1, 2)] == [7000, 8000]
    assert [(each.advertised_host, each.advertised_port) for each in (table.of(1)[0], table.of(2)[0])] == [
        ("127.0.0.1", 0),
        ("two", 1),
    ]


def test_the_default_listener_can_be_replaced() -> None:
    assert listeners({"PLAINTEXT": "[::1]:5000"}).of(2) == [Listener("PLAINTEXT", "::1", 5001, "::1", 0)]


def test_without_a_port_it_is_the_one_that_is_listened_on() -> None:
    assert listeners(advertised={"PLAINTEXT": "kafka.example"}).of(1)[0].advertised_port == 0


@pytest.mark.parametrize(("host", "told"), [("0.0.0.0", "127.0.0.1"), ("::", "::1")])  # noqa: S104
def test_wildcard_addresses_are_not_advertised(host: str, told: str) -> None:
    assert listeners(host=host).of(1)[0].advertised_host == told


@pytest.mark.parametrize(
    ("given", "advertised", "told"),
    [
        ({"a b": "h:1"}, {}, r"listener 'a b': must be NAME, or NODE:NAME"),
        ({"A": "h:1:2"}, {}, r"listener A=h:1:2: must be HOST:PORT"),
        ({"A": ":1"}, {}, r"listener A=:1: must be HOST:PORT"),
        ({"A": "h:70000"}, {}, r"port listener A=h:70000: must be from 0 to 65535"),
        ({"A": "h:65535"}, {}, r"port 65535 for node 1 is 65536 for node 2: must be from 0 to 65535"),
        ({"3:A": "h:1"}, {}, r"listener 3:A: there is no node 3; there are 1, 2"),
        ({}, {"B": "h:1"}, r"advertised B: there is no listener of this name"),
        ({"2:B": "h:1"}, {"1:B": "h:1"}, r"advertised B: there is no listener of this name"),
    ],
)
def test_invalid_values_are_refused(given: dict[str, str], advertised: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=f"^{told}$"):
        listeners(given, advertised)


def test_the_last_node_has_to_have_a_port_too() -> None:
    with pytest.raises(ValueError, match="port 65535 for node 1 is 65536 for node 2: must be from 0 to 65535"):
        listeners(port=65_535)
