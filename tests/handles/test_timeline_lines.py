"""Events as readable lines."""

from __future__ import annotations

import pytest

from koordinator import Simulation, faults
from koordinator.emulator.pages.timeline import timeline, unjoined_clients

UUID = "5b1f0000-1111-2222-3333-444455556666"


def event(seq: int, kind: str, **columns: object) -> dict[str, object]:
    return {"seq": seq, "wall_ts": 1_000_000 + seq * 1000, "kind": kind, "group_id": "g", **columns}


def call(seq: int, kind: str, api: str, **columns: object) -> dict[str, object]:
    named = {"conn_id": 1, "correlation_id": columns.pop("id", seq), "client_id": "svc-1", "api_version": 8}
    return event(seq, kind, api=api, **{**named, **columns})


def lines_of(*events: dict[str, object], shown: int = 15) -> list[str]:
    """Return the lines without times and names."""
    return [line.partition("s  ")[2][20:] for line in timeline(events, shown)]


def test_a_commit_has_its_offsets_error_and_duration() -> None:
    offsets = [["orders", 0, 41], ["orders", 1, 7], ["orders", 2, 1], ["orders", 3, 1]]
    request = call(1, "request", "OffsetCommit", generation=1, body={"offsets": offsets[:1]})
    held = call(2, "hold", "OffsetCommit", id=1, change="entered", hold_id="hold-1")
    answer = call(3, "response", "OffsetCommit", id=1, error="UNKNOWN_MEMBER_ID", latency_us=20_400, generation=1)
    assert lines_of(request, held, answer) == [
        "OffsetCommit v8, generation 1, orders-0: 41",
        "OffsetCommit v8, generation 1, orders-0: 41 HELD by hold-1",
        "OffsetCommit v8, generation 1, orders-0: 41 -> UNKNOWN_MEMBER_ID, after 20 ms   <-- first error",
    ]
    many = call(1, "request", "OffsetCommit", body={"offsets": offsets})
    assert lines_of(many) == ["OffsetCommit v8, orders-0: 41, orders-1: 7, orders-2: 1 and 1 more"]


def test_a_throttled_response_shows_its_time() -> None:
    request = call(1, "request", "Heartbeat", generation=1)
    answer = call(2, "response", "Heartbeat", id=1, generation=1, body={"throttle_time_ms": 2_000})
    assert lines_of(request, answer) == ["Heartbeat v8, generation 1 -> OK, throttled for 2000 ms"]


def test_a_member_id_is_short_and_a_static_member_is_called_by_its_instance() -> None:
    came = event(1, "member", change="added", member_id=f"svc-1-{UUID}", reason=f"Adding new member svc-1-{UUID}")
    gone = event(2, "member", change="removed", member_id=f"svc-1-{UUID}", reason=f"Member svc-1-{UUID} has left")
    static = event(3, "member", change="replaced", member_id=f"a-{UUID}", instance_id="a", reason="Static member a")
    assert timeline([came, gone, static]) == [
        "   +0.000s  svc-1-5b1f          added: Adding new member svc-1-5b1f",
        "   +0.001s  svc-1-5b1f          removed: Member svc-1-5b1f has left",
        "   +0.002s  a                   replaced as a-5b1f: Static member a",
    ]


@pytest.mark.parametrize(
    ("heartbeat", "api", "ids", "names"),
    [
        ("Heartbeat", "SyncGroup", (f"rdkafka-{UUID}", f"rdkafka-9{UUID[1:]}"), ["rdkafka-5b1f", "rdkafka-9b1f"]),
        ("ShareGroupHeartbeat", "ShareAcknowledge", ("t5Fk1yTWT0", "Wk0LmdG3Ql"), ["rdkafka-t5Fk", "rdkafka-Wk0L"]),
    ],
)
def test_members_with_one_client_id_are_told_apart_by_their_member_ids(
    heartbeat: str, api: str, ids: tuple[str, str], names: list[str]
) -> None:
    def asked(seq: int, of: str, member_id: str) -> dict[str, object]:
        return call(seq, "request", of, client_id="rdkafka", member_id=member_id)

    beats = [asked(number, heartbeat, ids[number % 2]) for number in range(4)]
    requests = [asked(number + 4, api, member_id) for number, member_id in enumerate(ids)]
    answers = [call(number + 6, "response", api, id=number + 4, client_id="rdkafka") for number in range(2)]
    assert [line.split()[1] for line in timeline([*beats, *requests, *answers])[-2:]] == names
    # one after the other: a client that was started again
    assert [line.split()[1] for line in timeline([requests[0], answers[0], requests[1], answers[1]])] == ["rdkafka"] * 2


