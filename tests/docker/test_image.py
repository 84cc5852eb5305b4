"""The image: its contents, start time, memory, and shutdown."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from brokers.cluster import syncing
from brokers.docker_cli import MIB, WAIT_S, docker, size_mib
from clients.raw_member import Rival

from koordinator.emulator.control.inspect.groups import Groups
from koordinator.handles.docker import KoordinatorContainer

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.needs("docker")

READY_TIMES = 20
"""The limit of the processor time of a start, as a multiple of a Python that only imports Trio."""

IDLE_MIB = 80

MEMBERS = 100

SERVER_S = """
import os
times = open("/proc/1/stat").read().rpartition(")")[2].split()[11:15]
print(sum(map(int, times)) / os.sysconf("SC_CLK_TCK"))
"""
"""Print the processor seconds of the container's first process and of its ended children."""

PYTHON_S = "import time, trio; print(time.process_time())"

UNWANTED = ("*/bin/*gcc*", "*/cc1", "/opt/*/pip", "/opt/*/tests", "*/.cache", "/src", "/tools")


def memory_mib(container: KoordinatorContainer) -> float:
    """Return the memory of a container as `docker stats` reports it."""
    used = container.container.stats(stream=False)["memory_stats"]
    kept = used["stats"].get("total_inactive_file", used["stats"].get("inactive_file", 0))
    return float(used["usage"] - kept) / MIB


def test_there_is_no_compiler_no_cache_and_no_test_in_it(image: str) -> None:
    names = " -o ".join(f"-path '{pattern}'" for pattern in UNWANTED)
    command = f"find / -xdev \\( {names} \\) -print 2>/dev/null; true"
    found = docker("run", "--rm", "--network", "host", "--user", "0", "--entrypoint", "sh", image, "-c", command)
    assert found == ""
    look = "command -v gcc cc make git || echo none"
    assert docker("run", "--rm", "--network", "host", "--entrypoint", "sh", image, "-c", look) == "none\n"


def test_its_self_description(image: str) -> None:
    said = docker("image", "inspect", "-f", "{{.Config.User}} {{.Config.ExposedPorts}} {{.Config.StopSignal}}", image)
    assert said == "10001:10001 map[9080/tcp:{} 9092/tcp:{}] SIGTERM\n"


def test_its_size(image: str, figure: Callable[[str, str], None]) -> None:
    whole, ours = size_mib(image)
    figure("image", f"{whole:.0f} MiB, {ours:.0f} MiB of them beside the base image")
    assert ours < 100


def printed_s(container: KoordinatorContainer, program: str) -> float:
    """Return the number that a program of the container's Python prints."""
    done = container.container.exec_run(["python", "-c", program])
    assert done.exit_code == 0, done.output
    return float(done.output)


def test_it_serves_soon_after_python_would_and_is_small(image: str, figure: Callable[[str, str], None]) -> None:
    with KoordinatorContainer(image, network_mode="host", read_only=True) as container:
        server_s = printed_s(container, SERVER_S)
        python_s = min(printed_s(container, PYTHON_S) for _ in range(3))
        idle = memory_mib(container)
    figure("docker run to ready", f"{container.ready_s:.2f} s, of the processor {server_s:.2f} s")
    figure("processor time of Python with Trio alone", f"{python_s:.2f} s")
    figure("memory, idle", f"{idle:.0f} MiB")
    assert 0 < server_s < READY_TIMES * python_s
    assert idle < IDLE_MIB


def test_a_hundred_members(image: str, figure: Callable[[str, str], None]) -> None:
    arguments = ["--topic", "t:100", "--config", "group.initial.rebalance.delay.ms=2000"]
    with ExitStack() as stack:
        container = stack.enter_context(KoordinatorContainer(image, network_mode="host", arguments=arguments))
        servers = container.bootstrap_servers
        members = [stack.enter_context(Rival(servers, f"i{number}")) for number in range(MEMBERS)]
        group = container.cluster.group("g")
        # all members in one generation, however slowly they join
        group.set_clock("manual")
        for member in members:
            member.send_join()
        assert container.cluster._port.wait(Groups.meets, WAIT_S, group="g", members=MEMBERS), group.describe()
        # a member that joins during the delay extends it (KIP-134)
        group.advance("4s")
        (generation,) = {member.joined().generation_id for member in members}
        for member in members:
            member.send(syncing(member.member_id, generation=generation), 3)
        group.wait_stable(members=MEMBERS, timeout=WAIT_S)
        figure(f"memory, with {MEMBERS} members that are connected", f"{memory_mib(container):.0f} MiB")


def test_sigterm_ends_it_with_0_and_waits_for_no_client(image: str, figure: Callable[[str, str], None]) -> None:
    arguments = ["--topic", "t:1", "--config", "group.initial.rebalance.delay.ms=3600000"]
    with (
        KoordinatorContainer(image, network_mode="host", arguments=arguments) as container,
        Rival(container.bootstrap_servers, "i") as member,
    ):
        member.send_join()
        assert container.cluster._port.wait(Groups.meets, WAIT_S, group="g", members=1)
        begun = time.monotonic()
        container.container.kill("SIGTERM")
        assert container.container.wait(timeout=WAIT_S)["StatusCode"] == 0
        figure("SIGTERM to the end", f"{time.monotonic() - begun:.2f} s")


def test_it_is_healthy_when_it_serves_and_ill_when_it_does_not(image: str) -> None:
    environment = {"KOORDINATOR_PORT": "0", "KOORDINATOR_HOST": "127.0.0.1"}
    with KoordinatorContainer(image, network_mode="host", environment=environment) as container:
        port = container.server.url.rpartition(":")[2]
        check = ["python", "-IS", "/opt/koordinator/healthy.py"]
        served = container.container.exec_run(check, environment={"KOORDINATOR_CONTROL_PORT": port})
        assert served.exit_code == 0
        refused = container.container.exec_run(check, environment={"KOORDINATOR_CONTROL_PORT": "1"})
        assert refused.exit_code == 1


def test_invalid_values_are_reported_and_leave_nothing(image: str) -> None:
    before = docker("ps", "-aq")
    container = KoordinatorContainer(image, network_mode="host", arguments=["--config", "group.max.sise=3"])
    with pytest.raises(RuntimeError, match=r"(?s)exited and does not serve.*group\.max\.size"):
        container.start()
    assert docker("ps", "-aq") == before
