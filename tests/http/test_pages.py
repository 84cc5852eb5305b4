"""The dashboard, and the trace as an HTML page and for Perfetto."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx
import pytest
from brokers.http_server import WAIT_S, Serving

from koordinator.emulator.pages.dashboard import FILES

if TYPE_CHECKING:
    from collections.abc import Iterator

TRACE = "/v1/clusters/default/trace"


@pytest.fixture
def guarded() -> Iterator[httpx.Client]:
    with (
        Serving(token="s3cret") as served,
        httpx.Client(base_url=served.url, trust_env=False, timeout=WAIT_S) as client,
    ):
        yield client


@pytest.mark.slow
def test_the_page_and_its_files_need_no_token_and_have_no_data(guarded: httpx.Client) -> None:
    page = guarded.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    files = re.findall(r'(?:src|href)="/static/([^"]+)"', page.text)
    assert files == list(FILES)
    for name in files:
        file = guarded.get(f"/static/{name}")
        assert file.status_code == 200
        assert file.headers["content-type"] in {"text/css; charset=utf-8", "text/javascript; charset=utf-8"}
    assert guarded.get(TRACE).status_code == 401


@pytest.mark.slow
def test_the_page_may_load_only_from_its_own_server(http: httpx.Client) -> None:
    page = http.get("/")
    assert "default-src 'none'; script-src 'self';" in page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    for name in FILES:
        assert not re.search(r"https?://(?!www\.w3\.org/)", http.get(f"/static/{name}").text), name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["html.py", "..%2fhtml.py", "%2e%2e", "dashboard.html"])
def test_nothing_else_is_a_file(http: httpx.Client, name: str) -> None:
    refused = http.get(f"/static/{name}")
    assert refused.status_code == 404
    assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.slow
def test_the_trace_is_to_be_had_for_perfetto(http: httpx.Client) -> None:
    http.post("/v1/clusters/default/groups/g/puppets/p").raise_for_status()
    http.post("/v1/clusters/default/groups/g/puppets/p/join").raise_for_status()
    given = http.get(TRACE, params={"format": "perfetto"}).raise_for_status().json()
    names = {event["args"]["name"] for event in given["traceEvents"] if event["name"] == "process_name"}
    assert "group g" in names
    assert given["otherData"]["seed"] == 7


@pytest.mark.slow
def test_the_trace_is_to_be_had_as_a_page(http: httpx.Client) -> None:
    page = http.get(TRACE, params={"format": "html"}).raise_for_status()
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "mount(root, trace)" in page.text


@pytest.mark.slow
def test_the_members_of_a_group_are_to_be_had_as_a_test(http: httpx.Client) -> None:
    http.post("/v1/clusters/default/groups/g/puppets/p").raise_for_status()
    http.post("/v1/clusters/default/groups/g/puppets/p/join").raise_for_status()
    source = http.get(TRACE, params={"format": "test", "group": "g"}).raise_for_status()
    assert source.headers["content-type"] == "text/x-python; charset=utf-8"
    assert "    p.join()\n" in source.text
    refused = http.get(TRACE, params={"format": "test", "group": "h"})
    assert (refused.status_code, refused.json()["detail"]) == (409, "the trace has no group 'h'")


@pytest.mark.slow
def test_the_last_events_are_to_be_had_as_text(http: httpx.Client) -> None:
    http.post("/v1/clusters/default/groups/g/puppets/p").raise_for_status()
    http.post("/v1/clusters/default/groups/g/puppets/p/join").raise_for_status()
    report = http.get(TRACE, params={"format": "text", "group": "g"}).raise_for_status()
    assert report.headers["content-type"] == "text/plain; charset=utf-8"
    lines = report.text.splitlines()
    assert lines[0].startswith("now: ")
    assert lines[1] == "its last events:"
    assert "JoinGroup" in report.text
    assert http.get(TRACE, params={"format": "text"}).text.startswith("group 'g':\n")
    unknown = http.get(TRACE, params={"format": "text", "group": "G"}).text
    assert "there is no group 'G'" in unknown
    assert "'g'" in unknown


@pytest.mark.slow
def test_another_form_is_refused_with_those_there_are(http: httpx.Client) -> None:
    refused = http.get(TRACE, params={"format": "yaml"})
    assert refused.status_code == 422
    assert refused.json()["detail"] == "format: must be json, text, perfetto, html or test"
    assert refused.json()["errors"][0]["field"] == "format"


@pytest.mark.slow
def test_json_is_the_default_format(http: httpx.Client) -> None:
    assert http.get(TRACE, params={"format": "json"}).json() == http.get(TRACE).json()