def test_the_user_of_an_authenticated_client_stands_beside_its_name() -> None:
    anonymous = call(1, "request", "SyncGroup")
    certain = call(2, "request", "SyncGroup", principal="User:alice")
    assert timeline([anonymous, certain]) == [
        "   +0.000s  svc-1               SyncGroup v8",
        "   +0.001s  svc-1 (alice)       SyncGroup v8",
    ]


def test_a_loaded_group_is_one_line() -> None:
    reason = "Loaded group g with 1 members."
    state = event(1, "state", state_from="Empty", state_to="Stable", generation=2, cause="loaded", reason=reason)
    member = event(2, "member", change="loaded", member_id=f"a-{UUID}", cause="loaded", reason=reason)
    assert len(timeline([state, member])) == 1


def test_a_rebalance_has_its_cause_join_time_and_owners() -> None:
    with Simulation(topics={"orders": 4}, seed=1) as cluster:
        group = cluster.group("g")
        group.create_puppet("a", instance_id="a", topics=["orders"]).join()
        group.wait_stable(members=1)
        lines = [line.partition("s  ")[2] for line in timeline(group.events()) if "====" in line]
    assert [line.removeprefix("====                ") for line in lines] == [
        "Empty => PreparingRebalance, generation 0, member_join of a",
        "PreparingRebalance => CompletingRebalance, generation 1, after 0 ms: the initial delay has passed",
        "CompletingRebalance => Stable, generation 1, a orders [0, 1, 2, 3]",
    ]


def test_overrides_are_attributed_to_the_test() -> None:
    with Simulation(topics={"orders": 4}, seed=1) as cluster:
        group = cluster.group("g")
        rule = group.add_rule("SyncGroup", faults.error("REBALANCE_IN_PROGRESS"), once=True)
        group.create_puppet("a", topics=["orders"]).join()
        group.wait_stable(members=1)
        group.advance(5)
        lines = "\n".join(timeline(group.events(), shown=100))
    assert f"{rule.id} added" in lines
    assert f"SyncGroup v5, generation 1 meets {rule.id}" in lines
    assert "clock               advance, the group's time is 5 s later" in lines
    assert "first error" not in lines, "it is how a rebalance goes"


def test_the_first_error_is_shown_however_long_ago_it_was() -> None:
    first = call(1, "response", "OffsetCommit", error="ILLEGAL_GENERATION")
    later = [call(number, "response", "OffsetFetch") for number in range(2, 30)]
    lines = lines_of(first, *later, shown=3)
    assert lines[0] == "OffsetCommit v8 -> ILLEGAL_GENERATION   <-- first error"
    assert lines[2:] == ["OffsetFetch v8 -> OK"] * 3


def test_expected_rebalance_errors_are_not_errors() -> None:
    events = [
        call(1, "response", "JoinGroup", error="MEMBER_ID_REQUIRED", member_id=f"svc-1-{UUID}"),
        call(2, "response", "Heartbeat", error="REBALANCE_IN_PROGRESS"),
        call(3, "response", "SyncGroup", error="REBALANCE_IN_PROGRESS"),
        call(4, "response", "OffsetCommit", error="REBALANCE_IN_PROGRESS"),
    ]
    marked = [line for line in lines_of(*events) if "first error" in line]
    assert marked == ["OffsetCommit v8 -> REBALANCE_IN_PROGRESS   <-- first error"]


