"""Clients that are still connected when a test ends."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

from clients.raw_member import Rival

from koordinator import Emulator
from koordinator.client.connection import Address, BrokerConnection, Deadline
from koordinator.fixtures import leaks
from koordinator.fixtures.leaks import leaked_clients

if TYPE_CHECKING:
    import pytest

LEAKING = """
import socket
import pytest
from koordinator.client.connection import Address, Deadline, BrokerConnection

leaked = []

def leave(cluster, client_id="app"):
    host, _, port = cluster.bootstrap_servers.rpartition(":")
    leaked.append(BrokerConnection(Address(host, int(port)), Deadline(10), "1", client_id))
    return leaked[-1]

def test_leaves_one(koordinator):
    leave(koordinator)

{more}

def test_close_all():
    for each in leaked:
        each.close()
"""

STILL_OPEN = "koordinator: still open when the test ended: 1 connection of client 'app'."


def run(pytester: pytest.Pytester, *arguments: str, more: str = "") -> pytest.RunResult:
    pytester.makepyfile(test_it=LEAKING.format(more=more))
    return pytester.runpytest("-p", "no:hypothesispytest", "-W", "default::UserWarning", *arguments)


def test_a_leaked_client_is_a_warning_with_its_name(pytester: pytest.Pytester) -> None:
    result = run(pytester)
    result.assert_outcomes(passed=2, warnings=1)
    result.stdout.fnmatch_lines([f"*LeakWarning: {STILL_OPEN} Close the client in the test, or set leaks='ignore' *"])


def test_the_option_turns_the_warning_into_an_error_or_off(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--koordinator-leaks=error")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines([f"{STILL_OPEN}*", "*- koordinator timeline -*", "full trace: *"])
    run(pytester, "--koordinator-leaks=ignore").assert_outcomes(passed=2)


def test_the_marker_and_the_argument_override_the_command_line(pytester: pytest.Pytester) -> None:
    more = """
@pytest.mark.koordinator(leaks="ignore")
def test_marked(koordinator, koordinator_factory):
    leave(koordinator)
    leave(koordinator_factory(leaks="warn"), "other")
"""
    result = run(pytester, "--koordinator-leaks=error", more=more)
    result.assert_outcomes(passed=3, errors=1, warnings=1)
    result.stdout.fnmatch_lines(["*LeakWarning: *1 connection of client 'other'.*"])


def test_clients_left_by_a_failed_test_are_not_reported(pytester: pytest.Pytester) -> None:
    more = "def test_fails(koordinator):\n    leave(koordinator)\n    assert not 1\n"
    result = run(pytester, "--koordinator-leaks=error", "-k", "fails or close", more=more)
    result.assert_outcomes(passed=1, failed=1)


def test_an_unknown_action_is_an_error_of_one_line(pytester: pytest.Pytester) -> None:
    more = "@pytest.mark.koordinator(leaks='wran')\ndef test_marked(koordinator): pass\n"
    result = run(pytester, "-k", "marked", more=more)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*UsageError: @pytest.mark.koordinator: leaks='wran': must be one of ignore, *"])


def test_the_members_of_a_leaked_client_are_named() -> None:
    with Emulator(topics={"orders": 1}) as cluster, Rival(cluster.bootstrap_servers, "one") as rival:
        rival.send_join()
        rival.receive()
        (line,) = leaked_clients(cluster._port)
        assert line == "1 connection of client 'rival', member 'one' of group 'g'"


def test_a_client_that_is_just_closing_is_not_leaked_clients() -> None:
    with Emulator() as cluster:
        host, _, port = cluster.bootstrap_servers.rpartition(":")
        for _ in range(200):
            with closing(BrokerConnection(Address(host, int(port)), Deadline(10), "1", "app")):
                pass
            assert leaked_clients(cluster._port) == []
        assert leaked_clients(cluster._port) == []
    assert leaked_clients(cluster._port) == [], "nothing is left of a cluster that has stopped"


def test_a_client_that_closes_in_the_background_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "GRACE_S", 10)
    with Emulator() as cluster:
        host, _, port = cluster.bootstrap_servers.rpartition(":")
        link = BrokerConnection(Address(host, int(port)), Deadline(10), "1", "app")
        closing_soon = threading.Timer(0.05, link.close)
        closing_soon.start()
        assert leaked_clients(cluster._port) == []
        closing_soon.join(10)


def test_a_test_that_leaks_clients_ends_quickly() -> None:
    assert leaks.GRACE_S <= 0.05
    with Emulator() as cluster:
        host, _, port = cluster.bootstrap_servers.rpartition(":")
        links = [BrokerConnection(Address(host, int(port)), Deadline(10), "1", f"app-{number}") for number in range(50)]
        # processor time, to which the grace period adds nothing
        before = time.process_time()
        assert len(leaked_clients(cluster._port)) == 50
        cluster.stop()
        assert time.process_time() - before < 0.5, "it takes about 10 ms"
        for link in links:
            link.close()
