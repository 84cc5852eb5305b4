"""Finding the broker for each request, retrying while brokers move, and timing out."""

from __future__ import annotations

import re
import socket
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from brokers.admin_responses import SHORT_S, TIMEOUT_S, deleted
from brokers.scripted_broker import CLOSE, SILENCE, Cut, Drip, Raw, Scripted, WrongId, coordinator

from koordinator.client.connection import Address, BrokerConnection, Deadline
from koordinator.client.errors import ClientError, InvalidResponse, SecuredListener, TimedOut, Unreachable
from koordinator.client.groups import delete_groups, list_groups
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.frames import frame, request_header
from koordinator.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from koordinator.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from koordinator.wire.messages.metadata import MetadataResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.client.admin import Admin


def unused() -> Address:
    """Return an address without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return Address(*server.getsockname())


# -- retries ---


@pytest.mark.parametrize("error", [14, 15, 16])
def test_a_coordinator_that_is_not_ready_is_retried(admin: Callable[..., Admin], broker: Scripted, error: int) -> None:
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g", error=error), deleted("g", error=error), deleted("g"))
    assert delete_groups(admin(broker), ["g"]).successes == ("g",)
    assert len(broker.requests(ApiKey.DELETE_GROUPS)) == 3
    assert len(broker.requests(ApiKey.FIND_COORDINATOR)) == 3, "the coordinator is looked up before each retry"


@pytest.mark.parametrize("version", [2, 4])
def test_a_coordinator_that_does_not_exist_yet_is_looked_up_again(
    admin: Callable[..., Admin], broker: Scripted, version: int
) -> None:
    broker.versions[ApiKey.FIND_COORDINATOR] = (0, version)
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(broker, Error.COORDINATOR_NOT_AVAILABLE), coordinator(broker))
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g"))
    assert delete_groups(admin(broker), ["g"]).successes == ("g",)


def test_only_groups_with_a_retriable_error_are_retried(admin: Callable[..., Admin], broker: Scripted) -> None:
    first = DeleteGroupsResponse(
        results=(
            DeletableGroupResult(group_id="a"),
            DeletableGroupResult(group_id="b", error_code=14),
            DeletableGroupResult(group_id="c", error_code=68),
        )
    )
    broker.answers(ApiKey.DELETE_GROUPS, first, deleted("b"))
    result = delete_groups(admin(broker), ["a", "b", "c"])
    assert result.successes == ("a", "b")
    assert [(each.group_id, each.failure.code) for each in result.failures] == [("c", 68)]
    assert [each.request.groups_names for each in broker.requests(ApiKey.DELETE_GROUPS)] == [("a", "b", "c"), ("b",)]


def test_a_request_follows_the_group_to_its_new_coordinator(
    admin: Callable[..., Admin], broker: Scripted, other: Scripted
) -> None:
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(broker), coordinator(other))
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g", error=16))
    other.answers(ApiKey.DELETE_GROUPS, deleted("g"))
    assert delete_groups(admin(broker), ["g"]).successes == ("g",)
    assert len(broker.requests(ApiKey.DELETE_GROUPS)) == len(other.requests(ApiKey.DELETE_GROUPS)) == 1


def test_a_coordinator_that_never_becomes_ready_is_a_failure_with_the_time_of_the_retries(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g", error=14))
    started = monotonic()
    (error,) = delete_groups(admin(broker, timeout_s=SHORT_S), ["g"]).failures
    assert monotonic() - started < TIMEOUT_S
    assert str(error.failure) == (
        "COORDINATOR_LOAD_IN_PROGRESS (14): the coordinator is still loading the group, after retrying for 1.5 s"
    )
    assert 2 <= len(broker.requests(ApiKey.DELETE_GROUPS)) <= 4, "the pauses grow"


def test_a_bootstrap_server_that_closes_the_connection_is_connected_again(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(broker), CLOSE, coordinator(broker))
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g", error=16), deleted("g"))
    assert delete_groups(admin(broker), ["g"]).successes == ("g",)
    assert broker.connections == 2


def test_a_scripted_broker_serves_no_stray_client_of_an_earlier_test(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g"))
    with socket.create_connection((broker.host, broker.port), TIMEOUT_S) as stray:
        stray.sendall(frame(request_header(ApiKey.HEARTBEAT, 0, 1, "rdkafka"), b""))
        assert stray.recv(1) == b""
    assert delete_groups(admin(broker), ["g"]).successes == ("g",)
    assert ApiKey.HEARTBEAT not in {each.api for each in broker.asked}
    assert broker.connections == 1


def test_a_read_is_retried_after_a_lost_connection(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.LIST_GROUPS, CLOSE, ListGroupsResponse(groups=(ListedGroup(group_id="g"),)))
    result = list_groups(admin(broker))
    assert [group.group_id for group in result.successes] == ["g"]
    assert result.failures == ()


def test_a_change_is_not_retried_after_a_lost_connection(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.DELETE_GROUPS, CLOSE, deleted("g"))
    (error,) = delete_groups(admin(broker), ["g"]).failures
    assert str(error.failure) == (
        f"{broker.bootstrap}: closed the connection without a response to DeleteGroups v3;"
        " the broker may have carried out the request"
    )
    assert len(broker.requests(ApiKey.DELETE_GROUPS)) == 1


def test_a_coordinator_that_does_not_listen_is_looked_up_again(
    admin: Callable[..., Admin], broker: Scripted, other: Scripted
) -> None:
    gone = Scripted(node_id=2)
    gone.__exit__()
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(gone), coordinator(other))
    other.answers(ApiKey.DELETE_GROUPS, deleted("g"))
    assert delete_groups(admin(broker), ["g"]).successes == ("g",)


def test_a_coordinator_with_an_unknown_host_name_is_not_retried(admin: Callable[..., Admin], broker: Scripted) -> None:
    inside = Scripted(node_id=2)
    inside.__exit__()
    inside.host = "kafka.invalid"
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(inside))
    (error,) = delete_groups(admin(broker), ["g"]).failures
    assert str(error.failure).startswith(f"kafka.invalid:{inside.port}: cannot connect: ")
    assert len(broker.requests(ApiKey.FIND_COORDINATOR)) == 1


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", -1), ("127.0.0.1", 65536), ("", 9092), ("a\0b", 9092)])
def test_an_invalid_advertised_address_is_an_error_of_one_line(
    admin: Callable[..., Admin], broker: Scripted, host: str, port: int
) -> None:
    wrong = Scripted(node_id=2)
    wrong.__exit__()
    wrong.host, wrong.port = host, port
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(wrong))
    (error,) = delete_groups(admin(broker), ["g"]).failures
    assert str(error.failure).startswith(f"{host}:{port}: cannot connect: ")


# -- bootstrap servers ---


def test_the_first_bootstrap_server_that_answers_is_used(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.LIST_GROUPS, ListGroupsResponse())
    assert list_groups(admin(unused(), broker)).failures == ()


def test_without_a_bootstrap_server_the_error_names_each_address_and_its_cause(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.API_VERSIONS, CLOSE)
    closed = unused()
    with pytest.raises(Unreachable) as raised:
        list_groups(admin(closed, broker))
    assert str(raised.value) == (
        f"{closed}: cannot connect: Connection refused; {broker.bootstrap}: closed the connection without a response "
        "to ApiVersions v5: this looks like a TLS or SASL listener; give its settings by --command-config"
    )


def test_a_bootstrap_server_that_never_answers_leaves_time_for_the_next(
    admin: Callable[..., Admin], broker: Scripted, other: Scripted
) -> None:
    broker.answers(ApiKey.API_VERSIONS, SILENCE)
    other.answers(ApiKey.LIST_GROUPS, ListGroupsResponse(groups=(ListedGroup(group_id="g"),)))
    result = list_groups(admin(broker, other, timeout_s=4))
    assert [group.group_id for group in result.successes] == ["g"]


# -- unsupported listeners and invalid responses ---


def test_a_listener_that_closes_at_once_is_reported_as_tls_or_sasl(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.API_VERSIONS, CLOSE)
    with pytest.raises(
        SecuredListener, match="this looks like a TLS or SASL listener; give its settings by --command-config"
    ):
        list_groups(admin(broker))


def test_a_listener_that_answers_only_api_versions_is_reported_as_sasl(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.METADATA, CLOSE)
    with pytest.raises(SecuredListener, match="without a response to Metadata v13: this looks like a SASL listener"):
        list_groups(admin(broker))


def test_a_tls_alert_is_reported_as_tls(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.API_VERSIONS, Raw(b"\x15\x03\x03\x00\x02\x02\x50"))
    with pytest.raises(SecuredListener, match="answers with a TLS alert: this looks like a TLS listener"):
        list_groups(admin(broker))


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "a frame of 1213486160 bytes; 0 to"),
        (WrongId(ListGroupsResponse()), "its correlation id is"),
        (Cut(ListGroupsResponse()), "the connection was closed after "),
        (Raw(b"\0\0\0\5\0\0\0\1\0"), "cannot be read: "),
    ],
)
def test_an_invalid_response_is_an_error_of_one_line(
    admin: Callable[..., Admin], broker: Scripted, step: Any, text: str
) -> None:
    broker.answers(ApiKey.LIST_GROUPS, step)
    (error,) = list_groups(admin(broker)).failures
    message = str(error.failure)
    assert message.startswith(f"{broker.bootstrap}: the response to ListGroups v5 cannot be read: ")
    assert text in message
    assert error.broker is not None
    assert error.broker.node_id == 1
    assert len(broker.requests(ApiKey.LIST_GROUPS)) == 1, "invalid responses are not retried"


def test_an_invalid_response_of_the_bootstrap_server_is_raised(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.METADATA, Cut(MetadataResponse()))
    with pytest.raises(InvalidResponse, match="the response to Metadata v13 cannot be read"):
        list_groups(admin(broker))


# -- deadlines ---


@pytest.mark.parametrize("api", [ApiKey.API_VERSIONS, ApiKey.METADATA])
def test_a_bootstrap_server_that_never_answers_times_out(
    admin: Callable[..., Admin], broker: Scripted, api: ApiKey
) -> None:
    broker.answers(api, SILENCE)
    started = monotonic()
    with pytest.raises(TimedOut, match=rf"^{broker.bootstrap}: no response to \w+ v\d+ within 1.5 s$"):
        list_groups(admin(broker, timeout_s=SHORT_S))
    assert SHORT_S <= monotonic() - started < TIMEOUT_S


def test_a_broker_that_never_answers_does_not_hide_the_others(
    admin: Callable[..., Admin], broker: Scripted, other: Scripted
) -> None:
    broker.brokers = [broker, other]
    broker.answers(ApiKey.LIST_GROUPS, SILENCE)
    other.answers(ApiKey.LIST_GROUPS, ListGroupsResponse(groups=(ListedGroup(group_id="g"),)))
    result = list_groups(admin(broker, timeout_s=3.9))
    assert [(group.group_id, group.coordinator.node_id) for group in result.successes] == [("g", 2)]
    (error,) = result.failures
    assert error.broker is not None
    assert error.broker.node_id == 1
    assert re.search(r": no response to ListGroups v5 within \d(\.\d)? s$", str(error.failure))


def test_a_response_of_single_bytes_times_out(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.LIST_GROUPS, Drip(ListGroupsResponse(groups=(ListedGroup(group_id="g"),)), every_s=0.5))
    result = list_groups(admin(broker, timeout_s=SHORT_S))
    assert result.successes == ()
    assert "no response to ListGroups v5 within" in str(result.failures[0].failure)


def test_no_request_is_sent_after_the_deadline(broker: Scripted) -> None:
    link = BrokerConnection(Address(broker.host, broker.port), Deadline(TIMEOUT_S), "1")
    link.deadline = Deadline(0)
    with pytest.raises(TimedOut, match="no response to ListGroups v5 within 0 s"):
        link.send(ListGroupsRequest(), 5, ListGroupsResponse)
    link.close()


def test_a_listener_that_does_not_accept_times_out(admin: Callable[..., Admin]) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=1) as deaf, pytest.raises(ClientError, match=r"within 1.5 s$"):
        list_groups(admin(Address(*deaf.getsockname()), timeout_s=SHORT_S))
