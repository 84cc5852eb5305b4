"""`koordinator groups` on Apache Kafka: the same commands, texts and exit statuses as with the emulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from clients.consumers import Member, wait_until
from clients.groups_command import Ran, commit, form, runner
from clients.producers import send

from koordinator.handles.clients import client_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from brokers.real_kafka import RealKafka


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Return a function that runs `koordinator groups`."""
    return runner(capsys)


@pytest.fixture
def at(kafka: RealKafka) -> tuple[str, str]:
    return ("--bootstrap-server", kafka.bootstrap_servers)


@pytest.fixture
def topic(kafka: RealKafka, name: str) -> str:
    """Create a topic of four partitions."""
    kafka.create_topic(name, 4)
    return name


@pytest.fixture
def consume(kafka: RealKafka, topic: str, name: str) -> Iterator[Callable[..., Member]]:
    """Return a function that adds consumers of a real client to the test's group."""
    members: list[Member] = []

    def start(kind: str, **extra: object) -> Member:
        config = client_config(kind, kafka.bootstrap_servers, group_id=name, **extra)
        members.append(Member(kind, config, [topic]))
        return members[-1]

    yield start
    for member in members:
        member.join()


def node(kafka: RealKafka) -> dict[str, object]:
    return {"node_id": 1, "host": kafka.address.host, "port": kafka.address.port}


def states(run: Callable[..., Ran], at: tuple[str, str], group_id: str) -> list[str]:
    return [row["state"] for row in run("describe", group_id, "--json", *at).document["groups"]]


def test_list_has_groups_with_state_and_type(
    run: Callable[..., Ran], kafka: RealKafka, at: tuple[str, str], name: str, topic: str
) -> None:
    form(kafka.bootstrap_servers, f"{name}.svc", "a", topic=topic)
    commit(kafka.bootstrap_servers, f"{name}.idle", {0: 1}, topic)
    ran = run("list", *at)
    assert (ran.status, ran.err) == (0, [])
    assert ran.rows[0] == ["GROUP", "PROTOCOL TYPE", "STATE", "TYPE", "COORDINATOR"]
    place = f"1 at {kafka.bootstrap_servers}"
    assert [row for row in ran.rows if row[0].startswith(name)] == [
        [f"{name}.idle", "-", "Empty", "classic", place],
        [f"{name}.svc", "consumer", "Stable", "classic", place],
    ]


def test_list_as_json_of_one_state(
    run: Callable[..., Ran], kafka: RealKafka, at: tuple[str, str], name: str, topic: str
) -> None:
    form(kafka.bootstrap_servers, f"{name}.svc", "a", topic=topic)
    commit(kafka.bootstrap_servers, f"{name}.idle", {0: 1}, topic)
    ran = run("list", "--json", "--state", "empty", *at)
    assert (ran.status, ran.err, ran.document["errors"]) == (0, [], [])
    assert [row for row in ran.document["groups"] if row["group_id"].startswith(name)] == [
        {
            "group_id": f"{name}.idle",
            "protocol_type": "",
            "state": "Empty",
            "type": "classic",
            "coordinator": node(kafka),
        }
    ]


def test_describe_shows_members_offsets_and_lag(
    run: Callable[..., Ran], kafka: RealKafka, at: tuple[str, str], name: str, topic: str
) -> None:
    send("kafka-python", kafka.bootstrap_servers, topic, [b"v"] * 5)
    commit(kafka.bootstrap_servers, name, dict.fromkeys(range(3), 0), topic)
    static, dynamic = form(kafka.bootstrap_servers, name, "a", None, topic=topic)
    ran = run("describe", name, *at)
    assert (ran.status, ran.err) == (0, [])
    assert ran.rows[:6] == [
        ["GROUP", "STATE", "PROTOCOL", "MEMBERS", "COORDINATOR"],
        [name, "Stable", "consumer/range", "2", f"1 at {kafka.bootstrap_servers}"],
        ["MEMBER", "INSTANCE", "CLIENT", "HOST", "ASSIGNMENT"],
        [dynamic, "-", "koordinator", "/127.0.0.1", f"{topic}: 1"],
        [static, "a", "koordinator", "/127.0.0.1", f"{topic}: 0"],
        ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "OWNER"],
    ]
    positions = ran.rows[6:]
    assert [(row[0], row[1], row[2], row[5]) for row in positions] == [
        (topic, "0", "0", "a"),
        (topic, "1", "0", dynamic),
        (topic, "2", "0", "-"),
    ]
    # one key, so all records are in one partition
    ends = [row[3] for row in positions]
    assert [row[4] for row in positions] == ends
    assert sorted(ends)[:2] == ["0", "0"]


