"""The first group of a server does not wait until values are compiled, but for those of which it makes dozens."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json
from koordinator import Emulator
from koordinator.client.connection import Address, BrokerConnection, Deadline
from koordinator.wire import values
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

late = []
compiled_init = values._compiled_init

def recorded(cls):
    late.append(f"{cls.__module__}.{cls.__name__}")
    return compiled_init(cls)

values._compiled_init = recorded

with Emulator() as cluster:
    host, _, port = cluster.bootstrap_servers.rpartition(":")
    connection = BrokerConnection(Address(host, int(port)), Deadline(20), "1")
    protocols = (JoinGroupRequestProtocol(name="range", metadata=b""),)
    join = {
        "group_id": "svc",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": protocols,
    }
    named = connection.send(JoinGroupRequest(**join, member_id=""), 5, JoinGroupResponse)
    joined = connection.send(JoinGroupRequest(**join, member_id=named.member_id), 5, JoinGroupResponse)
    sync = SyncGroupRequest(
        group_id="svc",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=(SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"mine"),),
    )
    synced = connection.send(sync, 3, SyncGroupResponse)
    connection.close()
print(json.dumps({"late": late, "assignment": synced.assignment.decode()}))
"""


@pytest.mark.slow
def test_the_first_group_compiles_only_the_rows_of_api_versions() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["assignment"] == "mine"
    late = [name for name in told["late"] if not name.startswith("koordinator.client.")]
    assert late == ["koordinator.wire.messages.api_versions.ApiVersion"]
