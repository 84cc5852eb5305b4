"""Every lever does the same in Python and with curl, and the quick start is a project for each client."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import http_pages
import pytest
from brokers.http_server import Serving
from scenes.documentation import NEEDS_SHELL, blocks, run_shell

from koordinator import Emulator
from koordinator.handles.remote import Remote

if TYPE_CHECKING:
    from pathlib import Path

LEVERS = {lever.name: lever for lever in http_pages.levers()}
CLIENTS = {"kafka-python": "from kafka ", "confluent-kafka": "from confluent_kafka ", "aiokafka": "from aiokafka "}


@pytest.mark.parametrize("name", LEVERS)
def test_the_python_example_of_a_lever_runs_in_process(name: str) -> None:
    with Emulator(**http_pages.CLUSTER) as cluster:
        http_pages.prepare(cluster)
        http_pages.perform(cluster, LEVERS[name])


@pytest.mark.slow
@NEEDS_SHELL
@pytest.mark.parametrize("name", LEVERS)
def test_the_curl_commands_of_a_lever_run(name: str, tmp_path: Path) -> None:
    page = LEVERS[name].page.read_text(encoding="utf-8")
    part = page.partition(f"<!-- curl of {name}: ")[2].partition(f"<!-- end of curl of {name} -->")[0]
    (commands,) = re.findall(r"^```bash\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    with Serving(**http_pages.CLUSTER) as served, Remote(served.url) as server:
        http_pages.prepare(server.cluster())
        script = commands.replace(http_pages.SERVER, served.url.removeprefix("http://"))
        ran = run_shell(script, tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_index_lists_every_lever() -> None:
    index = (http_pages.LEVERS / "index.md").read_text(encoding="utf-8")
    assert [each for each in LEVERS.values() if f"[{each.name}]({each.page.name}#" not in index] == []


@pytest.mark.parametrize("client", CLIENTS)
def test_the_quick_start_is_a_project_that_passes(pytester: pytest.Pytester, client: str) -> None:
    files = [each for each in blocks("python") if each.page.stem == "quick-start"]
    (program,) = (each.text for each in files if CLIENTS[client] in each.text)
    (test,) = (each.text for each in files if "def test_" in each.text)
    pytester.makepyfile(orders=program, test_orders=test.replace('"kafka-python"', f'"{client}"'))

    pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=120).assert_outcomes(passed=2)