def test_describe_consumers_of_a_real_client(
    run: Callable[..., Ran],
    kafka: RealKafka,
    at: tuple[str, str],
    name: str,
    topic: str,
    consume: Callable[..., Member],
) -> None:
    send("kafka-python", kafka.bootstrap_servers, topic, [b"v"] * 5)
    static, dynamic = consume("kafka-python", group_instance_id="a"), consume("kafka-python")
    wait_until("they share the topic", lambda: len(static.assignment) == len(dynamic.assignment) == 2, static, dynamic)
    wait_until("all is read", lambda: len(static.values + dynamic.values) >= 5, static, dynamic)
    static.commit()
    dynamic.commit()
    (group,) = run("describe", name, "--json", *at).document["groups"]
    assert (group["state"], group["protocol_type"], group["coordinator"]) == ("Stable", "consumer", node(kafka))
    assert group["protocol"] == "range"
    owned = {member["instance_id"]: member["assignment"] for member in group["members"]}
    assert owned == {
        instance_id: {topic: sorted(number for _, number in member.assignment)}
        for instance_id, member in (("a", static), (None, dynamic))
    }
    assert sum(row["end"] for row in group["offsets"]) == 5
    assert [row["lag"] for row in group["offsets"]] == [0, 0, 0, 0]


def test_a_group_that_does_not_exist_is_not_found(
    run: Callable[..., Ran], kafka: RealKafka, at: tuple[str, str], name: str, topic: str
) -> None:
    commit(kafka.bootstrap_servers, name, {0: 1}, topic)
    ran = run("describe", f"{name}.nope", name, *at)
    assert ran.status == 1
    assert ran.rows[1][0] == name
    nope = f"{name}.nope"
    unknown = f"Group {nope} not found; did you mean {name!r}?"
    assert ran.failures == [f"{nope}: GROUP_ID_NOT_FOUND (69): {unknown}"]
    assert run("list", "--json", *at).out.count(nope) == 0, "describing makes none"


def test_members_are_removed_by_instance_id_and_by_member_id(
    run: Callable[..., Ran], kafka: RealKafka, at: tuple[str, str], name: str, topic: str
) -> None:
    _, dynamic, _ = form(kafka.bootstrap_servers, name, "a", None, "b", topic=topic)
    ran = run(
        "remove-members", name, "--instance-id", "a", "--member-id", dynamic, "--reason", "scaled down", "--json", *at
    )
    assert (ran.status, ran.err) == (0, [])
    assert ran.document == {
        "group_id": name,
        "removed": [{"member_id": None, "instance_id": "a"}, {"member_id": dynamic, "instance_id": None}],
        "errors": [],
    }
    (group,) = run("describe", name, "--json", *at).document["groups"]
    assert [member["instance_id"] for member in group["members"]] == ["b"]


def test_a_member_that_is_not_there_is_refused_and_the_others_are_removed(
    run: Callable[..., Ran], kafka: RealKafka, at: tuple[str, str], name: str, topic: str
) -> None:
    form(kafka.bootstrap_servers, name, "a", topic=topic)
    ran = run("remove-members", name, "--instance-id", "a,z", "--member-id", "m", *at)
    assert (ran.status, ran.out) == (1, f"{name}: removed a\n")
    assert ran.failures == [
        f"{name}: z: UNKNOWN_MEMBER_ID (25): no such member in the group",
        f"{name}: m: UNKNOWN_MEMBER_ID (25): no such member in the group",
    ]
    assert states(run, at, name) == ["Empty"]


