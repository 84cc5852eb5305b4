"""Every lever does the same in Python and with curl, and the quick start is a project for each client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import http_pages
import pytest
from brokers.http_server import Serving
from scenes.documentation import NEEDS_SHELL, blocks, run_shell

from koordinator import Emulator
from koordinator.handles.remote import Remote

if TYPE_CHECKING:
    from pathlib import Path

LEVERS = [pytest.param(page, id=page.stem) for page in http_pages.LEVERS.glob("*.md") if page.stem != "index"]
CLIENTS = {"kafka-python": "from kafka ", "confluent-kafka": "from confluent_kafka ", "aiokafka": "from aiokafka "}


@pytest.mark.parametrize("page", LEVERS)
def test_the_python_example_of_a_lever_runs_in_process(page: Path) -> None:
    with Emulator(**http_pages.CLUSTER) as cluster:
        http_pages.prepare(cluster)
        http_pages.perform(cluster, page)


@pytest.mark.slow
@NEEDS_SHELL
@pytest.mark.parametrize("page", LEVERS)
def test_the_curl_commands_of_a_lever_run(page: Path, tmp_path: Path) -> None:
    (block,) = (each for each in blocks("bash") if each.page == page)
    with Serving(**http_pages.CLUSTER) as served, Remote(served.url) as server:
        http_pages.prepare(server.cluster())
        script = block.text.replace(http_pages.SERVER, served.url.removeprefix("http://"))
        ran = run_shell(script, tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_index_lists_every_lever() -> None:
    index = (http_pages.LEVERS / "index.md").read_text(encoding="utf-8")
    assert [page.values[0] for page in LEVERS if f"({page.values[0].name})" not in index] == []


@pytest.mark.parametrize("client", CLIENTS)
def test_the_quick_start_is_a_project_that_passes(pytester: pytest.Pytester, client: str) -> None:
    files = [each for each in blocks("python") if each.page.stem == "quick-start"]
    (program,) = (each.text for each in files if CLIENTS[client] in each.text)
    (test,) = (each.text for each in files if "def test_" in each.text)
    pytester.makepyfile(orders=program, test_orders=test.replace('"kafka-python"', f'"{client}"'))

    pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=120).assert_outcomes(passed=2)
