"""Lines of logs in any layout, with any clock and any names, become the events that the broker means."""

from __future__ import annotations

import json

import pytest
from builders.log_events import Row, read_lines

LOGGER = "kafka.coordinator.group.GroupCoordinator"
MESSAGE = "[GroupCoordinator 1]: Stabilized group g generation 5 (__consumer_offsets-3) with 2 members"
LOG4J = f"[2026-11-21 20:15:01,123] INFO {MESSAGE} ({LOGGER})"
STRIMZI = f"2026-11-21 20:15:01,123 INFO {MESSAGE} ({LOGGER}) [data-plane-kafka-request-handler-3]"
COLLECTED = "2026-11-21T20:15:01.987654321Z"
EPOCH_US = 1_795_292_101_123_000


def json_layout(**fields: object) -> str:
    return json.dumps({"level": "INFO", "thread": "handler-1", **fields})


LAYOUTS = {
    "log4j": LOG4J,
    "Strimzi": STRIMZI,
    "kubectl logs --prefix": f"[pod/cluster-kafka-0/kafka] {STRIMZI}",
    "kubectl logs --prefix --timestamps": f"[pod/cluster-kafka-0/kafka] {COLLECTED} {STRIMZI}",
    "kubectl logs --timestamps": f"{COLLECTED} {LOG4J}",
    "a node's container log": f"{COLLECTED} stdout F {LOG4J}",
    "docker compose": f"kafka-1  | {LOG4J}",
    "docker's json-file": json.dumps({"log": f"{LOG4J}\n", "stream": "stdout", "time": COLLECTED}),
    "log4j2 JsonLayout": json_layout(
        instant={"epochSecond": EPOCH_US // 1_000_000, "nanoOfSecond": 123_000_000},
        loggerName=LOGGER,
        message=MESSAGE,
    ),
    "log4j2 JsonLayout without instant": json_layout(timeMillis=EPOCH_US // 1000, loggerName=LOGGER, message=MESSAGE),
    "JsonTemplateLayout": json.dumps(
        {"@timestamp": "2026-11-21T20:15:01.123Z", "message": MESSAGE, "log.logger": LOGGER}
    ),
    "JSON behind kubectl logs --prefix": "[pod/k-0/kafka] "
    + json.dumps({"@timestamp": "2026-11-21T20:15:01.123Z", "message": MESSAGE, "logger_name": LOGGER}),
}

ODD = "c[1](x)-12345678-1234-1234-1234-123456789abc"
BRACKETS = [
    (
        f"Preparing to rebalance group g[1] in state PreparingRebalance with old generation 4 (__consumer_offsets-3)"
        f" (reason: Adding new member {ODD} with group instance id Some(i(2)); client reason: a [b])"
    ),
    (
        f"Preparing to rebalance group g[1] in state PreparingRebalance with old generation 4"
        f" (reason: Updating metadata for static member {ODD} with instance id i(2); client reason: x)."
    ),
    (
        f"Preparing to rebalance group g[1] in state PreparingRebalance with old generation 4"
        f" (reason: explicit `LeaveGroup` request for ({ODD}, c-2) members.)."
    ),
    f"[Group g[1]] Member {ODD} has left group through explicit `LeaveGroup` request; client reason: x",
]
JAVA = (
    "[2026-11-21 20:15:01,123] INFO [Consumer instanceId=i[2], clientId=c[1], groupId=g[1]] Successfully joined group"
)
RDKAFKA = (
    f"%7|1795292101.123|JOINGROUP|c[1]#consumer-1| [thrd:main]: JoinGroup response: GenerationId 5, Protocol range,"
    f" LeaderId x (me), my MemberId {ODD}, member metadata count 1: (no error)"
)


def prepared(number: int, time: str) -> str:
    return (
        f"[2026-10-25 {time}] INFO [GroupCoordinator 1]: Preparing to rebalance group g in state PreparingRebalance"
        f" with old generation {number} (__consumer_offsets-3) (reason: Adding new member c-{number}) ({LOGGER})"
    )


CLOCKS = {
    "set back": ("10:00:00,000", "10:00:05,000", "09:59:59,000", "09:59:59,500", "10:00:06,000"),
    "autumn": ("02:10:00,000", "02:50:00,000", "02:10:00,000", "02:50:00,000", "03:10:00,000"),
}
"""Times of five lines, in the order of a file; in autumn in Europe/Berlin the hour from two to three occurs twice."""

ZONES = {"set back": "UTC", "autumn": "Europe/Berlin"}

SERVER_LOGS = {
    **{name: [line] for name, line in LAYOUTS.items()},
    "brackets": [LOG4J.replace(MESSAGE, f"[GroupCoordinator 1]: {message}") for message in BRACKETS],
    "many": [prepared(number, "10:00:00,000") for number in range(2000)],
    "upgrade": [
        (
            "[2026-03-31 08:44:37,138] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=13]"
            " [GroupId my-consumer-group] Converted the classic group to a consumer group."
            " (org.apache.kafka.coordinator.group.GroupMetadataManager)"
        )
    ],
}


@pytest.fixture(scope="module")
def events() -> dict[str, list[Row]]:
    """Read all logs once; return the events by log, in the order of `seq`."""
    logs = SERVER_LOGS | {"java": [f"{JAVA} with generation 5"], "librdkafka": [RDKAFKA]}
    logs |= {name: [prepared(number, time) for number, time in enumerate(times)] for name, times in CLOCKS.items()}
    return {name: read_lines(lines, ZONES.get(name, "UTC"))[0] for name, lines in logs.items()}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_line_means_the_same_in_every_layout(events: dict[str, list[Row]], name: str) -> None:
    (found,) = events[name]
    assert (found.group_id, found.generation, found.node, found.body) == ("g", 5, 1, '{"n_members":2}')
    assert (found.wall_us, found.detail, found.raw) == (EPOCH_US, None, LAYOUTS[name])


def test_ids_may_contain_brackets(events: dict[str, list[Row]]) -> None:
    found = [row for row in events["brackets"] if row.change != "added"]
    assert [(row.group_id, row.member_id) for row in found] == [("g[1]", ODD)] * len(BRACKETS)
    assert [row.instance_id for row in found] == ["i(2)", "i(2)", None, None]
    (java,), (rdkafka,) = events["java"], events["librdkafka"]
    assert (java.client_id, java.group_id, java.instance_id, java.generation) == ("c[1]", "g[1]", "i[2]", 5)
    assert (rdkafka.client_id, rdkafka.member_id, rdkafka.generation) == ("c[1]", ODD, 5)


def test_an_upgrade_to_a_consumer_group_ends_the_classic_group(events: dict[str, list[Row]]) -> None:
    (found,) = events["upgrade"]
    assert (found.group_id, found.state_to, found.cause) == ("my-consumer-group", "Dead", "group_upgrade")


@pytest.mark.parametrize("name", [*CLOCKS, "many"])
def test_the_order_of_lines_counts_whatever_the_clock_says(events: dict[str, list[Row]], name: str) -> None:
    found = [row for row in events[name] if row.kind == "state"]
    assert [row.generation for row in found] == list(range(len(found)))
    assert [row.group_us for row in found] == sorted(row.group_us for row in found)
    keys = [row.seq for row in events[name]]
    assert len(set(keys)) == len(keys)


def test_a_clock_that_was_set_back_stands_still_until_it_has_caught_up(events: dict[str, list[Row]]) -> None:
    first, *later = [row.group_us for row in events["set back"] if row.kind == "state"]
    assert [(us - first) // 1000 for us in later] == [5000, 5000, 5000, 6000]


def test_the_repeated_hour_of_autumn_takes_an_hour(events: dict[str, list[Row]]) -> None:
    first, *later = [row.group_us for row in events["autumn"] if row.kind == "state"]
    assert first == 1_792_887_000_000_000  # 2026-10-25T00:10:00Z
    assert [(us - first) // 60_000_000 for us in later] == [40, 60, 100, 120]
