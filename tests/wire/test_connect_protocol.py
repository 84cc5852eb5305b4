"""The protocol of Kafka Connect workers: the bytes of Kafka Connect 3.9.2."""

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordinator.wire.messages.connect_protocol import (
    CONNECTOR,
    ConnectorTasks,
    WorkerAssignment,
    WorkerSubscription,
    read_worker_assignment,
    read_worker_subscription,
    write_worker_assignment,
    write_worker_subscription,
)
from koordinator.wire.primitives import Malformed

HEAD = "0000 00014c 000155 0000000000000005"  # no error, leader "L", its url "U", offset 5
GIVEN = "00000002 000161 00000002 ffffffff 00000000 000162 00000001 00000002"  # a: itself and task 0; b: task 2
STOPPED = "00000001 000162 00000001 00000001"  # b: task 1
TASKS = (ConnectorTasks(connector="a", tasks=(CONNECTOR, 0)), ConnectorTasks(connector="b", tasks=(2,)))
ASSIGNMENT = WorkerAssignment(
    leader="L",
    leader_url="U",
    config_offset=5,
    assignment=TASKS,
    revoked=(ConnectorTasks(connector="b", tasks=(1,)),),
    delay=300_000,
)
EAGER = WorkerAssignment(error=1, leader="L", leader_url="U", config_offset=5, assignment=TASKS)


@pytest.mark.parametrize("version", [1, 2])
def test_an_incremental_assignment_equals_kafkas_bytes(version: int) -> None:
    data = bytes.fromhex(f"000{version}{HEAD}{GIVEN}{STOPPED}000493e0")
    assert write_worker_assignment(ASSIGNMENT, version) == data
    assert read_worker_assignment(data) == ASSIGNMENT


def test_an_eager_assignment_equals_kafkas_bytes() -> None:
    data = bytes.fromhex(f"0000{HEAD}{GIVEN}".replace("0000 00014c", "0001 00014c"))
    assert write_worker_assignment(EAGER, 0) == data
    assert read_worker_assignment(data) == EAGER


@pytest.mark.parametrize("version", [1, 2])
def test_a_subscription_lists_the_workers_tasks(version: int) -> None:
    runs = bytes.fromhex(f"000{version}{HEAD}{GIVEN}00000000 00000000")
    data = bytes.fromhex(f"000{version} 000155 0000000000000005 00000038") + runs
    subscription = WorkerSubscription(url="U", config_offset=5, allocation=runs)
    assert write_worker_subscription(subscription, version) == data
    assert read_worker_subscription(data) == subscription
    assert read_worker_assignment(runs) == replace(ASSIGNMENT, revoked=(), delay=0)


@pytest.mark.parametrize(("version", "rest"), [(0, ""), (1, "ffffffff"), (2, "ffffffff")])
def test_a_new_worker_runs_nothing(version: int, rest: str) -> None:
    data = bytes.fromhex(f"000{version} 000155 0000000000000005 {rest}")
    assert write_worker_subscription(WorkerSubscription(url="U", config_offset=5), version) == data
    assert read_worker_subscription(data).allocation is None


def test_the_eager_version_omits_newer_fields() -> None:
    assert read_worker_assignment(write_worker_assignment(ASSIGNMENT, 0)) == replace(ASSIGNMENT, revoked=(), delay=0)


def test_a_version_from_the_future_is_read_as_far_as_it_is_known() -> None:
    assert read_worker_assignment(b"\0\x09" + write_worker_assignment(ASSIGNMENT)[2:] + b"more") == ASSIGNMENT


@pytest.mark.parametrize("data", ["", "00", "ffff", "0001", "0001 7fff"])
def test_an_invalid_worker_blob_is_malformed(data: str) -> None:
    for read in (read_worker_subscription, read_worker_assignment):
        with pytest.raises(Malformed):
            read(bytes.fromhex(data))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_at_all_raise_nothing_but_malformed(data: bytes) -> None:
    for read in (read_worker_subscription, read_worker_assignment):
        with contextlib.suppress(Malformed):
            read(data)
