"""The image of the data pipeline, as compose/compose.yaml runs it: beside an emulator, over its trace."""

from __future__ import annotations

import json
import os
import socket
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest
from brokers.docker_cli import docker, size_mib

from koordinator.handles.remote import Remote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.needs("docker"), pytest.mark.slow]

UP_S = 120
JOB_S = 600

COUNTED = """
import json, pathlib, pyarrow.parquet
folder = pathlib.Path("/store/tables/gold/rebalance")
rows = [row for file in folder.rglob("*.parquet") for row in pyarrow.parquet.read_table(file).to_pylist()]
print(json.dumps([row["gen_after"] for row in rows if row["group_id"] == "svc"]))
"""


@pytest.fixture
def project() -> Iterator[dict[str, str]]:
    """Yield the variables of a Docker Compose project, which is removed with all its resources."""
    with socket.socket() as kafka, socket.socket() as control:
        for each in (kafka, control):
            each.bind(("127.0.0.1", 0))
        ports = {"PORT": str(kafka.getsockname()[1]), "CONTROL_PORT": str(control.getsockname()[1])}
    files = "compose/compose.yaml:compose/compose.host.yaml"
    variables = {**ports, "COMPOSE_FILE": files, "COMPOSE_PROJECT_NAME": f"koordinator-pipeline-{os.getpid()}"}
    yield variables
    docker("compose", "--profile", "pipeline", "down", "--volumes", environment=variables, timeout_s=UP_S)


@pytest.mark.usefixtures("image")
def test_the_job_loads_the_trace_of_the_emulator_beside_it(
    pipeline_image: str, project: dict[str, str], figure: Callable[[str, str], None]
) -> None:
    compose = partial(docker, "compose", environment=project)
    before = set(docker("volume", "ls", "-q").split())
    compose("up", "--wait", "koordinator", timeout_s=UP_S)
    with Remote(f"http://127.0.0.1:{project['CONTROL_PORT']}", "demo") as server:
        group = server.cluster().group("svc")
        for number in range(2):
            group.create_puppet(f"p{number}", topics=["orders"]).join()
        last = group.wait_stable(members=2, timeout=UP_S).generation
    compose("stop", "koordinator")
    begun = time.monotonic()
    said = compose("run", "--rm", "pipeline", timeout_s=JOB_S)
    took = time.monotonic() - begun
    assert "0 quarantined" in said
    counted = compose("run", "--rm", "--entrypoint", "python", "pipeline", "-c", COUNTED)
    assert sorted(json.loads(counted)) == list(range(1, last + 1))
    # other output goes with its container
    made = set(docker("volume", "ls", "-q").split()) - before
    assert {name.removeprefix(f"{project['COMPOSE_PROJECT_NAME']}_") for name in made} == {"traces", "store"}
    whole, ours = size_mib(pipeline_image)
    figure("image of the pipeline", f"{whole:.0f} MiB, {ours:.0f} MiB of them beside the base image")
    figure("a small trace through the pipeline's container", f"{took:.0f} s")
    assert ours < 1100
