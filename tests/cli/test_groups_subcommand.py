"""`koordinator groups list` and `describe`, failed requests, and usage errors."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from brokers.scripted_broker import CLOSE, SILENCE, Cut, Raw, Scripted, WrongId
from clients.asking_client import AskingClient
from clients.groups_command import Ran, commit, form
from clients.share_member import ShareMember

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse
from koordinator.wire.messages.list_groups import ListedGroup, ListGroupsResponse
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponseGroup
from koordinator.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, Subtopology, Topology

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator import Cluster


def node(cluster: Cluster) -> dict[str, object]:
    return {"node_id": 1, "host": "127.0.0.1", "port": int(cluster.bootstrap_servers.rpartition(":")[2])}


# -- list ---


def test_list_has_every_group_by_id(run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]) -> None:
    form(cluster.bootstrap_servers, "svc", "a")
    commit(cluster.bootstrap_servers, "offsets-only", {0: 1})
    ran = run("list", *at)
    assert (ran.status, ran.err) == (0, [])
    place = f"1 at {cluster.bootstrap_servers}"
    assert ran.rows == [
        ["GROUP", "PROTOCOL TYPE", "STATE", "TYPE", "COORDINATOR"],
        ["offsets-only", "-", "Empty", "classic", place],
        ["svc", "consumer", "Stable", "classic", place],
    ]


def test_list_as_json(run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]) -> None:
    commit(cluster.bootstrap_servers, "g", {0: 1})
    ran = run("list", "--json", *at)
    assert (ran.status, ran.err) == (0, [])
    group = {"group_id": "g", "protocol_type": "", "state": "Empty", "type": "classic", "coordinator": node(cluster)}
    assert ran.document == {"groups": [group], "errors": []}


def test_list_of_one_state(run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]) -> None:
    form(cluster.bootstrap_servers, "svc", "a")
    commit(cluster.bootstrap_servers, "empty", {0: 1})
    assert [row["group_id"] for row in run("list", "--json", "--state", "stable", *at).document["groups"]] == ["svc"]
    assert [row[0] for row in run("list", "--state", "EMPTY", *at).rows] == ["GROUP", "empty"]
    assert len(run("list", "--json", "--state", "Empty", "--state", "Stable", *at).document["groups"]) == 2


def test_list_of_no_groups(run: Callable[..., Ran], at: tuple[str, str]) -> None:
    ran = run("list", *at)
    assert (ran.status, ran.out, ran.err) == (0, "no groups\n", [])


# -- describe ---


def test_describe_shows_members_offsets_and_lag(run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]) -> None:
    cluster.produce("t", *({"value": "v", "partition": number % 2} for number in range(10)))
    commit(cluster.bootstrap_servers, "svc", {0: 2, 3: 0})
    static, dynamic = form(cluster.bootstrap_servers, "svc", "a", None)
    ran = run("describe", "svc", *at)
    assert (ran.status, ran.err) == (0, [])
    assert ran.rows == [
        ["GROUP", "STATE", "PROTOCOL", "MEMBERS", "COORDINATOR"],
        ["svc", "Stable", "consumer/range", "2", f"1 at {cluster.bootstrap_servers}"],
        ["MEMBER", "INSTANCE", "CLIENT", "HOST", "ASSIGNMENT"],
        [dynamic, "-", "koordinator", "/127.0.0.1", "t: 1"],
        [static, "a", "koordinator", "/127.0.0.1", "t: 0"],
        ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "OWNER"],
        ["t", "0", "2", "5", "3", "a"],
        ["t", "1", "-", "5", "-", dynamic],
        ["t", "3", "0", "0", "0", "-"],
    ]


def test_a_reconciling_consumer_group_is_listed_and_described(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]
) -> None:
    group = cluster.group("svc")
    group.create_puppet("a", topics=["t"], group_protocol="consumer", behaviour="manual").join()
    group.create_puppet("b", topics=["t"], group_protocol="consumer", behaviour="manual").join()
    # past the assignment interval
    group.advance(2)
    group.puppets["b"].heartbeat()
    place = f"1 at {cluster.bootstrap_servers}"
    listed = run("list", "--state", "reconciling", *at)
    assert listed.rows[1:] == [["svc", "consumer", "Reconciling", "consumer", place]]
    ran = run("describe", "svc", *at)
    assert ran.rows[1] == ["svc", "Reconciling", "consumer/uniform", "2", place]
    assert sorted(row[4] for row in ran.rows[3:5]) == ["-", "t: 0-3"]


def test_a_share_group_is_listed_and_described_with_its_lag(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]
) -> None:
    with ShareMember(cluster, "t", "A", "workers") as member:
        member.join()
        while not cluster.group("workers").share_positions():
            member.fetch()
        cluster.produce("t", *({"value": each, "partition": 0} for each in "abc"))
        while not member.fetch(wait_ms=5_000):
            pass
        assert member.acknowledge(0, 0) == 0
        place = f"1 at {cluster.bootstrap_servers}"
        assert run("list", *at).rows[1:] == [["workers", "share", "Stable", "share", place]]
        ran = run("describe", "workers", *at)
    assert ran.rows[1] == ["workers", "Stable", "share/simple", "1", place]
    assert ["A", "-", "test", "/127.0.0.1", "t: 0-3"] in ran.rows
    # the start offset is stored one write behind; the lag counts what is finished
    assert ["t", "0", "0", "3", "2", "-"] in ran.rows


def test_a_streams_group_is_listed_and_described_with_the_inputs_of_its_tasks(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]
) -> None:
    cluster.create_topic("small", 2)
    part = Subtopology(
        subtopology_id="0",
        source_topics=("t", "small"),
        source_topic_regex=(),
        state_changelog_topics=(),
        repartition_sink_topics=(),
        repartition_source_topics=(),
        copartition_groups=(),
    )
    joining = StreamsGroupHeartbeatRequest(
        group_id="words",
        member_id="A",
        member_epoch=0,
        endpoint_information_epoch=-1,
        **dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks"), ()),
        rebalance_timeout_ms=60_000,
        topology=Topology(epoch=0, subtopologies=(part,)),
        process_id="p",
    )
    host, port = cluster.bootstrap_servers.split(":")
    with AskingClient((host, int(port))) as client:
        assert client.ask(joining, 0).error_code == 0
        place = f"1 at {cluster.bootstrap_servers}"
        assert run("list", *at).rows[1:] == [["words", "streams", "Stable", "streams", place]]
        ran = run("describe", "words", *at)
    assert ran.rows[1] == ["words", "Stable", "streams/sticky", "1", place]
    assert [row[-1] for row in ran.rows if row[:1] == ["A"]] == ["small: 0-1; t: 0-3"]


def test_describe_as_json(run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]) -> None:
    commit(cluster.bootstrap_servers, "svc", {0: 2})
    (member_id,) = form(cluster.bootstrap_servers, "svc", "a")
    commit(cluster.bootstrap_servers, "idle", {3: 0})
    ran = run("describe", "svc", "idle", "svc", "--json", *at)
    assert (ran.status, ran.err) == (0, [])
    assert ran.document == {
        "groups": [
            {
                "group_id": "svc",
                "state": "Stable",
                "protocol_type": "consumer",
                "protocol": "range",
                "coordinator": node(cluster),
                "members": [
                    {
                        "member_id": member_id,
                        "instance_id": "a",
                        "client_id": "koordinator",
                        "client_host": "/127.0.0.1",
                        "assignment": {"t": [0]},
                    }
                ],
                "offsets": [{"topic": "t", "partition": 0, "committed": 2, "end": 0, "lag": -2, "owner": member_id}],
            },
            {
                "group_id": "idle",
                "state": "Empty",
                "protocol_type": "",
                "protocol": "",
                "coordinator": node(cluster),
                "members": [],
                "offsets": [{"topic": "t", "partition": 3, "committed": 0, "end": 0, "lag": 0, "owner": None}],
            },
        ],
        "errors": [],
    }


def test_describe_reports_missing_groups_and_shows_the_others(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]
) -> None:
    commit(cluster.bootstrap_servers, "g", {0: 1})
    ran = run("describe", "nope", "g", *at)
    assert ran.status == 1
    assert ran.rows[1][0] == "g"
    assert ran.failures == ["nope: GROUP_ID_NOT_FOUND (69): Group nope not found."]


def test_a_mistyped_group_has_the_most_similar_one(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]
) -> None:
    commit(cluster.bootstrap_servers, "orders", {0: 1})
    for command in (["describe", "ordesr"], ["delete", "ordesr"], ["remove-members", "ordesr", "--all"]):
        (line,) = run(*command, *at).failures
        assert line.endswith("; did you mean 'orders'?"), line


def test_the_bootstrap_servers_may_be_a_variable(
    run: Callable[..., Ran], cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(cluster.bootstrap_servers, "orders", {0: 1})
    monkeypatch.setenv("KOORDINATOR_BOOTSTRAP", cluster.bootstrap_servers)
    ran = run("describe", "orders")
    assert (ran.status, ran.rows[1][0]) == (0, "orders")


def test_describe_creates_no_topic_and_no_group(run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]) -> None:
    # the assigned topic does not exist; the cluster would create it for a consumer
    form(cluster.bootstrap_servers, "svc", "a", topic="nowhere")
    (row,) = run("describe", "svc", "--json", *at).document["groups"][0]["offsets"]
    assert (row["topic"], row["end"], row["lag"]) == ("nowhere", None, None)
    assert run("describe", "nope", *at).status == 1
    assert [group.id for group in cluster.groups()] == ["svc"]
    cluster.create_topic("nowhere")  # refused if there were one


def test_an_unreadable_assignment_is_null(run: Callable[..., Ran], broker: Scripted) -> None:
    members = (
        DescribedGroupMember(member_id="broken", member_assignment=b"\0\0\0\0\0\7"),
        DescribedGroupMember(member_id="none"),
    )
    broker.answers(
        ApiKey.DESCRIBE_GROUPS,
        DescribeGroupsResponse(
            groups=(
                DescribedGroup(group_id="g", group_state="Stable", protocol_type="consumer", members=members),
                DescribedGroup(group_id="h", group_state="Stable", protocol_type="connect", members=members),
            )
        ),
    )
    broker.answers(ApiKey.OFFSET_FETCH, nothing_committed)
    ran = run("describe", "g", "h", "--json", "--bootstrap-server", broker.bootstrap)
    found = {
        (group["group_id"], member["member_id"]): member["assignment"]
        for group in ran.document["groups"]
        for member in group["members"]
    }
    assert found == {("g", "broken"): None, ("g", "none"): {}, ("h", "broken"): None, ("h", "none"): None}


def nothing_committed(request: OffsetFetchRequest, _: int) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        groups=tuple(OffsetFetchResponseGroup(group_id=group.group_id) for group in request.groups)
    )


# -- errors ---


@pytest.mark.parametrize(
    ("api", "step", "text"),
    [
        (
            ApiKey.API_VERSIONS,
            CLOSE,
            "this looks like a TLS or SASL listener; give its settings by --command-config",
        ),
        (ApiKey.API_VERSIONS, Raw(b"\x15\x03\x03\0\2\2\x50"), "this looks like a TLS listener"),
        (ApiKey.API_VERSIONS, SILENCE, "no response to ApiVersions v5 within 0.3 s"),
        (ApiKey.METADATA, CLOSE, "this looks like a SASL listener"),
        (ApiKey.LIST_GROUPS, SILENCE, "broker 1: 127.0.0.1:"),
        (ApiKey.LIST_GROUPS, WrongId(ListGroupsResponse()), "cannot be read: its correlation id is"),
        (ApiKey.LIST_GROUPS, Cut(ListGroupsResponse()), "cannot be read: the connection was closed after"),
        (ApiKey.LIST_GROUPS, ListGroupsResponse(error_code=31), "CLUSTER_AUTHORIZATION_FAILED (31)"),
    ],
)
def test_a_failed_request_is_one_line_and_status_1(
    run: Callable[..., Ran], broker: Scripted, api: ApiKey, step: Any, text: str
) -> None:
    broker.answers(api, step)
    ran = run("list", "--timeout", "0.3", "--bootstrap-server", broker.bootstrap)
    assert (ran.status, ran.out) == (1, "")
    (line,) = ran.err
    assert line.startswith("koordinator groups list: ")
    assert broker.bootstrap in line or "broker 1" in line
    assert text in line


def test_without_a_broker_the_status_is_1_and_json_is_still_written(run: Callable[..., Ran]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
    for arguments, document in (
        (["list"], {"groups": []}),
        (["describe", "g"], {"groups": []}),
        (["delete", "g"], {"deleted": []}),
        (["remove-members", "g", "--all"], {"group_id": "g", "removed": []}),
    ):
        ran = run(*arguments, "--json", "--bootstrap-server", place)
        assert ran.status == 1
        assert ran.failures == [f"{place}: cannot connect: Connection refused"]
        (error,) = ran.document["errors"]
        assert (error["code"], error["message"]) == (None, f"{place}: cannot connect: Connection refused")
        assert {**ran.document, "errors": []} == {**document, "errors": []}


def test_control_characters_of_a_broker_are_escaped(run: Callable[..., Ran], broker: Scripted) -> None:
    group = ListedGroup(group_id="[red]\x1b[2J\nx[/]", protocol_type="consumer", group_state="Stable")
    broker.answers(ApiKey.LIST_GROUPS, ListGroupsResponse(groups=(group,)))
    ran = run("list", "--bootstrap-server", broker.bootstrap)
    assert ran.rows[1][0] == "[red]\\x1b[2J\\nx[/]"


def test_without_a_terminal_a_long_id_is_not_folded(run: Callable[..., Ran], broker: Scripted) -> None:
    broker.answers(ApiKey.LIST_GROUPS, ListGroupsResponse(groups=(ListedGroup(group_id="g" * 500),)))
    assert run("list", "--bootstrap-server", broker.bootstrap).rows[1][0] == "g" * 500


# -- usage errors ---

ANYWHERE = ("--bootstrap-server", "localhost:9092")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["list"], "Missing option '--bootstrap-server'"),
        (["list", "--bootstrap-server", "localhost"], "'localhost': must be HOST:PORT, such as localhost:9092"),
        (["list", "--bootstrap-server", ":9092"], "':9092': must be HOST:PORT"),
        (["list", "--bootstrap-server", "a:1,,b:2"], "'': must be HOST:PORT"),
        (["list", "--bootstrap-server", "a:0"], "'a:0': PORT must be an integer from 1 to 65535"),
        (["list", "--bootstrap-server", "a:65536"], "'a:65536': PORT must be"),
        (["list", "--bootstrap-server", "a:" + "9" * 5000], "PORT must be"),
        (["list", "--bootstrap-server", "::1:9092"], "'::1:9092': an IPv6 address is written [::1]:9092"),
        (
            ["list", "--bootstrap-server", "SASL_SSL://a:1"],
            "'SASL_SSL://a:1': give HOST:PORT, and the protocol by --command-config",
        ),
        (["list", "--command-config", "nosuch", *ANYWHERE], "'--command-config': nosuch: No such file"),
        (
            ["list", "--security-protocol", "SSL", *ANYWHERE],
            "'--security-protocol': write security.protocol into a file",
        ),
        (["list", "--state", "Sleepy", *ANYWHERE], "'Sleepy' is not one of "),
        (["list", "--timeout", "0", *ANYWHERE], "0: must be more than 0 and at most 86400"),
        (["list", "--timeout", "nan", *ANYWHERE], "nan: must be more than 0"),
        (["list", "--timeout", "inf", *ANYWHERE], "inf: must be more than 0"),
        (["list", "g", *ANYWHERE], "Got unexpected extra argument (g)"),
        (["describe", *ANYWHERE], "Missing argument 'GROUP...'"),
        (["describe", "g" * 32768, *ANYWHERE], "has 32768 bytes, at most 32767 are allowed"),
        (["describe", "\udcff", *ANYWHERE], "not UTF-8"),
        (["delete", *ANYWHERE], "Missing argument 'GROUP...'"),
        (["remove-members", "g", *ANYWHERE], "give either --all, or at least one --instance-id or --member-id"),
        (["remove-members", "g", "--all", "--member-id", "m", *ANYWHERE], "give either --all, or at least one"),
        (["remove-members", "g", "--instance-id", "a,,b", *ANYWHERE], "'a,,b': an id is missing"),
        (["remove-members", "g", "--all", "--reason", "x" * 256, *ANYWHERE], "has 256 characters, at most 255"),
        (["remove-members", "g", "h", "--all", *ANYWHERE], "Got unexpected extra argument (h)"),
        (["lst"], "No such command 'lst'"),
    ],
)
def test_a_usage_error_is_one_line_and_status_2(run: Callable[..., Ran], arguments: list[str], expected: str) -> None:
    ran = run(*arguments)
    assert (ran.status, ran.out) == (2, "")
    (line,) = ran.err
    assert line.startswith("koordinator groups")
    assert expected in line


def test_bootstrap_servers_may_be_repeated_or_separated_by_commas(run: Callable[..., Ran], broker: Scripted) -> None:
    broker.answers(ApiKey.LIST_GROUPS, ListGroupsResponse())
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"127.0.0.1:{server.getsockname()[1]}"
    there = ("--bootstrap-server", f"{closed}, PLAINTEXT://{broker.bootstrap}", "--bootstrap-server", "localhost:1")
    assert run("list", "--security-protocol", "plaintext", *there).status == 0


def test_an_ipv6_address_is_written_in_brackets(run: Callable[..., Ran]) -> None:
    (line,) = run("list", "--timeout", "5", "--bootstrap-server", "[::1]:1").err
    assert line.startswith("koordinator groups list: [::1]:1: cannot connect: ")


@pytest.mark.slow
def test_the_command_imports_neither_the_emulator_nor_trio() -> None:
    script = (
        "import sys\n"
        "from koordinator.cli import main\n"
        "try: main(['groups', 'list', '--bootstrap-server', 'localhost:0'])\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name == 'trio' or name.startswith('koordinator.emulator')])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