def test_all_members_are_removed_static_and_dynamic(
    run: Callable[..., Ran], kafka: RealKafka, at: tuple[str, str], name: str, topic: str
) -> None:
    _, dynamic = form(kafka.bootstrap_servers, name, "a", None, topic=topic)
    ran = run("remove-members", name, "--all", *at)
    assert (ran.status, ran.err) == (0, [])
    assert sorted(ran.out.splitlines()) == sorted([f"{name}: removed {dynamic}", f"{name}: removed a"])
    assert states(run, at, name) == ["Empty"]
    ran = run("remove-members", name, "--all", *at)
    assert (ran.status, ran.out, ran.err) == (0, f"{name}: has no members\n", [])


def test_a_consumer_that_was_removed_joins_again(
    run: Callable[..., Ran], at: tuple[str, str], name: str, consume: Callable[..., Member]
) -> None:
    member = consume("kafka-python", group_instance_id="a")
    wait_until("it owns all", lambda: len(member.assignment) == 4, member)
    before = len(member.callbacks)
    assert run("remove-members", name, "--instance-id", "a", *at).status == 0
    wait_until("it owns all again", lambda: len(member.callbacks) > before and len(member.assignment) == 4, member)
    assert states(run, at, name) == ["Stable"]


def test_an_unknown_group_has_no_members_to_remove(run: Callable[..., Ran], at: tuple[str, str], name: str) -> None:
    ran = run("remove-members", name, "--instance-id", "a", *at)
    assert (ran.status, ran.out) == (1, "")
    (failure,) = ran.failures
    # the groups of other tests may be similar
    assert failure.startswith(f"{name}: GROUP_ID_NOT_FOUND (69): Group {name} not found")


def test_delete_has_a_result_for_each_group(
    run: Callable[..., Ran], kafka: RealKafka, at: tuple[str, str], name: str, topic: str
) -> None:
    old, svc, nope = f"{name}.old", f"{name}.svc", f"{name}.nope"
    commit(kafka.bootstrap_servers, old, {0: 1}, topic)
    form(kafka.bootstrap_servers, svc, "a", topic=topic)
    ran = run("delete", old, svc, nope, *at)
    assert (ran.status, ran.out) == (1, f"{old}: deleted\n")
    assert ran.failures == [
        f"{svc}: NON_EMPTY_GROUP (68): the group has members",
        f"{nope}: GROUP_ID_NOT_FOUND (69): there is no such group; did you mean {svc!r}?",
    ]
    found = {row["group_id"] for row in run("list", "--json", *at).document["groups"]}
    assert found & {old, svc, nope} == {svc}


def test_a_group_can_be_deleted_once_its_members_are_removed(
    run: Callable[..., Ran], kafka: RealKafka, at: tuple[str, str], name: str, topic: str
) -> None:
    form(kafka.bootstrap_servers, name, "a", None, topic=topic)
    assert run("remove-members", name, "--all", *at).status == 0
    ran = run("delete", name, "--json", *at)
    assert (ran.status, ran.document) == (0, {"deleted": [name], "errors": []})


def test_share_offsets_are_reset_described_and_deleted(
    capsys: pytest.CaptureFixture[str], kafka: RealKafka, topic: str, name: str, at: tuple[str, str]
) -> None:
    run = runner(capsys, "share-offsets")
    send("kafka-python", kafka.bootstrap_servers, topic, [b"a", b"b"])
    reset = run("reset", name, "--topic", topic, "--to-latest", *at)
    assert (reset.status, reset.err) == (0, [])
    starts = [int(row[3]) for row in reset.rows[1:]]
    assert (len(starts), sum(starts)) == (4, 2)
    described = run("describe", name, "--json", *at).document["offsets"]
    assert [(row["partition"], row["start"], row["lag"]) for row in described] == [
        (number, start, 0) for number, start in enumerate(starts)
    ]
    assert run("delete", name, "--topic", topic, *at).out == f"{name}: deleted {topic}\n"
    assert run("describe", name, *at).out == "no offsets\n"