def test_commits_that_their_client_repeats_are_counted() -> None:
    def commit(number: int, client: str = "a", error: str | None = None) -> list[dict[str, object]]:
        body = {"offsets": [["orders", 0, number]]}
        columns = {"id": number, "client_id": client}
        return [
            call(number, "request", "OffsetCommit", body=body, **columns),
            call(number, "response", "OffsetCommit", error=error, **columns),
        ]

    fetch = call(9, "response", "OffsetFetch")
    commits = [
        *commit(1),
        *commit(2, "b"),
        *commit(3),
        *commit(4),
        fetch,
        *commit(5),
        *commit(6, error="X"),
        *commit(7),
    ]
    assert lines_of(*commits)[:-1] == [
        "OffsetCommit v8, orders-0: 2 -> OK",
        "OffsetCommit v8, orders-0: 4 -> OK",
        "OffsetFetch v8 -> OK",
        "OffsetCommit v8, orders-0: 5 -> OK",
        "OffsetCommit v8, orders-0: 6 -> X   <-- first error",
        "OffsetCommit v8, orders-0: 7 -> OK",
    ]
    assert timeline(commits)[-1] == "and 2 repeated commits"


def test_heartbeats_that_went_well_are_counted() -> None:
    beats = [call(number, kind, "Heartbeat", id=number // 2) for number in range(8) for kind in ("request", "response")]
    assert timeline(beats) == ["and 8 successful heartbeats"]
    assert timeline(beats[:2]) == ["and 1 successful heartbeat"]
    assert timeline([]) == []


def test_a_line_is_no_longer_than_can_be_read() -> None:
    (line,) = timeline([event(1, "member", change="removed", member_id="m", reason="x" * 1000)])
    assert len(line) == 200
    assert line.endswith("x…")


def test_a_move_shows_both_brokers_and_added_partitions_stand_beside_it() -> None:
    with Simulation(topics={"t": 2}, brokers=2) as cluster:
        group = cluster.group("g")
        group.create_puppet("a", topics=["t"]).join()
        group.wait_stable(members=1)
        here = next(each["node"] for each in group.events() if each["kind"] == "state")
        there = 3 - int(str(here))
        cluster.move_coordinator("g", to=there)
        cluster.topic("t").add_partitions(1)
        lines = "\n".join(timeline(group.events(), 100))
    assert f" from broker {here} to {there}" in lines
    assert "coordinator moved: __consumer_offsets-" in lines
    assert "add_partitions (topic t, count 1)" in lines


def test_a_client_that_only_found_the_coordinator_may_need_a_newer_release() -> None:
    lookups = [call(1, "request", "FindCoordinator"), call(2, "response", "FindCoordinator", id=1)]
    (hint,) = unjoined_clients(lookups)
    assert hint.startswith("client 'svc-1' found the coordinator, and sent no request of the group")
    assert "librdkafka" not in hint
    names = {"client_software": "confluent-kafka-python", "client_version": "2.16.1-rdkafka-2.16.0"}
    (hint,) = unjoined_clients([{**event, **names} for event in lookups])
    assert hint.endswith(
        "with group.protocol=consumer librdkafka joins no group before Kafka 4.0, and reports no error"
    )
    assert not unjoined_clients([*lookups, call(3, "request", "JoinGroup")]), "its JoinGroup is parked"
    assert not unjoined_clients(lookups[:1]), "it waits for the address"
    refused = call(2, "response", "FindCoordinator", id=1, error="COORDINATOR_NOT_AVAILABLE")
    assert not unjoined_clients([*lookups[:1], refused])


def test_requests_without_a_group_are_those_of_its_clients() -> None:
    with Simulation(topics={"t": 2}) as cluster:
        group = cluster.group("g")
        group.create_puppet("a", topics=["t"]).join()
        group.wait_stable(members=1)
        group.assert_request("Fetch", times=0)
        with pytest.raises(ValueError, match="the API 'Fetsch' is not known; did you mean 'Fetch'"):
            group.assert_request("Fetsch")
