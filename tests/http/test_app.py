"""The HTTP API: clusters, problems, long polls, streams, tokens."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from brokers.http_server import WAIT_S, Serving

from koordinator.client.connection import Address, BrokerConnection, Deadline
from koordinator.emulator.core.groups import coordinator
from koordinator.emulator.http import app, guards
from koordinator.emulator.http.plain import from_json
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from collections.abc import Iterator

CLUSTER = "/v1/clusters/default"
TOKEN = "open sesame"


def problem(response: httpx.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    said = response.json()
    assert said["status"] == status
    assert isinstance(said, dict)
    return said


@pytest.fixture(scope="module")
def shared() -> Iterator[httpx.Client]:
    """Return a client of a server that several tests ask, and none changes."""
    with (
        Serving(seed=7, topics={"orders": 2}) as served,
        httpx.Client(base_url=served.url, trust_env=False, timeout=WAIT_S) as client,
    ):
        yield client


@pytest.mark.slow
def test_health_and_readiness(shared: httpx.Client) -> None:
    assert shared.get("/healthz").json() == {"status": "ok"}
    assert shared.get("/readyz").json() == {"status": "ready", "clusters": ["default"]}


@pytest.mark.slow
def test_records_are_written_as_text_and_read_as_they_are(http: httpx.Client) -> None:
    written = http.post(
        f"{CLUSTER}/topics/orders/records", json={"records": ["a", ["k", "v"], {"value": {"base64": "/w=="}}]}
    )
    assert written.json() == 3
    values = [record["value"]["base64"] for record in http.get(f"{CLUSTER}/topics/orders/records").json()]
    assert sorted(values) == ["/w==", "YQ==", "dg=="]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("PUT", "/topics/new", {"partitions": "2"}, 422, "partitions '2': must be a valid integer"),
        ("PUT", "/topics/new", {"partitons": 2}, 422, "partitons: unknown field; known: partitions"),
        ("PUT", "/topics/a%2Fb", {}, 409, "Topic name is invalid: 'a/b'"),
        ("PUT", "/topics/new", {"partitions": 0}, 409, "a topic has at least 1 partition, not 0"),
        ("POST", "/nodes/x/stop", {}, 422, "node 'x': must be a valid integer"),
        ("POST", "/nodes/1/stop", {"x": 1}, 422, "x: unknown field; there are no fields"),
        ("POST", "/nodes/9/stop", {}, 409, "there is no node 9; there are 1"),
        ("GET", "/groups/g/wait?member=2", None, 422, "all_owned, timeout"),
        ("GET", "/groups/g/wait?timeout=-1", None, 422, "timeout '-1': must be greater than or equal to 0"),
        ("GET", "/groups/g/wait?timeout=1000", None, 422, "timeout '1000': must be less than or equal to 600"),
        ("POST", "/topics/orders/records", {"records": 3}, 422, "records 3: must be a list"),
        ("POST", "/topics/orders/records", [], 422, "(body) []: must be an object"),
        ("POST", "/rules", {}, 422, "rule: missing"),
        ("POST", "/rules", {"rule": {"match": {"api": []}, "action": {"kind": "drop"}}}, 422, "unknown API []"),
        ("POST", "/holds", {"match": {"api": {}}}, 422, "unknown API {}"),
        (
            "POST",
            "/rules",
            {"rule": {"match": {"api": "Heartbeat"}, "action": {"kind": "error", "name": {}}}},
            422,
            "unknown error {}",
        ),
        ("DELETE", "/topics", None, 405, "method not allowed; allowed: GET, HEAD; see /openapi.json"),
        ("POST", "/topics/orders", None, 405, "method not allowed; allowed: PUT; see /openapi.json"),
        ("PATCH", "/groups/g/clock", None, 405, "method not allowed; allowed: GET, HEAD, PUT; see /openapi.json"),
        ("GET", "/groups/g/wait?state=Stabel", None, 422, "'Stabel' is not known; did you mean 'Stable'?"),
        ("PUT", "/groups/g/clock", {"mode": "manuel"}, 422, "did you mean 'manual'?"),
        ("POST", "/groups/g/clock/advance", {"by": 1, "keep_alive": "conected"}, 422, "did you mean 'connected'?"),
        ("POST", "/groups/g/actions/evict", {"member": "m", "as_if": "sesion"}, 422, "did you mean 'session'?"),
        ("POST", "/groups/g/actions/freeze", {"state": "Stabel"}, 422, "did you mean 'Stable'?"),
        ("POST", "/reset", {"scope": ["rulez"]}, 422, "did you mean 'rules'?"),
        ("POST", "/groups/g/puppets/p", {"behaviour": "brain_ded"}, 422, "is not known"),
        ("POST", "/groups/g/puppets/p", {"group_protocol": "shar"}, 422, "did you mean 'share'?"),
        ("GET", "/transactions/x/wait?state=Ongoin", None, 422, "did you mean 'Ongoing'?"),
        ("PUT", "/topics/orders/partitions/0/markers", {"markers": "lots"}, 422, "did you mean 'lost'?"),
        ("POST", "/credentials/actions/rotate_certificate", {"to": "expird"}, 422, "did you mean 'expired'?"),
        ("POST", "/groups_file", {"lines": [{"group_id": 1}]}, 422, "group_id"),
        ("GET", "/rules/rule-9", None, 404, "unknown rule 'rule-9'"),
        ("DELETE", "/rules/rule-9", None, 404, "unknown rule 'rule-9'"),
        ("GET", "/holds/hold-9", None, 404, "unknown hold 'hold-9'"),
        ("DELETE", "/holds/hold-9", None, 404, "unknown hold 'hold-9'"),
        ("GET", "/holds/hold-9/entered", None, 404, "unknown hold 'hold-9'"),
        ("POST", "/holds/hold-9/release", {}, 404, "unknown hold 'hold-9'"),
        ("GET", "/nothing", None, 404, "not found; see /openapi.json"),
        ("GET", "/groups/svc/wiat", None, 404, f"not found; did you mean {CLUSTER}/groups/svc/wait?"),
        ("GET", "/groups/svc/what/else", None, 404, "else: not found; see /openapi.json"),
        ("POST", "/groups/g/clock/advance", {"by": "1x"}, 422, "by: '1x' is not a duration"),
        ("POST", "/groups/g/clock/advance", {"by": "-1s"}, 422, "by: the duration '-1s' is negative"),
    ],
)
def test_an_impossible_operation_is_a_problem_that_names_it(
    shared: httpx.Client, method: str, path: str, body: object, status: int, said: str
) -> None:
    before = shared.get(f"{CLUSTER}/topics").json()
    assert said in problem(shared.request(method, CLUSTER + path, json=body), status)["detail"]
    assert shared.get(f"{CLUSTER}/topics").json() == before


@pytest.mark.slow
def test_a_path_without_its_cluster_is_completed(shared: httpx.Client) -> None:
    detail = problem(shared.get("/groups/svc/wait"), 404)["detail"]
    assert f"did you mean {CLUSTER}/groups/svc/wait?" in detail


@pytest.mark.slow
def test_a_response_lists_a_hundred_errors_at_most(shared: httpx.Client) -> None:
    refused = problem(shared.put(f"{CLUSTER}/topics/new", json={f"unknown{number}": 1 for number in range(300)}), 422)
    assert len(refused["errors"]) == 100
    assert refused["detail"].endswith("; and 200 more")


@pytest.mark.slow
def test_a_problem_names_the_field_and_its_value(shared: httpx.Client) -> None:
    errors = problem(shared.put(f"{CLUSTER}/topics/new", json={"partitions": "two"}), 422)["errors"]
    assert [(error["field"], error["value"]) for error in errors] == [("partitions", "'two'")]


@pytest.mark.slow
@pytest.mark.parametrize("body", [b"{", b"[1]", b'"text"', b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_object_is_a_problem(shared: httpx.Client, body: bytes) -> None:
    assert shared.put(f"{CLUSTER}/topics/new", content=body).status_code in {400, 422}
    assert "new" not in shared.get(f"{CLUSTER}/topics").text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", f"{CLUSTER}/topics/new", b'{"configs": {"retention.ms": "\\ud800"}}'),
        ("PUT", f"{CLUSTER}/topics/new", b'{"configs": {"\\udfff": "1"}}'),
        ("POST", "/v1/clusters", b'{"topics": {"\\ud800": 1}}'),
        ("POST", "/v1/clusters", b'{"advertised": "\\ud800:1"}'),
    ],
)
def test_a_lone_surrogate_is_not_a_character(shared: httpx.Client, method: str, path: str, body: bytes) -> None:
    assert "a lone surrogate" in problem(shared.request(method, path, content=body), 400)["detail"]


@pytest.mark.slow
def test_a_body_that_is_too_large_is_not_read(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "BODY_BYTES_MAX", 100)
    for content in (b"x" * 101, iter([b"x" * 60, b"x" * 60])):
        said = problem(http.put(f"{CLUSTER}/topics/new", content=content), 413)
        assert said["detail"] == "the body is larger than 100 bytes"
    assert http.put(f"{CLUSTER}/topics/new", content=iter([b"{}", b" " * 90])).is_success


@pytest.mark.slow
def test_a_group_may_have_any_name(shared: httpx.Client) -> None:
    for name in ("a%2Fb", "wait", "%3F%23%20", "%C3%A4"):
        assert shared.get(f"{CLUSTER}/groups/{name}").json()["state"] == "Dead"


@pytest.mark.slow
def test_a_long_poll_ends_at_its_timeout(shared: httpx.Client) -> None:
    response = shared.get(f"{CLUSTER}/groups/g/wait?state=Stable&timeout=0.2")
    assert response.json() is False
    assert 0.2 <= response.elapsed.total_seconds() < 60


@pytest.mark.slow
def test_clusters_are_made_and_deleted_each_with_ports_of_its_own(http: httpx.Client) -> None:
    made = http.post("/v1/clusters", json={"id": "two", "brokers": 2, "topics": {"a": 1}, "seed": 5})
    assert made.status_code == 201
    assert len(made.json()["bootstrap_servers"].split(",")) == 2
    assert made.json()["seed"] == 5
    assert [each["id"] for each in http.get("/v1/clusters").json()] == ["default", "two"]
    assert [topic["topic"] for topic in http.get("/v1/clusters/two/topics").json()] == ["a"]
    assert problem(http.post("/v1/clusters", json={"id": "two"}), 409)["detail"] == "there is a cluster 'two' already"
    taken = http.post("/v1/clusters", json={"listeners": {"A": "192.0.2.1:0"}})
    assert problem(taken, 409)["detail"].startswith("cannot listen on 192.0.2.1:0: ")
    assert http.delete("/v1/clusters/two").status_code == 204
    assert "there are default" in problem(http.get("/v1/clusters/two"), 404)["detail"]
    assert "group.max.sise" in problem(http.post("/v1/clusters", json={"config": {"group.max.sise": 2}}), 422)["detail"]
    assert "'sasl_ssl'" in problem(http.post("/v1/clusters", json={"security": "sasl_sl"}), 422)["detail"]
    assert [each["id"] for each in http.get("/v1/clusters").json()] == ["default"]


@pytest.mark.slow
def test_the_trace_is_streamed_as_server_sent_events(http: httpx.Client) -> None:
    with http.stream("GET", f"{CLUSTER}/trace?since=0", headers={"accept": "text/event-stream"}) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        http.post(f"{CLUSTER}/nodes/1/pause")
        http.post(f"{CLUSTER}/nodes/1/resume")
        events = (json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: "))
        changes = (event["change"] for event in events if event["kind"] == "node")
        assert [next(changes), next(changes)] == ["paused", "resumed"]


@pytest.mark.slow
def test_the_stream_carries_the_state_of_a_watched_group(http: httpx.Client) -> None:
    http.post(f"{CLUSTER}/groups/g/puppets/p").raise_for_status()
    http.post(f"{CLUSTER}/groups/g/puppets/p/join").raise_for_status()
    query = {"since": 0, "watch": "g"}
    with http.stream("GET", f"{CLUSTER}/trace", params=query, headers={"accept": "text/event-stream"}) as stream:
        lines = stream.iter_lines()
        states = (json.loads(next(lines).removeprefix("data: ")) for line in lines if line == "event: group")
        first = next(states)
        http.post(f"{CLUSTER}/groups/g/puppets/q").raise_for_status()
        later = next(state for state in states if len(state["puppets"]) == 2)
    assert {"group", "described", "timers", "clock", "offsets", "topics", "puppets", "rules", "holds"} == first.keys()
    assert (first["group"], first["described"]["state"]) == ("g", "Stable")
    assert [puppet["name"] for puppet in later["puppets"]] == ["p", "q"]


@pytest.mark.slow
def test_the_stream_of_the_live_page_has_all_groups_and_the_lines_of_one(http: httpx.Client) -> None:
    for group in ("g", "h"):
        http.post(f"{CLUSTER}/groups/{group}/puppets/p").raise_for_status()
        http.post(f"{CLUSTER}/groups/{group}/puppets/p/join").raise_for_status()
    query, accept = {"watch": "g"}, {"accept": "text/event-stream"}
    with http.stream("GET", f"{CLUSTER}/trace", params=query, headers=accept) as stream:
        lines = stream.iter_lines()
        change = json.loads(next(next(lines) for line in lines if line == "event: page").removeprefix("data: "))
    assert {row[1] for row in change["groups"]} == {"g", "h"}
    assert {line.get("group_id") for line in change["lines"]} <= {"g", None}
    assert ["lane", 0, "p", False, False, None] in change["rows"]


@pytest.mark.slow
def test_every_request_but_probes_needs_the_token() -> None:
    with Serving(token=TOKEN) as served, httpx.Client(base_url=served.url, trust_env=False, timeout=WAIT_S) as http:
        assert http.get("/healthz").is_success
        assert http.get("/readyz").is_success
        assert "Authorization: Bearer TOKEN" in problem(http.get("/v1/clusters"), 401)["detail"]
        assert http.get("/v1/clusters", headers={"authorization": "Bearer wrong"}).status_code == 401
        assert http.get("/v1/clusters", headers={"authorization": f"Bearer {TOKEN}"}).is_success


@pytest.mark.slow
def test_new_clusters_get_ports_of_the_range_until_none_is_left(free_ports: range) -> None:
    with (
        Serving(ports=free_ports) as served,
        httpx.Client(base_url=served.url, trust_env=False, timeout=WAIT_S) as http,
    ):
        assert http.get(CLUSTER).json()["bootstrap_servers"] == f"127.0.0.1:{free_ports[0]}"
        two = http.post("/v1/clusters", json={"brokers": 2, "id": "two"}).json()
        assert two["bootstrap_servers"] == f"127.0.0.1:{free_ports[1]},127.0.0.1:{free_ports[2]}"
        said = problem(http.post("/v1/clusters", json={}), 409)["detail"]
        assert "extend --port-range" in said
        http.delete("/v1/clusters/two")
        assert http.post("/v1/clusters", json={}).is_success


@pytest.mark.slow
@pytest.mark.parametrize(
    "headers",
    [
        *({"host": host} for host in ("evil.example", "[::1", "[x]:1", "[", "a:b:c", "@")),
        *({"origin": origin} for origin in ("http://evil.example", "null", "http://[", "http://[x]")),
    ],
    ids=str,
)
def test_pages_of_other_sites_control_nothing(shared: httpx.Client, headers: dict[str, str]) -> None:
    refused = shared.put(f"{CLUSTER}/topics/new", headers=headers)
    assert next(iter(headers.values())) in problem(refused, 403)["detail"]
    assert "new" not in shared.get(f"{CLUSTER}/topics").text


@pytest.mark.slow
def test_the_page_of_the_server_itself_may(http: httpx.Client) -> None:
    assert http.put(f"{CLUSTER}/topics/new", headers={"origin": str(http.base_url).rstrip("/")}).is_success


@pytest.mark.slow
def test_a_large_body_is_parsed_beside_the_server(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def parse(body: bytes) -> object:
        threads.append(threading.current_thread())
        return from_json(body)

    monkeypatch.setattr(app, "from_json", parse)
    for text in ("v", "v" * app.PARSED_AT_ONCE_MAX, "v"):
        assert http.post(f"{CLUSTER}/topics/orders/records", json={"records": [text]}).json() == 1
    small, large, last = threads
    assert small is last is not large


@pytest.mark.slow
def test_the_health_and_the_end_of_a_cluster_name_a_bug_that_has_ended_a_request(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch, no_bug_of_koordinator: list[BaseException]
) -> None:
    def fail(*_: object) -> object:
        raise ValueError("planted")

    assert http.get("/v1/health").json() == {"status": "ok"}
    monkeypatch.setitem(coordinator.HANDLERS, ApiKey.HEARTBEAT, fail)
    host, _, port = http.get(CLUSTER).json()["bootstrap_servers"].partition(":")
    with closing(BrokerConnection(Address(host, int(port)), Deadline(WAIT_S), "1")) as connection:
        request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        assert connection.send(request, 4, HeartbeatResponse).error_code == Error.UNKNOWN_SERVER_ERROR
    no_bug_of_koordinator.clear()
    for answer in (http.get("/v1/health"), http.delete(CLUSTER)):
        assert answer.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
        assert "cluster 'default': a bug in koordinator ended Heartbeat v4" in answer.json()["detail"]
    assert http.get("/healthz").is_success


@pytest.mark.slow
def test_an_old_path_works_and_names_the_new_one(http: httpx.Client) -> None:
    calls: list[tuple[str, str, Any, str]] = [
        ("PUT", "/disturbance", {"seed": 7}, "/jitter"),
        ("PUT", "/max_size", {"size": 5}, "/group_max_size"),
        ("GET", "/blocked", None, "/parked"),
        ("GET", "/world", None, "/groups_file"),
        ("GET", "/nodes/connections", None, "/connections"),
        ("GET", "/nodes/alone", None, "/lone_nodes"),
        ("POST", "/nodes/1/believe", {"group": "g", "coordinator": None}, "/nodes/1/misdirect"),
    ]
    for method, old, body, new in calls:
        before = http.request(method, CLUSTER + old, json=body)
        now = http.request(method, CLUSTER + new, json=body)
        assert (before.status_code, before.text) == (now.status_code, now.text), old
        assert before.is_success
        assert before.headers["Link"] == f'<{CLUSTER}{new}>; rel="successor-version"'
        assert before.headers["Deprecation"].startswith("@")
        assert "Deprecation" not in now.headers


OLD_ARGUMENTS = [
    ("GET", "wait", {"state": "Stable", "owned": "all"}, {"state": "Stable", "all_owned": True}),
    ("POST", "actions/fence", {"instance": "one"}, {"member": "one"}),
    ("POST", "verify/fenced", {"instance_id": "one"}, {"member": "one"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path", "old", "new"), OLD_ARGUMENTS)
def test_an_old_argument_works_and_is_deprecated(
    http: httpx.Client, method: str, path: str, old: dict[str, object], new: dict[str, object]
) -> None:
    def send(arguments: dict[str, object]) -> httpx.Response:
        where = {"params" if method == "GET" else "json": arguments}
        return http.request(method, f"{CLUSTER}/groups/g/{path}", **where)  # type: ignore[arg-type]

    http.post(f"{CLUSTER}/groups/g/puppets/one", json={"instance_id": "one"}).raise_for_status()
    http.post(f"{CLUSTER}/groups/g/puppets/one/join").raise_for_status()
    http.get(f"{CLUSTER}/groups/g/wait", params={"state": "Stable", "timeout": 20}).raise_for_status()
    before, now = send(old), send(new)
    assert before.is_success, before.text
    assert now.is_success, now.text
    assert (before.headers["Deprecation"], "Deprecation" in now.headers) == ("@1767225600", False)
    assert send(old | new).status_code == 422, "two names of one argument"


@pytest.mark.slow
def test_the_document_and_the_suggestions_have_new_paths_only(shared: httpx.Client) -> None:
    paths = shared.get("/openapi.json").json()["paths"]
    assert not [path for path in paths if path.endswith(("/world", "/blocked", "/disturbance", "/believe"))]
    assert "did you mean /v1/clusters/default/world" not in problem(shared.get(f"{CLUSTER}/worlds"), 404)["detail"]
