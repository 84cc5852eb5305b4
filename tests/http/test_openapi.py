"""The description of the HTTP API says what the server does: schemathesis asks it everything it says can be asked."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import schemathesis
from brokers.http_server import WAIT_S, Serving
from documents import OPENAPI
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error

from koordinator.emulator.http.openapi import document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from brokers.http_server import Served

DOCUMENT: dict[str, Any] = json.loads(OPENAPI.read_text(encoding="utf-8"))
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)

ENDS = {("DELETE", "/v1/clusters/{cluster}")}
"""What would end the cluster that is asked."""

OPERATIONS = [
    (method.upper(), path)
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
    if method != "parameters" and (method.upper(), path) not in ENDS
]


@pytest.fixture(scope="module")
def asked() -> Iterator[Served]:
    with Serving(seed=7, topics={"orders": 2}) as served:
        yield served


@pytest.mark.slow
def test_the_served_document_is_the_committed_one(http: httpx.Client) -> None:
    assert http.get("/openapi.json").json() == DOCUMENT


NEWER = {"const", "contentEncoding", "identifier", "prefixItems"}
"""Keywords that OpenAPI 3.0 does not have."""


@pytest.mark.slow
def test_the_older_document_has_no_newer_keyword_and_the_same_operations(http: httpx.Client) -> None:
    older = http.get("/openapi-3.0.json").json()
    assert older["openapi"] == "3.0.3"
    assert older["paths"].keys() == DOCUMENT["paths"].keys()
    assert older["components"]["schemas"].keys() == DOCUMENT["components"]["schemas"].keys()
    assert '"null"' not in json.dumps(older)
    assert [each for each in keywords(older) if each in NEWER] == []
    leader = older["components"]["schemas"]["GroupInfo"]["properties"]["leader"]
    assert leader == {"nullable": True, "type": "string", "title": "Leader", "default": None}


def keywords(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from part
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from keywords(each)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=[f"{method} {path}" for method, path in OPERATIONS])
def test_generated_requests_never_cause_an_internal_error(asked: Served, method: str, path: str) -> None:
    @given(case=SCHEMA[path][method].as_strategy())
    @settings(max_examples=5, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def ask(case: Any) -> None:
        case.path_parameters = {
            **(case.path_parameters or {}),
            **({"cluster": "default"} if "{cluster}" in path else {}),
        }
        shorten(case)
        response = case.call(base_url=asked.url, timeout=WAIT_S)
        case.validate_response(response, checks=[not_a_server_error])
        if response.status_code >= 400:
            assert response.headers["content-type"][0].startswith("application/problem+json"), response.text

    ask()
    assert httpx.get(f"{asked.url}/healthz", trust_env=False, timeout=WAIT_S).is_success


def shorten(case: Any) -> None:
    """A long poll that would be right is not waited for, and not many brokers are started."""
    for given_to in (case.query, case.body):
        if isinstance(given_to, dict):
            if isinstance(given_to.get("timeout"), int | float) and 0 <= given_to["timeout"] <= 600:
                given_to["timeout"] = 0.01
            if isinstance(given_to.get("brokers"), int) and given_to["brokers"] > 3:
                given_to["brokers"] = 3


def test_the_texts_of_operations_name_statuses_and_no_errors_of_python() -> None:
    texts = [
        operation["description"]
        for methods in document()["paths"].values()
        for operation in methods.values()
        if isinstance(operation, dict) and "description" in operation
    ]
    assert any("Fails with 404" in text or "Fails with 409" in text for text in texts)
    assert [text for text in texts if re.search(r"\bRaises?\b|\b\w+Error\b|\bNone\b", text)] == []
